"""The slowdown of a choice against the best one. Tables 2, 3 and 8 of Nuriyev & Lastovetsky 2021 print it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from collwise.models.piecewise import Array


def slowdown(seconds: ArrayLike, best_seconds: ArrayLike) -> Array:
    """T(choice) / T(best) - 1, element by element: 0.03 is 3 % slower than the best.

    It is 0 if both take no time, as with a single process; infinite if only the best takes no time; nan if either time
    is nan. It is negative if the choice was not a candidate and is faster than the best.
    """
    import numpy as np

    chosen, best = np.broadcast_arrays(np.asarray(seconds, dtype=float), np.asarray(best_seconds, dtype=float))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(chosen == best, 0.0, chosen / best - 1)


@dataclass(frozen=True)
class SlowdownSummary:
    """A summary of slowdowns: number, mean, the worst one and its index, and how often the best was chosen."""

    points: int
    mean: float
    worst: float
    best_chosen: int = 0
    worst_at: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"{self.mean * 100:.2f} % on average, at most {self.worst * 100:.1f} % (at {self.points} points)"

    @property
    def best_share(self) -> float:
        """The share of the points at which the choice is the best; nan without points."""
        return self.best_chosen / self.points if self.points else math.nan


def summary_of(slowdowns: ArrayLike, tolerance: float) -> SlowdownSummary:
    """The summary of an array without its nans. Mean and worst are nan if nothing is left.

    A choice counts as the best one up to a slowdown of `tolerance`.
    """
    import numpy as np

    values = np.asarray(slowdowns, dtype=float)
    known = values[~np.isnan(values)]
    if known.size == 0:
        return SlowdownSummary(0, math.nan, math.nan)
    worst_at = np.unravel_index(int(np.nanargmax(values)), values.shape)
    return SlowdownSummary(
        points=int(known.size),
        best_chosen=int(np.sum(known <= tolerance)),
        mean=float(np.mean(known)),
        worst=float(values[worst_at]),
        worst_at=tuple(int(index) for index in worst_at),
    )
