"""Functions of the message size that are straight lines between knots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def check_knots(what: str, knots: Sequence[float], seconds: Sequence[float]) -> None:
    """Raises ValueError unless there are knots, ascending, and as many seconds."""
    if not knots or len(knots) != len(seconds) or not all(a < b for a, b in pairwise(knots)):
        raise ValueError(f"{what}: give at least one number, ascending, and as many seconds")


@dataclass(frozen=True)
class PiecewiseLinear:
    """A function through `seconds[i]` at `message_bytes[i]`, ascending; straight between and beyond these knots.

    A function with a single knot is constant.
    """

    message_bytes: tuple[float, ...]
    seconds: tuple[float, ...]

    def __post_init__(self) -> None:
        check_knots("knots", self.message_bytes, self.seconds)

    def __call__(self, message_bytes: ArrayLike) -> Array:
        """Seconds at every size."""
        m = np.asarray(message_bytes, dtype=float)
        intercept, slope = self.line(m)
        return np.asarray(intercept + slope * m)

    def line(self, message_bytes: ArrayLike) -> tuple[Array, Array]:
        """Intercept (seconds) and slope (seconds per byte) of the line that each size lies on."""
        m = np.asarray(message_bytes, dtype=float)
        if len(self.message_bytes) == 1:
            return np.full(m.shape, self.seconds[0]), np.zeros(m.shape)
        sizes, times = np.asarray(self.message_bytes), np.asarray(self.seconds)
        slopes = np.diff(times) / np.diff(sizes)
        piece = np.clip(np.searchsorted(sizes, m, side="right") - 1, 0, len(slopes) - 1)
        return np.asarray(times[piece] - slopes[piece] * sizes[piece]), np.asarray(slopes[piece])

    @classmethod
    def mean(cls, functions: Sequence[PiecewiseLinear]) -> PiecewiseLinear:
        """The mean of the functions; its knots are those of all the functions."""
        knots = sorted({knot for function in functions for knot in function.message_bytes})
        seconds = np.mean([function(knots) for function in functions], axis=0)
        return cls(tuple(knots), tuple(float(value) for value in seconds))
