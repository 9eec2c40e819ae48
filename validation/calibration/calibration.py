"""Calibration from end to end: measure, fit, and simulate what was measured."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from collwise.platforms import Platform
from collwise.simulator.execution.targets import ExecutionTarget
from collwise.validation.calibration.plan import (
    Extent,
    Measurement,
    Progress,
    limit_plan,
    measure_plan,
    pair_between_nodes,
    simulate_plan,
    size_plan,
)
from collwise.validation.calibration.points import (
    EXCHANGE,
    ISEND,
    PING_PONG,
    RECEIVE,
    ROW,
    SEND,
    Point,
    of_kind,
)
from collwise.validation.calibration.segmented_regression import value_at
from collwise.validation.calibration.smpi_parameters import Segments, clock_seconds, eager_limit, fit_platform

# Not receives: in simulation a message sets out only when its receive is posted.
_COMPARED = (PING_PONG, SEND, ISEND, ROW, EXCHANGE)


@dataclass(frozen=True)
class Residual:
    """A measured point (the median, the clock's own time taken off) and what the calibrated platform gives."""

    kind: str
    within_node: bool
    message_bytes: int
    measured_seconds: float
    simulated_seconds: float

    @property
    def relative_error(self) -> float:
        """(simulated - measured) / measured."""
        return self.simulated_seconds / self.measured_seconds - 1


@dataclass(frozen=True)
class CalibrationResult:
    """The calibrated platform, the points it came from, the segments by kind, and how the simulation meets the points.

    Segments of kind 'ping_pong' are the network's one-way time over message and envelope, without os and or.
    """

    platform: Platform
    points: tuple[Point, ...]
    segments: Segments
    residuals: tuple[Residual, ...]

    def errors_of(self, kind: str) -> list[tuple[int, float]]:
        """(message bytes, relative error) between nodes; of receives, which are not simulated, of their segments.

        Of sends and receives below the eager limit, where os and or are charged.
        """
        limit, clock = self.platform.calibration.eager_limit_bytes, clock_seconds(self.points)
        if kind != RECEIVE:
            return [
                (one.message_bytes, one.relative_error)
                for one in self.residuals
                if one.kind == kind and not one.within_node and (kind != SEND or one.message_bytes < limit)
            ]
        return [
            (
                point.message_bytes,
                value_at(self.segments[kind], point.message_bytes) / (point.median_seconds - clock) - 1,
            )
            for point in of_kind(self.points, kind)
            if point.message_bytes < limit
        ]

    def median_error(self, kind: str, *, within_node: bool = False) -> float:
        """Median absolute relative error of a kind; nan if it has no points."""
        errors = [
            abs(one.relative_error)
            for one in self.residuals
            if one.kind == kind and one.within_node == within_node and one.simulated_seconds > 0
        ]
        return statistics.median(errors) if errors else float("nan")


def measure_points(
    place: ExecutionTarget,
    nominal: Platform,
    extent: Extent,
    together: bool = True,
    on_progress: Progress | None = None,
) -> list[Point]:
    """Measurements between nodes of `place`, whose nominal description is `nominal`.

    All of its nodes take part: in pairs side by side, as all are at work in a collective, or with `together` False all
    but the first pair waiting. Raises UsageError where there are no two nodes and CollwiseError when a program fails.
    """
    procs = nominal.nodes * place.processes_per_node(nominal.nodes)
    per_node = place.processes_per_node(procs)
    first, second, pairs = pair_between_nodes(procs, per_node)
    made = measure_plan(place, procs, limit_plan((first, second), extent.most_bytes))
    plan = size_plan(extent, eager_limit(made), (first, second), pairs if together else 1, nominal, within=per_node > 1)
    return [*made, *measure_plan(place, procs, plan, on_progress)]


def refit(points: Sequence[Point], nominal: Platform) -> CalibrationResult:
    """A platform of the nominal one's name fitted to the points. Raises UsageError when a kind has too few."""
    platform, segments = fit_platform(points, nominal)
    return CalibrationResult(platform, tuple(points), segments, tuple(_residuals(platform, points)))


def alone_platform(points: Sequence[Point], nominal: Platform) -> Platform:
    """As `refit`, on messages alone: however quick these are, and whatever those in a row take."""
    unbounded = replace(nominal, link_bytes_per_second=math.inf)
    return fit_platform([point for point in points if point.kind != ROW], unbounded)[0]


def _residuals(platform: Platform, points: Sequence[Point]) -> list[Residual]:
    """Every message that was measured, simulated between two nodes or within one by the same program."""
    chosen = [point for point in points if point.kind in _COMPARED]
    clock = clock_seconds(points)
    plan = [
        Measurement(point.kind, 0, 1 if point.within_node else 2, point.message_bytes, point.count) for point in chosen
    ]
    simulated = simulate_plan(platform, 4, 2, plan)
    return [
        Residual(
            one.kind,
            one.within_node,
            one.message_bytes,
            max(one.median_seconds - clock, 1e-9),
            other.median_seconds,
        )
        for one, other in zip(chosen, simulated, strict=True)
    ]
