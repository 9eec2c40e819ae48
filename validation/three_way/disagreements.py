"""Where simulation and measurement differ by more than a limit, in ranges of sizes, and which tested cause explains it.

A cause is a condition: something that was changed, in the measurement and, where it has a counterpart, in simulation.
When the gap closes under it, what was changed is what made the gap.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from collwise.validation.testbed.tcp_counters import TcpCounts
from collwise.validation.three_way.table import SIMULATED, Row

LIMIT = 0.2
"""Relative error of simulation beyond which a cause is looked for."""

NOT_FOUND = "not found"
WITHIN_INTERVAL = "within the measurement's interval"
NOT_SEEN_AGAIN = "not seen again"
# A cause has to close half of the gap at least.
_LEFT_AT_MOST = 0.5


@dataclass(frozen=True)
class Disagreement:
    """An algorithm on neighbouring sizes at which simulation errs beyond the limit to the same side; the worst row."""

    rows: tuple[Row, ...]

    @property
    def worst(self) -> Row:
        """The row with the largest gap."""
        return max(self.rows, key=lambda row: gap(row.foretold[SIMULATED], row.seconds))


@dataclass(frozen=True)
class Pair:
    """A case under a condition: simulated and measured seconds, and the half-width of the measured mean's interval."""

    simulated_seconds: float
    seconds: float
    half_width_seconds: float = 0.0

    @property
    def gap(self) -> float:
        """As of `gap`."""
        return gap(self.simulated_seconds, self.seconds)


@dataclass(frozen=True)
class Diagnosis:
    """The cause of a disagreement; the worst case as it is, measured again, and under each condition that it allows.

    `counted` is of a run of that case alone.
    """

    disagreement: Disagreement
    cause: str
    as_it_is: Pair | None
    under: Mapping[str, Pair]
    counted: TcpCounts | None = None


def gap(simulated_seconds: float, seconds: float) -> float:
    """|ln(simulated / measured)|: twice and half as long are as far off."""
    return abs(math.log(simulated_seconds / seconds))


def disagreements(rows: Iterable[Row], limit: float = LIMIT) -> list[Disagreement]:
    """Worst first. Sizes are neighbours when nothing measured of the same algorithm, place and P lies between them."""
    series: dict[tuple[str, str, int, str], list[Row]] = {}
    for row in rows:
        if SIMULATED in row.foretold:
            key = (row.point.place, row.point.collective, row.point.procs, row.algorithm)
            series.setdefault(key, []).append(row)
    found: list[Disagreement] = []
    for line in series.values():
        together: list[Row] = []
        side = 0
        for row in sorted(line, key=lambda row: row.point.message_bytes):
            error = row.error(SIMULATED)
            now = 0 if abs(error) <= limit else 1 if error > 0 else -1
            if now != side and together:
                found.append(Disagreement(tuple(together)))
                together = []
            if now:
                together.append(row)
            side = now
        if together:
            found.append(Disagreement(tuple(together)))
    return sorted(found, key=lambda one: -gap(one.worst.foretold[SIMULATED], one.worst.seconds))


def cause_of(worst: Row, as_it_is: Pair | None, under: Mapping[str, Pair], limit: float = LIMIT) -> str:
    """The condition under which least of the gap is left, if at most half of it is.

    `as_it_is` is the worst case measured again. Before conditions count: a gap smaller than the measurement's interval
    is none, and one that the second measurement does not show was the first one's.
    """
    if abs(worst.foretold[SIMULATED] - worst.seconds) <= worst.half_width_seconds:
        return WITHIN_INTERVAL
    if as_it_is is None:
        return NOT_FOUND
    if abs(as_it_is.simulated_seconds / as_it_is.seconds - 1) <= limit:
        return NOT_SEEN_AGAIN
    best = min(under, key=lambda name: under[name].gap, default=None)
    if best is None or under[best].gap > _LEFT_AT_MOST * as_it_is.gap:
        return NOT_FOUND
    return best


def spread(found: Sequence[Disagreement], most: int) -> list[Disagreement]:
    """At most so many, the worst of every collective first, then the second of every one, and so on."""
    by_collective: dict[str, list[Disagreement]] = {}
    for one in found:
        by_collective.setdefault(one.worst.point.collective, []).append(one)
    ranks = max(map(len, by_collective.values()), default=0)
    in_turn = [line[rank] for rank in range(ranks) for line in by_collective.values() if rank < len(line)]
    return in_turn[:most]
