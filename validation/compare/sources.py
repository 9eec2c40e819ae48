"""Sets the choices by two sources of times side by side: what each chooses, and what that costs by one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from collwise.models.piecewise import Array
from collwise.models.switch_points import NOBODY, fastest
from collwise.validation.compare.comparison import Pick
from collwise.validation.times.grid import CaseGrid
from collwise.validation.times.slowdown import SlowdownSummary, summary_of


@dataclass(frozen=True)
class SideBySide:
    """A point, the best choice by the times that judge, and the picks of both sources.

    `ratios` are the first source's times as shares of the second's, by label of the candidates that both have.
    """

    procs: int
    message_bytes: int
    best: Pick
    picks: tuple[Pick, Pick]
    ratios: dict[str, float]


def side_by_side(grid: CaseGrid, first: Array, second: Array, judge: Array) -> list[SideBySide]:
    """The points of the grid for which both sources and the judge have times, of shape (candidates, P, m).

    Sources choose among the candidates that both have a time for, the fastest one by their own times.
    """
    choices, labels = list(grid.candidates.values()), list(grid.candidates)
    ones, others, judged = (times.reshape(len(choices), -1).T for times in (first, second, judge))
    rows = []
    for (procs, size), one, other, judging in zip(grid.points, ones, others, judged, strict=True):
        both = ~(np.isnan(one) | np.isnan(other))
        picked = [int(fastest(np.where(both, times, np.nan))) for times in (one, other)]
        best = int(fastest(np.where(both, judging, np.nan)))
        if best == NOBODY:
            continue

        def pick(index: int, judging: Array = judging, best: int = best) -> Pick:
            return Pick.of(choices[index], float(judging[index]), float(judging[best]))

        ratios = {labels[a]: float(one[a] / other[a]) for a in np.flatnonzero(both) if other[a] > 0}
        rows.append(SideBySide(procs, size, pick(best), (pick(picked[0]), pick(picked[1])), ratios))
    return rows


def slowdowns_of(rows: Sequence[SideBySide], source: int) -> SlowdownSummary:
    """The slowdowns of the first (0) or the second (1) source's picks over all points."""
    return summary_of([row.picks[source].slowdown for row in rows], 0.0)


def median_difference(rows: Sequence[SideBySide]) -> float:
    """The median over points and candidates of how far the first source's time is from the second's, as a share."""
    differences = [abs(ratio - 1) for row in rows for ratio in row.ratios.values()]
    return float(np.median(differences)) if differences else float("nan")
