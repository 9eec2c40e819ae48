"""Estimation of LogP and LogGP: Culler et al. 1996, as in O'Flynn 2009, sections 2.2.2, 2.2.3 and table 2.1.

o_s is the time of sending; o_r that of completing a receive after a delay within which the message has arrived;
L = RTT / 2 - o_s - o_r; g by saturation, and G by saturation with large messages, which follow one another after
g + (m - 1) G.

`pairs` are the pairs of processes measured, (0, 1) unless given, and results are their mean; heterogeneous models take
every pair. All raise UsageError for what does not fit.
"""

from __future__ import annotations

from collections.abc import Sequence

from collwise.common.errors import UsageError
from collwise.common.experiments import RECEIVE, ROUNDTRIP, SEND, Experiment, Laboratory
from collwise.models.fitting.loggp import DELAY_ROUNDTRIPS, PairTimes, directions, largest_eager, loggp
from collwise.models.fitting.rounds import Pair, Procedure, chosen_pairs, together
from collwise.models.fitting.saturation import Doubling, saturated_gap
from collwise.models.loggp import LogGP


def culler_logp(
    lab: Laboratory,
    message_bytes: int | None = None,
    pairs: Sequence[Pair] | None = None,
    heterogeneous: bool = False,
    doubling: Doubling | None = None,
) -> LogGP:
    """LogP, which is LogGP with G = 0, of messages of one size: the least, unless given."""
    size = lab.least_bytes if message_bytes is None else message_bytes
    if size < lab.least_bytes:
        raise UsageError(f"messages of {size} bytes: at least {lab.least_bytes} is valid")
    return _model(lab, size, None, pairs, heterogeneous, doubling or Doubling())


def culler_loggp(
    lab: Laboratory,
    large_bytes: int | None = None,
    pairs: Sequence[Pair] | None = None,
    heterogeneous: bool = False,
    doubling: Doubling | None = None,
) -> LogGP:
    """LogGP from the least message and, for G, from messages of `large_bytes`: the largest eager ones up to 64 KiB."""
    large = largest_eager(lab) if large_bytes is None else large_bytes
    if large <= lab.least_bytes:
        raise UsageError(f"large messages of {large} bytes: more than {lab.least_bytes} is valid")
    return _model(lab, lab.least_bytes, large, pairs, heterogeneous, doubling or Doubling())


def _model(
    lab: Laboratory,
    message_bytes: int,
    large_bytes: int | None,
    pairs: Sequence[Pair] | None,
    heterogeneous: bool,
    doubling: Doubling,
) -> LogGP:
    measured = chosen_pairs(lab, pairs, heterogeneous)

    def procedure(pair: Pair) -> Procedure[PairTimes]:
        ways = directions(pair, both=heterogeneous)
        roundtrip, *sends = yield [
            Experiment(ROUNDTRIP, pair, message_bytes, message_bytes),
            *(Experiment(SEND, way, message_bytes, message_bytes) for way in ways),
        ]
        delay = DELAY_ROUNDTRIPS * roundtrip
        receives = yield [Experiment(RECEIVE, way, message_bytes, message_bytes, delay_seconds=delay) for way in ways]
        gap = yield from saturated_gap(pair, message_bytes, message_bytes, roundtrip, doubling)
        per_byte = 0.0
        if large_bytes is not None:
            (single,) = yield [Experiment(ROUNDTRIP, pair, large_bytes, message_bytes)]
            large_gap = yield from saturated_gap(pair, large_bytes, message_bytes, single, doubling)
            per_byte = (large_gap - gap) / (large_bytes - message_bytes)
        return PairTimes(roundtrip, tuple(sends), tuple(receives), gap, per_byte)

    return loggp(lab.procs, measured, together(lab, [procedure(pair) for pair in measured]), heterogeneous)
