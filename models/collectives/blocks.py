"""Scatter, gather and alltoall, for P >= 2. m is the block of each process; the root is rank 0, rank r on processor r.

Scatter and gather are those of O'Flynn 2009, sections 4.2, 4.3, 5.1 and 5.2; alltoall is that of Pješivac-Grbović et
al. 2007, table 4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
from numpy.typing import ArrayLike

from collwise.models.collectives.steps import Steps, steps_of
from collwise.models.interface import Points
from collwise.models.piecewise import Array
from collwise.models.single_messages import LMO, Hockney, HockneyBySize, LogGP, PLogP

TreeModel = Hockney | HockneyBySize | LogGP | PLogP | LMO
Edge = Callable[[int, int, Array, int], tuple[Array, Array]]
"""The seconds of a message, and of its parent's work, from parent, child, bytes and number of children."""


def linear(points: Points, steps: Steps) -> Array:
    """message + (P - 2) gap, for all three collectives.

    In alltoall, the C code starts all sends of all processes at once, as in P concurrent scatters; `printed` has the
    formula of table 4, in which one process after another sends to all others.
    """
    m = points.message_bytes
    return np.asarray(steps.message(m) + (points.procs - 2) * steps.gap(m, points.procs - 1))


def pairwise(points: Points, steps: Steps) -> Array:
    """P - 1 rounds of alltoall, in which all processes send and receive."""
    return np.asarray((points.procs - 1) * steps.round(points.message_bytes))


def scatter_between_pairs(points: Points, model: Hockney) -> Array:
    """The sum of alpha_0i + m beta_0i (table 5.2)."""
    return _by_procs(points, lambda procs, m: np.sum([model.predict(m, 0, i) for i in range(1, procs)], axis=0))


def gather_between_pairs(points: Points, model: Hockney) -> Array:
    """The sum of alpha_i0 + m beta_i0 (table 5.2)."""
    return _by_procs(points, lambda procs, m: np.sum([model.predict(m, i, 0) for i in range(1, procs)], axis=0))


def scatter_lmo(points: Points, model: LMO) -> Array:
    """(4.1): (P - 1) (C_0 + m t_0) + max over i of (L_0i + C_i + m t_i + m / beta_0i). Table 5.2 prints m t_i twice."""

    def seconds(procs: int, m: Array) -> Array:
        root, others = lmo_parts(model, procs, m)
        return np.asarray((procs - 1) * root + np.max(others, axis=0))

    return _by_procs(points, seconds)


def gather_lmo(points: Points, model: LMO) -> Array:
    """(4.2), as for scatter, below M1; nan up to M2; then (4.3), with the sum over i instead of the maximum."""

    def seconds(procs: int, m: Array) -> Array:
        root, others = lmo_parts(model, procs, m)
        together = np.where(model.thresholds.large(m), np.sum(others, axis=0), np.max(others, axis=0))
        return np.where(model.thresholds.irregular(m), np.nan, (procs - 1) * root + together)

    return _by_procs(points, seconds)


def lmo_parts(model: LMO, procs: int, message_bytes: Array) -> tuple[Array, Array]:
    """Splits the seconds of messages of k sizes into the root's part and the part of each other process.

    The root's part is C_0 + m t_0, shape (k,). The part of process i is L_0i + C_i + m t_i + m / beta_0i; these parts
    have shape (P - 1, k).
    """
    pairs = model.as_hockney()
    constant = np.ravel(model.processor_seconds)[0]
    per_byte = np.ravel(model.processor_seconds_per_byte)[0]
    root = np.asarray(constant + message_bytes * per_byte)
    return root, np.asarray([pairs.predict(message_bytes, 0, i) - root for i in range(1, procs)])


def scatter_binomial(points: Points, model: TreeModel) -> Array:
    """The recursion of `binomial_seconds`; under Hockney log2 P alpha + (P - 1) m beta if P is a power of two."""
    return _by_procs(points, lambda procs, m: binomial_seconds(model, range(procs), m))


def gather_binomial(points: Points, model: TreeModel) -> Array:
    """The recursion of `binomial_seconds`. Only the linear gather has thresholds."""
    return _by_procs(points, lambda procs, m: binomial_seconds(model, range(procs), m, gather=True))


def binomial_seconds(model: TreeModel, mapping: Sequence[int], block_bytes: ArrayLike, gather: bool = False) -> Array:
    """The seconds of a binomial scatter, or gather, of blocks of `block_bytes` (any shape), for any P: (5.1).

    The children of a root r of n ranks are all ranks r + 2^i < r + n, and a child's subtree ends before the next child.
    The largest subtree is served first, in a gather last. `mapping[rank]` is the processor of each rank. Messages
    occupy a parent one after another:
    - under Hockney for the whole time of the message, as in (5.1);
    - under LogGP and PLogP for the gap;
    - under LMO for the parent's own part, C + m t.
    Only the formula for Hockney is from the papers; we derived the other three. Raises ValueError for heterogeneous
    LogGP, which has no formula.
    """
    edge, blocks_bytes = _edge(model, gather), np.asarray(block_bytes, dtype=float)

    @cache
    def subtree(first: int, size: int) -> Array:
        done, free = np.zeros(blocks_bytes.shape), np.zeros(blocks_bytes.shape)
        children = (size - 1).bit_length()
        for power in reversed(range(children)):
            child, blocks = first + 2**power, min(2**power, size - 2**power)
            message, occupied = edge(mapping[first], mapping[child], blocks * blocks_bytes, children)
            below = subtree(child if model.heterogeneous else 0, blocks)
            done, free = np.maximum(done, free + message + below), free + occupied
        return done

    return subtree(0, len(mapping))


def _edge(model: TreeModel, gather: bool) -> Edge:
    if isinstance(model, LMO):
        pairs = model.as_hockney()
        constant, per_byte = np.atleast_1d(model.processor_seconds), np.atleast_1d(model.processor_seconds_per_byte)

        def lmo(parent: int, child: int, m: Array, children: int) -> tuple[Array, Array]:
            one = parent if model.heterogeneous else 0
            return pairs.predict(m, parent, child), np.asarray(constant[one] + m * per_byte[one])

        return lmo
    if not model.heterogeneous:
        steps = steps_of(model)
        return lambda parent, child, m, children: (steps.message(m), steps.gap(m, children))
    if not isinstance(model, Hockney):
        raise ValueError("heterogeneous LogP models have no formula for collectives")

    def hockney(parent: int, child: int, m: Array, children: int) -> tuple[Array, Array]:
        seconds = model.predict(m, child, parent) if gather else model.predict(m, parent, child)
        return seconds, seconds

    return hockney


def _by_procs(points: Points, seconds: Callable[[int, Array], Array]) -> Array:
    """The times at all points; `seconds` gives the times for one P and the message sizes at this P."""
    result = np.empty(points.procs.shape)
    for procs in np.unique(points.procs):
        here = points.procs == procs
        result[here] = seconds(int(procs), points.message_bytes[here])
    return result
