"""Estimation of PLogP: Kielmann et al. 2000, as in O'Flynn 2009, sections 2.2.4 and 5.2.

Saturation gives g(0). At every size, a roundtrip with an empty reply gives g(m) = RTT(m) - RTT(0) + g(0), its sending
gives o_s(m), and a receive after a delay, in which the message has arrived, gives o_r(m). L = RTT(0) / 2 - g(0).

If sender and receiver both work longer on larger messages, this g(m) is the sum of both times. With `saturate`, the gap
itself is measured at every size, and L + g(m) is no longer the time of a message. All functions raise UsageError for
invalid arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from collwise.common.errors import CollwiseError, UsageError
from collwise.common.experiments import CHAIN_BCAST, LINEAR_BARRIER, RECEIVE, ROUNDTRIP, SEND, Experiment, Laboratory
from collwise.models.fitting.loggp import DELAY_ROUNDTRIPS, DOUBLING, Doubling, directions, saturated_gap
from collwise.models.fitting.regression import SIZES, Sizes, from_last_two
from collwise.models.fitting.rounds import Pair, Procedure, of_pairs
from collwise.models.piecewise import PiecewiseLinear
from collwise.models.single_messages import HeterogeneousPLogP, PLogP


def kielmann_plogp(
    lab: Laboratory,
    sizes: Sizes = SIZES,
    pairs: Sequence[Pair] | None = None,
    doubling: Doubling = DOUBLING,
    saturate: bool = False,
) -> PLogP:
    """PLogP, the mean over `pairs` of processes, by default only (0, 1)."""
    found = of_pairs(lab, lambda pair: _ways(lab.min_bytes, [pair], sizes, doubling, saturate), pairs)
    return PLogP.mean([p for (p,) in found.values()])


def kielmann_heterogeneous_plogp(
    lab: Laboratory, sizes: Sizes = SIZES, doubling: Doubling = DOUBLING, saturate: bool = False
) -> HeterogeneousPLogP:
    """PLogP of every pair, with each processor's overheads averaged over its pairs."""
    found = of_pairs(
        lab,
        lambda pair: _ways(lab.min_bytes, directions(pair, both=True), sizes, doubling, saturate),
        heterogeneous=True,
    )
    own = [
        PLogP.mean([ways[pair.index(processor)] for pair, ways in found.items() if processor in pair])
        for processor in range(lab.procs)
    ]

    def of_pair(i: int, j: int) -> PLogP | None:
        if i == j:
            return None
        link = found[min(i, j), max(i, j)][0]
        return PLogP(link.latency_seconds, own[i].send_overhead, own[j].receive_overhead, link.gap)

    return HeterogeneousPLogP(tuple(tuple(of_pair(i, j) for j in range(lab.procs)) for i in range(lab.procs)))


def fitted_plogp(lab: Laboratory, measured: PLogP) -> PLogP:
    """`measured` with L and g fitted to two collectives: Pješivac-Grbović et al. 2007, section 6.1.

    The unsegmented chain broadcast takes (P - 1) (L + g(m)), the linear barrier at best P g(0) + 2 L (tables 1 and 2).
    Over several P and m this is linear in L and every g(m); g(0) is assumed to equal g(1). The knots are those of the
    measured gap, and 1 byte. Raises UsageError for two processes, and CollwiseError for collectives that take no time.
    """
    communicators = sorted({*(1 << k for k in range(1, lab.procs.bit_length())), lab.procs})
    if len(communicators) < 2:
        raise UsageError(
            f"fitting PLogP on {lab.procs} processes: at least two different numbers of processes above 1 are needed; "
            "valid: 3 or more"
        )
    knots = sorted({1, *(max(1, int(size)) for size in measured.gap.message_bytes)})
    experiments = []
    # How often L and each g(m) occur in each measured time.
    rows = np.zeros((len(communicators), 1 + len(knots), 1 + len(knots)))
    for row, of in zip(rows, communicators, strict=True):
        experiments.append(Experiment(LINEAR_BARRIER, tuple(range(of)), 0))
        experiments += [Experiment(CHAIN_BCAST, tuple(range(of)), size) for size in knots]
        row[0, :2] = 2, of
        row[1:, 0] = of - 1
        row[1:, 1:] = (of - 1) * np.eye(len(knots))
    seconds = np.array([measurement.seconds for measurement in lab.run(experiments)])
    if seconds.min() <= 0:
        raise CollwiseError("a broadcast or a barrier took no time: there is nothing to fit PLogP to")
    equations = rows.reshape(len(seconds), -1) / seconds[:, None]
    latency, *gaps = np.linalg.lstsq(equations, np.ones(len(seconds)), rcond=None)[0]
    gap = PiecewiseLinear(tuple(map(float, knots)), tuple(map(float, gaps)))
    return replace(measured, latency_seconds=float(latency), gap=gap)


def _ways(least: int, ways: Sequence[Pair], sizes: Sizes, doubling: Doubling, saturate: bool) -> Procedure[list[PLogP]]:
    """PLogP for each direction in `ways`: L and g of the first direction, and the overheads of every first process."""
    roundtrips: dict[int, float] = {}

    def roundtrip(size: int) -> Procedure[float]:
        (roundtrips[size],) = yield [Experiment(ROUNDTRIP, ways[0], size, least)]
        return roundtrips[size]

    empty = yield from roundtrip(least)
    empty_gap = yield from saturated_gap(ways[0], least, least, empty, doubling)

    def gap(size: int) -> Procedure[float]:
        if size == least:
            return empty_gap
        seconds = yield from roundtrip(size)
        if saturate:
            return (yield from saturated_gap(ways[0], size, least, seconds, doubling))
        return seconds - empty + empty_gap

    gaps = yield from sizes.explore(least, gap, from_last_two)
    shape = (len(ways), len(gaps))
    sends = yield [Experiment(SEND, way, size, least) for way in ways for size in gaps]
    # If the second process sends more slowly than the first, its reply takes longer than the measured roundtrip.
    slowest = np.max(np.reshape(sends, shape), axis=0).tolist()
    after = {size: DELAY_ROUNDTRIPS * (roundtrips[size] + send) for size, send in zip(gaps, slowest, strict=True)}
    receives = yield [Experiment(RECEIVE, way, size, least, delay_seconds=after[size]) for way in ways for size in gaps]
    of_gap, latency = tuple(gaps.values()), empty / 2 - empty_gap
    found = []
    for of_way in zip(np.reshape(sends, shape).tolist(), np.reshape(receives, shape).tolist(), strict=True):
        functions = (PiecewiseLinear(tuple(map(float, gaps)), tuple(values)) for values in (*of_way, of_gap))
        found.append(PLogP(latency, *functions))
    return found
