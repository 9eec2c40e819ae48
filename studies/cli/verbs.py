"""collwise simulate, measure, fit and predict make times; select, export and compare take them."""

from __future__ import annotations

import click

import collwise
from collwise.models.registry import PROCEDURE_NAMES
from collwise.predictions import FITTED_BY_ALGORITHM
from collwise.simulator.sweeps.method import PRECISION_OF_FITS
from collwise.studies.cli import options
from collwise.studies.cli.declare import option
from collwise.studies.cli.derive import derived
from collwise.studies.cli.types import COLLECTIVES, NAMES, NEW_FILE, NEW_SCRIPT, PLATFORM, NamedChoice
from collwise.validation.libraries.formats import FORMATS
from collwise.validation.select.consumers import OPENMPI

simulate = derived(
    collwise.simulate,
    "simulate --platform gros --collective bcast --procs 4,8 --sizes 8KiB:64KiB:x2",
    context=options.simulation(called=True),
    figures=True,
    beside=option(NAMES, ()),
)

measure = derived(
    collwise.measure,
    "measure --library openmpi --collective bcast --procs 4 --sizes 8KiB:64KiB:x2",
    target=options.TARGET,
    confirm=options.CROWDED,
    platform=option(PLATFORM),
    raw=option(NEW_FILE),
    script=option(NEW_SCRIPT),
    context=options.STORED,
    figures=True,
)

fit = derived(
    collwise.fit,
    "fit --platform mine.toml -o mine.parameters.toml",
    platform=options.BENCH,
    model=option(NamedChoice("model", [*FITTED_BY_ALGORITHM, *PROCEDURE_NAMES]), FITTED_BY_ALGORITHM[0]),
    collective=option(COLLECTIVES),
    precision=options.precision(PRECISION_OF_FITS),
)

predict = derived(
    collwise.predict,
    "predict --parameters mine.parameters.toml --collective bcast --procs 2:8:+1 -o bcast.times",
    model=options.MODEL,
    figures=True,
)

select = derived(collwise.select, "select bcast.times --for openmpi-4.1 -o bcast.json")
export = derived(
    collwise.export,
    "export bcast.json --version 4.1 -o mine.rules",
    output=option(NEW_FILE),
    format_name=option(NamedChoice("format", FORMATS), OPENMPI),
    procs=option(click.IntRange(1)),
)
compare = derived(collwise.compare, "compare bcast.times bcast.json openmpi-4.1 --figures figures", figures=True)
