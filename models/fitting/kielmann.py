"""Estimation of PLogP: Kielmann et al. 2000, as in O'Flynn 2009, sections 2.2.4 and 5.2.

g(0) by saturation; of every size, a roundtrip with an empty reply gives g(m) = RTT(m) - RTT(0) + g(0), sending within
it o_s(m), and a receive completed after a delay, within which the message has arrived, o_r(m). L = RTT(0) / 2 - g(0).
Links are assumed to be symmetric. Sizes double, and are closer where g bends.

The roundtrip's g(m) is the saturated gap only where a message's additional time over an empty one is spent in one
bottleneck; where sender and receiver both work longer on larger messages, it is the sum of both. `saturate` measures
the gap itself at every size, for `2 m r + m s` instead of `2 m r + s` experiments; L + g(m) is then no longer the time
of a message. Raises UsageError for what does not fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from collwise.common.experiments import RECEIVE, ROUNDTRIP, SEND, Experiment, Laboratory
from collwise.models.fitting.loggp import DELAY_ROUNDTRIPS, directions
from collwise.models.fitting.regression import Sizes, from_last_two
from collwise.models.fitting.rounds import Pair, Procedure, chosen_pairs, together
from collwise.models.fitting.saturation import Doubling, saturated_gap
from collwise.models.piecewise import PiecewiseLinear
from collwise.models.plogp import HeterogeneousPLogP, PLogP


@dataclass(frozen=True)
class _PairFunctions:
    """L and g of the pair (i, j), and overheads of i alone, or of i and of j."""

    latency_seconds: float
    gap: PiecewiseLinear
    send_overheads: tuple[PiecewiseLinear, ...]
    receive_overheads: tuple[PiecewiseLinear, ...]


def kielmann_plogp(
    lab: Laboratory,
    sizes: Sizes | None = None,
    pairs: Sequence[Pair] | None = None,
    doubling: Doubling | None = None,
    saturate: bool = False,
) -> PLogP:
    """PLogP, the mean over the `pairs` of processes, which are (0, 1) unless given."""
    measured = chosen_pairs(lab, pairs, heterogeneous=False)
    found = _measure(lab, measured, sizes, doubling, saturate, both=False)
    return PLogP(
        float(np.mean([of.latency_seconds for of in found])),
        PiecewiseLinear.mean([of.send_overheads[0] for of in found]),
        PiecewiseLinear.mean([of.receive_overheads[0] for of in found]),
        PiecewiseLinear.mean([of.gap for of in found]),
    )


def kielmann_heterogeneous_plogp(
    lab: Laboratory, sizes: Sizes | None = None, doubling: Doubling | None = None, saturate: bool = False
) -> HeterogeneousPLogP:
    """PLogP of every pair, overheads averaged over the pairs that a processor is in."""
    measured = chosen_pairs(lab, None, heterogeneous=True)
    found = dict(zip(measured, _measure(lab, measured, sizes, doubling, saturate, both=True), strict=True))

    def mean_of(processor: int, name: str) -> PiecewiseLinear:
        own = [getattr(of, name)[pair.index(processor)] for pair, of in found.items() if processor in pair]
        return PiecewiseLinear.mean(own)

    sends = [mean_of(processor, "send_overheads") for processor in range(lab.procs)]
    receives = [mean_of(processor, "receive_overheads") for processor in range(lab.procs)]

    def of_pair(i: int, j: int) -> PLogP | None:
        if i == j:
            return None
        link = found[min(i, j), max(i, j)]
        return PLogP(link.latency_seconds, sends[i], receives[j], link.gap)

    return HeterogeneousPLogP(tuple(tuple(of_pair(i, j) for j in range(lab.procs)) for i in range(lab.procs)))


def _measure(
    lab: Laboratory,
    pairs: Sequence[Pair],
    sizes: Sizes | None,
    doubling: Doubling | None,
    saturate: bool,
    both: bool,
) -> list[_PairFunctions]:
    chosen, rows = sizes or Sizes(), doubling or Doubling()
    return together(lab, [_of_pair(lab.least_bytes, pair, chosen, rows, saturate, both) for pair in pairs])


def _of_pair(
    least: int, pair: Pair, sizes: Sizes, doubling: Doubling, saturate: bool, both: bool
) -> Procedure[_PairFunctions]:
    roundtrips: dict[int, float] = {}

    def roundtrip(size: int) -> Procedure[float]:
        (roundtrips[size],) = yield [Experiment(ROUNDTRIP, pair, size, least)]
        return roundtrips[size]

    empty = yield from roundtrip(least)
    empty_gap = yield from saturated_gap(pair, least, least, empty, doubling)

    def gap(size: int) -> Procedure[float]:
        if size == least:
            return empty_gap
        seconds = yield from roundtrip(size)
        if saturate:
            return (yield from saturated_gap(pair, size, least, seconds, doubling))
        return seconds - empty + empty_gap

    gaps = yield from sizes.explore(least, gap, from_last_two)
    ways = directions(pair, both)
    sends = yield [Experiment(SEND, way, size, least) for way in ways for size in gaps]
    # A slow sender's answer is later than the roundtrip of the other's message.
    slowest = np.max(np.reshape(sends, (len(ways), len(gaps))), axis=0)
    delays = {
        size: DELAY_ROUNDTRIPS * (roundtrips[size] + float(send)) for size, send in zip(gaps, slowest, strict=True)
    }
    receives = yield [
        Experiment(RECEIVE, way, size, least, delay_seconds=delays[size]) for way in ways for size in gaps
    ]
    knots = tuple(float(size) for size in gaps)

    def functions(seconds: list[float]) -> tuple[PiecewiseLinear, ...]:
        n = len(knots)
        return tuple(PiecewiseLinear(knots, tuple(seconds[way * n : way * n + n])) for way in range(len(ways)))

    return _PairFunctions(
        empty / 2 - empty_gap, PiecewiseLinear(knots, tuple(gaps.values())), functions(sends), functions(receives)
    )
