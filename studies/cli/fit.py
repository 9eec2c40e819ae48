"""collwise fit and predict: model parameters from experiments, and the times that models predict."""

from __future__ import annotations

import collwise
from collwise.models.registry import PROCEDURE_NAMES
from collwise.predictions import FITTED_BY_ALGORITHM
from collwise.simulator.sweeps.method import PRECISION_OF_FITS
from collwise.studies.cli import options, types
from collwise.studies.cli.declare import option
from collwise.studies.cli.derive import derived
from collwise.studies.cli.options import BENCH

fit = derived(
    collwise.fit,
    "fit --platform mine.toml -o mine.parameters.toml",
    platform=BENCH,
    model=option(types.NamedChoice("model", [*FITTED_BY_ALGORITHM, *PROCEDURE_NAMES]), FITTED_BY_ALGORITHM[0]),
    collective=option(types.COLLECTIVES),
    precision=options.precision(PRECISION_OF_FITS),
)

predict = derived(
    collwise.predict,
    "predict --parameters mine.parameters.toml --collective bcast --procs 2:8:+1 -o bcast.times",
    model=options.MODEL,
    figures=True,
)
