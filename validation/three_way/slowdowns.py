"""The slowdown of a source's picks in measured time, and of what the MPI library runs itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from collwise.validation.selection.slowdown import slowdown
from collwise.validation.three_way.table import MeasuredPoint, by_point, distinguishable, ours, own, predicted_by


@dataclass(frozen=True)
class PickSlowdown:
    """The measured slowdown of a pick at a point against the best of all measured algorithms.

    The source had `candidates` of the `measured` algorithms to pick from. `certain`: the two means differ by more than
    their intervals. For what the MPI library runs itself `pick` is empty, and the slowdown may be negative.
    """

    point: MeasuredPoint
    pick: str
    best: str
    slowdown: float
    certain: bool
    candidates: int
    measured: int


@dataclass(frozen=True)
class PickSummary:
    """Slowdowns over points: mean and worst one, how many are beyond the intervals, and how many picks are the best."""

    points: int
    mean: float
    worst: PickSlowdown
    certain: int
    best_picked: int
    mean_candidates: float


def slowdowns_of_picks(rows: pd.DataFrame, source: str) -> list[PickSlowdown]:
    """At every point where the source predicts anything it picks its fastest, the first of equal ones."""
    return [
        _slowdown(point, candidates.loc[candidates[source].idxmin()], here, len(candidates))
        for point, here in by_point(rows)
        if len(candidates := predicted_by(source, here))
    ]


def slowdowns_of_builtin(table: pd.DataFrame) -> list[PickSlowdown]:
    """The MPI library's own collectives against the best of ours, where both were measured."""
    return [
        _slowdown(point, mine, ours(here), 0)
        for point, here in by_point(table)
        for mine in own(here).itertuples()
        if len(here) > 1
    ]


def _slowdown(point: MeasuredPoint, pick: Any, rows: pd.DataFrame, candidates: int) -> PickSlowdown:
    best = rows.loc[rows.seconds.idxmin()]
    found = float(slowdown(pick.seconds, best.seconds))
    return PickSlowdown(
        point, pick.algorithm, best.algorithm, found, distinguishable(pick, best), candidates, len(rows)
    )


def pick_summary(found: Sequence[PickSlowdown]) -> PickSummary | None:
    """The summary of several points; None where there are none."""
    if not found:
        return None
    return PickSummary(
        points=len(found),
        mean=float(np.mean([one.slowdown for one in found])),
        worst=max(found, key=lambda one: one.slowdown),
        certain=sum(one.certain for one in found),
        best_picked=sum(one.pick == one.best for one in found),
        mean_candidates=float(np.mean([one.candidates for one in found])),
    )
