"""Which measurements a calibration makes, and their making on a real MPI library or in simulation."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from collwise.common.errors import CollwiseError, UsageError
from collwise.platforms import HostPlatform, Platform
from collwise.simulator.execution.local_machine import run_program
from collwise.simulator.execution.processes import ProgramRun
from collwise.simulator.execution.targets import ExecutionTarget
from collwise.simulator.execution.worklist import worklist
from collwise.validation.calibration.points import (
    CLOCK,
    EAGER,
    EXCHANGE,
    ISEND,
    PING_PONG,
    RECEIVE,
    REDUCE,
    ROW,
    SEND,
    Point,
)

LEAST_BYTES = 1
MOST_BYTES = 4 * 2**20
_ROW_MESSAGES = 8
_EXCHANGES = 10
_CLOCK_READINGS = 1000
_LATE_SECONDS = 0.02
_EAGER_VOTES = 3
_LIMIT_SECONDS = 1800.0
# A message of the network's slowest size and its answer need this much more than nominal, at most.
_SLACK_SECONDS = 1e-3

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Measurement:
    """A line of the file that programs/calibration.c reads; `within_node` is ours."""

    kind: str
    first: int
    second: int
    message_bytes: int
    count: int = 1
    delay_seconds: float = 0.0
    repetitions: int = 1
    within_node: bool = False
    pairs: int = 1


@dataclass(frozen=True)
class Extent:
    """How much is measured: sizes of each kind, from one to another, and how long one may take.

    A size is repeated until its measurements take about `seconds_each`, from 2 to `most_repetitions` times.
    """

    ping_pongs: int = 72
    calls: int = 48
    rows: int = 32
    exchanges: int = 40
    least_bytes: int = LEAST_BYTES
    most_bytes: int = MOST_BYTES
    seconds_each: float = 0.06
    most_repetitions: int = 25
    seed: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.least_bytes < self.most_bytes <= 2**30:
            raise UsageError(f"sizes from {self.least_bytes} B to {self.most_bytes} B; valid: ascending, 1 B to 1 GiB")


QUICK = Extent(40, 28, 16, 20, most_bytes=2**20, seconds_each=0.02, most_repetitions=15)
USUAL = Extent()


def pair_between_nodes(procs: int, processes_per_node: int) -> tuple[int, int, int]:
    """The first processes of the first two nodes, and how many such pairs of nodes there are. UsageError if none."""
    pairs = procs // processes_per_node // 2
    if pairs == 0:
        raise UsageError(f"{procs} processes, {processes_per_node} a node; calibration needs two nodes")
    return 0, processes_per_node, pairs


def limit_plan(pair: tuple[int, int], most_bytes: int) -> list[Measurement]:
    """What the plan of sizes depends on, the eager limit, and what depends on no size."""
    return [
        Measurement(CLOCK, *pair, 0, _CLOCK_READINGS, repetitions=15),
        Measurement(EAGER, *pair, most_bytes, delay_seconds=_LATE_SECONDS, repetitions=_EAGER_VOTES),
    ]


def size_plan(
    extent: Extent,
    eager_limit_bytes: int,
    pair: tuple[int, int],
    pairs: int,
    nominal: Platform,
    *,
    within: bool,
) -> list[Measurement]:
    """Measurements over log-uniform random sizes in random order.

    All between the two processes of `pair`, `pairs` such pairs side by side, and with `within` ping-pongs between the
    first two processes. `nominal` says how long messages take, about.
    """
    chance = random.Random(extent.seed)
    most = extent.most_bytes
    eager = max(extent.least_bytes + 1, min(most, eager_limit_bytes - 1))
    below = min(most, 4 * eager)
    wanted = [
        (PING_PONG, extent.ping_pongs, most, 1, 2.0),
        (SEND, extent.calls, below, 1, 1.0),
        (ISEND, extent.calls, below, 1, 1.0),
        (RECEIVE, extent.calls, eager, 1, 3.0),
        (ROW, extent.rows, eager, _ROW_MESSAGES, float(_ROW_MESSAGES)),
        (EXCHANGE, extent.exchanges, below, _EXCHANGES, float(_EXCHANGES)),
    ]
    made = []
    for kind, sizes, largest, count, messages in wanted:
        for size in _sizes(chance, extent.least_bytes, largest, sizes):
            one_way = _expected_seconds(nominal, size)
            again = _repetitions(extent, messages * one_way)
            delay = 2 * one_way + _SLACK_SECONDS if kind == RECEIVE else 0.0
            made.append(Measurement(kind, *pair, size, count, delay, again, pairs=pairs))
    for size in _sizes(chance, extent.least_bytes, most, extent.calls if within else 0):
        again = _repetitions(extent, 2 * size / nominal.loopback_bytes_per_second)
        made.append(Measurement(PING_PONG, 0, 1, size, repetitions=again, within_node=True))
    for size in _sizes(chance, 1024, 2**20, 8):
        made.append(Measurement(REDUCE, *pair, -(-size // 8) * 8, repetitions=extent.most_repetitions, pairs=pairs))
    chance.shuffle(made)
    return made


def _sizes(chance: random.Random, least: int, most: int, count: int) -> list[int]:
    """Log-uniform and different, both ends among them."""
    ends = [least, most][:count]
    found = dict.fromkeys(ends)
    for _ in range(100 * count):
        if len(found) >= count:
            break
        found[round(math.exp(chance.uniform(math.log(least), math.log(most))))] = None
    return list(found)


def _expected_seconds(nominal: Platform, message_bytes: int) -> float:
    speed = nominal.link_bytes_per_second * nominal.links_per_node
    return 2 * nominal.link_latency_seconds + message_bytes / speed


def _repetitions(extent: Extent, seconds: float) -> int:
    return max(2, min(extent.most_repetitions, int(extent.seconds_each / max(seconds, 1e-9))))


def measure_plan(
    place: ExecutionTarget, procs: int, plan: Sequence[Measurement], on_progress: Progress | None = None
) -> list[Point]:
    """The points of a plan, measured. Raises CollwiseError when the program ends before all are made."""

    def run(file_name: str, take: Callable[[str], None]) -> ProgramRun:
        return place.run("calibration", procs, [file_name], timeout_seconds=_LIMIT_SECONDS, on_line=take)

    return _made(plan, run, place.installation.label, on_progress, folder=place.shared_directory())


def simulate_plan(
    platform: HostPlatform, procs: int, processes_per_node: int, plan: Sequence[Measurement]
) -> list[Point]:
    """The same in simulation, a repetition each. Raises CollwiseError when the simulator fails."""

    def run(file_name: str, take: Callable[[str], None]) -> ProgramRun:
        return run_program(
            "smpi",
            "calibration",
            procs,
            [file_name],
            platform=platform,
            processes_per_node=processes_per_node,
            on_line=take,
        )

    return _made(plan, run, "SimGrid", None, repetitions=1)


def _made(
    plan: Sequence[Measurement],
    run: Callable[[str, Callable[[str], None]], ProgramRun],
    engine_label: str,
    on_progress: Progress | None,
    repetitions: int | None = None,
    folder: AbstractContextManager[Path] | None = None,
) -> list[Point]:
    points: list[Point] = []

    def keep(record: dict[str, Any]) -> None:
        points.append(_point(plan[record["id"]], record))
        if on_progress is not None:
            on_progress(len(points), len(plan))

    lines = (
        f"{number} {one.kind} {one.first} {one.second} {one.pairs} {one.message_bytes} {one.count} "
        f"{one.delay_seconds!r} {repetitions or one.repetitions}\n"
        for number, one in enumerate(plan)
    )
    with worklist("".join(lines), keep, folder) as work:
        ended = run(work.file_name, work.take)
    if len(points) < len(plan):
        raise CollwiseError(f"{engine_label}: {ended.problem}; {len(points)} of {len(plan)} measurements were made")
    return points


def _point(one: Measurement, record: dict[str, Any]) -> Point:
    where = (one.kind, one.first, one.second, one.pairs, one.within_node)
    if one.kind == EAGER:
        return Point(*where, int(str(record["bytes"])), one.count, (0.0,))
    return Point(*where, one.message_bytes, one.count, tuple(record["seconds"]), tuple(record.get("send_seconds", ())))
