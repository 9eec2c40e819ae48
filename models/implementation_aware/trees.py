"""How long the first segment takes down a tree.

A process's i-th child of c has it after gamma(i + 1) steps where the sender's time for each message keeps them apart.
Where messages share the sender's link all children have it at once, after gamma(c + 1): gamma(3) is 2 then. In between,
gamma(3) - 1 is the share of the latter.

The trees are those of algorithms/topology/tree.c, on virtual ranks, children in the order in which they are served.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from collwise.models.implementation_aware.parts import Array, Gamma, Points

Shape = tuple["Shape", ...]
"""A subtree: those of its children."""
Children = Callable[[int, int], list[int]]
"""Of a virtual rank among P: its children."""


def binary_children(rank: int, procs: int) -> list[int]:
    """Level l holds the ranks from 2^l - 1 on; a child is one or two widths of its parent's level further."""
    width = 1 << ((rank + 1).bit_length() - 1)
    return [child for child in (rank + width, rank + 2 * width) if child < procs]


def binomial_children(rank: int, procs: int) -> list[int]:
    """rank + 2^k for every 2^k above rank, the nearest first."""
    first = rank.bit_length()
    return [rank + (1 << k) for k in range(first, procs.bit_length() + 1) if rank + (1 << k) < procs]


def knomial_children(radix: int) -> Children:
    """One for each value of each digit below the lowest one of the rank that is not 0; the furthest digit first."""

    def children(rank: int, procs: int) -> list[int]:
        weight = 1
        while weight < procs and rank % (weight * radix) == 0:
            weight *= radix
        found = []
        weight //= radix
        while weight > 0:
            found += [rank + digit * weight for digit in range(1, radix) if rank + digit * weight < procs]
            weight //= radix
        return found

    return children


def fill_steps(points: Points, gamma: Gamma, children: Children, message_bytes: Array) -> Array:
    """Steps until the last process has a segment of that size, at every point; 0 for one process."""
    steps = np.zeros(points.procs.shape)
    for procs in np.unique(points.procs):
        here = points.procs == procs
        steps[here] = _slowest(int(procs), gamma, children, message_bytes[here])
    return steps


def _slowest(procs: int, gamma: Gamma, children: Children, sizes: Array) -> Array:
    @cache
    def gamma_of(count: int) -> Array:
        return gamma(np.full(sizes.shape, float(count)), sizes)

    shared = np.clip(gamma_of(3) - 1, 0.0, 1.0)

    # Subtrees of one shape take the same.
    @cache
    def below(shape: Shape) -> Array:
        if not shape:
            return np.zeros(sizes.shape)
        last = gamma_of(len(shape) + 1)
        apart = [gamma_of(index + 2) + below(child) for index, child in enumerate(shape)]
        together = [last + below(child) for child in shape]
        return (1 - shared) * np.maximum.reduce(apart) + shared * np.maximum.reduce(together)

    return below(_shape(0, procs, children))


def _shape(rank: int, procs: int, children: Children) -> Shape:
    return tuple(_shape(child, procs, children) for child in children(rank, procs))
