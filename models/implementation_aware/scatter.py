"""Cost formulas of the scatter algorithms, split into parts like those of the broadcasts; the papers have none."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from collwise.models.implementation_aware.bcast import linear
from collwise.models.implementation_aware.message_counts import EAGER, RENDEZVOUS, Gamma, Messages, by_algorithm
from collwise.models.interface import Points

# Four counts on the path to a process: eager messages, blocks in these, rendezvous messages, blocks in these.
_Way = tuple[int, int, int, int]


def binomial(points: Points, gamma: Gamma) -> Sequence[Messages]:
    """The messages on the slowest path down the in-order binomial tree, whose parents serve the furthest child first.

    Rendezvous messages are sent one after another. Eager messages share the link evenly, so when a message of b blocks
    has arrived, min(b, b') blocks of every other eager message, of b' blocks, have arrived.
    """
    # A message is eager if it has fewer blocks than this.
    bytes_a_block = np.maximum(points.message_bytes, 1.0)
    least = np.minimum(np.ceil(points.eager_limit_bytes / bytes_a_block), points.procs)
    kinds, which = np.unique(np.stack([points.procs.ravel(), least.ravel()]), axis=1, return_inverse=True)
    ways = np.array([_slowest(int(procs), int(rendezvous_from)) for procs, rendezvous_from in kinds.T])
    values = ways.T[:, which.ravel()].reshape(4, *points.procs.shape)
    parts = []
    for protocol, messages, blocks in ((EAGER, values[0], values[1]), (RENDEZVOUS, values[2], values[3])):
        each = blocks / np.maximum(messages, 1.0) * points.message_bytes
        parts.append(Messages("main", messages, each, protocol))
    return parts


@cache
def _slowest(size: int, rendezvous_from: int) -> _Way:
    """The slowest path down a tree of that size; messages of at least `rendezvous_from` blocks use rendezvous."""
    children = [min(1 << power, size - (1 << power)) for power in reversed(range((size - 1).bit_length()))]
    eager = [blocks for blocks in children if blocks < rendezvous_from]
    rendezvous_messages = rendezvous_blocks = 0
    ways: list[_Way] = []
    for blocks in children:
        eager_messages = eager_blocks = 0
        if blocks >= rendezvous_from:
            rendezvous_messages, rendezvous_blocks = rendezvous_messages + 1, rendezvous_blocks + blocks
        else:
            eager_messages, eager_blocks = 1, sum(min(blocks, other) for other in eager)
        arrival = (eager_messages, eager_blocks, rendezvous_messages, rendezvous_blocks)
        a, b, c, d = (here + below for here, below in zip(arrival, _slowest(blocks, rendezvous_from), strict=True))
        ways.append((a, b, c, d))
    # The path with the most blocks is the slowest; of several, the one with the most messages.
    return max(ways, key=lambda way: (way[1] + way[3], way[0] + way[2]), default=(0, 0, 0, 0))


BY_PARTS = by_algorithm(linear, binomial)
