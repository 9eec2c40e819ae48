"""Estimation of the LMO model and its thresholds S, M1 and M2: O'Flynn 2009, section 4.4.

The parameters come from roundtrips and one-to-two experiments. S and M2 are structural changes (Bai & Perron 1998) in
piecewise linear regressions of time over message size, S for linear scatter and M2 for linear gather; M1 is searched
with ever smaller strides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, pairwise
from math import comb

import numpy as np
from numpy.typing import NDArray

from collwise.common.errors import UsageError
from collwise.common.experiments import GATHER, ONE_TO_TWO, ROUNDTRIP, SCATTER, Experiment, Laboratory
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

# The distance of sizes in a series, and the largest size, for the thresholds.
STRIDE_BYTES = 1024
LARGEST_SERIES_BYTES = 200 * 1024
KIBIBYTE = 1024

MAX_BREAKS = 5
# A line through fewer points than this has no meaning.
MIN_POINTS = 6
# Smaller relative residuals count as this one. Otherwise rounding, or a simulator's last byte, would make breaks in
# times without noise.
TOLERANCE = 1e-3
# A leap is at least this fraction of the time.
MIN_LEAP = 0.01
# In an irregular region times scatter about their line by more than this fraction.
IRREGULAR = 0.2
# An escalation is at least tenfold, as in the thesis.
ESCALATION = 10.0


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

    The averages differ from (4.10) in two ways: it divides the sums of C_i and t_i by C(n, 2), although i is in only
    C(n - 1, 2) triplets; and it averages beta_ij, whereas we average 1 / beta_ij, which may be 0. A pair in no triplet
    gets the averages of its processors.
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
    """Ascending triplets of processors, (number, 3): all, or so many that each processor is in at least `each`.

    If not all triplets are needed, they are drawn with a fixed seed, in rounds of disjoint triplets, which can be
    measured concurrently.
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
    """D(m) by m, each (triplets, 3): the seconds of one-to-two by processor, minus the slower partner's roundtrip."""
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
    """Each pair's value minus its processors' shares, which are means over all triplets with the pair; shape (n, n)."""
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


def _line(points: Array, start: int, end: int) -> tuple[Array, float]:
    """Intercept and slope of the line through points (n, 2) of bytes and seconds, and the relative deviation."""
    sizes, seconds = points[start:end].T
    scale = sizes[-1]
    design = np.column_stack([1 / seconds, sizes / scale / seconds])
    solution = np.linalg.lstsq(design, np.ones(len(seconds)), rcond=None)[0]
    residuals = design @ solution - 1
    deviation = float(np.sqrt(residuals @ residuals / (len(seconds) - 2)))
    return solution / (1, scale), deviation


def lines(message_bytes: Sequence[int], seconds: Sequence[float]) -> list[tuple[int, int]]:
    """The straight lines that a series consists of, as index ranges [start, end); a single range if there is no break.

    Dynamic programming finds the best breaks for every number up to MAX_BREAKS; the smallest BIC decides their number.
    Each line has three parameters (intercept, slope, variance), each break is one more.
    """
    sizes, times = np.asarray(message_bytes, dtype=float), np.asarray(seconds, dtype=float)
    if sizes.shape != times.shape or np.any(np.diff(sizes) <= 0) or np.any(times <= 0):
        raise UsageError("a series for thresholds needs ascending message sizes, each with a time above 0")
    count = len(sizes)
    costs = _costs(sizes, times)
    # `total[n]` is the smallest cost of the first n points if they are divided into the current number of lines. For
    # each number of lines from 2 on, `starts` contains an array with the start of the last line for every n.
    total, starts = costs[0], list[NDArray[np.intp]]()
    best, least = [0, count], np.inf
    for breaks in range(min(MAX_BREAKS, count // MIN_POINTS - 1) + 1):
        if breaks:
            longer = total[:, None] + costs
            starts.append(np.argmin(longer, axis=0))
            total = np.min(longer, axis=0)
        criterion = total[count] + (3 * (breaks + 1) + breaks) * np.log(count)
        if criterion < least:
            ends = [count]
            for last in reversed(starts):
                ends.append(int(last[ends[-1]]))
            best, least = [0, *reversed(ends)], criterion
    return list(pairwise(best))


def _costs(sizes: Array, times: Array) -> Array:
    """The cost of a line through the points [start, end), by start and end; infinite for fewer than MIN_POINTS.

    The cost is minus twice the log likelihood of a line with its own variance, since escalations scatter a thousand
    times as much as a regular region does.
    """
    count = len(sizes)
    costs = np.full((count + 1, count + 1), np.inf)
    for start in range(count - MIN_POINTS + 1):
        # Residuals are relative to the times; sizes count from the first one, so differences lose little precision.
        one = 1 / times[start:]
        size = (sizes[start:] - sizes[start]) * one / (sizes[-1] - sizes[start])
        number = np.arange(MIN_POINTS, count - start + 1)
        products = np.cumsum([one * one, one * size, size * size, one, size], axis=1)[:, MIN_POINTS - 1 :]
        ones, mixed, squares, at_one, at_size = products
        explained = (at_one**2 * squares - 2 * at_one * at_size * mixed + at_size**2 * ones) / (
            ones * squares - mixed**2
        )
        deviations = np.sqrt(np.maximum(number - explained, 0) / (number - 2))
        costs[start, start + MIN_POINTS :] = 2 * number * np.log(np.maximum(deviations, TOLERANCE))
    return costs


def scatter_leap(message_bytes: Sequence[int], seconds: Sequence[float]) -> int | None:
    """S, the size at which the line after the greatest leap begins; None without a leap of at least MIN_LEAP."""
    return _greatest_leap(np.column_stack([message_bytes, seconds]), lines(message_bytes, seconds))


def gather_regular_from(message_bytes: Sequence[int], seconds: Sequence[float]) -> int | None:
    """M2, the size at which the line after the last irregular one begins; None if not found.

    If no line is irregular, M2 is the size of the greatest leap, since (4.3) then follows (4.2) at once.
    """
    found = lines(message_bytes, seconds)
    points = np.column_stack([message_bytes, seconds])
    irregular = [index for index, ends in enumerate(found) if _line(points, *ends)[1] > IRREGULAR]
    if not irregular:
        return _greatest_leap(points, found)
    after = irregular[-1] + 1
    return int(message_bytes[found[after][0]]) if after < len(found) else None


def gather_irregular_from(
    measure: Callable[[Sequence[int]], Sequence[float]],
    message_bytes: Sequence[int],
    seconds: Sequence[float],
    finest_stride_bytes: int = 1,
) -> int | None:
    """M1, the smallest size with an escalation, in whole KiB; None if there is no escalation.

    `measure` returns the seconds of linear gather at the given sizes. Below the smallest escalation found, sizes are
    measured with strides that are halved down to `finest_stride_bytes`.
    """
    known = dict(zip(message_bytes, seconds, strict=True))
    least = _min_escalation(known)
    if least is None:
        return None
    stride = int(message_bytes[0])
    while stride > finest_stride_bytes:
        stride //= 2
        new = [size for size in range(stride, least, stride) if size not in known]
        known.update(zip(new, measure(new), strict=True))
        least = _min_escalation(known) or least
    return least if least < KIBIBYTE else least // KIBIBYTE * KIBIBYTE


def escalations(seconds: Sequence[float]) -> NDArray[np.bool_]:
    """Marks each time that is at least ESCALATION x that of a larger message; a rising line has no such times."""
    times = np.asarray(seconds, dtype=float)
    return np.asarray(times >= ESCALATION * np.minimum.accumulate(times[::-1])[::-1])


def fit_thresholds(lab: Laboratory, stride_bytes: int = STRIDE_BYTES, finest_stride_bytes: int = 1) -> Thresholds:
    """S, M1 and M2 of linear scatter and gather from rank 0 to all processes; sizes are `stride_bytes` apart."""

    def measure(kind: str, sizes: Sequence[int]) -> list[float]:
        processes = tuple(range(lab.procs))
        found = lab.run([Experiment(kind, processes, size) for size in sizes])
        return [measurement.seconds for measurement in found]

    sizes = list(range(stride_bytes, LARGEST_SERIES_BYTES + 1, stride_bytes))
    scatter, gather = measure(SCATTER, sizes), measure(GATHER, sizes)
    return Thresholds(
        scatter_leap(sizes, scatter),
        gather_irregular_from(lambda finer: measure(GATHER, finer), sizes, gather, finest_stride_bytes),
        gather_regular_from(sizes, gather),
    )


def _greatest_leap(points: Array, found: Sequence[tuple[int, int]]) -> int | None:
    best, greatest = None, 0.0
    for before, after in pairwise(found):
        size = points[after[0], 0]
        low, high = _line(points, *before)[0], _line(points, *after)[0]
        expected = float(low @ (1, size))
        leap = float(high @ (1, size)) / expected - 1
        if leap > max(greatest, MIN_LEAP):
            best, greatest = int(size), leap
    return best


def _min_escalation(known: Mapping[int, float]) -> int | None:
    sizes = sorted(known)
    found = np.flatnonzero(escalations([known[size] for size in sizes]))
    return sizes[found[0]] if len(found) else None
