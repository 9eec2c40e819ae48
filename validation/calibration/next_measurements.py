"""The measurements that would tell most about what to choose: after which choices are expected to lose least.

Figures are known but for a normal error of their logarithms. In each cell the two algorithms that are predicted fastest
compete. Since figures have errors, the second may be the faster one. The expected loss follows from the normal
distribution of the logarithm of their times' ratio. A measured time of a case, which has the error ERROR besides,
narrows the figures as in linear regression. The measurements are found one after another, each the best after those
before it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from collwise.models.piecewise import Array
from collwise.platforms import Platform
from collwise.simulator.timing import Case
from collwise.validation.calibration.figures import multiplied
from collwise.validation.calibration.from_times import ERROR, Fitted, TimedCases

_STEP = 0.05
_MIN_ERROR = 1e-9


def most_telling(platform: Platform, fitted: Fitted, cases: Sequence[Case], count: int = 5) -> list[Case]:
    """The cases to measure first, at most `count`, on a platform with the factors of a fit.

    A case that would change nothing is not among them.
    """
    timed = TimedCases(platform, dict.fromkeys(cases, 1.0))
    logs, slopes = _slopes(timed, fitted)
    pairs = [sorted(places, key=lambda place: logs[place])[:2] for places in timed.cells.values() if len(places) > 1]
    if not pairs:
        return []
    ahead = np.array([logs[second] - logs[first] for first, second in pairs])
    contrasts = np.array([slopes[second] - slopes[first] for first, second in pairs])
    known, chosen = fitted.covariance, list[int]()
    while len(chosen) < count:
        lost = _expected_loss(ahead, contrasts, known)
        after = [_expected_loss(ahead, contrasts, _narrowed(known, slope)) for slope in slopes]
        gains = np.array([lost - one for one in after])
        gains[chosen] = 0.0
        best = int(gains.argmax())
        if gains[best] <= 0:
            break
        chosen.append(best)
        known = _narrowed(known, slopes[best])
    return [timed.cases[place] for place in chosen]


def _slopes(timed: TimedCases, fitted: Fitted) -> tuple[Array, Array]:
    """The logarithms of the predicted times, and how they follow those of the figures: shape (cases, figures)."""
    middle = np.log(timed.on(multiplied(timed.platform, fitted.common)))
    columns = []
    for name, factor in fitted.common.items():
        more = multiplied(timed.platform, {**fitted.common, name: factor * np.exp(_STEP)})
        columns.append((np.log(timed.on(more)) - middle) / _STEP)
    return middle, np.array(columns).T


def _narrowed(covariance: Array, slope: Array) -> Array:
    """The covariance after a case with these slopes was measured."""
    towards = covariance @ slope
    found: Array = covariance - np.outer(towards, towards) / (slope @ towards + ERROR**2)
    return found


def _expected_loss(ahead: Array, contrasts: Array, covariance: Array) -> float:
    """The expected loss of each cell's first choice, summed over cells, as the logarithm of a ratio of times."""
    from scipy.stats import norm

    errors = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", contrasts, covariance, contrasts), _MIN_ERROR**2))
    sure = ahead / errors
    return float(np.sum(errors * (norm.pdf(sure) - sure * norm.sf(sure))))
