"""Calibration from end to end: measures, fits, and simulates what was measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pandas as pd

from collwise.platforms import Platform
from collwise.simulator.execution.targets import ExecutionTarget
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import SimulationContext
from collwise.simulator.sweeps.runner import Progress
from collwise.validation.calibration.calibration_points import CalibrationPoint, Kind, case_of_kind, of_kind
from collwise.validation.calibration.plan import (
    CalibrationGrid,
    limit_plan,
    measure_plan,
    pairs_between_nodes,
    simulate_plan,
    size_plan,
)
from collwise.validation.calibration.segmented_regression import value_at
from collwise.validation.calibration.smpi_parameters import Segments, clock_seconds, eager_limit, fit_platform

# Receives are missing here, since in simulation a message sets out only when its receive is posted.
_COMPARED = (Kind.PING_PONG, Kind.SEND, Kind.ISEND, Kind.ROW, Kind.EXCHANGE)


@dataclass(frozen=True)
class CalibrationResult:
    """The calibrated platform, its points, the fitted segments by kind, and the simulated times of the points.

    Segments of kind 'ping_pong' are the one-way time in the network by message and envelope, without os and or. A row
    of `residuals` has kind, within_node, message_bytes, measured_seconds (the median, less the time of reading the
    clock), simulated_seconds, and relative_error, (simulated - measured) / measured.
    """

    platform: Platform
    points: tuple[CalibrationPoint, ...]
    segments: Segments
    residuals: pd.DataFrame

    def errors_of(self, kind: Kind) -> list[tuple[int, float]]:
        """Sizes in bytes and relative errors of simulated times between nodes; for receives those of their segments.

        Sends and receives are restricted to sizes below the eager limit, where os and or are charged.
        """
        limit, clock = self.platform.calibration.eager_limit_bytes, clock_seconds(self.points)
        if kind != Kind.RECEIVE:
            rows = self.residuals[(self.residuals.kind == kind) & ~self.residuals.within_node]
            rows = rows[rows.message_bytes < limit] if kind == Kind.SEND else rows
            return list(zip(rows.message_bytes, rows.relative_error, strict=True))
        return [
            (
                point.message_bytes,
                value_at(self.segments[kind], point.message_bytes) / (point.median_seconds - clock) - 1,
            )
            for point in of_kind(self.points, kind)
            if point.message_bytes < limit
        ]

    def median_error(self, kind: Kind, *, within_node: bool = False) -> float:
        """The median absolute relative error of a kind; nan if it has no points."""
        rows = self.residuals[(self.residuals.kind == kind) & (self.residuals.within_node == within_node)]
        return float(rows[rows.simulated_seconds > 0].relative_error.abs().median())


def measure_points(
    target: ExecutionTarget,
    nominal: Platform,
    grid: CalibrationGrid,
    store: Store,
    *,
    together: bool = True,
    on_progress: Progress | None = None,
) -> list[CalibrationPoint]:
    """The points between nodes of a target with the nominal description `nominal`; measures those not in the store.

    All pairs of nodes measure at the same time, since all nodes are busy in a collective; with `together` False only
    the first pair measures. Raises UsageError for fewer than two nodes, and CollwiseError if a program fails.
    """
    procs = nominal.nodes * target.processes_per_node(nominal.nodes)
    per_node = target.processes_per_node(procs)
    processes = pairs_between_nodes(procs, per_node)
    limits = measure_plan(target, procs, limit_plan(processes[:2], per_node, grid.max_bytes), grid, store)
    plan = size_plan(grid, eager_limit(limits), processes if together else processes[:2], per_node, nominal)
    return [*limits, *measure_plan(target, procs, plan, grid, store, on_progress)]


def refit(points: Sequence[CalibrationPoint], nominal: Platform, context: SimulationContext) -> CalibrationResult:
    """A platform with the nominal one's name, fitted to the points. Raises UsageError if a kind has too few."""
    platform, segments = fit_platform(points, nominal)
    return CalibrationResult(platform, tuple(points), segments, _residuals(platform, points, context))


def alone_platform(points: Sequence[CalibrationPoint], nominal: Platform) -> Platform:
    """The platform fitted to single messages, however quick they are, regardless of messages in a row."""
    unbounded = replace(nominal, link_bytes_per_second=math.inf)
    return fit_platform([point for point in points if point.kind != Kind.ROW], unbounded)[0]


def _residuals(platform: Platform, points: Sequence[CalibrationPoint], context: SimulationContext) -> pd.DataFrame:
    """The measured and the simulated time of every message, between two nodes or within one."""
    chosen = [point for point in points if point.kind in _COMPARED]
    clock = clock_seconds(points)
    cases = [
        case_of_kind(point.kind, (0, 1) if point.within_node else (0, 2), 2, point.message_bytes, point.count)
        for point in chosen
    ]
    simulated = simulate_plan(platform, 4, 2, cases, context)
    rows = [
        (one.kind, one.within_node, one.message_bytes, max(one.median_seconds - clock, 1e-9), other.median_seconds)
        for one, other in zip(chosen, simulated, strict=True)
    ]
    columns = ["kind", "within_node", "message_bytes", "measured_seconds", "simulated_seconds"]
    table = pd.DataFrame(rows, columns=columns)
    return table.assign(relative_error=table.simulated_seconds / table.measured_seconds - 1)
