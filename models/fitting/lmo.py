"""Estimation of the LMO model from roundtrips and one-to-two experiments: O'Flynn 2009, sections 4.4.2 and 4.4.3."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from collwise.common.errors import UsageError
from collwise.common.experiments import ONE_TO_TWO, ROUNDTRIP, Experiment, Laboratory
from collwise.models.fitting.rounds import by_processor
from collwise.models.piecewise import Array
from collwise.models.single_messages import LMO, Thresholds

# Up to this many processes all C(n, 3) triplets are measured; C(51, 3) is 20,825.
PROCS_WITH_ALL_TRIPLETS = 16
# With more processes, every processor is in at least this many triplets.
TRIPLETS_EACH = 30

NO_THRESHOLDS = Thresholds()

# M is this fraction of the smallest of S, the eager limit and LARGEST_MESSAGE_BYTES.
BELOW_THRESHOLD = 15 / 16
LARGEST_MESSAGE_BYTES = 65536


def lmo_by_triplets(lab: Laboratory, thresholds: Thresholds = NO_THRESHOLDS) -> LMO:
    """Heterogeneous LMO by formulas (4.4) to (4.10), with the given `thresholds`.

    Here an empty message has e = `lab.min_bytes` bytes, and the large message has M = `message_size` bytes. With D(m) =
    T_ijk(m) - max_x (T_ix(e) + T_ix(m)) / 2 = 2 C_i + (m + e) t_i, (4.8) gives t_i = (D(M) - D(e)) / (M - e) and C_i =
    D(e) / 2 - e t_i; with e = 0 these are (4.6) and (4.9).

    T_ijk is (4.4) or (4.7) if the reply of the slower partner arrives last. i sends to k last and receives k's reply
    first, so k has to be the slower partner. The roundtrips with i, at each size, tell which one is slower. If they
    differ by less than their confidence intervals, k is drawn at random: the larger of two noisy roundtrips would be
    too large on average.

    If two messages of one sender share its link, and the link takes longer for a byte than the processor, then t_i is
    the link's time, and 1 / beta_ij may be negative. The sums in (4.1) to (4.3) are correct nevertheless; for a single
    pair the sum is correct only if links are not shared.

    The averages differ from (4.10), which divides the sums of C_i and t_i by C(n, 2), although i is in C(n - 1, 2)
    triplets, and averages beta_ij; we average 1 / beta_ij, which may be 0. A pair in no triplet gets the averages of
    its processors.
    """
    procs, least = lab.procs, lab.min_bytes
    large = message_size(lab, thresholds)
    if procs < 3:
        raise UsageError(f"LMO is estimated on triplets of processes: at least 3 are needed, and there are {procs}")
    if large <= least:
        raise UsageError(f"LMO's message of {large} bytes must be larger than the empty one of {least}")

    empty_trips, large_trips = _roundtrips(lab, (least, large))
    chosen = triplets(procs, comb(procs - 1, 2) if procs <= PROCS_WITH_ALL_TRIPLETS else TRIPLETS_EACH)
    # The roundtrip of a large message with an empty reply takes the mean of the two measured roundtrips, (4.8).
    trips = {least: empty_trips, large: (empty_trips + large_trips) / 2}
    excess = _one_to_two_excess(lab, chosen, trips)
    empty_trips, large_trips = empty_trips[0], large_trips[0]
    rates = (excess[large] - excess[least]) / (large - least)
    constants = excess[least] / 2 - least * rates

    per_byte = (large_trips - empty_trips) / (2 * (large - least))
    alone = empty_trips / 2 - least * per_byte
    return LMO(
        by_processor(procs, chosen, constants),
        by_processor(procs, chosen, rates),
        _network(alone, chosen, constants),
        _network(per_byte, chosen, rates),
        thresholds,
    )


def message_size(lab: Laboratory, thresholds: Thresholds) -> int:
    """The message size M, bytes, slightly below S and the eager limit; such a message is sent like an empty one."""
    limits = [LARGEST_MESSAGE_BYTES, lab.eager_limit_bytes]
    if thresholds.scatter_leap_bytes is not None:
        limits.append(thresholds.scatter_leap_bytes)
    return int(min(limits) * BELOW_THRESHOLD)


def triplets(procs: int, each: int) -> NDArray[np.intp]:
    """Ascending triplets of processors, (number, 3): all, or each processor in at least `each` of them.

    Drawn triplets come, with a fixed seed, in rounds of disjoint triplets, which can be measured concurrently.
    """
    if each >= comb(procs - 1, 2):
        return np.array(list(combinations(range(procs), 3)), dtype=np.intp)
    generator = np.random.default_rng(procs)
    chosen: dict[tuple[int, ...], None] = {}
    times = np.zeros(procs, dtype=int)
    while times.min() < each:
        order = generator.permutation(procs)
        for start in range(0, procs - 2, 3):
            triplet = tuple(sorted(int(processor) for processor in order[start : start + 3]))
            if triplet not in chosen:
                chosen[triplet] = None
                times[list(triplet)] += 1
    return np.array(list(chosen), dtype=np.intp)


def _roundtrips(lab: Laboratory, sizes: tuple[int, int]) -> tuple[Array, Array]:
    """The roundtrips with each size both ways, and their half widths, as symmetric arrays (2, n, n), seconds."""
    pairs = list(combinations(range(lab.procs), 2))
    experiments = [Experiment(ROUNDTRIP, pair, size, size) for size in sizes for pair in pairs]
    measured = [(found.seconds, found.half_width_seconds) for found in lab.run(experiments)]
    upper, lower = np.triu_indices(lab.procs, 1)
    matrices = np.zeros((len(sizes), 2, lab.procs, lab.procs))
    values = np.array(measured).reshape(len(sizes), len(pairs), 2).swapaxes(1, 2)
    matrices[..., upper, lower] = matrices[..., lower, upper] = values
    return matrices[0], matrices[1]


def _one_to_two_excess(lab: Laboratory, chosen: NDArray[np.intp], trips: dict[int, Array]) -> dict[int, Array]:
    """D(m), seconds, by size m: one-to-two minus the slower partner's roundtrip, (triplets, 3), each processor as i."""
    generator = np.random.default_rng(lab.procs)
    experiments, slower = [], []
    for size, (seconds, half_widths) in trips.items():
        for triplet in chosen.tolist():
            for position, i in enumerate(triplet):
                j, k = generator.permutation(triplet[:position] + triplet[position + 1 :]).tolist()
                if seconds[i, j] - seconds[i, k] > half_widths[i, j] + half_widths[i, k]:
                    j, k = k, j
                experiments.append(Experiment(ONE_TO_TWO, (i, j, k), size, lab.min_bytes))
                slower.append(seconds[i, k])
    measured = [measurement.seconds for measurement in lab.run(experiments)]
    excess = (np.array(measured) - np.array(slower)).reshape(len(trips), len(chosen), 3)
    return dict(zip(trips, excess, strict=True))


def _network(between: Array, chosen: NDArray[np.intp], values: Array) -> Array:
    """Subtracts the two processors' shares, averaged over the triplets of each pair, from `between`; shape (n, n)."""
    procs = len(between)
    sums, times = np.zeros((procs, procs)), np.zeros((procs, procs))
    for first, second in combinations(range(3), 2):
        pair = chosen[:, first], chosen[:, second]
        np.add.at(sums, pair, values[:, first] + values[:, second])
        np.add.at(times, pair, 1)
    sums, times = sums + sums.T, times + times.T
    means = by_processor(procs, chosen, values)
    both = np.where(times > 0, sums / np.maximum(times, 1), means[:, None] + means[None, :])
    network = between - both
    np.fill_diagonal(network, 0.0)
    return np.asarray(network)
