"""Open MPI's own decision as one of the choices of its rules: where it is faster, rules leave the call to it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from statistics import geometric_mean

from collwise.common.units import counted
from collwise.validation.selection.choice import LIBRARY_DECIDES, Choice
from collwise.validation.selection.decision_table import (
    DecisionTable,
    Evidence,
    Row,
    refined,
    without_repeated_rows,
)

DecidesUntuned = Callable[[str, int, int], Choice | None]
"""What an untuned library runs, by collective, P and m; None where the catalogue has no such algorithm."""

_FASTER = 1.01
"""By this factor the library's own decision is faster where it takes the place of a choice."""


def with_untuned(table: DecisionTable, decides: DecidesUntuned) -> DecisionTable:
    """The table with the times of the library's own decisions among those that it was made from, as LIBRARY_DECIDES.

    They are those of the same algorithm, where it was timed. Measured times of ours are not the library's own.
    """
    known = table.evidence
    if known is None or LIBRARY_DECIDES in known.choices or table.made_by.startswith("times measured"):
        return table
    place = {choice: index for index, choice in enumerate(known.choices)}

    def seconds(i: int, j: int) -> float:
        choice = decides(table.collective, known.procs[i], known.message_bytes[j])
        return math.nan if choice not in place else known.seconds[place[choice]][i][j]

    times = tuple(tuple(seconds(i, j) for j in range(len(known.message_bytes))) for i in range(len(known.procs)))
    evidence = replace(known, choices=(*known.choices, LIBRARY_DECIDES), seconds=(*known.seconds, times))
    return replace(table, evidence=evidence)


def left_where_faster(table: DecisionTable, by_size: bool) -> DecisionTable:
    """The table that leaves those sizes to the library at which it is over 1 % faster, or without `by_size` those rows.

    Its times are those of LIBRARY_DECIDES among the table's (`with_untuned`).
    """
    known = table.evidence
    if known is None or LIBRARY_DECIDES not in known.choices:
        return table
    counts = sorted({*table.rules, *(one for one in known.procs if one >= min(table.rules))})
    kept = _by_size if by_size else _whole
    rows = ((procs, kept(known, procs, table.row(procs))) for procs in counts)
    return replace(table, rules=without_repeated_rows(rows, table.rules))


def _by_size(known: Evidence, procs: int, row: Row) -> Row:
    def faster(start: int, chosen: Choice) -> Choice:
        times = known.at(procs, start)
        return LIBRARY_DECIDES if times.get(LIBRARY_DECIDES, math.inf) * _FASTER < times.get(chosen, 0.0) else chosen

    return refined(row, known.message_bytes, faster)


def _whole(known: Evidence, procs: int, row: Row) -> Row:
    """One choice for all sizes: the library decides where it is faster on average."""
    if len(row) != 1:
        return row
    start, chosen = row[0]
    at = [known.at(procs, size) for size in known.message_bytes if size >= start]
    ratios = [times[LIBRARY_DECIDES] / times[chosen] for times in at if LIBRARY_DECIDES in times and times.get(chosen)]
    if not ratios or geometric_mean(ratios) * _FASTER >= 1:
        return row
    return ((start, LIBRARY_DECIDES),)


def summary_over_untuned(table: DecisionTable, version: str) -> str:
    """A line on what rules gain over the library's own decisions, by the times that they were made from; or nothing."""
    gains = gains_over_untuned(table)
    if not gains:
        return ""
    slower = sum(gain * _FASTER < 1 for gain in gains)
    return (
        f"{table.collective}, over untuned Open MPI {version} by these times: x {geometric_mean(gains):.2f} on "
        f"average, x {min(gains):.2f} at least, slower at {slower} of {counted(len(gains), 'point')}"
    )


def gains_over_untuned(table: DecisionTable) -> list[float]:
    """The library's own time divided by that of the table's choice, at every point that has both."""
    known = table.evidence
    if known is None:
        return []
    found = []
    for procs in known.procs:
        for size in known.message_bytes:
            chosen, times = table.choice_at(procs, size), known.at(procs, size)
            if chosen is not None and LIBRARY_DECIDES in times and times.get(chosen):
                found.append(times[LIBRARY_DECIDES] / times[chosen])
    return found
