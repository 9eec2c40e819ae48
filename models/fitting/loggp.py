"""The common part of Culler's and Hoefler's procedures: from the times of pairs to a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from collwise.common.experiments import Laboratory
from collwise.models.fitting.rounds import Pair, by_processor, symmetric
from collwise.models.loggp import LogGP

# An answer takes about a roundtrip; a process that is busy for twice that finds it arrived.
DELAY_ROUNDTRIPS = 2.0
LARGE_BYTES = 65536


@dataclass(frozen=True)
class PairTimes:
    """Times of the pair (i, j) in seconds, with the overheads of i alone, or of i and j."""

    roundtrip_seconds: float
    send_overheads: tuple[float, ...]
    receive_overheads: tuple[float, ...]
    gap_seconds: float
    gap_seconds_per_byte: float = 0.0


def largest_eager(lab: Laboratory) -> int:
    """The default size of large messages: 64 KiB, or the largest that is sent without a handshake.

    With a handshake in between, messages do not follow one another after g + (m - 1) G.
    """
    largest = min(LARGE_BYTES, lab.eager_limit_bytes - 1)
    return largest if largest > lab.least_bytes else LARGE_BYTES


def directions(pair: Pair, both: bool) -> list[Pair]:
    """The pair, or both of its directions: the first process takes the time, and its overhead is measured."""
    return [pair, (pair[1], pair[0])] if both else [pair]


def loggp(procs: int, pairs: Sequence[Pair], times: Sequence[PairTimes], heterogeneous: bool) -> LogGP:
    """The means over the pairs; or one value per pair, and overheads averaged over the pairs that a processor is in.

    L = RTT / 2 - o_s - o_r; between unlike processors, RTT = 2 L + the four overheads.
    """
    if not heterogeneous:
        sends, receives = [of.send_overheads[0] for of in times], [of.receive_overheads[0] for of in times]
        latencies = [
            of.roundtrip_seconds / 2 - send - receive for of, send, receive in zip(times, sends, receives, strict=True)
        ]
        gaps, per_byte = [of.gap_seconds for of in times], [of.gap_seconds_per_byte for of in times]
        return LogGP(*(float(np.mean(values)) for values in (latencies, sends, receives, gaps, per_byte)))
    measured = list(zip(pairs, times, strict=True))
    send = by_processor(procs, [each for pair, of in measured for each in zip(pair, of.send_overheads, strict=True)])
    receive = by_processor(
        procs, [each for pair, of in measured for each in zip(pair, of.receive_overheads, strict=True)]
    )
    busy = send + receive
    return LogGP(
        symmetric(procs, {(i, j): (of.roundtrip_seconds - busy[i] - busy[j]) / 2 for (i, j), of in measured}),
        send,
        receive,
        symmetric(procs, {pair: of.gap_seconds for pair, of in measured}),
        symmetric(procs, {pair: of.gap_seconds_per_byte for pair, of in measured}),
    )
