"""The Hockney model: a message of m bytes takes alpha + beta m.

R. Hockney, Parallel Computing 20, 1994; with alpha and beta as functions of m: Pješivac-Grbović et al. 2007, section
3.1; with one alpha and beta for every two processors: O'Flynn 2009, section 5.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

from collwise.models.interface import Homogeneous, PairParameters, entry
from collwise.models.piecewise import Array, PiecewiseLinear


@dataclass(frozen=True)
class Hockney(PairParameters):
    """alpha (seconds) and beta (seconds per byte): floats, or arrays (n, n) over sender and receiver."""

    DIMENSIONS = MappingProxyType({"alpha_seconds": 2, "beta_seconds_per_byte": 2})

    alpha_seconds: float | Array
    beta_seconds_per_byte: float | Array

    def alpha(self, message_bytes: ArrayLike) -> Array:
        """Seconds, the same at every size. Homogeneous only."""
        return np.full(np.shape(message_bytes), self.alpha_seconds, dtype=float)

    def beta(self, message_bytes: ArrayLike) -> Array:
        """Seconds per byte, the same at every size. Homogeneous only."""
        return np.full(np.shape(message_bytes), self.beta_seconds_per_byte, dtype=float)

    def predict(self, message_bytes: ArrayLike, sender: int = 0, receiver: int = 1) -> Array:
        """Seconds of a message, at every size; the processors matter to the heterogeneous form only."""
        alpha = entry(self.alpha_seconds, sender, receiver)
        beta = entry(self.beta_seconds_per_byte, sender, receiver)
        return np.asarray(alpha + beta * np.asarray(message_bytes, dtype=float))


@dataclass(frozen=True)
class HockneyBySize(Homogeneous):
    """alpha and beta as functions of m: the intercept and slope of the straight line on which the time of m lies."""

    time: PiecewiseLinear

    def alpha(self, message_bytes: ArrayLike) -> Array:
        """Seconds: alpha of the line."""
        return self.time.line(message_bytes)[0]

    def beta(self, message_bytes: ArrayLike) -> Array:
        """Seconds per byte: beta of the line."""
        return self.time.line(message_bytes)[1]

    def predict(self, message_bytes: ArrayLike, sender: int = 0, receiver: int = 1) -> Array:
        """Seconds of a message, at every size."""
        return self.time(message_bytes)
