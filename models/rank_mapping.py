"""The mapping of processors to the nodes of a communication tree that a model predicts to be fastest.

O'Flynn 2009, sections 5.1 and 7.3: on a heterogeneous cluster the time of a binomial scatter or gather depends on which
processor is where in the tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, permutations

import numpy as np

from collwise.common.errors import UsageError

Mapping = tuple[int, ...]
"""`mapping[rank]` is the processor of each rank of the tree, whose root is rank 0."""

Cost = Callable[[Mapping], float]
"""Predicted seconds of a mapping."""

# (n - 1)! mappings: 5,040 for 8.
PROCS_TO_EXHAUST = 8
# Two times that differ by less than this fraction are equal.
TOLERANCE = 1e-12


def default_mapping(procs: int, root: int = 0) -> Mapping:
    """The mapping of MPI libraries: ranks count on from the root's processor and wrap around to processor 0."""
    return tuple((root + rank) % procs for rank in range(procs))


def heaviest_to_fastest(slowness: Sequence[float], root: int = 0) -> Mapping:
    """The ranks of the in-order binomial tree with the most ranks below them on the fastest processors.

    `slowness`: one number per processor, such as the seconds of a message between it and the root. The root stays;
    equal processors stay in the default's order.
    """
    procs = len(slowness)
    below = [min(rank & -rank, procs - rank) for rank in range(procs)]
    ranks = sorted(range(1, procs), key=lambda rank: -below[rank])
    processors = sorted(default_mapping(procs, root)[1:], key=lambda processor: slowness[processor])
    mapping = [root] * procs
    for rank, processor in zip(ranks, processors, strict=True):
        mapping[rank] = processor
    return tuple(mapping)


def optimal_mapping(
    cost: Cost,
    procs: int,
    root: int = 0,
    starts: Sequence[Mapping] = (),
    move_root: bool = False,
    restarts: int = 20,
    seed: int = 0,
    procs_to_exhaust: int = PROCS_TO_EXHAUST,
) -> Mapping:
    """The mapping of least cost, rank 0 on processor `root` unless `move_root`; the default where nothing is cheaper.

    Up to `procs_to_exhaust` processors all mappings are tried. Beyond, pairs of processors are swapped as long as
    that helps: from the default and from every one of `starts` (such as `heaviest_to_fastest`), then from the best so
    far with some ranks shuffled, `restarts` times. This finds the least cost often, never one above the default's. The
    same input has the same result. Raises UsageError for a root or a start that does not fit.
    """
    if not 0 <= root < procs:
        raise UsageError(f"root {root} of a mapping is not among its {procs} processors, 0 to {procs - 1}")
    for start in starts:
        if sorted(start) != list(range(procs)) or not (move_root or start[0] == root):
            raise UsageError(f"{start} is no mapping of {procs} processors with root {root}")
    best = default_mapping(procs, root)
    least = cost(best)
    candidates: Iterator[tuple[Mapping, float]]
    if procs <= procs_to_exhaust:
        candidates = ((mapping, cost(mapping)) for mapping in _all(best, move_root))
    else:
        candidates = (_descend(cost, start, move_root) for start in (best, *starts))
    for mapping, seconds in candidates:
        if seconds < least * (1 - TOLERANCE):
            best, least = mapping, seconds
    if procs <= procs_to_exhaust:
        return best
    generator = np.random.default_rng(seed)
    for _ in range(restarts):
        mapping, seconds = _descend(cost, _shuffled(best, move_root, generator), move_root)
        if seconds < least * (1 - TOLERANCE):
            best, least = mapping, seconds
    return best


def _all(default: Mapping, move_root: bool) -> Iterator[Mapping]:
    if move_root:
        return permutations(default)
    return ((default[0], *others) for others in permutations(default[1:]))


def _descend(cost: Cost, start: Mapping, move_root: bool) -> tuple[Mapping, float]:
    """Swaps two processors as soon as it helps, until no swap does; the mapping and its cost."""
    mapping, least = start, cost(start)
    improved = True
    while improved:
        improved = False
        for first, second in combinations(range(0 if move_root else 1, len(start)), 2):
            swapped = list(mapping)
            swapped[first], swapped[second] = swapped[second], swapped[first]
            seconds = cost(tuple(swapped))
            if seconds < least * (1 - TOLERANCE):
                mapping, least, improved = tuple(swapped), seconds, True
    return mapping, least


def _shuffled(mapping: Mapping, move_root: bool, generator: np.random.Generator) -> Mapping:
    """The mapping with a third of its ranks, at least three, in another order."""
    movable = np.arange(0 if move_root else 1, len(mapping))
    chosen = generator.choice(movable, min(len(movable), max(3, len(mapping) // 3)), replace=False)
    shuffled = np.array(mapping)
    shuffled[chosen] = shuffled[generator.permutation(chosen)]
    return tuple(int(processor) for processor in shuffled)
