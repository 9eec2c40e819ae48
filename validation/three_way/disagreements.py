"""Disagreements: ranges of sizes where simulation and measurement differ by more than a limit, and their causes.

A cause is a condition: something that was changed, in the measurement and, where it has a counterpart, in simulation.
When the gap closes under it, what was changed explains the gap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from typing import Any

import numpy as np
import pandas as pd

from collwise.validation.testbed.tcp_counters import TcpCounts
from collwise.validation.three_way.scores import relative_errors
from collwise.validation.three_way.table import SIMULATED, predicted_by

LIMIT = 0.2
"""Relative error of simulation beyond which a cause is looked for."""

NOT_FOUND = "not found"
WITHIN_INTERVAL = "within the measurement's interval"
NOT_SEEN_AGAIN = "not seen again"
# A cause has to close half of the gap at least.
_LEFT_AT_MOST = 0.5


@dataclass(frozen=True, eq=False)
class Disagreement:
    """The rows of an algorithm on neighbouring sizes at which simulation errs beyond the limit to the same side."""

    rows: pd.DataFrame

    @cached_property
    def worst(self) -> pd.Series:
        """The row with the largest gap."""
        return self.rows.loc[gap(self.rows[SIMULATED], self.rows.seconds).idxmax()]


@dataclass(frozen=True)
class Pair:
    """A case under a condition: simulated and measured seconds, and the half-width of the measured mean's interval."""

    simulated_seconds: float
    seconds: float
    half_width_seconds: float = 0.0

    @property
    def gap(self) -> float:
        """The gap between the two times; see the function `gap`."""
        return float(gap(self.simulated_seconds, self.seconds))


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


def gap(simulated_seconds: Any, seconds: Any) -> Any:
    """|ln(simulated / measured)|: twice as long and half as long are equally far off."""
    return abs(np.log(simulated_seconds / seconds))


def disagreements(rows: pd.DataFrame) -> list[Disagreement]:
    """All disagreements, worst first. Neighbours have no other row of their algorithm, target and P between."""
    found = []
    simulated = predicted_by(SIMULATED, rows)
    for _, line in simulated.groupby(["target", "collective", "procs", "algorithm"], sort=False):
        ascending = line.sort_values("message_bytes", kind="stable")
        errors = relative_errors(ascending, SIMULATED)
        side = np.sign(errors).where(errors.abs() > LIMIT, 0.0)
        runs = ascending.groupby((side != side.shift()).cumsum())
        found += [Disagreement(together) for _, together in runs if side[together.index[0]] != 0]
    return sorted(found, key=lambda one: -gap(one.worst[SIMULATED], one.worst.seconds))


def cause_of(worst: pd.Series, unchanged: Pair | None, under: Mapping[str, Pair]) -> str:
    """The condition under which the smallest gap is left, if that is at most half of the gap.

    `unchanged` is the worst case run again. Conditions are not considered where the gap is smaller than the
    measurement's interval, and where the second run does not show it.
    """
    if abs(worst[SIMULATED] - worst.seconds) <= worst.half_width_seconds:
        return WITHIN_INTERVAL
    if unchanged is None:
        return NOT_FOUND
    if abs(unchanged.simulated_seconds / unchanged.seconds - 1) <= LIMIT:
        return NOT_SEEN_AGAIN
    best = min(under, key=lambda name: under[name].gap, default=None)
    if best is None or under[best].gap > _LEFT_AT_MOST * unchanged.gap:
        return NOT_FOUND
    return best


def spread(found: Sequence[Disagreement], most: int) -> list[Disagreement]:
    """At most `most` of them: the worst of every collective first, then the second worst of every one, and so on."""
    by_collective: dict[str, list[Disagreement]] = {}
    for one in found:
        by_collective.setdefault(one.worst.collective, []).append(one)
    in_turn = [one for rank in zip_longest(*by_collective.values()) for one in rank if one is not None]
    return in_turn[:most]
