"""Estimation of LogP and LogGP, with saturation (Culler) or without it (Hoefler), and of a gap per number of receivers.

Results are means over `pairs` of processes, by default only (0, 1). All functions raise UsageError for invalid
arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from collwise.common.errors import UsageError
from collwise.common.experiments import PRTT, RECEIVE, ROUNDTRIP, SATURATION, SCATTER, SEND, Experiment, Laboratory
from collwise.models.collectives.steps import steps_of
from collwise.models.fitting.regression import line
from collwise.models.fitting.rounds import Pair, Procedure, by_processor, of_pairs, symmetric
from collwise.models.single_messages import FurtherGap, LogGP, PLogP

WithGap = TypeVar("WithGap", LogGP, PLogP)

# A reply takes about a roundtrip, so it has arrived when a process has been busy for twice as long.
DELAY_ROUNDTRIPS = 2.0
LARGE_BYTES = 65536
# The number of messages in a row in Hoefler's procedure.
_ROW = 16


@dataclass(frozen=True)
class Doubling:
    """The number of messages that are sent back to back.

    It starts at `first` and doubles until the gap changes by less than `change`, or until it reaches a limit.
    """

    first: int = 100
    change: float = 0.01
    max_count: int = 6400
    max_bytes: int = 1 << 28

    def __post_init__(self) -> None:
        if not 2 <= self.first <= self.max_count or self.change <= 0:
            raise UsageError(
                f"saturation with {self.first} to {self.max_count} messages, change {self.change}: "
                "at least 2 messages and a change above 0 are needed"
            )


DOUBLING = Doubling()


@dataclass(frozen=True)
class _PairTimes:
    """Times of the pair (i, j) in seconds; the overheads are those of i alone, or of i and j."""

    roundtrip_seconds: float
    send_overheads: Sequence[float]
    receive_overheads: Sequence[float]
    gap_seconds: float
    gap_seconds_per_byte: float


def culler_loggp(
    lab: Laboratory,
    pairs: Sequence[Pair] | None = None,
    heterogeneous: bool = False,
    doubling: Doubling = DOUBLING,
    large_messages: bool = True,
) -> LogGP:
    """LogGP by saturation: Culler et al. 1996, as in O'Flynn 2009, sections 2.2.2, 2.2.3 and table 2.1.

    o_s is the time of sending, and o_r that of a receive after a delay in which the message has arrived. Saturation
    with the smallest message gives g, with large messages g + (m - 1) G; without `large_messages` G = 0, which is LogP.
    """
    least, large = lab.min_bytes, _largest_eager(lab)

    def procedure(pair: Pair) -> Procedure[_PairTimes]:
        ways = directions(pair, both=heterogeneous)
        roundtrip, *sends = yield [
            Experiment(ROUNDTRIP, pair, least, least),
            *(Experiment(SEND, way, least, least) for way in ways),
        ]
        delay = DELAY_ROUNDTRIPS * roundtrip
        receives = yield [Experiment(RECEIVE, way, least, least, delay_seconds=delay) for way in ways]
        gap = yield from saturated_gap(pair, least, least, roundtrip, doubling)
        per_byte = 0.0
        if large_messages:
            (single,) = yield [Experiment(ROUNDTRIP, pair, large, least)]
            large_gap = yield from saturated_gap(pair, large, least, single, doubling)
            per_byte = (large_gap - gap) / (large - least)
        return _PairTimes(roundtrip, sends, receives, gap, per_byte)

    return _loggp(lab, procedure, pairs, heterogeneous)


def hoefler_loggp(lab: Laboratory, pairs: Sequence[Pair] | None = None, heterogeneous: bool = False) -> LogGP:
    """LogGP without saturation: Hoefler, Lichei and Rehm 2007.

    The paper is "Low-Overhead LogGP Parameter Assessment for Modern Interconnection Networks". PRTT(n, d, s) is the
    time of n messages of s bytes, d seconds of other work between two of them, and a reply of s bytes:
    - PRTT(1, 0, s) = 2 (L + 2 o + (s - 1) G);
    - without a delay each further message adds g + (s - 1) G, which over several s gives g and G by least squares;
    - with a delay of at least the gap each further message adds the delay and o. This o is the overhead of sending; o_r
      cannot be distinguished from L and is assumed to equal o_s. So if o_r and o_s differ, L is wrong but L + o_s + o_r
      is right. Delayed times consist mostly of the delay, so a small error in these times is a large error in o.
    """
    least, most = lab.min_bytes, _largest_eager(lab)
    larger = {size for size in (most // 64, most // 16, most // 4, most // 2, most) if size > least}
    sizes = sorted({least, *larger})

    def procedure(pair: Pair) -> Procedure[_PairTimes]:
        seconds = yield [Experiment(PRTT, pair, size, size, n) for size in sizes for n in (1, _ROW)]
        singles, rows = seconds[::2], seconds[1::2]
        gaps = [(row - single) / (_ROW - 1) for single, row in zip(singles, rows, strict=True)]
        gap, per_byte = line([max(size - 1, 0) for size in sizes], gaps)
        delay = max(singles[0], gaps[0])
        delayed = yield [
            Experiment(PRTT, way, least, least, _ROW, delay) for way in directions(pair, both=heterogeneous)
        ]
        overheads = [(row - singles[0]) / (_ROW - 1) - delay for row in delayed]
        return _PairTimes(singles[0], overheads, overheads, gap, per_byte)

    return _loggp(lab, procedure, pairs, heterogeneous)


def directions(pair: Pair, both: bool) -> list[Pair]:
    """The pair, or the pair in both directions; the first process takes the time and has its overhead measured."""
    return [pair, (pair[1], pair[0])] if both else [pair]


def _largest_eager(lab: Laboratory) -> int:
    """The size of large messages: 64 KiB, or less, so that no handshake delays the next message."""
    largest = min(LARGE_BYTES, lab.eager_limit_bytes - 1)
    return largest if largest > lab.min_bytes else LARGE_BYTES


def _loggp(
    lab: Laboratory,
    procedure: Callable[[Pair], Procedure[_PairTimes]],
    pairs: Sequence[Pair] | None,
    heterogeneous: bool,
) -> LogGP:
    """The means over the pairs, or values per pair and each processor's mean overheads (O'Flynn 2009, section 5.2).

    L = RTT / 2 - o_s - o_r; between different processors, RTT = 2 L + the four overheads.
    """
    times = of_pairs(lab, procedure, pairs, heterogeneous)
    if not heterogeneous:
        rows = [
            (of.roundtrip_seconds / 2 - send - receive, send, receive, of.gap_seconds, of.gap_seconds_per_byte)
            for of in times.values()
            for send, receive in zip(of.send_overheads, of.receive_overheads, strict=True)
        ]
        return LogGP(*(float(np.mean(values)) for values in zip(*rows, strict=True)))

    send = by_processor(lab.procs, list(times), [of.send_overheads for of in times.values()])
    receive = by_processor(lab.procs, list(times), [of.receive_overheads for of in times.values()])
    busy = send + receive
    return LogGP(
        symmetric(lab.procs, {(i, j): (of.roundtrip_seconds - busy[i] - busy[j]) / 2 for (i, j), of in times.items()}),
        send,
        receive,
        symmetric(lab.procs, {pair: of.gap_seconds for pair, of in times.items()}),
        symmetric(lab.procs, {pair: of.gap_seconds_per_byte for pair, of in times.items()}),
    )


def saturated_gap(
    pair: Pair, message_bytes: int, reply_bytes: int, single_seconds: float, doubling: Doubling
) -> Procedure[float]:
    """The gap from s messages of that size in a row, (T(s) - T(1)) / (s - 1); s grows until the gap settles.

    O'Flynn 2009, sections 2.2.2 and 2.2.4, divides T(s) by s, which still includes 1 / s of a roundtrip. If T(1) =
    `single_seconds` is subtracted, as in Hoefler et al. 2007, far fewer messages give the same limit. The last value is
    returned if the gap does not settle.
    """
    count, before = doubling.first, None
    while True:
        (seconds,) = yield [Experiment(SATURATION, pair, message_bytes, reply_bytes, count)]
        gap = (seconds - single_seconds) / (count - 1)
        settled = before is not None and abs(gap - before) <= doubling.change * abs(gap)
        if settled or 2 * count > doubling.max_count or 2 * count * message_bytes > doubling.max_bytes:
            return gap
        count, before = 2 * count, gap


def with_further_gap(lab: Laboratory, measured: WithGap) -> WithGap:
    """The parameters with the change of the gap for 2, 4, 8, ... and all receivers: Pješivac-Grbović et al., section 7.

    A linear scatter of the smallest blocks to k processes takes k - 1 gaps longer than a scatter to one process, so the
    gap for k receivers is (T(k) - T(1)) / (k - 1). The change is the difference to the gap between messages to one
    process.
    """
    # Linear trees send no messages for empty blocks.
    least = max(1, lab.min_bytes)
    receivers = sorted({*(1 << k for k in range((lab.procs - 1).bit_length())), lab.procs - 1})
    experiments = [Experiment(SCATTER, tuple(range(1 + count)), least) for count in receivers]
    single, *others = (measurement.seconds for measurement in lab.run(experiments))
    gap = float(steps_of(measured).gap(least))
    changes: list[float] = [
        (seconds - single) / (count - 1) - gap for count, seconds in zip(receivers[1:], others, strict=True)
    ]
    return replace(measured, further_gap=FurtherGap(tuple(map(float, receivers)), (0.0, *changes)))
