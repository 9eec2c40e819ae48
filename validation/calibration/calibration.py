"""Calibration from end to end: plans, makes and fits measurements, and simulates what was measured."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pandas as pd

from collwise.common.errors import UsageError, warn
from collwise.platforms import HostPlatform, Platform
from collwise.simulator.execution.targets import ExecutionTarget
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import SimulationContext
from collwise.simulator.sweeps.experiment_runner import MeasuredExperiments
from collwise.simulator.sweeps.method import Method, Precision
from collwise.simulator.sweeps.mpi_runner import measure_launches
from collwise.simulator.sweeps.runner import Progress, run_cases
from collwise.simulator.timing import Case
from collwise.validation.calibration.calibration_points import (
    CalibrationPoint,
    Kind,
    case_of_kind,
    flag_case,
    of_kind,
    point_of,
)
from collwise.validation.calibration.segmented_regression import value_at
from collwise.validation.calibration.smpi_parameters import Segments, clock_seconds, eager_limit, fit_platform

MIN_BYTES = 1
MAX_BYTES = 4 * 2**20
_ROW_MESSAGES = 8
_EXCHANGES = 10
_CLOCK_READINGS = 1000
_CLOCK_REPETITIONS = 15
_LATE_SECONDS = 0.02
_EAGER_TRIALS = 3
_FLAGS = Method(precision=Precision(30, 100), warmup=3, keep_samples=True)
# A message and its answer together take at most this much longer than their nominal time.
_SLACK_SECONDS = 1e-3

CalibrationPlan = dict[Case, int]
"""Cases in the order in which they are measured, with their numbers of repetitions."""


@dataclass(frozen=True)
class CalibrationGrid:
    """The number of message sizes of each kind, their range, and their repetitions.

    Each size is measured from 2 to `max_repetitions` times, so that its measurements take about `seconds_each`.
    """

    ping_pongs: int = 72
    calls: int = 48
    rows: int = 32
    exchanges: int = 40
    min_bytes: int = MIN_BYTES
    max_bytes: int = MAX_BYTES
    seconds_each: float = 0.06
    max_repetitions: int = 25

    def __post_init__(self) -> None:
        if not 1 <= self.min_bytes < self.max_bytes <= 2**30:
            raise UsageError(f"sizes from {self.min_bytes} B to {self.max_bytes} B; valid: 1 B to 1 GiB, ascending")


QUICK = CalibrationGrid(72, 28, 16, 20, max_bytes=2**20, max_repetitions=15)
USUAL = CalibrationGrid()


def pairs_between_nodes(procs: int, processes_per_node: int) -> tuple[int, ...]:
    """The first process of each node, in successive pairs; a last node without a partner is left out.

    Raises UsageError for fewer than two nodes.
    """
    pairs = procs // processes_per_node // 2
    if pairs == 0:
        raise UsageError(f"{procs} processes, {processes_per_node} per node: calibration needs two nodes")
    return tuple(range(0, 2 * pairs * processes_per_node, processes_per_node))


def limit_plan(pair: tuple[int, ...], processes_per_node: int, max_bytes: int) -> CalibrationPlan:
    """The plan to measure the eager limit, which `size_plan` needs, and the clock, whose time depends on no size."""
    clock = case_of_kind(Kind.CLOCK, pair, processes_per_node, 0, _CLOCK_READINGS)
    eager = case_of_kind(Kind.EAGER, pair, processes_per_node, max_bytes, _EAGER_TRIALS, _LATE_SECONDS)
    return {clock: _CLOCK_REPETITIONS, eager: 1}


def size_plan(
    grid: CalibrationGrid,
    eager_limit_bytes: int,
    processes: tuple[int, ...],
    processes_per_node: int,
    nominal: Platform,
) -> CalibrationPlan:
    """The plan of measurements at log-uniform random sizes, in random order.

    All pairs of `processes` measure at the same time. If nodes have several processes, ping-pongs within nodes are
    added: between the first two processes of each of these nodes, or of only the first node if only one pair measures.
    The times of `nominal` determine how often each measurement is repeated.
    """
    chance = random.Random(1)
    most = grid.max_bytes
    eager = max(grid.min_bytes + 1, min(most, eager_limit_bytes - 1))
    below = min(most, 4 * eager)
    wanted = [
        (Kind.PING_PONG, grid.ping_pongs, most, 1, 2.0),
        (Kind.SEND, grid.calls, below, 1, 1.0),
        (Kind.ISEND, grid.calls, below, 1, 1.0),
        (Kind.RECEIVE, grid.calls, eager, 1, 3.0),
        (Kind.ROW, grid.rows, eager, _ROW_MESSAGES, float(_ROW_MESSAGES)),
        (Kind.EXCHANGE, grid.exchanges, below, _EXCHANGES, float(_EXCHANGES)),
    ]
    made = []
    for kind, sizes, largest, count, messages in wanted:
        for size in _sizes(chance, grid.min_bytes, largest, sizes):
            one_way = 2 * nominal.link_latency_seconds + size / nominal.node_bytes_per_second
            delay = 2 * one_way + _SLACK_SECONDS if kind == Kind.RECEIVE else 0.0
            case = case_of_kind(kind, processes, processes_per_node, size, count, delay)
            made.append((case, _repetitions(grid, messages * one_way)))
    nodes = processes if len(processes) > 2 else processes[:1]
    neighbours = tuple(rank + place for rank in nodes for place in (0, 1))
    for size in _sizes(chance, grid.min_bytes, most, grid.calls if processes_per_node > 1 else 0):
        case = case_of_kind(Kind.PING_PONG, neighbours, processes_per_node, size)
        made.append((case, _repetitions(grid, 2 * size / nominal.loopback_bytes_per_second)))
    for size in _sizes(chance, 1024, 2**20, 8):
        case = case_of_kind(Kind.REDUCE, processes, processes_per_node, -(-size // 8) * 8)
        made.append((case, grid.max_repetitions))
    chance.shuffle(made)
    return dict(made)


def _sizes(chance: random.Random, least: int, most: int, count: int) -> list[int]:
    """Distinct log-uniform sizes, including both ends."""
    ends = [least, most][:count]
    found = dict.fromkeys(ends)
    for _ in range(100 * count):
        if len(found) >= count:
            break
        found[round(math.exp(chance.uniform(math.log(least), math.log(most))))] = None
    return list(found)


def _repetitions(grid: CalibrationGrid, seconds: float) -> int:
    return max(2, min(grid.max_repetitions, int(grid.seconds_each / max(seconds, 1e-9))))


def measure_plan(
    target: ExecutionTarget,
    procs: int,
    plan: CalibrationPlan,
    grid: CalibrationGrid,
    store: Store,
    on_progress: Progress | None = None,
) -> list[CalibrationPoint]:
    """The points of a plan; measures those that the store does not have.

    Raises CollwiseError if the program fails; the store then has the points measured before.
    """
    runner = MeasuredExperiments(target, procs, Precision(2, grid.max_repetitions), repetitions=plan)
    return [point_of(timing) for timing in run_cases(runner, list(plan), store, on_progress).timings.values()]


def measure_flag(target: ExecutionTarget, processes_per_node: int, store: Store) -> list[CalibrationPoint]:
    """The point of a flag in shared memory, unless it is in the store; none if nodes have one process.

    Raises CollwiseError if the program fails.
    """
    if processes_per_node < 2:
        return []
    [[timing]] = measure_launches(target, [flag_case(processes_per_node)], store, _FLAGS)
    if not timing.ok:
        warn(f"no flag in shared memory was measured: {timing.error}")
        return []
    return [point_of(timing)]


def simulate_plan(
    platform: HostPlatform, procs: int, processes_per_node: int, cases: Sequence[Case], context: SimulationContext
) -> list[CalibrationPoint]:
    """The simulated points of cases. Raises CollwiseError when the simulator fails."""
    timings = context.simulate_experiments(platform, procs, processes_per_node, cases).complete().timings
    return [point_of(timings[case]) for case in cases]


# Receives are missing here, since in simulation a message sets out only when its receive is posted.
_COMPARED = (Kind.PING_PONG, Kind.SEND, Kind.ISEND, Kind.ROW, Kind.EXCHANGE)


@dataclass(frozen=True)
class CalibrationResult:
    """The calibrated platform, its points, the fitted segments by kind, and the simulated times of the points.

    Segments of kind 'ping_pong' give the one-way time in the network by the bytes of message and envelope, without
    smpi/os and smpi/or. `residuals` has the columns kind, within_node, message_bytes, measured_seconds (the median
    minus the time of reading the clock), simulated_seconds, and relative_error, which is (simulated - measured) /
    measured.
    """

    platform: Platform
    points: tuple[CalibrationPoint, ...]
    segments: Segments
    residuals: pd.DataFrame

    def errors_of(self, kind: Kind) -> list[tuple[int, float]]:
        """Sizes in bytes, and the relative errors of simulated times between nodes.

        For receives, these are the errors of their fitted segments. Sends and receives are restricted to sizes below
        the eager limit, where smpi/os and smpi/or are charged.
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
    """The calibration points of a target that `nominal` describes; measures the points that are not in the store.

    All pairs of nodes measure at the same time, since all nodes are busy in a collective; with `together` False only
    the first pair measures. Nodes of several processes also measure a flag. Raises UsageError for fewer than two nodes,
    and CollwiseError if a program fails.
    """
    procs = nominal.nodes * target.processes_per_node(nominal.nodes)
    per_node = target.processes_per_node(procs)
    processes = pairs_between_nodes(procs, per_node)
    limits = measure_plan(target, procs, limit_plan(processes[:2], per_node, grid.max_bytes), grid, store)
    plan = size_plan(grid, eager_limit(limits), processes if together else processes[:2], per_node, nominal)
    points = measure_plan(target, procs, plan, grid, store, on_progress)
    return [*limits, *points, *measure_flag(target, per_node, store)]


def refit(points: Sequence[CalibrationPoint], nominal: Platform, context: SimulationContext) -> CalibrationResult:
    """The platform fitted to the points, under the nominal name. Raises UsageError if a kind has too few points."""
    platform, segments = fit_platform(points, nominal)
    return CalibrationResult(platform, tuple(points), segments, _residuals(platform, points, context))


def alone_platform(points: Sequence[CalibrationPoint], nominal: Platform) -> Platform:
    """The platform fitted to single messages only; messages in a row are left out, and the rate has no limit."""
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
        (item.kind, item.within_node, item.message_bytes, max(item.median_seconds - clock, 1e-9), other.median_seconds)
        for item, other in zip(chosen, simulated, strict=True)
    ]
    columns = ["kind", "within_node", "message_bytes", "measured_seconds", "simulated_seconds"]
    table = pd.DataFrame(rows, columns=columns)
    return table.assign(relative_error=table.simulated_seconds / table.measured_seconds - 1)
