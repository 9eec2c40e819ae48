"""Gather: O'Flynn 2009, sections 4.3, 5.1 and 5.2, for P >= 2. m is the block of each process; the root is rank 0.

`scatter.linear` is also the linear gather under LogGP, PLogP, and Hockney with equal processors.
"""

from __future__ import annotations

import numpy as np

from collwise.models.collectives.scatter import lmo_parts
from collwise.models.collectives.trees import TreeModel, binomial_seconds, by_procs
from collwise.models.interface import Points
from collwise.models.piecewise import Array
from collwise.models.single_messages import LMO, Hockney


def linear_between_pairs(points: Points, model: Hockney) -> Array:
    """The sum of alpha_i0 + m beta_i0 (table 5.2)."""
    return by_procs(points, lambda procs, m: np.sum([model.predict(m, i, 0) for i in range(1, procs)], axis=0))


def linear_lmo(points: Points, model: LMO) -> Array:
    """(4.2), which equals the scatter, below M1; (4.3), with the sum over i instead of the maximum, above M2.

    The time is nan from M1 to M2. Table 5.2 prints m t_i twice, see `scatter.linear_lmo`.
    """

    def seconds(procs: int, m: Array) -> Array:
        root, others = lmo_parts(model, procs, m)
        together = np.where(model.thresholds.large(m), np.sum(others, axis=0), np.max(others, axis=0))
        return np.where(model.thresholds.irregular(m), np.nan, (procs - 1) * root + together)

    return by_procs(points, seconds)


def binomial(points: Points, model: TreeModel) -> Array:
    """The recursion of `trees.binomial_seconds`, with rank r on processor r. Only the linear gather has thresholds."""
    return by_procs(points, lambda procs, m: binomial_seconds(model, range(procs), m, gather=True))
