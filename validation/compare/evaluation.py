"""Scores of models: predicted against simulated times, and the slowdown of a model's picks, over (P, m)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from collwise.common.errors import UsageError
from collwise.common.units import format_size
from collwise.models.interface import CollectiveModel
from collwise.models.piecewise import Array
from collwise.models.switch_points import TIE, fastest
from collwise.platforms import HostPlatform
from collwise.simulator.sweeps.context import SimulationContext
from collwise.simulator.sweeps.runner import RunResult
from collwise.simulator.timing import Timing
from collwise.validation.compare.maps import cases_shipped, slowdown_of_picks
from collwise.validation.library_defaults.baselines import Baseline
from collwise.validation.select.select import best_seconds
from collwise.validation.times.defaults import EVALUATED_SEGMENTS
from collwise.validation.times.grid import CaseGrid
from collwise.validation.times.predictions import predicted_seconds, seconds_of, simulated_seconds
from collwise.validation.times.slowdown import slowdown, summary_of


@dataclass(frozen=True, kw_only=True)
class Score:
    """A model, or an untuned library, on one collective and platform.

    Errors are |predicted / simulated - 1| over all its candidates; a library predicts nothing.

    Slowdowns compare its picks with the best of all candidates, in simulated time; of equal predictions the first is
    picked, as in selection. `picks` are the points where it predicts anything, `best_picks` those where it picks the
    best. `left_out` are algorithms of the evaluation that it has no formula for, `unpredicted` candidates at points
    without a prediction (not deterministic).
    """

    platform: str
    collective: str
    model: str
    predictions: int = 0
    mean_error: float = math.nan
    worst_error: float = math.nan
    worst_error_at: str = ""
    picks: int
    best_picks: int
    mean_slowdown: float
    worst_slowdown: float
    worst_at: str
    left_out: tuple[str, ...] = ()
    unpredicted: int = 0
    library: bool = False


@dataclass(frozen=True)
class Evaluation:
    """Scores on a platform, one for each model and collective; by collective, the algorithms that no model covers.

    `failed` are cases that did not run: they count neither as candidates nor as errors.
    """

    platform: str
    scores: tuple[Score, ...]
    covered_by_none: Mapping[str, tuple[str, ...]]
    failed: tuple[Timing, ...] = ()

    def best(self, collective: str) -> Score | None:
        """The score with the least mean slowdown; None where no model predicts anything."""
        found = [score for score in self.scores if score.collective == collective and score.picks and not score.library]
        return min(found, key=lambda score: (score.mean_slowdown, score.worst_slowdown), default=None)


_LARGEST_BYTES = {
    **dict.fromkeys(("bcast", "reduce", "allreduce", "reduce_scatter", "scan", "exscan"), 2**20),
    **dict.fromkeys(("scatter", "scatterv", "gather", "gatherv"), 2**18),
    **dict.fromkeys(("alltoall", "alltoallv", "allgather", "allgatherv", "reduce_scatter_block"), 2**16),
}


def usual_grid(platform: HostPlatform, collective: str, procs: Sequence[int] = ()) -> CaseGrid:
    """P from 3 to all nodes, one process per node; m from 8 B by factors of 4; the paper's segments for trees."""
    nodes = len(platform.hosts)
    counts = tuple(procs) or tuple(sorted({p for p in (3, 5, 8, 12, 16, 24, nodes) if p <= nodes}))
    largest = _LARGEST_BYTES.get(collective)
    sizes = (0,) if largest is None else tuple(4**k * 8 for k in range(20) if 4**k * 8 <= largest)
    return CaseGrid(collective, counts, sizes, segments=EVALUATED_SEGMENTS)


def evaluate(
    platform: HostPlatform,
    models: Sequence[CollectiveModel],
    grids: Sequence[CaseGrid],
    context: SimulationContext,
    baseline: Baseline | None = None,
) -> Evaluation:
    """Simulates every algorithm that any of the models covers and scores the models, collective by collective.

    With a baseline, so are the picks of the untuned library, where it decides at all. Raises UsageError if a collective
    is covered by none of the models, and for a single process, which takes no time.
    """
    if any(min(grid.procs) < 2 for grid in grids):
        raise UsageError("models are scored from P = 2 on")
    covered = [_covered(grid, models) for grid in grids]
    decided = [grid for grid in covered if baseline is not None and grid.collective in baseline.collectives]
    cases = [case for grid in covered for case in grid.cases()]
    cases += [case for grid in decided for case in cases_shipped(baseline, grid)]
    cases = list(dict.fromkeys(cases))
    sweep = context.simulate(platform, cases, f"{platform.name}: simulating {len(grids)} collectives")
    scores = []
    for grid in covered:
        simulated = simulated_seconds(grid, sweep)
        for model in models:
            predicted = predicted_seconds(model, grid, context.progress)
            scores.append(score_of(platform.name, model.name, grid, predicted, simulated, model.algorithms))
        if baseline is not None and grid in decided:
            scores.append(_score_of_library(platform.name, baseline, grid, sweep, simulated))
    none = {
        wide.collective: tuple(name for name in wide.names if name not in grid.names)
        for wide, grid in zip(grids, covered, strict=True)
    }
    return Evaluation(platform.name, tuple(scores), none, tuple(sweep.failed))


def _score_of_library(platform: str, baseline: Baseline, grid: CaseGrid, sweep: RunResult, simulated: Array) -> Score:
    """The score of an untuned library: of its picks alone, since it predicts no times."""
    shipped = [(point, baseline.choice(grid.collective, *point)) for point in grid.points]
    own = [np.nan if one is None else seconds_of(grid, sweep, one, *point) for point, one in shipped]
    best = best_seconds(simulated)
    summary = summary_of(slowdown(np.reshape(own, best.shape), best), TIE)
    worst = ""
    if summary.points:
        procs, size = grid.procs[summary.worst_at[0]], grid.message_bytes[summary.worst_at[1]]
        worst = f"P = {procs}, {format_size(size)}: {baseline.decide(grid.collective, procs, size).algorithm}"
    return Score(
        platform=platform,
        collective=grid.collective,
        model=baseline.title,
        picks=summary.points,
        best_picks=summary.best_chosen,
        mean_slowdown=summary.mean,
        worst_slowdown=summary.worst,
        worst_at=worst,
        library=True,
    )


def _covered(grid: CaseGrid, models: Sequence[CollectiveModel]) -> CaseGrid:
    covered = {name for model in models for name in model.algorithms(grid.collective)}
    names = tuple(name for name in grid.names if name in covered)
    if not names:
        raise UsageError(f"none of the models {', '.join(model.name for model in models)} covers {grid.collective}")
    return replace(grid, algorithms=names)


def score_of(
    platform: str,
    maker: str,
    grid: CaseGrid,
    predicted: Array,
    simulated: Array,
    algorithms: Callable[[str], Sequence[str]] | None = None,
) -> Score:
    """The score of what a model, or an engine, says of the grid's candidates; arrays of shape (candidates, P, m).

    Where one of the two is nan, a candidate counts as neither a pick nor an error. `algorithms` are those that a model
    covers, by collective; by default all.
    """
    choices = list(grid.candidates.values())
    # The first of equal predictions is picked: algorithm by algorithm, each by ascending segment size.
    order = sorted(range(len(choices)), key=lambda index: grid.names.index(choices[index].algorithm))
    choices, simulated, predicted = [choices[index] for index in order], simulated[order], predicted[order]
    covered = grid.names if algorithms is None else algorithms(grid.collective)
    runs = np.isfinite(simulated)
    known = runs & np.isfinite(predicted)
    wanted = runs & np.array([choice.algorithm in covered for choice in choices])[:, None, None]
    errors = np.abs(predicted[known] / simulated[known] - 1)
    picked = fastest(np.where(known, predicted, np.nan))
    summary = summary_of(slowdown_of_picks(simulated, picked, np.argmin(np.where(runs, simulated, np.inf), 0)), TIE)

    def at(choice: int, i: int, j: int) -> str:
        return f"P = {grid.procs[i]}, {format_size(grid.message_bytes[j])}: {choices[choice].label}"

    largest = np.argwhere(known)[int(np.argmax(errors))] if errors.size else ()
    return Score(
        platform=platform,
        collective=grid.collective,
        model=maker,
        predictions=int(known.sum()),
        mean_error=float(np.mean(errors)) if errors.size else math.nan,
        worst_error=float(np.max(errors)) if errors.size else math.nan,
        worst_error_at=at(*largest) if errors.size else "",
        picks=summary.points,
        best_picks=summary.best_chosen,
        mean_slowdown=summary.mean,
        worst_slowdown=summary.worst,
        worst_at=at(picked[summary.worst_at], *summary.worst_at) if summary.points else "",
        left_out=tuple(dict.fromkeys(choice.algorithm for choice in choices if choice.algorithm not in covered)),
        unpredicted=int((wanted & ~known).sum()),
    )
