"""Open MPI's own decision as one of the choices of its rules: where it is faster, rules leave the call to it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from statistics import geometric_mean

from collwise.common.units import counted
from collwise.validation.select.decisions import FASTER, MEASURED_UNDER, DecisionTable
from collwise.validation.times.choice import LIBRARY_DECIDES, Choice

DecidesUntuned = Callable[[str, int, int], Choice | None]
"""Gives the choice that an untuned library runs, by collective, P and m; None where the catalogue has no such one."""


def with_untuned(table: DecisionTable, decides: DecidesUntuned | None) -> DecisionTable:
    """The table with the times of the library's own decisions among those that it was made from, as LIBRARY_DECIDES.

    They are those of the same algorithm, where it was timed and the decisions are known. Measured times of ours are not
    the library's own. Those of another library's own collective (`Evidence.own`) say nothing of Open MPI, and are left
    out.
    """
    known = table.evidence
    if known is None or LIBRARY_DECIDES in known.choices or table.made_by.startswith(f"{MEASURED_UNDER} Open MPI"):
        return table
    if table.made_by.startswith(MEASURED_UNDER):
        return replace(table, evidence=replace(known, own=()))
    if decides is None:
        return table
    place = {choice: index for index, choice in enumerate(known.choices)}

    def seconds(i: int, j: int) -> float:
        choice = decides(table.collective, known.procs[i], known.message_bytes[j])
        return math.nan if choice not in place else known.seconds[place[choice]][i][j]

    times = tuple(tuple(seconds(i, j) for j in range(len(known.message_bytes))) for i in range(len(known.procs)))
    evidence = replace(known, choices=(*known.choices, LIBRARY_DECIDES), seconds=(*known.seconds, times))
    return replace(table, evidence=evidence)


def summary_over_untuned(table: DecisionTable, version: str) -> str:
    """A line on what rules gain over the library's own decisions, by the times that they were made from; or nothing."""
    gains = gains_over_untuned(table)
    if not gains:
        return ""
    slower = sum(gain * FASTER < 1 for gain in gains)
    return (
        f"{table.collective}, over untuned Open MPI {version} by these times: x {geometric_mean(gains):.2f} on "
        f"average, x {min(gains):.2f} at least, slower at {slower} of {counted(len(gains), 'point')}"
    )


def gains_over_untuned(table: DecisionTable) -> list[float]:
    """The library's own time divided by that of the table's choice, at every point that has both."""
    return [
        times[LIBRARY_DECIDES] / times[chosen]
        for chosen, times in table.timed_points()
        if chosen is not None and LIBRARY_DECIDES in times and times.get(chosen)
    ]
