"""How good models are: predicted against simulated times, and what a model's selection costs, over (P, m)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import UsageError
from collwise.common.units import format_size
from collwise.models.interface import CollectiveModel
from collwise.models.switch_points import TIE, fastest
from collwise.platforms import HostPlatform
from collwise.simulator.sweeps.context import SimulationContext
from collwise.simulator.sweeps.runner import RunResult
from collwise.simulator.timing import Case, Timing
from collwise.validation.openmpi.builtin_decisions import Choice
from collwise.validation.selection.maps import method_name


@dataclass(frozen=True)
class Grid:
    """The points of an evaluation. `segment_bytes` 0 stands for whole messages."""

    procs: tuple[int, ...]
    message_bytes: tuple[int, ...]
    segment_bytes: tuple[int, ...] = (0,)
    processes_per_node: int = 1


@dataclass(frozen=True)
class Score:
    """A model on one collective and platform. Errors are |predicted / simulated - 1| over all its candidates.

    Costs are those of its picks over the best of all candidates in simulated time, 0.05 being 5 %; of equal predictions
    the first is picked, as in selection. `picks` are the points where it predicts anything, `best_picks` those where it
    picks the best. `left_out` are algorithms of the evaluation that it has no formula for, `unpredicted` points without
    a prediction (not deterministic).
    """

    platform: str
    collective: str
    model: str
    predictions: int
    mean_error: float
    worst_error: float
    picks: int
    best_picks: int
    mean_cost: float
    worst_cost: float
    worst_at: str
    left_out: tuple[str, ...]
    unpredicted: int


@dataclass(frozen=True)
class Evaluation:
    """Scores on a platform, one a model and collective; by collective, the algorithms that no model covers.

    `failed` are cases that did not run: they count neither as candidates nor as errors.
    """

    platform: str
    scores: tuple[Score, ...]
    covered_by_none: Mapping[str, tuple[str, ...]]
    failed: tuple[Timing, ...] = ()

    def best(self, collective: str) -> Score | None:
        """The score with the least mean cost; None where no model predicts anything."""
        found = [score for score in self.scores if score.collective == collective and score.picks]
        return min(found, key=lambda score: (score.mean_cost, score.worst_cost), default=None)


PAPERS_SEGMENTS = (0, 1024, 8192)
"""Pješivac-Grbović et al. 2007, section 6.3: whole messages, 1 KB and 8 KB."""

COLLECTIVES = ("barrier", "bcast", "reduce", "alltoall", "scatter", "gather")
"""What the point-to-point models have formulas for."""

_LARGEST_BYTES = {"bcast": 2**20, "reduce": 2**20, "alltoall": 2**16, "scatter": 2**18, "gather": 2**18}


def usual_grid(platform: HostPlatform, collective: str, procs: Sequence[int] = ()) -> Grid:
    """P from 3 to all nodes, a process each; m from 8 B by factors of 4; the paper's segments for trees."""
    nodes = len(platform.hosts)
    counts = tuple(procs) or tuple(sorted({p for p in (3, 5, 8, 12, 16, 24, nodes) if p <= nodes}))
    largest = _LARGEST_BYTES.get(collective)
    sizes = (0,) if largest is None else tuple(4**k * 8 for k in range(20) if 4**k * 8 <= largest)
    segments = PAPERS_SEGMENTS if collective in ("bcast", "reduce") else (0,)
    return Grid(counts, sizes, segments)


def evaluate(
    platform: HostPlatform,
    models: Sequence[CollectiveModel],
    collectives: Sequence[str],
    grids: Mapping[str, Grid],
    context: SimulationContext,
) -> Evaluation:
    """Simulates every algorithm that any of the models covers and scores the models.

    Raises UsageError if a collective is covered by none of them, and for a single process, which takes no time.
    """
    if any(min(grids[name].procs) < 2 for name in collectives):
        raise UsageError("models are scored from P = 2 on")
    plans = {name: _candidates(name, models, grids[name]) for name in collectives}
    cases = [case for name in collectives for case in _cases(name, plans[name], grids[name]).values()]
    sweep = context.simulate(platform, cases, f"{platform.name}: simulating {len(collectives)} collectives")
    scores = []
    for name in collectives:
        seconds = _simulated(name, plans[name], grids[name], sweep)
        scores += [_score(platform.name, name, model, plans[name], grids[name], seconds) for model in models]
    catalogue = Catalogue.load()
    covered = {name: {candidate.algorithm for candidate in plan} for name, plan in plans.items()}
    none = {
        name: tuple(one for one in catalogue.collective(name).selectable if one not in covered[name])
        for name in collectives
    }
    return Evaluation(platform.name, tuple(scores), none, tuple(sweep.failed))


def _candidates(collective: str, models: Sequence[CollectiveModel], grid: Grid) -> tuple[Choice, ...]:
    known = Catalogue.load().collective(collective)
    covered = {name for model in models for name in model.algorithms(collective)}
    names = [name for name in known.selectable if name in covered]
    if not names:
        raise UsageError(f"none of the models {', '.join(model.name for model in models)} covers {collective}")
    return tuple(
        Choice(name, segment)
        for name in names
        for segment in grid.segment_bytes
        if segment == 0 or known.algorithms[name].pipelined
    )


def _cases(collective: str, candidates: Sequence[Choice], grid: Grid) -> dict[tuple[Choice, int, int], Case]:
    catalogue = Catalogue.load()
    return {
        (candidate, procs, size): Case(
            collective, candidate.algorithm, procs, size, candidate.segment_bytes, 0, grid.processes_per_node
        )
        for procs in grid.procs
        for size in grid.message_bytes
        for candidate in candidates
        if not catalogue.algorithm(collective, candidate.algorithm).objection(procs)
    }


def _simulated(collective: str, candidates: Sequence[Choice], grid: Grid, sweep: RunResult) -> np.ndarray:
    """Seconds of shape (candidate, P, m), nan where a candidate does not run."""
    seconds = np.full((len(candidates), len(grid.procs), len(grid.message_bytes)), np.nan)
    for (candidate, procs, size), case in _cases(collective, candidates, grid).items():
        position = (candidates.index(candidate), grid.procs.index(procs), grid.message_bytes.index(size))
        seconds[position] = sweep.timings[case].seconds
    return seconds


def _score(
    platform: str,
    collective: str,
    model: CollectiveModel,
    candidates: Sequence[Choice],
    grid: Grid,
    simulated: np.ndarray,
) -> Score:
    covered = model.algorithms(collective)
    procs, sizes = np.array(grid.procs)[:, None], np.array(grid.message_bytes)[None, :]
    predicted = np.full(simulated.shape, np.nan)
    for index, candidate in enumerate(candidates):
        if candidate.algorithm in covered:
            predicted[index] = model.predict(collective, candidate.algorithm, procs, sizes, candidate.segment_bytes)
    runs = np.isfinite(simulated)
    foreseen = runs & np.isfinite(predicted)
    wanted = runs & np.array([candidate.algorithm in covered for candidate in candidates])[:, None, None]
    errors = np.abs(predicted[foreseen] / simulated[foreseen] - 1)
    best = np.min(np.where(runs, simulated, np.inf), axis=0)
    any_foreseen = foreseen.any(axis=0)
    picked = np.maximum(fastest(np.where(foreseen, predicted, np.nan)), 0)
    cost = np.take_along_axis(simulated, picked[None], axis=0)[0] / best - 1
    cost = np.where(any_foreseen, cost, np.nan)
    worst = np.unravel_index(np.nanargmax(cost), cost.shape) if any_foreseen.any() else None
    return Score(
        platform=platform,
        collective=collective,
        model=model.name,
        predictions=int(foreseen.sum()),
        mean_error=float(np.mean(errors)) if errors.size else float("nan"),
        worst_error=float(np.max(errors)) if errors.size else float("nan"),
        picks=int(any_foreseen.sum()),
        best_picks=int(np.sum(cost[any_foreseen] <= TIE)),
        mean_cost=float(np.nanmean(cost)) if worst is not None else float("nan"),
        worst_cost=float(cost[worst]) if worst is not None else float("nan"),
        worst_at="" if worst is None else _place(grid, candidates, picked, worst),
        left_out=tuple(dict.fromkeys(one.algorithm for one in candidates if one.algorithm not in covered)),
        unpredicted=int((wanted & ~foreseen).sum()),
    )


def _place(grid: Grid, candidates: Sequence[Choice], picked: np.ndarray, at: tuple[np.intp, ...]) -> str:
    pick = method_name(candidates[int(picked[at])])
    return f"P = {grid.procs[int(at[0])]}, {format_size(grid.message_bytes[int(at[1])])}: {pick}"
