"""Sets the choices of a model and of an untuned library beside the simulated best one, point by point."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from collwise.models.interface import CollectiveModel
from collwise.models.piecewise import Array
from collwise.models.switch_points import fastest
from collwise.platforms import HostPlatform
from collwise.platforms.smpi import warn_of_free_messages
from collwise.simulator.sweeps.context import SimulationContext
from collwise.simulator.sweeps.runner import RunResult
from collwise.validation.library_defaults.baselines import PAPERS, Baseline, remarks_on
from collwise.validation.openmpi.builtin_decisions import decide_as_listed
from collwise.validation.times.choice import Choice
from collwise.validation.times.grid import CaseGrid
from collwise.validation.times.points import warn_of_doubtful
from collwise.validation.times.predictions import (
    covered_by_model,
    predicted_seconds,
    seconds_of,
    simulated_seconds,
    without_prediction,
)
from collwise.validation.times.slowdown import slowdown


@dataclass(frozen=True)
class Pick:
    """The choice of a source at a point, its simulated seconds and its slowdown against the best.

    `missing` is the name of an algorithm of a library that is not in the catalogue, and so has no seconds (nan); the
    choice then only has that name.
    """

    choice: Choice
    seconds: float
    slowdown: float
    missing: str = ""

    @classmethod
    def of(cls, choice: Choice, seconds: float, best_seconds: float) -> Pick:
        """The pick of a choice that takes `seconds`, with its slowdown."""
        return cls(choice, seconds, float(slowdown(seconds, best_seconds)))

    @classmethod
    def unknown(cls, algorithm: str) -> Pick:
        """The pick of an algorithm that is not in the catalogue."""
        return cls(Choice(algorithm), np.nan, np.nan, algorithm)


NO_PICK = Pick.unknown("-")
"""The pick of a source that was not asked."""


@dataclass(frozen=True)
class Comparison:
    """One row: (collective, P, m), simulated and predicted seconds by candidate's label, and the picks.

    `model` is the model's pick, NO_PICK without a model, when nothing is predicted; `baseline` that of the untuned
    library, with the segment sizes that it ships. `listed` is the paper's comparison: Open MPI 3.1's algorithm at the
    common segment size, None with another baseline.
    """

    collective: str
    procs: int
    message_bytes: int
    simulated: Mapping[str, float]
    predicted: Mapping[str, float]
    best: Pick
    model: Pick
    baseline: Pick
    listed: Pick | None = None


@dataclass(frozen=True)
class ComparisonResult:
    """All rows of a grid, and the sweep with the cases that failed, whose rows are left out.

    `left_out` are lines for the user: algorithms without a formula, or without a prediction at some points, those of
    the baseline that are not in the catalogue, and what else the baseline does.
    """

    grid: CaseGrid
    rows: tuple[Comparison, ...]
    sweep: RunResult
    baseline: Baseline
    left_out: str = ""

    @property
    def has_model(self) -> bool:
        """Whether a model's picks are compared."""
        return any(row.predicted for row in self.rows)

    def slowdowns(self, source: str) -> Array:
        """Slowdowns of the picks of 'model', 'baseline' or 'listed', one for each row; nan where there is none."""
        picks = [getattr(row, source) for row in self.rows]
        return np.array([np.nan if pick is None else pick.slowdown for pick in picks])


def compare(
    platform: HostPlatform,
    grid: CaseGrid,
    model: CollectiveModel | None,
    context: SimulationContext,
    baseline: Baseline,
) -> ComparisonResult:
    """Simulates what is missing and compares, at each point, the simulated best with the picks of model and baseline.

    Only algorithms that the model covers are compared, all without a model. Raises UsageError when the grid
    does not fit on the platform, and for a collective that the baseline does not decide.
    """
    grid, left_out = (grid, "") if model is None else covered_by_model(model, grid)
    decisions = {point: baseline.decide(grid.collective, *point) for point in grid.points}
    listed: dict[tuple[int, int], Choice] = {}
    if baseline is PAPERS:
        listed = {point: grid.at_common_segment(decide_as_listed(grid.collective, *point)) for point in grid.points}

    def shipped(procs: int, message_bytes: int) -> Iterable[Choice]:
        point = (procs, message_bytes)
        return filter(None, (listed.get(point), decisions[point].choice))

    cases = list(dict.fromkeys([*grid.cases(), *grid.cases_of(shipped)]))
    sweep = context.simulate(platform, cases, f"{platform.name}: simulating {grid.collective}")
    warn_of_free_messages(platform)
    warn_of_doubtful(platform, [grid])
    simulated = simulated_seconds(grid, sweep)
    predicted = None if model is None else predicted_seconds(model, grid, context.progress)
    labels, choices = list(grid.candidates), list(grid.candidates.values())
    by_point = simulated.reshape(len(choices), -1).T
    foreseen_by_point = [None] * len(by_point) if predicted is None else predicted.reshape(len(choices), -1).T
    rows = []
    for point, times, foreseen in zip(grid.points, by_point, foreseen_by_point, strict=True):
        if np.isnan(times).all() or (foreseen is not None and np.isnan(foreseen).all()):
            continue
        best = float(np.nanmin(times))

        def pick(choice: Choice, point: tuple[int, int] = point, best: float = best) -> Pick:
            return Pick.of(choice, seconds_of(grid, sweep, choice, *point), best)

        decision, of_paper = decisions[point], listed.get(point)
        ours = decision.choice
        rows.append(
            Comparison(
                grid.collective,
                *point,
                dict(zip(labels, map(float, times), strict=True)),
                {} if foreseen is None else dict(zip(labels, map(float, foreseen), strict=True)),
                best=pick(choices[fastest(times)]),
                model=NO_PICK if foreseen is None else pick(choices[fastest(foreseen)]),
                baseline=Pick.unknown(decision.algorithm) if ours is None else pick(ours),
                listed=None if of_paper is None else pick(of_paper),
            )
        )
    unpredicted = "" if model is None or predicted is None else without_prediction(model, grid, predicted)
    lines = [left_out, unpredicted, *remarks_on(baseline, grid)]
    return ComparisonResult(grid, tuple(rows), sweep, baseline, "\n".join(filter(None, lines)))
