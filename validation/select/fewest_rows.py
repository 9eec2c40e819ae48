"""Makes decision tables short: the fewest rows that choose a good enough candidate at every size and process count."""

from __future__ import annotations

import math
from collections.abc import Mapping

from collwise.models.switch_points import Standings

# Ascending message sizes, each with the candidate that is chosen from there on.
Chosen = tuple[tuple[int, int], ...]


def fewest_rows(standings: Mapping[int, Standings]) -> dict[int, Chosen]:
    """The table with the fewest rows in which every choice is among the good enough candidates of its points.

    Like the table's rows, the standings of a P hold up to the next P. A P with the same row as the previous P is left
    out. Among tables with equally few rows, the table with the longest groups of P is taken.
    """
    procs = sorted(standings)
    # For the P before each position: the least number of rows, the start of the last group of P, and this group's row.
    fewest: list[tuple[float, int, Chosen]] = [(0, 0, ())] + [(math.inf, 0, ())] * len(procs)
    for first in range(len(procs)):
        shared, before = standings[procs[first]], fewest[first][0]
        for last in range(first + 1, len(procs) + 1):
            row = _row(shared)
            rows = before + max(1, len(row))
            if rows >= fewest[-1][0]:
                break
            if rows < fewest[last][0]:
                fewest[last] = (rows, first, row)
            if last == len(procs) or not (shared := _both(shared, standings[procs[last]])):
                break
    found: dict[int, Chosen] = {}
    end = len(procs)
    while end:
        _, end, row = fewest[end]
        found[procs[end]] = row
    return dict(sorted(found.items()))


def _row(standings: Standings) -> Chosen:
    """The fewest choices for ascending sizes. Each choice is the candidate that stays good enough the longest.

    If several candidates stay good enough equally long, the first one is taken.
    """
    row: list[tuple[int, int]] = []
    still: frozenset[int] = frozenset()
    for start, good in standings:
        if not (both := still & good):
            row.append((start, -1))
            both = good
        row[-1] = (row[-1][0], min(both))
        still = both
    return tuple(row)


def _both(standings: Standings, other: Standings) -> Standings:
    """The candidates that are good enough in both standings; empty if a size has none or if the first sizes differ."""
    if not standings or not other or standings[0][0] != other[0][0]:
        return ()
    good = [frozenset[int]()] * 2
    found: dict[int, frozenset[int]] = {}
    for start, whose, now in sorted(
        [(start, 0, now) for start, now in standings] + [(start, 1, now) for start, now in other]
    ):
        good[whose] = now
        found[start] = good[0] & good[1]
    return tuple(found.items()) if all(found.values()) else ()
