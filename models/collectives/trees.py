"""Scatter and gather over the in-order binomial tree, by recursion, for any P and any processors.

O'Flynn 2009, (5.1): the largest subtree is served first (scatter) or last (gather). In the tree over the n ranks from r
to r + n - 1, the children of the root r are all ranks r + 2^i < r + n. The subtree of a child consists of the ranks
from this child up to the next child. This is the tree of the C code, for any n.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
from numpy.typing import ArrayLike

from collwise.models.collectives.steps import steps_of
from collwise.models.interface import Points
from collwise.models.piecewise import Array
from collwise.models.single_messages import LMO, Hockney, HockneyBySize, LogGP, PLogP

TreeModel = Hockney | HockneyBySize | LogGP | PLogP | LMO
Edge = Callable[[int, int, Array, int], tuple[Array, Array]]
"""Takes parent, child (processors), bytes and the number of the parent's children.

It gives the seconds of the message, and for how long the parent is busy.
"""


def binomial_seconds(model: TreeModel, mapping: Sequence[int], block_bytes: ArrayLike, gather: bool = False) -> Array:
    """The seconds of a binomial scatter, or gather, of blocks of `block_bytes` (any shape).

    `mapping[rank]` is the processor of each rank; the root is rank 0. Messages occupy a parent one after another:
    - under Hockney for the whole time of the message, as in (5.1);
    - under LogGP and PLogP for the gap;
    - under LMO for the parent's own part, C + m t, so the parent is free while the message travels and the child
      processes it.
    Only the formula for Hockney is from the papers; we derived the other three. A gather is a scatter backwards. Raises
    ValueError for heterogeneous LogGP, which has no formula.
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


def by_procs(points: Points, seconds: Callable[[int, Array], Array]) -> Array:
    """The times at all points; `seconds` gives the times for one P and the message sizes at this P."""
    result = np.empty(points.procs.shape)
    for procs in np.unique(points.procs):
        here = points.procs == procs
        result[here] = seconds(int(procs), points.message_bytes[here])
    return result
