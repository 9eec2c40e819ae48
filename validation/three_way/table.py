"""The table of a three-way comparison: measured cases, with what simulation and models predict for each."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

SIMULATED = "simulated"
"""The source of simulated times; the other sources are models, by their names."""


@dataclass(frozen=True, order=True)
class MeasuredPoint:
    """A point at which algorithms compete: an execution target (a test bed's name), a collective, P and m in bytes."""

    target: str
    collective: str
    procs: int
    message_bytes: int


@dataclass(frozen=True)
class MeasuredRow:
    """A measured mean in seconds, the half-width of its confidence interval, and the seconds that each source predicts.

    A source without a prediction for the case is not in `predicted`.
    """

    point: MeasuredPoint
    algorithm: str
    seconds: float
    half_width_seconds: float
    predicted: Mapping[str, float]

    def error(self, source: str) -> float:
        """The relative error of a source, predicted / measured - 1; nan without a prediction."""
        return self.predicted.get(source, math.nan) / self.seconds - 1


@dataclass(frozen=True)
class BuiltinTime:
    """The time of the MPI library's own collective at a point: mean in seconds and half-width of its interval."""

    point: MeasuredPoint
    seconds: float
    half_width_seconds: float


@dataclass(frozen=True)
class ThreeWayTable:
    """All rows, and the MPI library's own collectives at the same points."""

    rows: tuple[MeasuredRow, ...]
    builtin: tuple[BuiltinTime, ...] = ()

    @property
    def sources(self) -> tuple[str, ...]:
        """The names of all sources: simulation first, then the models in the order of the rows."""
        return tuple(dict.fromkeys(source for row in self.rows for source in row.predicted))

    @property
    def collectives(self) -> tuple[str, ...]:
        """The names of all collectives in the order of the rows."""
        return tuple(dict.fromkeys(row.point.collective for row in self.rows))

    @property
    def targets(self) -> tuple[str, ...]:
        """The names of all execution targets in the order of the rows."""
        return tuple(dict.fromkeys(row.point.target for row in self.rows))

    def at(self, target: str) -> ThreeWayTable:
        """The part that was measured on one target."""
        return ThreeWayTable(
            tuple(row for row in self.rows if row.point.target == target),
            tuple(one for one in self.builtin if one.point.target == target),
        )


def by_point(rows: Iterable[MeasuredRow]) -> dict[MeasuredPoint, list[MeasuredRow]]:
    """Rows by point, in their order."""
    found: dict[MeasuredPoint, list[MeasuredRow]] = {}
    for row in rows:
        found.setdefault(row.point, []).append(row)
    return found


def distinguishable(a: MeasuredRow | BuiltinTime, b: MeasuredRow | BuiltinTime) -> bool:
    """Whether two measured means differ by more than their intervals: |a - b| > sqrt(h_a^2 + h_b^2)."""
    return abs(a.seconds - b.seconds) > math.hypot(a.half_width_seconds, b.half_width_seconds)
