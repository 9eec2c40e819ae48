"""Sets the choices of a model and of Open MPI beside the simulated best one, point by point."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from collwise.models.interface import CollectiveModel
from collwise.models.piecewise import Array
from collwise.models.switch_points import fastest
from collwise.platforms import HostPlatform
from collwise.platforms.smpi import warn_of_free_messages
from collwise.simulator.sweeps.context import SimulationContext
from collwise.simulator.sweeps.runner import RunResult
from collwise.validation.openmpi.builtin_decisions import decide, decide_as_listed
from collwise.validation.selection.cases import CaseGrid
from collwise.validation.selection.choice import Choice
from collwise.validation.selection.predictions import (
    covered_by_model,
    predicted_seconds,
    seconds_of,
    simulated_seconds,
    without_prediction,
)
from collwise.validation.selection.slowdown import slowdown


@dataclass(frozen=True)
class Pick:
    """The choice of a source at a point, its simulated seconds and its slowdown against the best."""

    choice: Choice
    seconds: float
    slowdown: float


@dataclass(frozen=True)
class Comparison:
    """One row: (collective, P, m), simulated and predicted seconds by candidate's label, and the picks.

    `model` is the model's pick; `openmpi` Open MPI's algorithm at the common segment size (the paper's comparison),
    `openmpi_shipped` the same with the segment sizes that Open MPI ships.
    """

    collective: str
    procs: int
    message_bytes: int
    simulated: Mapping[str, float]
    predicted: Mapping[str, float]
    best: Pick
    model: Pick
    openmpi: Pick
    openmpi_shipped: Pick


@dataclass(frozen=True)
class ComparisonResult:
    """All rows of a grid, and the sweep with the cases that failed, whose rows are left out.

    `left_out` are lines for the user that name algorithms without a formula or, at some points, without a prediction.
    """

    grid: CaseGrid
    rows: tuple[Comparison, ...]
    sweep: RunResult
    left_out: str = ""

    def slowdowns(self, source: str) -> Array:
        """Slowdowns of the picks of 'model', 'openmpi' or 'openmpi_shipped', one for each row."""
        return np.array([getattr(row, source).slowdown for row in self.rows])


def compare(
    platform: HostPlatform, grid: CaseGrid, model: CollectiveModel, context: SimulationContext
) -> ComparisonResult:
    """Simulates what is missing and compares, at each point, the simulated best with the model's and Open MPI's picks.

    Only algorithms that the model covers are compared. Raises UsageError when the grid does not fit on the platform.
    """
    grid, left_out = covered_by_model(model, grid)

    def openmpi(procs: int, message_bytes: int) -> tuple[Choice, Choice]:
        listed = decide_as_listed(grid.collective, procs, message_bytes)
        return grid.at_common_segment(listed), decide(grid.collective, procs, message_bytes)

    cases = list(dict.fromkeys([*grid.cases(), *grid.cases_of(openmpi)]))
    sweep = context.simulate(platform, cases, f"{platform.name}: simulating {grid.collective}")
    warn_of_free_messages(platform)
    simulated, predicted = simulated_seconds(grid, sweep), predicted_seconds(model, grid)
    labels, choices = list(grid.candidates), list(grid.candidates.values())
    rows = []
    for i, procs in enumerate(grid.procs):
        for j, message_bytes in enumerate(grid.message_bytes):
            times, foreseen = simulated[:, i, j], predicted[:, i, j]
            if np.isnan(times).all() or np.isnan(foreseen).all():
                continue
            best = float(np.nanmin(times))
            chosen = [choices[fastest(times)], choices[fastest(foreseen)], *openmpi(procs, message_bytes)]
            seconds = [seconds_of(grid, sweep, choice, procs, message_bytes) for choice in chosen]
            picks = [Pick(*pick) for pick in zip(chosen, seconds, slowdown(seconds, best).tolist(), strict=True)]
            of_simulation, of_model = (dict(zip(labels, map(float, each), strict=True)) for each in (times, foreseen))
            rows.append(Comparison(grid.collective, procs, message_bytes, of_simulation, of_model, *picks))
    lines = [line for line in (left_out, without_prediction(model, grid)) if line]
    return ComparisonResult(grid, tuple(rows), sweep, "\n".join(lines))
