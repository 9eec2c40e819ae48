"""Makes decision tables: from times of any source, the choices in the fewest rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from collwise.algorithms.catalogue import Algorithm, Catalogue
from collwise.common.errors import UsageError
from collwise.models.interface import CollectiveModel
from collwise.models.piecewise import Array
from collwise.models.switch_points import TIE, Standings, Times as TimesOfCandidate, good_enough, switch_points
from collwise.validation.select.consumers import can_choose, openmpi_version
from collwise.validation.select.decisions import DIGITS, DecisionTable, Row, without_doubtful
from collwise.validation.select.fewest_rows import fewest_rows
from collwise.validation.times.choice import Choice
from collwise.validation.times.defaults import TIE_LIMIT
from collwise.validation.times.grid import Grid
from collwise.validation.times.slowdown import SlowdownSummary, slowdown, summary_of
from collwise.validation.times.sources import predict_choice, predicted
from collwise.validation.times.times import State, Times

# Returns the standings at some P, for some of a grid's candidates by index.
_StandingsOf = Callable[[Sequence[int], Sequence[int]], Mapping[int, Standings]]


def select(
    times: Times,
    one_choice: bool = False,
    tolerance: float = 0.0,
    exact: bool = False,
    tie_limit: float = TIE_LIMIT,
    consumer: str | None = None,
    doubtful: bool = True,
) -> DecisionTable:
    """Choices for every P of the times, from the smallest to the largest m, in as few rows as possible.

    At the timed sizes, no choice has a slowdown above the tolerance (0.01: 1 %) against the fastest choice. With a
    tolerance of 0, each choice is the fastest. If `one_choice` is true, each P has one choice for all m, whose worst
    slowdown over the sizes exceeds the smallest possible one by at most the tolerance. A choice that does not run on
    every P holds only where it was decided; from P + 1 on, a choice that runs on every P takes over. For a `consumer`,
    only choices that the consumer can run are made (`competing_for`). If `doubtful` is false, doubtful choices
    (`is_doubtful`) are left out.

    If a model predicts the times, each choice of a row starts at the exact size, in bytes, from which it is faster than
    the one before, at the row's P. The table then has the loss between the sizes, if formulas give it. If `exact` is
    true, formulas decide at every size, to the byte. If times have confidence intervals, all choices whose interval
    overlaps that of the fastest choice count as equally good (`tied_seconds`). Among equally short rows, the choice
    with the smallest mean slowdown is taken.
    """
    model = times.between
    if exact and model is None:
        raise UsageError(f"exact is for predicted times; {times.source} ones are known at single sizes only")
    if times.array.ndim != 3:
        raise UsageError(f"times of {times.collective} differ by {times.seconds.dims[3]}; select by one of its values")
    if DIGITS in times.facts:
        raise UsageError(
            f"times of {times.collective} are rounded to {times.facts[DIGITS]} digits, as in decision files; "
            "select by the original times"
        )
    if times.margin is not None and (one_choice or tolerance > times.margin):
        need = "one choice for all sizes needs" if one_choice else f"a tolerance of {tolerance * 100:g} % needs"
        raise _left_out(times, need)
    times, competing = competing_for(times, consumer)
    if not doubtful:
        competing = without_doubtful(competing.of_grid(replace(competing.grid, besides=())))
    plays = model is not None and model.plays
    if exact and model is not None and not plays and not one_choice:
        rules = _rules(times.grid, _exact(model, times.grid, tolerance))
        return _table(_timed(times, rules), rules)
    if times.is_exact:
        rules = _rules(times.grid, _sampled(times.grid, competing.array, one_choice, tolerance))
    else:
        tied = tied_seconds(competing, tie_limit)
        standings = _sampled(times.grid, tied, one_choice, max(tolerance, TIE))
        rules = _rules(times.grid, standings, _by_mean_slowdown(competing))
    if model is None:
        return _table(times, rules)
    if not one_choice:
        rules = {p: _to_the_byte(model, times.grid, p, row) for p, row in rules.items()}
    between = None if plays else _loss_between(model, times.grid, rules)
    return _table(_timed(times, rules), rules, between)


def competing_for(times: Times, consumer: str | None) -> tuple[Times, Times]:
    """The times of the choices that decisions for a consumer may name, and the times among them that compete.

    Open MPI runs some algorithms only if a message has enough elements (`Grid.competes`). For Open MPI's rules, exact
    times at single points therefore compete only at sizes with enough elements. Measured times always compete, since
    their algorithms did run. If a model also predicts the sizes in between, choices are limited to sizes with enough
    elements only when the rules are written.
    """
    kept = times.only(lambda choice: can_choose(consumer, times.collective, choice))
    if not kept.choices:
        whose = "decisions" if consumer is None else consumer
        have = ", ".join(times.grid.names)
        raise UsageError(f"{whose} cannot express any of the timed {times.collective} algorithms: {have}")
    at_points = times.is_exact and times.between is None
    few = kept.grid.for_openmpi or (at_points and openmpi_version(consumer or "") is not None)
    competing = _with_enough_elements(kept) if few else kept
    if times.margin is not None and (kept.choices, few) != (times.choices, times.grid.for_openmpi):
        unsure = (competing.competing(kept.state) == State.LEFT_OUT).any(0)
        best, known = times.best_seconds.values, competing.best_seconds.values
        if bool((unsure & (np.isnan(known) | (known > best))).any()):
            raise _left_out(times, "decisions need" if consumer is None else f"decisions for {consumer} need")
    return kept, competing


def _with_enough_elements(times: Times) -> Times:
    """The times of choices at points where messages have enough elements for Open MPI."""
    grid = replace(times.grid, for_openmpi=True)
    competes = [grid.competes(choice, *point) for choice in grid.timed for point in grid.points]
    seconds = times.seconds.where(np.reshape(competes, times.seconds.shape))
    return replace(times, data=times.data.assign(seconds=seconds))


def _left_out(times: Times, need: str) -> UsageError:
    margin = (times.margin or 0.0) * 100
    return UsageError(
        f"{need} times of all choices, and those over {margin:g} % slower than the best were left out; make times with "
        "the same --for, or without a margin"
    )


def _table(times: Times, rules: Mapping[int, Row], between: SlowdownSummary | None = None) -> DecisionTable:
    return DecisionTable(
        times.collective,
        times.platform,
        times.processes_per_node,
        times.source,
        times.made_by,
        rules,
        times,
        between,
        times.max_procs,
    )


def _timed(times: Times, rules: Mapping[int, Row]) -> Times:
    """The times at the process counts of rows. Others are left out, since predictions exist for every P."""
    return times.only(procs=[p for p in times.procs if p in rules] or times.procs[:1])


def _by_mean_slowdown(times: Times) -> list[int]:
    """The indices of the choices by ascending mean slowdown over the points where they have a time."""
    with np.errstate(invalid="ignore"):
        costs = slowdown(times.array, times.best_seconds.values)
    known = ~np.isnan(costs)
    mean = np.where(known, costs, 0.0).sum(axis=(1, 2)) / np.maximum(known.sum(axis=(1, 2)), 1)
    return [int(index) for index in np.argsort(np.where(known.any(axis=(1, 2)), mean, np.inf), kind="stable")]


_SIZES_BETWEEN = 7


def _loss_between(model: CollectiveModel, grid: Grid, rules: Mapping[int, Row]) -> SlowdownSummary | None:
    """The loss of rules between the grid's sizes, also one byte below each; None if no size lies between."""
    sizes = sorted(grid.message_bytes)
    between = {
        size
        for first, end in pairwise(sizes)
        for size in (*np.geomspace(first, end, _SIZES_BETWEEN + 2).astype(int).tolist(), end - 1)
    }
    asked = replace(grid, message_bytes=tuple(sorted(between - set(sizes))))
    if not asked.message_bytes:
        return None
    times = predicted(model, asked)
    table = _table(times, rules)
    costs = summary_of(times.slowdown(times.picks_of(table.choice_at)).values, 0.0)
    return costs if costs.points else None


def tied_seconds(times: Times, limit: float = TIE_LIMIT) -> Array:
    """The seconds; choices whose confidence interval overlaps that of the fastest choice get the best time.

    A time above the best one by more than the share `limit` is not a tie, however wide its interval is. An interval
    that is not known counts as empty.
    """
    seconds, widths = times.array, times.competing(times.half_widths)
    widths = np.where(np.isfinite(widths), widths, 0.0)
    unknown = np.isnan(seconds)
    fastest_of_all = np.argmin(np.where(unknown, np.inf, seconds), axis=0)[None]
    best = np.take_along_axis(seconds, fastest_of_all, axis=0)
    reach = best + np.take_along_axis(widths, fastest_of_all, axis=0)
    with np.errstate(invalid="ignore"):
        overlapping = ~unknown & (seconds - widths <= reach) & (seconds <= best * (1 + limit))
    return np.where(overlapping, best, seconds)


def _to_the_byte(model: CollectiveModel, grid: Grid, procs: int, row: Row) -> Row:
    """The row, with each switch point moved by bisection to the exact size from which the later choice is faster."""
    sizes = sorted(grid.message_bytes)

    def seconds(choice: Choice, message_bytes: int) -> float:
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


def _exact(model: CollectiveModel, grid: Grid, tolerance: float) -> _StandingsOf:
    """Standings at every size, to the byte."""
    choices, algorithms = list(grid.choices), _algorithms(grid)
    segments = sorted({choice.segment_bytes for choice in choices})
    longest = np.vectorize(grid.max_bytes, otypes=[float])

    def times(choice: Choice, algorithm: Algorithm) -> TimesOfCandidate:
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


def _sampled(grid: Grid, seconds: Array, one_choice: bool, tolerance: float) -> _StandingsOf:
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
    """True for each candidate with the most times whose worst slowdown over the sizes is about the smallest."""
    missing = np.isnan(times)
    worst = 1 + np.max(slowdown(np.where(missing, np.inf, times), np.nanmin(times, axis=0)), axis=-1)
    numbers = missing.sum(axis=-1)
    complete = numbers == numbers.min()
    good = good_enough(np.where(complete, worst, np.nan), tolerance)
    return good if good.any() else complete


def _rules(grid: Grid, standings_of: _StandingsOf, order: Sequence[int] = ()) -> dict[int, Row]:
    """Rules for the grid's P that have times. At a size without times, the choice for the smaller size stays.

    Among candidates that make rows equally short, the first one in `order` (indices) is chosen.
    """
    choices = list(grid.choices)
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


def _algorithms(grid: Grid) -> list[Algorithm]:
    return [Catalogue.load().algorithm(grid.collective, choice.algorithm) for choice in grid.choices]
