"""Runs several procedures, each for one pair of processes, concurrently.

A procedure is a generator: it yields the experiments that it needs next, receives their seconds, and returns its
result. The laboratory gets the next experiments of all procedures in one call, so it can run disjoint pairs at once.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from itertools import combinations
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from collwise.common.errors import UsageError
from collwise.common.experiments import Effort, Experiment, Laboratory
from collwise.models.piecewise import Array

Result = TypeVar("Result")
Pair = tuple[int, int]
Procedure = Generator[list[Experiment], list[float], Result]


def alongside(procedures: Sequence[Procedure[Result]]) -> Procedure[list[Result]]:
    """One procedure that carries out all given procedures and returns their results in order."""
    results: dict[int, Result] = {}
    wanted: dict[int, list[Experiment]] = {}

    def advance(index: int, seconds: list[float] | None) -> None:
        try:
            wanted[index] = next(procedures[index]) if seconds is None else procedures[index].send(seconds)
        except StopIteration as end:
            wanted.pop(index, None)
            results[index] = end.value

    for index in range(len(procedures)):
        advance(index, None)
    while wanted:
        measured = iter((yield [experiment for experiments in wanted.values() for experiment in experiments]))
        for index, experiments in list(wanted.items()):
            advance(index, [next(measured) for _ in experiments])
    return [results[index] for index in range(len(procedures))]


def together(lab: Laboratory, procedures: Sequence[Procedure[Result]]) -> list[Result]:
    """The procedures' results in order, with only as many calls of the laboratory as the longest procedure needs."""
    everything = alongside(procedures)
    try:
        wanted = next(everything)
        while True:
            wanted = everything.send([measurement.seconds for measurement in lab.run(wanted)])
    except StopIteration as end:
        return list(end.value)


def of_pairs(
    lab: Laboratory,
    procedure: Callable[[Pair], Procedure[Result]],
    pairs: Sequence[Pair] | None = None,
    heterogeneous: bool = False,
) -> dict[Pair, Result]:
    """The procedure's result for each pair in `pairs`, by default only (0, 1), or every i < j if `heterogeneous`."""
    if lab.procs < 2:
        raise UsageError(f"the estimate needs at least 2 processes, each on its own node; there are {lab.procs}")
    if heterogeneous and pairs is not None:
        raise UsageError("a heterogeneous model uses all pairs of processes; give no pairs")
    if pairs is None:
        pairs = list(combinations(range(lab.procs), 2)) if heterogeneous else [(0, 1)]
    if not pairs:
        raise UsageError(
            "no pair of processes to measure: give at least one pair; without `pairs`, the pair (0, 1) is measured"
        )
    for i, j in pairs:
        if i == j or not (0 <= i < lab.procs and 0 <= j < lab.procs):
            raise UsageError(f"pair ({i}, {j}): name two different processes from 0 to {lab.procs - 1}")
    return dict(zip(pairs, together(lab, [procedure(pair) for pair in pairs]), strict=True))


def with_effort(lab: Laboratory, procedure: Callable[[], Result]) -> tuple[Result, Effort]:
    """The procedure's result, and the measurements and seconds that it took in that laboratory."""
    measurements, seconds = lab.effort.measurements, lab.effort.seconds
    result = procedure()
    return result, Effort(lab.effort.measurements - measurements, lab.effort.seconds - seconds)


def symmetric(procs: int, values: Mapping[Pair, float]) -> Array:
    """The symmetric array (n, n) of values measured for i < j, with 0 on the diagonal."""
    matrix = np.zeros((procs, procs))
    for (i, j), value in values.items():
        matrix[i, j] = matrix[j, i] = value
    return matrix


def by_processor(procs: int, processors: ArrayLike, values: ArrayLike) -> Array:
    """Each processor's mean, (n,), over its pairs or triplets; `processors` has the shape of `values`."""
    of = np.ravel(processors)
    return np.asarray(np.bincount(of, np.ravel(values), procs) / np.bincount(of, minlength=procs))
