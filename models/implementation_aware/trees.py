"""The time that the first segment takes down a tree of algorithms/topology/tree.c.

If the sender's time for each message separates the messages, the i-th of a process's c children has the segment after
gamma(i + 1) steps; if the messages share the sender's link, all children have it after gamma(c + 1) steps. The time is
the mean of the two cases, weighted by `shared_link`. In all these trees a subtree has the shape of a whole tree of the
same size, so the sizes of the subtrees below the root, in the order in which they are served, describe a tree.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collwise.models.implementation_aware.message_counts import Gamma
from collwise.models.interface import Points
from collwise.models.piecewise import Array

Indices = NDArray[np.int64]
Subtrees = Callable[[int], tuple[int, ...]]
"""Gives the sizes of the subtrees below the root of a tree of P processes."""

# All points share one table of P and sizes if it has at most this many cells per point.
_CELLS_A_POINT = 4
# Otherwise this many neighbouring P share a table, since their trees have most subtrees in common.
_PROCS_AT_ONCE = 8


@cache
def binary_subtrees(procs: int) -> tuple[int, ...]:
    """The sizes of the root's two subtrees, which processes join in turn."""
    return tuple(size for size in (procs // 2, (procs - 1) // 2) if size)


@cache
def binomial_subtrees(procs: int) -> tuple[int, ...]:
    """The sizes of the root's subtrees, the nearest child's first; the child 2^k has every 2^(k + 1)-th process."""
    return tuple((procs + (1 << k) - 1) >> (k + 1) for k in range((procs - 1).bit_length()))


@cache
def knomial_subtrees(radix: int) -> Subtrees:
    """Returns a function for the sizes of the root's subtrees in a k-nomial tree.

    There is a subtree for each non-zero value of each digit of a rank in base `radix`, the highest digit first.
    """

    @cache
    def subtrees(procs: int) -> tuple[int, ...]:
        weights = [1]
        while weights[-1] * radix < procs:
            weights.append(weights[-1] * radix)
        firsts = [(weight, weight * digit) for weight in reversed(weights) for digit in range(1, radix)]
        return tuple(min(weight, procs - first) for weight, first in firsts if first < procs)

    return subtrees


def fill_steps(points: Points, gamma: Gamma, subtrees: Subtrees, message_bytes: Array) -> Array:
    """Steps until the last process has a segment of that size, at every point; 0 for one process."""
    procs, row = _distinct(points.procs)
    sizes, column = _distinct(message_bytes)
    # One table of every P and size is fastest if the points are themselves such a table.
    if len(procs) * len(sizes) <= _CELLS_A_POINT * points.procs.size:
        return _slowest(procs, gamma, subtrees, sizes)[row, column]
    steps = np.zeros(points.procs.shape)
    for first in range(0, len(procs), _PROCS_AT_ONCE):
        here = (row >= first) & (row < first + _PROCS_AT_ONCE)
        group = procs[first : first + _PROCS_AT_ONCE]
        used, column_here = _distinct(column[here])
        steps[here] = _slowest(group, gamma, subtrees, sizes[used])[row[here] - first, column_here]
    return steps


def _distinct(values: NDArray[Any]) -> tuple[NDArray[Any], Indices]:
    """The distinct values and each point's index; of rows or columns that are all equal, only one is sorted."""
    some = values
    for axis in range(values.ndim):
        first = some.swapaxes(0, axis)[:1].swapaxes(0, axis)
        some = first if (some == first).all() else some
    distinct, which = np.unique(some, return_inverse=True)
    # The shape of `which` differs between versions of NumPy.
    return distinct, np.broadcast_to(which.reshape(some.shape), values.shape)


def _slowest(counts: Array, gamma: Gamma, subtrees: Subtrees, message_bytes: Array) -> Array:
    """The steps until the last process has a segment: a row per number of processes, a column per size."""
    rows, generations = _generations(tuple(map(int, counts)), subtrees)
    most = max((children.shape[1] for _, children in generations), default=0)
    # Row i has the steps for which the i-th child, counted from 0, waits.
    steps = gamma(np.arange(2.0, most + 2)[:, None], message_bytes[None, :])
    shared = shared_link(gamma, message_bytes)
    below = np.zeros((max(rows, default=0) + 1, len(message_bytes)))
    for parents, children in generations:
        of_children = below[children]
        last = children.shape[1] - 1
        apart = (steps[: last + 1] + of_children).max(axis=1)
        together = steps[last] + of_children.max(axis=1)
        below[parents] = (1 - shared) * apart + shared * together
    return below[rows]


def shared_link(gamma: Gamma, message_bytes: Array) -> Array:
    """The fraction, from 0 to 1, of a second message's cost that is due to its bytes. The rest is the sender's time.

    Let a message take t + x, where x is the time of its bytes, and a second one e + x more. Then gamma(3) - 1 is (e +
    x) / (t + x), and e / t for the shortest messages; these two give the sender's share, e / (e + x).
    """
    shortest, further = (
        np.clip(gamma(3.0, size) - 1, 0.0, 1.0) for size in (np.zeros_like(message_bytes), message_bytes)
    )
    of_sender, whole = shortest * (1 - further), further * (1 - shortest)
    return 1 - np.clip(np.divide(of_sender, whole, out=np.ones_like(whole), where=whole > 0), 0.0, 1.0)


@lru_cache(256)
def _generations(wanted: tuple[int, ...], subtrees: Subtrees) -> tuple[list[int], list[tuple[list[int], Indices]]]:
    """The table rows of trees of `wanted` sizes, and groups of parents' and their children's rows, the lowest first."""
    found: set[int] = set()
    waiting = set(wanted)
    while waiting:
        found |= waiting
        waiting = {child for procs in waiting for child in subtrees(procs)} - found
    row = {procs: index for index, procs in enumerate(sorted(found))}
    depth: dict[int, int] = {}
    alike: dict[tuple[int, int], list[int]] = {}
    for procs in row:
        children = subtrees(procs)
        depth[procs] = max((depth[child] + 1 for child in children), default=0)
        alike.setdefault((depth[procs], len(children)), []).append(procs)
    return [row[procs] for procs in wanted], [
        ([row[procs] for procs in parents], np.array([[row[child] for child in subtrees(procs)] for procs in parents]))
        for (_, children), parents in sorted(alike.items())
        if children
    ]
