"""Calls that rules leave to the MPI library.

For these calls, the library's own decision is as fast as the table's choice, or P is far from the process counts that
the table was decided for. In rules, the library's own decision is one of the choices (LIBRARY_DECIDES).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from statistics import geometric_mean
from typing import TYPE_CHECKING

from collwise.common.units import counted
from collwise.validation.compare.deciders import Decider
from collwise.validation.libraries.baselines import BASELINES
from collwise.validation.select.decisions import (
    WIDE_STEP,
    DecisionTable,
    Row,
    choice_in,
    refined,
    without_repeated_rows,
)
from collwise.validation.times.choice import LIBRARY_DECIDES, Choice

if TYPE_CHECKING:
    from collwise.validation.times.times import Times

_FASTER = 1.01
"""The least factor by which the library's own decision must be faster to replace a choice."""


def with_untuned(table: DecisionTable, untuned: Decider | None) -> DecisionTable:
    """The table with times of untuned Open MPI's decisions (LIBRARY_DECIDES) among the times that it was made from.

    If the table's times are not measured, a decision of Open MPI gets the time of our version of the same algorithm, if
    the decision is known and the algorithm was timed. If the table's times are measured, no such times are added, since
    our version may be faster or slower than Open MPI's. Times of another library's own collective are removed, since
    they say nothing about Open MPI.
    """
    from collwise.validation.times.times import State, Times

    known = table.times
    if known is None:
        return table
    has_own = LIBRARY_DECIDES in known.grid.timed
    if table.source == "measured":
        if not has_own or known.maker.startswith("Open MPI"):
            return table
        others = tuple(entry for entry in known.grid.besides if entry[2] != LIBRARY_DECIDES)
        return replace(table, times=known.of_grid(replace(known.grid, besides=others)))
    if has_own or untuned is None:
        return table
    own = known.at(known.picks_of(partial(untuned.choice, table.collective))).values[None]
    grid = replace(known.grid, choices=(LIBRARY_DECIDES,), besides=())
    times = Times.of_seconds(grid, own, known.platform, known.source, known.maker, State.NOT_ASKED)
    return replace(table, times=known.with_times(times))


def left_to_library(table: DecisionTable, by_size: bool, decided: DecisionTable | None = None) -> DecisionTable:
    """Replaces choices that may be slower than the MPI library's own collective by LIBRARY_DECIDES.

    If times are measured, a choice is replaced for all calls for which it is not faster than MPI's own collective or
    the two confidence intervals overlap. If times are exact, it is replaced for all calls for which MPI's own
    collective is over 1 % faster. If `by_size` is false, a row has only one choice. With measured times, this choice is
    kept if it is faster than MPI's own collective at all sizes; with exact times, if MPI's own collective is not over
    1 % faster on average.

    Calls are also left to the library if P lies between two decided process counts and is more than four times the
    smaller one, unless both counts have the same choice for the message size. `decided` is the table before any of its
    choices were replaced by others.
    """
    known, decided = table.times, decided or table
    if known is not None and LIBRARY_DECIDES in known.grid.timed and table.rules:
        kept = _kept_by_size if by_size else _kept_whole
        counts = {*table.rules, *(item for item in known.procs if item >= min(table.rules))}
        table = _with_rows(table, {procs: kept(known, procs, table.row(procs)) for procs in counts})
    rows = dict(table.rules)
    for low, high in table.wide_steps():
        one, other = decided.row(low), decided.row(high)

        def alike(start: int, chosen: Choice, row: Row = one, other: Row = other) -> Choice:
            return chosen if choice_in(row, start) == choice_in(other, start) else LIBRARY_DECIDES

        starts = [start for start, _ in (*one, *other)] if by_size else []
        begin = WIDE_STEP * low + 1
        between = {begin, *(procs for procs in table.rules if begin < procs < high)}
        rows |= {high: table.row(high)} | {procs: refined(table.row(procs), starts, alike) for procs in between}
    return _with_rows(table, rows)


def _with_rows(table: DecisionTable, rows: Mapping[int, Row]) -> DecisionTable:
    return replace(table, rules=without_repeated_rows(sorted(rows.items()), table.rules))


def _kept_by_size(known: Times, procs: int, row: Row) -> Row:
    def kept(start: int, chosen: Choice) -> Choice:
        point = known.at_or_below(procs, start)
        if not known.is_exact:
            return chosen if is_faster_than_own(known, chosen, *point) else LIBRARY_DECIDES
        own, ours = (known.seconds_of(choice, *point) for choice in (LIBRARY_DECIDES, chosen))
        return LIBRARY_DECIDES if own * _FASTER < (0.0 if math.isnan(ours) else ours) else chosen

    return refined(row, known.message_bytes, kept)


def _kept_whole(known: Times, procs: int, row: Row) -> Row:
    """The row with its one choice, or with LIBRARY_DECIDES for all sizes if the library is faster."""
    if len(row) != 1:
        return row
    start, chosen = row[0]
    points = [known.at_or_below(procs, size) for size in known.message_bytes]
    if not known.is_exact:
        stays = all(is_faster_than_own(known, chosen, *point) for point in points)
    else:
        at = [known.at_point(*point) for point in points if point[1] >= start]
        ratios = [
            entry[LIBRARY_DECIDES] / entry[chosen] for entry in at if LIBRARY_DECIDES in entry and entry.get(chosen)
        ]
        stays = not ratios or geometric_mean(ratios) * _FASTER >= 1
    return row if stays else ((start, LIBRARY_DECIDES),)


def is_faster_than_own(times: Times, choice: Choice, procs: int, message_bytes: int) -> bool:
    """True if a choice is faster than MPI's own collective at a point, and their confidence intervals do not overlap.

    The result is also true if either of the two has no time. If the interval of the choice is unknown, this interval
    counts as empty. If the interval of MPI's own collective is unknown, no choice counts as faster.
    """
    own, ours = (times.seconds_of(item, procs, message_bytes) for item in (LIBRARY_DECIDES, choice))
    if math.isnan(own) or math.isnan(ours):
        return True
    around, width = (times.half_width_of(item, procs, message_bytes) for item in (LIBRARY_DECIDES, choice))
    return ours + (width if math.isfinite(width) else 0.0) < own - (0.0 if math.isnan(around) else around)


def summary_over_untuned(table: DecisionTable, consumer: str) -> str:
    """A line with the gain of rules over the library's own decisions; empty if the table has no times for it.

    If the library uses other code when a node has several processes, the line says that the gain over that code is not
    known.
    """
    gains, library = gains_over_untuned(table), BASELINES.get(consumer)
    if not gains or library is None:
        return ""
    slower = sum(gain * _FASTER < 1 for gain in gains)
    found = (
        f"by these times: x {geometric_mean(gains):.2f} on average, x {min(gains):.2f} at least, slower at {slower} of "
        f"{counted(len(gains), 'point')}"
    )
    if library.nodes and table.processes_per_node > 1:
        what = f"{table.collective}: the gain over untuned {library.title} is not known, since {library.nodes}"
        return f"{what}; over this baseline, {found}"
    return f"{table.collective}, over untuned {library.title} {found}"


def gains_over_untuned(table: DecisionTable) -> list[float]:
    """The library's own time divided by the choice's time, at every point that has both."""
    return [
        times[LIBRARY_DECIDES] / times[chosen]
        for chosen, times in table.timed_points()
        if chosen is not None and LIBRARY_DECIDES in times and times.get(chosen)
    ]
