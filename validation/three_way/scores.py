"""How far a source is from measured times: relative errors, and whether it orders algorithms as measured."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from collwise.models.switch_points import TIE
from collwise.validation.three_way.table import Row, by_point, told_apart

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Errors:
    """Of relative errors e (0.1 is 10 %): median, mean, 90th percentile of |e|, mean of e, and the e of largest |e|."""

    count: int
    median: float
    mean: float
    bias: float
    ninetieth: float
    worst: float


@dataclass(frozen=True)
class Agreement:
    """Rank agreement of a source with measured times, averaged over points.

    `tau` is Kendall's tau-b of the means as they are. `tau_told_apart` counts only the pairs of algorithms whose
    measured means differ by more than their intervals: (as measured - the other way) / pairs, where a pair that the
    source gives the same time counts for neither. `told_apart` is the share of such pairs. Points with fewer than two
    algorithms, or where all are alike, are left out of the average concerned.
    """

    points: int
    tau: float
    tau_told_apart: float
    told_apart: float


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


def errors_by(rows: Iterable[Row], source: str, key: Callable[[Row], Key]) -> dict[Key, Errors]:
    """Errors of a source for every group of rows that it says anything of, in the order of the rows."""
    groups: dict[Key, list[float]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row.error(source))
    summaries = {name: errors_of(values) for name, values in groups.items()}
    return {name: summary for name, summary in summaries.items() if summary is not None}


def rank_agreement(rows: Iterable[Row], source: str) -> Agreement:
    """Of a source with measured times at the points of these rows, among the algorithms that it says anything of."""
    from scipy import stats

    taus, pair_taus, shares = [], [], []
    for here in by_point(row for row in rows if source in row.foretold).values():
        if len(here) < 2:
            continue
        taus.append(stats.kendalltau([row.seconds for row in here], [row.foretold[source] for row in here]).statistic)
        pairs = list(itertools.combinations(here, 2))
        signs = [_sign(a, b, source) for a, b in pairs if told_apart(a, b)]
        shares.append(len(signs) / len(pairs))
        if signs:
            pair_taus.append(float(np.mean(signs)))
    return Agreement(len(taus), _mean(taus), _mean(pair_taus), _mean(shares))


def _sign(a: Row, b: Row, source: str) -> float:
    """1 where the source orders two algorithms as measured, -1 where the other way round, 0 where it ties them."""
    first, second = a.foretold[source], b.foretold[source]
    if abs(first - second) <= TIE * max(first, second):
        return 0.0
    return 1.0 if (first < second) == (a.seconds < b.seconds) else -1.0


def _mean(values: list[float]) -> float:
    found = [value for value in values if not np.isnan(value)]
    return float(np.mean(found)) if found else float("nan")
