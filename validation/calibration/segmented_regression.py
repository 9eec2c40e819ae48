"""Segmented regression: seconds over bytes as straight pieces that need not meet.

Breakpoints come from ruptures (optimal partitioning by PELT, Killick et al. 2012) with a cost function of our own: the
least sum of squared relative errors of base + bytes * slope, with lower bounds on both. Errors are relative, so that
short and long messages have the same weight. Pieces are straight in bytes, not in the logarithms of bytes, since
simulated times are computed this way.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import ruptures
from ruptures.base import BaseCost
from scipy.optimize import nnls

_MIN_POINTS = 3
# Relative errors below this are not worth a segment.
_TOLERATED = 0.02
# Base, slope and breakpoint.
_NUMBERS_PER_SEGMENT = 3
# Deviations from the neighbours have less weight if they exceed this multiple of the usual deviation (Huber's weights).
_HUBER = 2.5
_MEDIAN_OF_NORMAL = 0.6745


@dataclass(frozen=True)
class Segment:
    """base_seconds + bytes * seconds_per_byte for messages of at least `from_bytes`, fitted to `points` points."""

    from_bytes: int
    base_seconds: float
    seconds_per_byte: float
    points: int

    def seconds(self, message_bytes: float) -> float:
        """The time of a message on this line."""
        return self.base_seconds + message_bytes * self.seconds_per_byte


def value_at(segments: Sequence[Segment], message_bytes: float) -> float:
    """The seconds of a message by the segment that contains its size."""
    begun = [segment for segment in segments if segment.from_bytes <= message_bytes]
    return (begun[-1] if begun else segments[0]).seconds(message_bytes)


class _LineCost(BaseCost):
    """The squared relative error of the best line whose base and slope respect the lower bounds."""

    model = "line"
    min_size = 2

    def __init__(self, least: tuple[float, float], through_origin: bool) -> None:
        self._least, self._unused = np.array(least), [0] if through_origin else []
        self._known: dict[tuple[int, int], float] = {}

    def fit(self, signal: np.ndarray) -> _LineCost:
        self.signal = signal  # columns: bytes, seconds, weight
        self._known = {}
        return self

    def line(self, start: int, end: int) -> tuple[float, float, float]:
        """The base, slope and squared error of the rows from start to end."""
        sizes, seconds, weights = self.signal[start:end].T
        columns = np.stack([weights, weights * sizes], axis=1)
        rest = weights * seconds - columns @ self._least
        scale = np.linalg.norm(columns, axis=0)
        columns[:, self._unused] = 0.0
        found, norm = nnls(columns / scale, rest)
        base, slope = self._least + found / scale
        return float(base), float(slope), float(norm) ** 2

    def error(self, start: int, end: int) -> float:
        if (start, end) not in self._known:
            self._known[start, end] = self.line(start, end)[2]
        return self._known[start, end]


def fit_segments(
    sizes: Sequence[float],
    seconds: Sequence[float],
    *,
    scale_seconds: Sequence[float] | None = None,
    relative_errors: Sequence[float] | None = None,
    least: tuple[float, float] = (0.0, 0.0),
    through_origin: bool = False,
    max_segments: int = 6,
    from_bytes: int = 0,
) -> list[Segment]:
    """At most `max_segments` segments over points (ascending sizes in bytes); the first begins at `from_bytes`.

    Errors are relative to `scale_seconds` (default: the seconds themselves). `relative_errors` are standard errors;
    points whose error is above 2 % have less weight. `least` holds the lower bounds of base and slope; with
    `through_origin`, every base is this lower bound. A breakpoint is the geometric mean of the adjacent sizes. Raises
    ValueError for fewer than two points.
    """
    if len(sizes) < 2:
        raise ValueError("a line needs two points")
    x, y = np.asarray(sizes, float), np.asarray(seconds, float)
    scale = np.maximum(y if scale_seconds is None else np.asarray(scale_seconds, float), 1e-9)
    unit = scale * np.maximum(_TOLERATED, 0.0 if relative_errors is None else np.asarray(relative_errors, float))
    deviations = np.abs(_deviations(x, y, unit))
    noise = max(1.0, float(np.median(deviations)) / _MEDIAN_OF_NORMAL)
    huber = np.minimum(1.0, _HUBER * noise / np.maximum(deviations, 1e-12))
    cost = _LineCost(least, through_origin).fit(np.stack([x, y, np.sqrt(huber) / unit], axis=1))
    ends = _ends(cost, len(x), noise, max_segments)
    starts = [0, *ends[:-1]]
    made = []
    for start, end in zip(starts, ends, strict=True):
        base, slope, _ = cost.line(start, end)
        breakpoint_bytes = from_bytes if start == 0 else math.ceil(math.sqrt(x[start - 1] * x[start]))
        made.append(Segment(breakpoint_bytes, base, slope, end - start))
    return made


def _ends(cost: _LineCost, count: int, noise: float, max_segments: int) -> list[int]:
    """The ends of the segments; raises the penalty until there are at most `max_segments`."""
    penalty = _NUMBERS_PER_SEGMENT * noise**2 * math.log(count)
    while True:
        search = ruptures.Pelt(custom_cost=cost, min_size=min(_MIN_POINTS, count), jump=1).fit(cost.signal)
        ends = list(search.predict(pen=penalty))
        if len(ends) <= max_segments:
            return ends
        penalty *= 1.5


def _deviations(x: np.ndarray, y: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """The deviation of each point from the line through its neighbours, divided by the error that `unit` implies."""
    if len(x) < 3:
        return np.zeros(len(x))
    apart = x[2:] - x[:-2]
    share = np.where(apart > 0, (x[1:-1] - x[:-2]) / np.maximum(apart, 1), 0.5)
    expected = y[:-2] + share * (y[2:] - y[:-2])
    inner = (y[1:-1] - expected) / np.sqrt(unit[1:-1] ** 2 + (share * unit[2:]) ** 2 + ((1 - share) * unit[:-2]) ** 2)
    return np.concatenate([[inner[0]], inner, [inner[-1]]])
