"""Estimation of the Hockney model from roundtrips with equal messages both ways: O'Flynn 2009, 2.2.1, 5.1 and 6.2.

A message takes half of the roundtrip. Results are means over `pairs` of processes, by default only (0, 1). All
functions raise UsageError for invalid arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from collwise.common.errors import UsageError
from collwise.common.experiments import ROUNDTRIP, Experiment, Laboratory
from collwise.models.fitting.regression import SIZES, Predictor, Sizes, from_all, from_last_two, line
from collwise.models.fitting.rounds import Pair, Procedure, of_pairs, symmetric
from collwise.models.piecewise import PiecewiseLinear
from collwise.models.single_messages import Hockney, HockneyBySize

REGRESSION_SIZES = Sizes(smallest_bytes=1024, largest_bytes=102400, max_count=10)
"""Ten sizes up to 100 kB; O'Flynn 2009, section 5.3, used the same number of sizes."""


def hockney_by_two_sizes(
    lab: Laboratory, large_bytes: int = 65536, pairs: Sequence[Pair] | None = None, heterogeneous: bool = False
) -> Hockney:
    """The model from roundtrips with empty messages and with messages of `large_bytes`."""
    if large_bytes <= lab.min_bytes:
        raise UsageError(f"large messages of {large_bytes} bytes: they must exceed {lab.min_bytes}")

    def procedure(pair: Pair) -> Procedure[tuple[float, float]]:
        sizes = (lab.min_bytes, large_bytes)
        small, large = yield [Experiment(ROUNDTRIP, pair, size, size) for size in sizes]
        beta = (large - small) / 2 / (large_bytes - lab.min_bytes)
        return small / 2 - beta * lab.min_bytes, beta

    return _model(lab, procedure, pairs, heterogeneous)


def hockney_by_regression(
    lab: Laboratory, sizes: Sizes = REGRESSION_SIZES, pairs: Sequence[Pair] | None = None, heterogeneous: bool = False
) -> Hockney:
    """The model by least squares of relative residuals; the sizes are chosen for each pair."""

    def procedure(pair: Pair) -> Procedure[tuple[float, float]]:
        times = yield from _one_way(lab, pair, sizes, from_all)
        return line(list(times), list(times.values()))

    return _model(lab, procedure, pairs, heterogeneous)


def hockney_by_size(lab: Laboratory, sizes: Sizes = SIZES, pairs: Sequence[Pair] | None = None) -> HockneyBySize:
    """alpha and beta as functions of the size, from one-way times at sizes that lie closer where the curve bends."""
    found = of_pairs(lab, lambda pair: _one_way(lab, pair, sizes, from_last_two), pairs).values()
    return HockneyBySize(
        PiecewiseLinear.mean([PiecewiseLinear(tuple(map(float, times)), tuple(times.values())) for times in found])
    )


def _one_way(lab: Laboratory, pair: Pair, sizes: Sizes, expected: Predictor) -> Procedure[dict[int, float]]:
    def measure(size: int) -> Procedure[float]:
        (seconds,) = yield [Experiment(ROUNDTRIP, pair, size, size)]
        return seconds / 2

    return (yield from sizes.explore(lab.min_bytes, measure, expected))


def _model(
    lab: Laboratory,
    procedure: Callable[[Pair], Procedure[tuple[float, float]]],
    pairs: Sequence[Pair] | None,
    heterogeneous: bool,
) -> Hockney:
    lines = of_pairs(lab, procedure, pairs, heterogeneous)
    if not heterogeneous:
        return Hockney(*np.mean(list(lines.values()), axis=0).tolist())
    alphas, betas = zip(*lines.values(), strict=True)
    return Hockney(*(symmetric(lab.procs, dict(zip(lines, each, strict=True))) for each in (alphas, betas)))
