"""Scores of a source against measured times: relative errors, and whether it orders algorithms as measured."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from collwise.models.switch_points import TIE
from collwise.validation.three_way.table import MeasuredRow, by_point, distinguishable

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Errors:
    """A summary of relative errors e (0.1 is 10 %).

    Median, mean and 90th percentile of |e|, the mean of e (`bias`), and the e of the largest |e|.
    """

    count: int
    median: float
    mean: float
    bias: float
    ninetieth: float
    worst: float


@dataclass(frozen=True)
class RankAgreement:
    """Rank agreement of a source with measured times, averaged over points.

    `tau` is Kendall's tau-b of the means as they are. `tau_distinguishable` counts only the pairs of algorithms whose
    measured means differ by more than their intervals: (as measured - the other way) / pairs, where a pair that the
    source gives the same time counts for neither. `distinguishable` is the share of such pairs. Points with fewer than
    two algorithms, or without such pairs, are left out of the average concerned.
    """

    points: int
    tau: float
    tau_distinguishable: float
    distinguishable: float


def errors_of(values: Iterable[float]) -> Errors | None:
    """A summary of relative errors, nan left out; None when there is nothing else."""
    found = np.array([value for value in values if not np.isnan(value)])
    if found.size == 0:
        return None
    size = np.abs(found)
    return Errors(
        count=int(found.size),
        median=float(np.median(size)),
        mean=float(np.mean(size)),
        bias=float(np.mean(found)),
        ninetieth=float(np.percentile(size, 90)),
        worst=float(found[np.argmax(size)]),
    )


def errors_by(rows: Iterable[MeasuredRow], source: str, key: Callable[[MeasuredRow], Key]) -> dict[Key, Errors]:
    """Errors of a source for every group of rows that it predicts any of, in the order of the rows."""
    groups: dict[Key, list[float]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row.error(source))
    summaries = {name: errors_of(values) for name, values in groups.items()}
    return {name: summary for name, summary in summaries.items() if summary is not None}


def rank_agreement(rows: Iterable[MeasuredRow], source: str) -> RankAgreement:
    """The rank agreement of a source with measured times at the points of these rows, among what it predicts."""
    from scipy import stats

    taus, pair_taus, shares = [], [], []
    for here in by_point(row for row in rows if source in row.predicted).values():
        if len(here) < 2:
            continue
        taus.append(stats.kendalltau([row.seconds for row in here], [row.predicted[source] for row in here]).statistic)
        pairs = list(itertools.combinations(here, 2))
        signs = [_sign(a, b, source) for a, b in pairs if distinguishable(a, b)]
        shares.append(len(signs) / len(pairs))
        if signs:
            pair_taus.append(float(np.mean(signs)))
    return RankAgreement(len(taus), _mean(taus), _mean(pair_taus), _mean(shares))


def _sign(a: MeasuredRow, b: MeasuredRow, source: str) -> float:
    """1 where the source orders two algorithms as measured, -1 where the other way round, 0 where it ties them."""
    first, second = a.predicted[source], b.predicted[source]
    if abs(first - second) <= TIE * max(first, second):
        return 0.0
    return 1.0 if (first < second) == (a.seconds < b.seconds) else -1.0


def _mean(values: list[float]) -> float:
    found = [value for value in values if not np.isnan(value)]
    return float(np.mean(found)) if found else float("nan")
