"""Disagreements: ranges of sizes where simulation and measurement differ by more than a limit, and their causes.

A cause is a condition: something that was changed, in the measurement and, where it has a counterpart, in simulation.
When the gap closes under it, what was changed explains the gap.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, zip_longest

import numpy as np

from collwise.simulator.timing import Case
from collwise.validation.compare.scores import Scores
from collwise.validation.testbed.tcp_counters import TcpCounts
from collwise.validation.three_way.verdicts import SIMULATED

LIMIT = 0.2
"""Relative error of simulation beyond which a cause is looked for."""

NOT_FOUND = "not found"
WITHIN_INTERVAL = "within the measurement's interval"
NOT_SEEN_AGAIN = "not seen again"
# A cause has to close at least half of the gap.
_LEFT_AT_MOST = 0.5


@dataclass(frozen=True)
class Pair:
    """Simulated and measured seconds of a case, and the half-width of the measured time's interval."""

    simulated_seconds: float
    seconds: float
    half_width_seconds: float = 0.0

    @property
    def error(self) -> float:
        """The relative error of simulation."""
        return self.simulated_seconds / self.seconds - 1

    @property
    def gap(self) -> float:
        """|ln(simulated / measured)|: twice as long and half as long are equally far off."""
        return float(abs(np.log(self.simulated_seconds / self.seconds)))


@dataclass(frozen=True)
class Disagreement:
    """An algorithm on neighbouring sizes at which simulation errs beyond the limit to the same side.

    `message_bytes` are these sizes, `case` is the one with the largest gap, and `worst` its times.
    """

    case: Case
    worst: Pair
    message_bytes: tuple[int, ...]


@dataclass(frozen=True)
class Diagnosis:
    """The cause of a disagreement; its worst case run again, unchanged and under each condition that applies to it.

    `counted` has TCP's counts in a run of that case only.
    """

    disagreement: Disagreement
    cause: str
    unchanged: Pair | None
    under: Mapping[str, Pair]
    counted: TcpCounts | None = None


def disagreements(every: Iterable[Scores]) -> list[Disagreement]:
    """All disagreements, worst first. Neighbours have no other size between at which both times are known."""
    found = []
    for scores in every:
        errors = scores.errors[SIMULATED].values
        sides = np.where(np.abs(errors) > LIMIT, np.sign(errors), 0.0)
        for a, i in np.ndindex(*errors.shape[:2]):
            known = np.flatnonzero(np.isfinite(errors[a, i])).tolist()
            runs = groupby(known, key=sides[a, i].__getitem__)
            found += [_disagreement(scores, a, i, [*places]) for side, places in runs if side]
    return sorted(found, key=lambda one: -one.worst.gap)


def _disagreement(scores: Scores, a: int, i: int, places: Sequence[int]) -> Disagreement:
    right, choice, procs = scores.right, scores.right.choices[a], scores.right.procs[i]
    times = (scores.times[SIMULATED].seconds, right.seconds, right.half_widths)
    pairs = {j: Pair(*(float(one.values[a, i, j]) for one in times)) for j in places}
    worst = max(places, key=lambda j: pairs[j].gap)
    sizes = [right.message_bytes[j] for j in places]
    return Disagreement(right.grid.case(choice, procs, right.message_bytes[worst]), pairs[worst], tuple(sizes))


def cause_of(worst: Pair, unchanged: Pair | None, under: Mapping[str, Pair]) -> str:
    """The condition under which the smallest gap is left, if that is at most half of the gap.

    `unchanged` is the worst case run again. Conditions are not considered where the gap is smaller than the
    measurement's interval, and where the second run does not show it.
    """
    if abs(worst.simulated_seconds - worst.seconds) <= worst.half_width_seconds:
        return WITHIN_INTERVAL
    if unchanged is None:
        return NOT_FOUND
    if abs(unchanged.error) <= LIMIT:
        return NOT_SEEN_AGAIN
    best = min(under, key=lambda name: under[name].gap, default=None)
    if best is None or under[best].gap > _LEFT_AT_MOST * unchanged.gap:
        return NOT_FOUND
    return best


def spread(found: Sequence[Disagreement], most: int) -> list[Disagreement]:
    """At most `most` of them. The worst of every collective is first, then the second worst of every one, and so on."""
    by_collective: dict[str, list[Disagreement]] = {}
    for one in found:
        by_collective.setdefault(one.case.collective, []).append(one)
    in_turn = [one for rank in zip_longest(*by_collective.values()) for one in rank if one is not None]
    return in_turn[:most]
