"""Estimation of LMO's thresholds S, M1 and M2 from linear scatter and gather: O'Flynn 2009, section 4.4.1.

S and M2 are structural changes of piecewise linear regressions of time over message size (Bai & Perron 1998); M1 is
searched with ever smaller strides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from collwise.common.errors import UsageError
from collwise.common.experiments import GATHER, SCATTER, Experiment, Laboratory
from collwise.models.piecewise import Array
from collwise.models.single_messages import Thresholds

STRIDE_BYTES = 1024
LARGEST_BYTES = 200 * 1024
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

    `measure` returns the seconds of linear gather at the given sizes. Strides below the smallest size found are halved
    down to `finest_stride_bytes`.
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
    """Marks times that are at least ESCALATION times the time of a larger message, which no rising line allows."""
    times = np.asarray(seconds, dtype=float)
    return np.asarray(times >= ESCALATION * np.minimum.accumulate(times[::-1])[::-1])


def fit_thresholds(lab: Laboratory, stride_bytes: int = STRIDE_BYTES, finest_stride_bytes: int = 1) -> Thresholds:
    """S, M1 and M2 of linear scatter and gather from rank 0 to all processes; sizes are `stride_bytes` apart."""

    def measure(kind: str, sizes: Sequence[int]) -> list[float]:
        processes = tuple(range(lab.procs))
        found = lab.run([Experiment(kind, processes, size) for size in sizes])
        return [measurement.seconds for measurement in found]

    sizes = list(range(stride_bytes, LARGEST_BYTES + 1, stride_bytes))
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
