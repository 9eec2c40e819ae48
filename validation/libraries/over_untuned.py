"""Open MPI's own decision as one of the choices of its rules: where it is faster, rules leave the call to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from statistics import geometric_mean

from collwise.common.units import counted
from collwise.validation.select.decisions import FASTER, DecisionTable
from collwise.validation.times.choice import LIBRARY_DECIDES, Choice

DecidesUntuned = Callable[[str, int, int], Choice | None]
"""Gives the choice that an untuned library runs, by collective, P and m; None where the catalogue has no such one."""


def with_untuned(table: DecisionTable, decides: DecidesUntuned | None) -> DecisionTable:
    """The table with the times of the library's own decisions among those that it was made from, as LIBRARY_DECIDES.

    They are those of the same algorithm, where it was timed and the decisions are known. Measured times of ours are not
    the library's own. Those of another library's own collective say nothing of Open MPI, and are left out.
    """
    from collwise.validation.times.times import State, Times

    known = table.times
    if known is None:
        return table
    has_own = LIBRARY_DECIDES in known.grid.timed
    if table.source == "measured":
        if not has_own or known.maker.startswith("Open MPI"):
            return table
        others = tuple(one for one in known.grid.besides if one[2] != LIBRARY_DECIDES)
        return replace(table, times=known.of_grid(replace(known.grid, besides=others)))
    if has_own or decides is None:
        return table
    own = known.at(known.picks_of(partial(decides, table.collective))).values[None]
    grid = replace(known.grid, choices=(LIBRARY_DECIDES,), besides=())
    untuned = Times.of_seconds(grid, own, known.platform, known.source, known.maker, State.NOT_ASKED)
    return replace(table, times=known.with_times(untuned))


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
