"""Makes decision tables, from a model, from simulation or from times with confidence intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from collwise.algorithms.catalogue import Algorithm, Catalogue
from collwise.models.interface import CollectiveModel
from collwise.models.piecewise import Array
from collwise.models.switch_points import TIE, Standings, Times, good_enough, switch_points
from collwise.platforms import HostPlatform
from collwise.platforms.smpi import warn_of_free_messages
from collwise.simulator.sweeps.context import ShowProgress, SimulationContext, without_progress
from collwise.simulator.sweeps.runner import RunResult
from collwise.validation.fitting.critical_path import CriticalPath
from collwise.validation.library_defaults.openmpi import fixed_choice
from collwise.validation.select.decisions import DecisionTable, Evidence, Loss, Row
from collwise.validation.select.fewest_rows import fewest_rows
from collwise.validation.times.choice import Choice
from collwise.validation.times.defaults import TIE_LIMIT
from collwise.validation.times.grid import CaseGrid, ChoicesAt
from collwise.validation.times.points import warn_of_doubtful
from collwise.validation.times.predictions import (
    contested_seconds,
    covered_by_model,
    predict_choice,
    predicted_seconds,
    seconds_of,
    simulated_seconds,
)
from collwise.validation.times.slowdown import slowdown, summary_of

# Standings at some P, for some of a grid's candidates by index.
_StandingsOf = Callable[[Sequence[int], Sequence[int]], Mapping[int, Standings]]


def select_by_model(
    model: CollectiveModel,
    grid: CaseGrid,
    one_choice: bool = False,
    sampled: bool = False,
    tolerance: float = 0.0,
    switches: bool = False,
    progress: ShowProgress = without_progress,
) -> DecisionTable:
    """Predicted choices for every P of the grid, from its least to its largest m, in the fewest rows.

    No choice has a slowdown above the tolerance (0.01: 1 %) against the fastest one, at any size; with 0 each is the
    fastest one. With `sampled`, and for a model that plays schedules, that holds only at the sizes of the grid, and the
    table has the loss between them, if formulas say it. With `switches`, and for such a model without `sampled`, the
    later of two choices begins at the byte from which on it is faster, at the row's P, and not at the grid's size. With
    `one_choice` each P has one choice for all m (see `consumers.needs_one_choice`): one whose worst time over the
    grid's sizes, relative to the best one, is within the tolerance of the least. A choice that does not run on every P
    holds only where it was decided: at P + 1 one without such a requirement follows it. Algorithms that the model does
    not cover are no choice. Raises UsageError if it covers none.
    """
    grid, _ = covered_by_model(model, grid)
    played = model if isinstance(model, CriticalPath) else None
    if sampled or one_choice or played is not None:
        if played is None or one_choice:
            seconds = predicted_seconds(model, grid, progress)
        else:
            seconds = contested_seconds(played, grid, tolerance, progress)
        rules = _rules(grid, _sampled(grid, seconds, one_choice, tolerance))
        if not one_choice and (switches or not sampled):
            rules = {p: _to_the_byte(model, grid, p, row) for p, row in rules.items()}
    else:
        seconds = None
        rules = _rules(grid, _exact(model, grid, tolerance))
    between = _loss_between(model, grid, rules) if seconds is not None and played is None else None
    shown = replace(grid, procs=tuple(p for p in grid.procs if p in rules) or grid.procs[:1])
    times = predicted_seconds(model, shown) if seconds is None else seconds[:, np.isin(grid.procs, shown.procs)]
    return DecisionTable(
        grid.collective,
        model.platform,
        grid.processes_per_node,
        f"model {model.name}",
        rules,
        evidence_of(shown, times),
        between,
    )


_SIZES_BETWEEN = 7


def _loss_between(model: CollectiveModel, grid: CaseGrid, rules: Mapping[int, Row]) -> Loss | None:
    """The loss of rules at sizes between those of the grid, among them the last byte before each; None without any."""
    sizes = sorted(grid.message_bytes)
    between = {
        size
        for first, end in pairwise(sizes)
        for size in (*np.geomspace(first, end, _SIZES_BETWEEN + 2).astype(int).tolist(), end - 1)
    }
    asked = replace(grid, message_bytes=tuple(sorted(between - set(sizes))))
    if not asked.message_bytes:
        return None
    table = DecisionTable(grid.collective, model.platform, grid.processes_per_node, model.name, rules)
    index = {choice: place for place, choice in enumerate(grid.candidates.values())}
    seconds = predicted_seconds(model, asked)
    taken = np.full(seconds.shape[1:], np.nan)
    for place, procs in enumerate(asked.procs):
        for start, choice in table.row(procs):
            larger = np.array(asked.message_bytes) >= start
            taken[place, larger] = seconds[index[choice], place, larger]
    costs = summary_of(slowdown(taken, best_seconds(seconds)), 0.0)
    return Loss(costs.points, costs.mean, costs.worst) if costs.points else None


def select_by_simulation(
    platform: HostPlatform,
    grid: CaseGrid,
    sweep: RunResult,
    one_choice: bool = False,
    tolerance: float = 0.0,
    untuned: RunResult | None = None,
) -> DecisionTable:
    """Simulated choices for every P and m of the grid; otherwise like `select_by_model`, sampled.

    The sweep holds at least the grid's cases. The times of what untuned Open MPI runs, as far as that sweep or
    `untuned` has them, are among those of the table.
    """
    seconds = simulated_seconds(grid, sweep)
    rules = _rules(grid, _sampled(grid, seconds, one_choice, tolerance))
    maker, per_node = sweep.configuration.maker, grid.processes_per_node
    evidence = _with_untuned_times(evidence_of(grid, seconds), grid, untuned or sweep)
    most = platform.max_procs(per_node)
    return DecisionTable(grid.collective, platform.name, per_node, maker, rules, evidence, platform_procs=most)


def select_by_times(
    grid: CaseGrid,
    times: IntervalTimes,
    platform: str,
    made_by: str,
    one_choice: bool = False,
    tolerance: float = 0.0,
    tie_limit: float = TIE_LIMIT,
) -> DecisionTable:
    """Choices by times with confidence intervals, at the points of the grid, in the fewest rows.

    Choices whose interval overlaps that of the fastest one are as good as it is (`tied_seconds`), as are those within
    the tolerance. Of rows that are equally short, each has the choice with the least mean slowdown over the grid. The
    table keeps the intervals.
    """
    tied = tied_seconds(times, tie_limit)
    with np.errstate(invalid="ignore"):
        costs = slowdown(times.seconds, best_seconds(times.seconds))
    known = ~np.isnan(costs)
    mean = np.where(known, costs, 0.0).sum(axis=(1, 2)) / np.maximum(known.sum(axis=(1, 2)), 1)
    order = np.argsort(np.where(known.any(axis=(1, 2)), mean, np.inf), kind="stable").tolist()
    standings = _sampled(grid, tied, one_choice, max(tolerance, TIE))
    rules = _rules(grid, standings, order)
    evidence = evidence_of(grid, times.seconds, times.filled, times.filled_by)
    widths = np.where(np.isnan(times.seconds), np.nan, times.half_widths)
    evidence = replace(evidence, half_widths=_tuples(widths))
    return DecisionTable(grid.collective, platform, grid.processes_per_node, made_by, rules, evidence)


def _with_untuned_times(evidence: Evidence, grid: CaseGrid, sweep: RunResult) -> Evidence:
    """The times with those of what Open MPI 4.1 and 5.0 run untuned, each at the points where they do."""
    times = dict(zip(evidence.choices, np.array(evidence.seconds), strict=True))
    for place, point in enumerate(grid.points):
        choice = fixed_choice(grid.collective, *point)
        if choice is not None and not np.isnan(seconds := seconds_of(grid, sweep, choice, *point)):
            found = times.setdefault(choice, np.full((len(grid.procs), len(grid.message_bytes)), np.nan))
            found.flat[place] = seconds
    return replace(evidence, choices=tuple(times), seconds=_tuples(np.array(list(times.values()))))


@dataclass(frozen=True)
class IntervalTimes:
    """Seconds of a grid's candidates and the half-widths of their confidence intervals, shape (candidates, P, m).

    Seconds are nan where there is no time. A half-width that is not known is 0. `filled` marks the times that come from
    another source, `filled_by`.
    """

    seconds: Array
    half_widths: Array
    filled: NDArray[np.bool_]
    filled_by: str = ""


def best_seconds(seconds: Array) -> Array:
    """The least time of all candidates (first axis) at every point; nan where none has one."""
    least = np.min(np.where(np.isnan(seconds), np.inf, seconds), axis=0)
    return np.where(np.isfinite(least), least, np.nan)


def tied_seconds(times: IntervalTimes, limit: float = TIE_LIMIT) -> Array:
    """The seconds, with the best time in place of those whose confidence interval overlaps that of the fastest one.

    A time above the best one by more than the share `limit` is no tie, however wide its interval is.
    """
    seconds = times.seconds
    unknown = np.isnan(seconds)
    fastest_of_all = np.argmin(np.where(unknown, np.inf, seconds), axis=0)[None]
    best = np.take_along_axis(seconds, fastest_of_all, axis=0)
    reach = best + np.take_along_axis(times.half_widths, fastest_of_all, axis=0)
    with np.errstate(invalid="ignore"):
        overlapping = ~unknown & (seconds - times.half_widths <= reach) & (seconds <= best * (1 + limit))
    return np.where(overlapping, best, seconds)


def evidence_of(
    grid: CaseGrid, seconds: Array, filled: NDArray[np.bool_] | None = None, filled_by: str = ""
) -> Evidence:
    """The times that decide, as a table keeps them; shape (candidates, P, m)."""
    return Evidence(
        tuple(grid.candidates.values()),
        grid.procs,
        grid.message_bytes,
        _tuples(seconds),
        frozenset() if filled is None else frozenset((int(a), int(b), int(c)) for a, b, c in np.argwhere(filled)),
        filled_by,
    )


def _tuples(values: Array) -> tuple[tuple[tuple[float, ...], ...], ...]:
    return tuple(tuple(map(tuple, each)) for each in values.tolist())


def simulate_and_select(
    platform: HostPlatform,
    grids: Sequence[CaseGrid],
    context: SimulationContext,
    one_choice: Callable[[str], bool],
    tolerance: float,
) -> tuple[list[DecisionTable], RunResult]:
    """Simulates what is missing of several grids and makes a table of each; `one_choice` says which have one choice.

    Of the others the schedule engine leaves out what cannot be chosen. For grids of Open MPI's choices, what it runs
    untuned is simulated, too. The sweep holds the cases that failed. Raises UsageError for what does not fit on the
    platform.
    """
    names = ", ".join(grid.collective for grid in grids) if len(grids) <= 3 else f"{len(grids)} collectives"
    cases = [case for grid in grids for case in grid.cases()]
    free = {grid.collective: tolerance for grid in grids if not one_choice(grid.collective)}
    sweep = replace(context, tolerances=free).simulate(platform, cases, f"{platform.name}: simulating {names}")
    warn_of_free_messages(platform)
    warn_of_doubtful(platform, grids)
    shipped = [case for grid in grids if grid.for_openmpi for case in grid.cases_of(_untuned(grid.collective))]
    untuned = context.simulate(platform, shipped, f"{platform.name}: simulating untuned {names}") if shipped else None
    tables = [
        select_by_simulation(platform, grid, sweep, one_choice(grid.collective), tolerance, untuned) for grid in grids
    ]
    return tables, sweep


def _untuned(collective: str) -> ChoicesAt:
    return lambda procs, message_bytes: filter(None, [fixed_choice(collective, procs, message_bytes)])


def _to_the_byte(model: CollectiveModel, grid: CaseGrid, procs: int, row: Row) -> Row:
    """The row with its switch points between sizes of the grid, where the later choice becomes the faster one.

    They are found by bisection, which takes it that the two choices change places once between the two sizes.
    """
    sizes = sorted(grid.message_bytes)

    def seconds(choice: Choice, message_bytes: int) -> float:
        if isinstance(model, CriticalPath):
            return model.seconds_of(grid.case(choice, procs, message_bytes))
        found = predict_choice(model, grid.collective, choice, np.array([procs]), np.array([message_bytes]))
        return float(found[0])

    found = list(row[:1])
    for (_, before), (last, choice) in pairwise(row):
        first = sizes[sizes.index(last) - 1]
        while last - first > 1:
            middle = (first + last) // 2
            if seconds(choice, middle) < seconds(before, middle):
                last = middle
            else:
                first = middle
        found.append((last, choice))
    return tuple(found)


def _exact(model: CollectiveModel, grid: CaseGrid, tolerance: float) -> _StandingsOf:
    """Standings at every size, to the byte."""
    choices, algorithms = list(grid.candidates.values()), _algorithms(grid)
    segments = sorted({choice.segment_bytes for choice in choices})
    longest = np.vectorize(grid.most_bytes, otypes=[float])

    def times(choice: Choice, algorithm: Algorithm) -> Times:
        def seconds(procs: Array, message_bytes: Array) -> Array:
            found = predict_choice(model, grid.collective, choice, procs, message_bytes)
            if grid.memory_bytes_per_node is not None:
                found = np.where(message_bytes <= longest(procs), found, np.nan)
            if not algorithm.bound_to_procs:
                return found
            counts, positions = np.unique(procs, return_inverse=True)
            return np.where(np.array([bool(algorithm.objection(int(p))) for p in counts])[positions], np.nan, found)

        return seconds

    def standings(which: Sequence[int], procs: Sequence[int]) -> Mapping[int, Standings]:
        candidates = [times(choices[index], algorithms[index]) for index in which]
        sizes = grid.message_bytes
        return switch_points(candidates, procs, min(sizes), max(sizes), segments, tolerance)

    return standings


def _sampled(grid: CaseGrid, seconds: Array, one_choice: bool, tolerance: float) -> _StandingsOf:
    """Standings at the grid's sizes, from seconds of shape (candidate, P, m), nan where there is no time."""

    def standing(times: Array) -> Standings:
        if one_choice:
            known = times[:, ~np.isnan(times).all(axis=0)]
            return [(0, _set(_good_for_all_sizes(known, tolerance)))] if known.size else []
        return [*zip(grid.message_bytes, map(_set, good_enough(times, tolerance).T), strict=True)]

    def standings(which: Sequence[int], procs: Sequence[int]) -> Mapping[int, Standings]:
        return {p: standing(seconds[which, grid.procs.index(p)]) for p in procs}

    return standings


def _set(marks: NDArray[np.bool_]) -> frozenset[int]:
    return frozenset(np.flatnonzero(marks).tolist())


def _good_for_all_sizes(times: Array, tolerance: float) -> NDArray[np.bool_]:
    """Whether each candidate (first axis), of those with most times, has about the least worst slowdown over the sizes.

    Worst times relative to the best one are compared, and may be above the least one by the tolerance.
    """
    missing = np.isnan(times)
    worst = 1 + np.max(slowdown(np.where(missing, np.inf, times), np.nanmin(times, axis=0)), axis=-1)
    numbers = missing.sum(axis=-1)
    complete = numbers == numbers.min()
    good = good_enough(np.where(complete, worst, np.nan), tolerance)
    return good if good.any() else complete


def _rules(grid: CaseGrid, standings_of: _StandingsOf, order: Sequence[int] = ()) -> dict[int, Row]:
    """Rules for the grid's P, but those without any time. Where no candidate has one, what was chosen below stays.

    Of candidates that make rows equally short, the first one in `order` (indices) is chosen.
    """
    choices = list(grid.candidates.values())
    order = order or range(len(choices))
    rank = {index: place for place, index in enumerate(order)}
    bound = {index for index, algorithm in enumerate(_algorithms(grid)) if algorithm.bound_to_procs}
    always = [index for index in range(len(choices)) if index not in bound]

    def timed(which: Sequence[int], procs: Sequence[int]) -> dict[int, Standings]:
        found = standings_of(which, procs) if which and procs else {}
        return {
            p: [(start, frozenset(which[index] for index in good)) for start, good in found.get(p, ()) if good]
            for p in procs
        }

    standings = {p: found for p, found in timed(range(len(choices)), grid.procs).items() if found}
    followed = [
        p for p, found in standings.items() if p + 1 not in standings and any(bound & good for _, good in found)
    ]
    standings |= {p + 1: found for p, found in timed(always, followed).items()}
    ranked = {p: [(start, frozenset(rank[i] for i in good)) for start, good in of] for p, of in standings.items()}
    return {p: tuple((start, choices[order[place]]) for start, place in row) for p, row in fewest_rows(ranked).items()}


def _algorithms(grid: CaseGrid) -> list[Algorithm]:
    return [Catalogue.load().algorithm(grid.collective, one.algorithm) for one in grid.candidates.values()]
