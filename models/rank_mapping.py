"""Finds the mapping of processors to tree nodes with the least predicted time: O'Flynn 2009, sections 5.1 and 7.3."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, permutations

import numpy as np

from collwise.common.errors import UsageError

Mapping = tuple[int, ...]
"""`mapping[rank]` is the processor of each rank of the tree, whose root is rank 0."""

Cost = Callable[[Mapping], float]
"""Predicted seconds of a mapping."""

# Up to this many processors all (n - 1)! mappings are tried; for 8 processors there are 5,040.
PROCS_TO_EXHAUST = 8
# Two times that differ by less than this fraction are equal.
TOLERANCE = 1e-12
_RESTARTS = 20


def heaviest_to_fastest(slowness: Sequence[float]) -> Mapping:
    """The mapping that puts the ranks with the largest subtrees of the binomial tree on the fastest processors.

    `slowness` has one number per processor; the root stays on 0, and equal processors keep the default order.
    """
    procs = len(slowness)
    ranks = sorted(range(1, procs), key=lambda rank: -min(rank & -rank, procs - rank))
    chosen = dict(zip(ranks, sorted(range(1, procs), key=lambda processor: slowness[processor]), strict=True))
    return (0, *(chosen[rank] for rank in range(1, procs)))


def optimal_mapping(cost: Cost, procs: int, starts: Sequence[Mapping] = ()) -> Mapping:
    """The mapping of least cost with the root on processor 0; the default, rank r on processor r, if none is cheaper.

    Up to PROCS_TO_EXHAUST processors all mappings are tried. With more, searches start at the default, at each of
    `starts`, and at shuffles of the best mapping (with a fixed seed), and swap pairs of processors as long as that
    lowers the cost. Raises UsageError if one of `starts` is not a mapping of `procs` processors.
    """
    best: Mapping = tuple(range(procs))
    for start in starts:
        if sorted(start) != list(best) or start[0] != 0:
            raise UsageError(f"{start} is not a mapping of {procs} processors with root 0")
    least = cost(best)

    def take(mapping: Mapping, seconds: float) -> None:
        nonlocal best, least
        if seconds < least * (1 - TOLERANCE):
            best, least = mapping, seconds

    if procs <= PROCS_TO_EXHAUST:
        for others in permutations(range(1, procs)):
            take((0, *others), cost((0, *others)))
        return best
    for start in (best, *starts):
        take(*_descend(cost, start))
    generator = np.random.default_rng(0)
    for _ in range(_RESTARTS):
        # A third of the ranks, at least three, in another order.
        chosen = generator.choice(np.arange(1, procs), max(3, procs // 3), replace=False)
        shuffled = np.array(best)
        shuffled[chosen] = shuffled[generator.permutation(chosen)]
        take(*_descend(cost, tuple(shuffled.tolist())))
    return best


def _descend(cost: Cost, start: Mapping) -> tuple[Mapping, float]:
    """Swaps two processors whenever that lowers the cost, until no swap does; returns the mapping and its cost."""
    mapping, least = start, cost(start)
    improved = True
    while improved:
        improved = False
        for first, second in combinations(range(1, len(start)), 2):
            swapped = list(mapping)
            swapped[first], swapped[second] = swapped[second], swapped[first]
            seconds = cost(tuple(swapped))
            if seconds < least * (1 - TOLERANCE):
                mapping, least, improved = tuple(swapped), seconds, True
    return mapping, least
