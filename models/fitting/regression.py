"""Straight lines through times, and the message sizes that show where a line ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from collwise.common.errors import CollwiseError, UsageError
from collwise.models.fitting.rounds import Procedure, alongside
from collwise.models.piecewise import PiecewiseLinear

Predictor = Callable[[Sequence[int], Sequence[float], int], float]
"""The value expected at a size, from ascending smaller sizes (two or more) and their values."""


def line(sizes: Sequence[float], seconds: Sequence[float]) -> tuple[float, float]:
    """Intercept and slope by least squares of the relative residuals. Raises CollwiseError for times of 0 or less."""
    if min(seconds) <= 0:
        raise CollwiseError(
            f"no line through a time of {min(seconds):g} s: messages take no time here, or too little to tell"
        )
    slope, intercept = np.polyfit(sizes, seconds, 1, w=1 / np.asarray(seconds, dtype=float))
    return float(intercept), float(slope)


def from_all(sizes: Sequence[int], seconds: Sequence[float], size: int) -> float:
    """The value on the line through all smaller sizes, as in O'Flynn 2009, section 6.2, for Hockney."""
    intercept, slope = line(sizes, seconds)
    return intercept + slope * size


def from_last_two(sizes: Sequence[int], seconds: Sequence[float], size: int) -> float:
    """The value on the line through the two next smaller sizes, as in O'Flynn 2009, section 2.2.4, for PLogP."""
    return float(PiecewiseLinear(tuple(sizes[-2:]), tuple(seconds[-2:]))(size))


@dataclass(frozen=True)
class Sizes:
    """The message sizes at which a function of the size is measured.

    They are the smallest message, then sizes that double from `smallest_bytes` to `largest_bytes`. If the time at a
    size differs from the expected one by more than the fraction `tolerance`, the size halfway to the previous size is
    measured, too, unless it is less than `min_step_bytes` away or there are already `max_count` sizes.
    """

    smallest_bytes: int = 1024
    largest_bytes: int = 1 << 20
    max_count: int = 40
    tolerance: float = 0.02
    min_step_bytes: int = 512

    def __post_init__(self) -> None:
        if not 0 < self.smallest_bytes < self.largest_bytes:
            raise UsageError(
                f"message sizes from {self.smallest_bytes} to {self.largest_bytes} bytes: "
                "the smallest must be above 0 and below the largest"
            )
        if self.max_count < 3:
            raise UsageError(f"max_count = {self.max_count} allows too few message sizes; allow at least 3")
        if self.tolerance <= 0 or self.min_step_bytes < 1:
            raise UsageError(
                f"tolerance {self.tolerance}, smallest step {self.min_step_bytes} bytes: "
                "a tolerance above 0 and a step of at least 1 byte are needed"
            )

    def regular(self, min_bytes: int) -> list[int]:
        """The sizes that are always measured. They double, or are further apart if doubling gives too many."""
        if min_bytes >= self.smallest_bytes:
            raise UsageError(
                f"message sizes from {self.smallest_bytes} bytes: they must exceed the smallest message, {min_bytes}"
            )
        doublings = int(np.ceil(np.log2(self.largest_bytes / self.smallest_bytes) - 1e-9))
        if doublings + 2 <= self.max_count:
            sizes = [self.smallest_bytes << step for step in range(doublings)]
        else:
            sizes = [
                round(size) for size in np.geomspace(self.smallest_bytes, self.largest_bytes, self.max_count - 1)[:-1]
            ]
        return [min_bytes, *dict.fromkeys(sizes), self.largest_bytes]

    def explore(
        self, min_bytes: int, measure: Callable[[int], Procedure[float]], expected: Predictor
    ) -> Procedure[dict[int, float]]:
        """The values by size, at ascending sizes that are chosen here; `measure` is the procedure for one size."""
        waiting = self.regular(min_bytes)
        known = dict(zip(waiting, (yield from alongside([measure(size) for size in waiting])), strict=True))
        settled: list[int] = []
        while waiting:
            size = waiting[0]
            if size not in known:
                known[size] = yield from measure(size)
            values = [known[smaller] for smaller in settled]
            if (
                len(settled) >= 2
                and abs(expected(settled, values, size) - known[size]) > self.tolerance * abs(known[size])
                and size - settled[-1] >= 2 * self.min_step_bytes
                and len(known) < self.max_count
            ):
                waiting.insert(0, (settled[-1] + size) // 2)
            else:
                settled.append(waiting.pop(0))
        return {size: known[size] for size in settled}


SIZES = Sizes()
