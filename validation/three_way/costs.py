"""What a source's selection costs in measured time, and what the MPI library's own choice does."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from collwise.validation.three_way.table import OwnChoice, Point, Row, by_point, told_apart


@dataclass(frozen=True)
class Cost:
    """At a point: T(pick) / T(best) - 1, both measured, where best is the best of all measured algorithms.

    `candidates` of `measured` algorithms were a choice for the source. `certain`: the difference is beyond the two
    means' intervals. Of the MPI library's own choice `pick` is empty and the cost may be negative.
    """

    point: Point
    pick: str
    best: str
    cost: float
    certain: bool
    candidates: int
    measured: int


@dataclass(frozen=True)
class CostSummary:
    """Over points: the mean cost, the worst one, how many costs are beyond the intervals, and best picks."""

    points: int
    mean: float
    worst: Cost
    certain: int
    best_picked: int
    mean_candidates: float


def selection_costs(rows: Iterable[Row], source: str) -> list[Cost]:
    """At every point where the source foretells anything it picks its fastest; of equal ones the first."""
    found = []
    for point, here in by_point(rows).items():
        candidates = [row for row in here if source in row.foretold]
        if candidates:
            pick = min(candidates, key=lambda row: row.foretold[source])
            best = _best(here)
            found.append(_cost(point, pick, best, pick.algorithm, len(candidates), len(here)))
    return found


def own_costs(rows: Iterable[Row], own: Iterable[OwnChoice]) -> list[Cost]:
    """Of the MPI library's own collectives over the best of ours, where both were measured."""
    points = by_point(rows)
    return [
        _cost(one.point, one, _best(points[one.point]), "", 0, len(points[one.point]))
        for one in own
        if one.point in points
    ]


def _best(rows: Sequence[Row]) -> Row:
    return min(rows, key=lambda row: row.seconds)


def _cost(point: Point, pick: Row | OwnChoice, best: Row, name: str, candidates: int, measured: int) -> Cost:
    cost = pick.seconds / best.seconds - 1
    return Cost(point, name, best.algorithm, cost, told_apart(pick, best), candidates, measured)


def summary_of(costs: Sequence[Cost]) -> CostSummary | None:
    """None of no points."""
    if not costs:
        return None
    return CostSummary(
        points=len(costs),
        mean=float(np.mean([one.cost for one in costs])),
        worst=max(costs, key=lambda one: one.cost),
        certain=sum(one.certain for one in costs),
        best_picked=sum(one.pick == one.best for one in costs),
        mean_candidates=float(np.mean([one.candidates for one in costs])),
    )
