"""The table of a three-way comparison: a row for each measured case, with what simulation and models say of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

SIMULATED = "simulated"
"""The source of simulated times; the others are models, by their names."""


@dataclass(frozen=True, order=True)
class Point:
    """Where algorithms compete: a place (a test bed by its name), a collective, P and m in bytes."""

    place: str
    collective: str
    procs: int
    message_bytes: int


@dataclass(frozen=True)
class Row:
    """A measured mean in seconds, the half-width of its confidence interval, and by source the seconds foretold.

    A source that says nothing of the case is not in `foretold`.
    """

    point: Point
    algorithm: str
    seconds: float
    half_width_seconds: float
    foretold: Mapping[str, float]

    def error(self, source: str) -> float:
        """Relative error of a source, foretold / measured - 1; nan where it says nothing."""
        return self.foretold.get(source, math.nan) / self.seconds - 1


@dataclass(frozen=True)
class OwnChoice:
    """What the MPI library's own collective took at a point: mean in seconds and half-width of its interval."""

    point: Point
    seconds: float
    half_width_seconds: float


@dataclass(frozen=True)
class Table:
    """All rows, and the MPI library's own collectives at the same points."""

    rows: tuple[Row, ...]
    own: tuple[OwnChoice, ...] = ()

    @property
    def sources(self) -> tuple[str, ...]:
        """Simulation first, then the models in their order."""
        return tuple(dict.fromkeys(source for row in self.rows for source in row.foretold))

    @property
    def collectives(self) -> tuple[str, ...]:
        """In the order of the rows."""
        return tuple(dict.fromkeys(row.point.collective for row in self.rows))

    @property
    def places(self) -> tuple[str, ...]:
        """In the order of the rows."""
        return tuple(dict.fromkeys(row.point.place for row in self.rows))

    def points(self) -> dict[Point, list[Row]]:
        """The rows that compete with each other."""
        return by_point(self.rows)

    def at(self, place: str) -> Table:
        """What was measured at one place."""
        return Table(
            tuple(row for row in self.rows if row.point.place == place),
            tuple(one for one in self.own if one.point.place == place),
        )


def by_point(rows: Iterable[Row]) -> dict[Point, list[Row]]:
    """Rows by point, in their order."""
    found: dict[Point, list[Row]] = {}
    for row in rows:
        found.setdefault(row.point, []).append(row)
    return found


def told_apart(a: Row | OwnChoice, b: Row | OwnChoice) -> bool:
    """Whether two measured means differ by more than their intervals: |a - b| > sqrt(h_a^2 + h_b^2)."""
    return abs(a.seconds - b.seconds) > math.hypot(a.half_width_seconds, b.half_width_seconds)
