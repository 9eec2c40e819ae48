"""Disagreements: ranges of sizes where simulation and measurement differ by more than a limit, and their causes.

A possible cause is tested under a condition: a change of the measurement and, if there is a counterpart, of the
simulation. If the gap closes under a condition, the change explains the gap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby, zip_longest
from typing import Any, TypeVar

import numpy as np

from collwise.common.grouping import grouped
from collwise.platforms import Platform
from collwise.simulator.bench import Measured, Simulated
from collwise.simulator.execution.targets import ExecutionTarget
from collwise.simulator.sweeps.context import SimulationContext
from collwise.simulator.sweeps.method import Method
from collwise.simulator.timing import Case
from collwise.validation.compare.scores import Scores
from collwise.validation.testbed.bed import temporarily_up
from collwise.validation.testbed.shape import FRAME_BYTES, Shape
from collwise.validation.testbed.target import TcpCounts, TestBed, tcp_counts
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
        """|ln(simulated / measured)|, the same whether the simulated time is twice or half the measured time."""
        return float(abs(np.log(self.simulated_seconds / self.seconds)))


@dataclass(frozen=True)
class Disagreement:
    """An algorithm on neighbouring sizes at which simulation errs to the same side; `case` has the largest gap."""

    case: Case
    worst: Pair
    message_bytes: tuple[int, ...]


@dataclass(frozen=True)
class Diagnosis:
    """The cause of a disagreement, and times of its worst case: in a run that changes nothing, and under conditions.

    `counted` has the TCP counts of a run of this case only.
    """

    disagreement: Disagreement
    cause: str
    unchanged: Pair | None
    under: Mapping[str, Pair]
    counted: TcpCounts | None = None


def disagreements(every: Iterable[Scores]) -> list[Disagreement]:
    """All disagreements, worst first. Sizes are neighbours if no size between them has times of both kinds."""
    found = []
    for scores in every:
        errors = scores.errors[SIMULATED].values
        sides = np.where(np.abs(errors) > LIMIT, np.sign(errors), 0.0)
        for a, i in np.ndindex(*errors.shape[:2]):
            known = np.flatnonzero(np.isfinite(errors[a, i])).tolist()
            runs = groupby(known, key=sides[a, i].__getitem__)
            found += [_disagreement(scores, a, i, [*places]) for side, places in runs if side]
    return sorted(found, key=lambda disagreement: -disagreement.worst.gap)


def _disagreement(scores: Scores, a: int, i: int, places: Sequence[int]) -> Disagreement:
    right, choice, procs = scores.right, scores.right.choices[a], scores.right.procs[i]
    times = (scores.times[SIMULATED].seconds, right.seconds, right.half_widths)
    pairs = {j: Pair(*(float(array.values[a, i, j]) for array in times)) for j in places}
    worst = max(places, key=lambda j: pairs[j].gap)
    sizes = [right.message_bytes[j] for j in places]
    return Disagreement(right.grid.case(choice, procs, right.message_bytes[worst]), pairs[worst], tuple(sizes))


def cause_of(worst: Pair, unchanged: Pair | None, under: Mapping[str, Pair]) -> str:
    """The condition that leaves the smallest gap, if at most half of the unchanged run's gap is left.

    No condition is considered if the gap is smaller than the measurement's interval, or if the second run `unchanged`
    does not show the gap.
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
    """At most `most` disagreements: the worst of every collective, then the second worst of every one, and so on."""
    by_collective = grouped(found, lambda disagreement: disagreement.case.collective)
    in_turn = [item for rank in zip_longest(*by_collective.values()) for item in rank if item is not None]
    return in_turn[:most]


_SLOWER = 5
_LARGE_BUFFER_BYTES = 50_000_000
T = TypeVar("T")


def _unchanged(value: T) -> T:
    return value


@dataclass(frozen=True)
class Condition:
    """A change and the cause that it tests. If the gap closes under the change, `cause` explains the gap.

    `shape` changes the test bed, `launcher_args` the MPI library, `case` what is measured and simulated, and `platform`
    the simulation. If `isolated` is true, the simulated platform is the one calibrated on single messages. `applies`
    returns True for cases to which the change applies.
    """

    cause: str
    change: str
    shape: Callable[[Shape], Shape] = _unchanged
    launcher_args: tuple[str, ...] = ()
    platform: Callable[[Platform], Platform] = _unchanged
    isolated: bool = False
    case: Callable[[Case], Case] = _unchanged
    applies: Callable[[Case], bool] = lambda case: True


def _recalibrated(platform: Platform, **changes: Any) -> Platform:
    return replace(platform, calibration=replace(platform.calibration, **changes))


def _eager_limit(cause: str, change: str, size: int) -> Condition:
    options = ("--mca", "btl_tcp_eager_limit", str(size), "--mca", "btl_tcp_rndv_eager_limit", str(size))
    limited = partial(_recalibrated, eager_limit_bytes=size)
    return Condition(cause, change, launcher_args=options, platform=limited)


def _no_faster_than_link(platform: Platform) -> Platform:
    """The platform with bandwidth factors of at most 1, since the first packets after a pause pass unshaped."""
    rows = tuple((size, min(factor, 1.0)) for size, factor in platform.calibration.bandwidth_factor)
    return _recalibrated(platform, bandwidth_factor=rows)


CONDITIONS = (
    _eager_limit("rendezvous protocol", "messages of all sizes sent eagerly (eager limit 16 MiB), in both", 2**24),
    _eager_limit("buffering of eager messages", "messages from 1 KiB on sent by rendezvous, in both", 1024),
    Condition(
        "pipeline of segments",
        "messages in one piece, in both",
        case=lambda case: replace(case, segment_bytes=0),
        applies=lambda case: 0 < case.segment_bytes < case.message_bytes,
    ),
    Condition(
        "opposite traffic",
        "without (or with) the share that acknowledgements take from the opposite direction, in simulation only",
        platform=lambda platform: _recalibrated(platform, crosstraffic=not platform.calibration.crosstraffic),
    ),
    Condition(
        "first packets unshaped",
        "every message as fast as a single one, which the token buckets let through, in simulation only",
        isolated=True,
    ),
    Condition(
        "no pauses between messages",
        "no message faster than the link, as in a sequence, in simulation only",
        platform=_no_faster_than_link,
    ),
    Condition(
        "two cores",
        f"network at 1/{_SLOWER} of the rate, in both: the processors' share of the time is then smaller",
        shape=lambda shape: replace(shape, bits_per_second=shape.bits_per_second / _SLOWER),
        platform=lambda platform: replace(platform, link_bytes_per_second=platform.link_bytes_per_second / _SLOWER),
    ),
    Condition(
        "token bucket's burst",
        "token buckets of one packet on the test bed; in simulation no message faster than the link",
        shape=lambda shape: replace(shape, burst_bytes=FRAME_BYTES),
        platform=_no_faster_than_link,
    ),
    Condition(
        "full buffers of the switch",
        f"{_LARGE_BUFFER_BYTES // 10**6} MB of buffer at each port of the switch, on the test bed only",
        shape=lambda shape: replace(shape, buffer_bytes=_LARGE_BUFFER_BYTES),
    ),
    Condition(
        "queues of the nodes",
        "one packet of a connection in its node's queue at a time, on the test bed only: shorter queues",
        shape=lambda shape: replace(shape, host_queue_bytes=FRAME_BYTES),
    ),
)
"""All conditions in the order in which they are tried. Conditions that need no other test bed come first."""
UNCHANGED = Condition("", "nothing changed")
_LIMIT_SECONDS = 300.0


@dataclass(frozen=True)
class Diagnoser:
    """Measures and simulates a few cases under conditions, on test beds of one shape and its variants.

    `platform` is calibrated for the shape, and `isolated` on single messages. The test beds have the name `name`.
    """

    shape: Shape
    platform: Platform
    isolated: Platform
    name: str
    context: SimulationContext
    method: Method

    def diagnose(self, found: Sequence[Disagreement]) -> list[Diagnosis]:
        """A cause for each disagreement. Raises the errors of making test beds and of measuring."""
        if not found:
            return []
        cases = list(dict.fromkeys(disagreement.case for disagreement in found))
        pairs: dict[str, dict[Case, Pair]] = {}
        counted: dict[Case, TcpCounts] = {}
        jobs = [UNCHANGED, *CONDITIONS]
        for shape, conditions in groupby(jobs, key=lambda one: one.shape(self.shape)):
            with temporarily_up(shape, self.name) as up:
                bed = TestBed(up)
                for condition in conditions:
                    pairs[condition.cause] = self._under(condition, bed, cases)
                    if condition is UNCHANGED:
                        counted = self._counted(bed, cases)
        diagnoses = []
        for disagreement in found:
            case = disagreement.case
            under = {name: of_cases[case] for name, of_cases in pairs.items() if case in of_cases}
            unchanged = under.pop(UNCHANGED.cause, None)
            cause = cause_of(disagreement.worst, unchanged, under)
            diagnoses.append(Diagnosis(disagreement, cause, unchanged, under, counted.get(case)))
        return diagnoses

    def _under(self, condition: Condition, bed: TestBed, cases: Sequence[Case]) -> dict[Case, Pair]:
        applicable = {case: condition.case(case) for case in cases if condition.applies(case)}
        changed = list(dict.fromkeys(applicable.values()))
        if not changed:
            return {}
        target = bed.modified({"condition": condition.change}, launcher_args=condition.launcher_args)
        platform = condition.platform(self.isolated if condition.isolated else self.platform)
        measured = self._measured(target).time(changed)
        simulated = Simulated(platform, self.context).time(changed)
        return {
            case: Pair(simulated[other].seconds, measured[other].seconds, measured[other].half_width_seconds)
            for case, other in applicable.items()
            if simulated[other].ok and measured[other].ok
        }

    def _counted(self, bed: TestBed, cases: Sequence[Case]) -> dict[Case, TcpCounts]:
        """The counts of TCP and the switch for each case, taken while the MPI program ran only this case."""
        bench = self._measured(bed.modified({"condition": "counted"}))
        found = {}
        for case in cases:
            before = tcp_counts(bed.bed)
            bench.time([case])
            found[case] = tcp_counts(bed.bed) - before
        return found

    def _measured(self, target: ExecutionTarget) -> Measured:
        return Measured(target, self.context, self.method, _LIMIT_SECONDS)
