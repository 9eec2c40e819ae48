"""The common form of all cost formulas: a sum of parts, each a number of point-to-point messages of one size.

T(P, m) is the sum over parts of count * (alpha_part + bytes_each * beta_part), linear in the parameters given gamma(p).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import ArrayLike

from collwise.models.interface import Points
from collwise.models.piecewise import Array

EAGER, RENDEZVOUS = "eager", "rendezvous"


@dataclass(frozen=True)
class Messages:
    """`count` messages of `bytes_each` bytes, one after another, as arrays over the points evaluated.

    The largest size, `longest` if sizes differ, decides the protocol unless `protocol` names it.
    """

    name: str
    count: Array
    bytes_each: Array
    protocol: str = ""
    longest: Array | None = None


@dataclass(frozen=True)
class Gamma:
    """gamma(p, m), the time of a non-blocking linear broadcast among p processes divided by that among 2 (formula (4)).

    `values[i]` holds gamma for messages of `message_bytes[i]` and p = 2, 3 and so on. Values are interpolated between
    sizes and constant beyond them; beyond the last p they follow a straight line (section IV-B). The paper has one
    size.
    """

    message_bytes: tuple[float, ...]
    values: tuple[tuple[float, ...], ...]

    def __call__(self, procs: ArrayLike, message_bytes: ArrayLike = 0.0) -> Array:
        """gamma at every (p, m), 1 for p <= 2; p and m are arrays that broadcast against each other."""
        p, m = np.asarray(procs).astype(int), np.asarray(message_bytes, dtype=float)
        table = _gamma_table(self.values, int(np.max(p, initial=1)).bit_length())
        if len(table) == 1:
            return np.asarray(table[0][p] + np.zeros_like(m))
        position = np.interp(m, self.message_bytes, np.arange(len(table), dtype=float))
        below = np.minimum(position.astype(int), len(table) - 2)
        low, high = table[below, p], table[below + 1, p]
        return np.asarray(low + (high - low) * (position - below))


@cache
def _gamma_table(values: tuple[tuple[float, ...], ...], bits: int) -> Array:
    """gamma for every size and every p from 0 to 2^bits - 1."""
    procs, rows = np.arange(2.0**bits), []
    for row in values:
        known = np.arange(2.0, 2 + len(row))
        slope = np.polyfit(known, row, 1)[0] if len(row) > 1 else 0.0
        rows.append(np.interp(procs, known, row) + slope * np.maximum(procs - known[-1], 0.0))
    return np.stack(rows)


Formula = Callable[[Points, Gamma], Sequence[Messages]]


def by_algorithm(*formulas: Callable[..., Sequence[Messages]]) -> dict[str, Formula]:
    """The formulas by the algorithms after which they are named."""
    return {formula.__name__.removesuffix("_as_printed").removeprefix("traditional_"): formula for formula in formulas}


def floor_log2(value: Array) -> Array:
    """floor(log2 value), exact for whole numbers (frexp reads the exponent)."""
    return np.frexp(value)[1].astype(float) - 1.0


def ceil_log2(value: Array) -> Array:
    """ceil(log2 value), exact for whole numbers."""
    return floor_log2(np.maximum(2.0 * value - 1.0, 1.0))
