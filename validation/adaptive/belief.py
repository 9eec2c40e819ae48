"""A Gaussian process over the logarithms of the times of one collective's cases.

The mean of a case is the logarithm of its predicted time or, without predictions, of the time on a line that is fitted
to the algorithm's measured times. Differences from the mean are similar for similar cases, which have similar sizes and
process counts, or the same algorithm with segments of about the same size. The scale of these differences is not known
beforehand, so the one under which the measured times are most likely is used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, optimize, special, stats

from collwise.common.grouping import grouped
from collwise.models.piecewise import Array
from collwise.simulator.sweeps.method import MEDIAN_VARIANCE
from collwise.simulator.timing import Case, Timing

Numbers = NDArray[np.intp]
"""The indices of some cases among all."""


class Process:
    """Means and variances of logarithms, which `learn` and `imagine` replace; a shallow copy learns independently.

    `alike` gives the covariances between cases (indices, as rows and as columns) before anything was measured.
    `plausibility` is the log-likelihood of what was learned plus the logarithm of the scale's prior.
    """

    def __init__(self, prior: Array, alike: Callable[[Numbers, Numbers], Array], scale: float) -> None:
        self._alike = alike
        self._every = np.arange(len(prior))
        self._learned = np.zeros((0, len(prior)))
        self.mean = prior
        self.scale, self.plausibility = scale, -(math.log(scale) ** 2) / 2

    @cached_property
    def variance(self) -> Array:
        """The variance of every case."""
        alone = np.concatenate([self._alike(item, item)[0] for item in self._every[:, None]])
        return np.maximum(alone - (self._learned**2).sum(axis=0), 0.0)

    def covariance(self, columns: Numbers | None = None) -> Array:
        """The covariance of every case with the cases `columns`, by default with all, shape (cases, columns)."""
        some = self._every if columns is None else columns
        found = self._alike(self._every, some)
        return found - self._learned.T @ self._learned[:, some] if len(self._learned) else found

    def imagine(self, number: int, noise: float) -> None:
        """Lowers variances as a measured time with the variance `noise` would, whatever the time is."""
        self._add(self.covariance(np.array([number])).T / math.sqrt(self.variance[number] + noise))

    def learn(self, numbers: Numbers, logs: Array, noise: Array) -> None:
        """Learns the logarithms of measured times, whose variances are `noise`."""
        covariance = self.covariance(numbers)
        factor = linalg.cholesky(covariance[numbers] + np.diag(noise), lower=True)
        whitened = linalg.solve_triangular(factor, logs - self.mean[numbers], lower=True)
        rows = linalg.solve_triangular(factor, covariance.T, lower=True)
        self.mean = self.mean + rows.T @ whitened
        self.plausibility -= float(whitened @ whitened / 2 + np.log(np.diag(factor)).sum())
        self._add(rows)

    def _add(self, rows: Array) -> None:
        variance = np.maximum(self.variance - (rows**2).sum(axis=0), 0.0) if "variance" in self.__dict__ else None
        self._learned = np.vstack([self._learned, rows])
        if variance is not None:
            self.variance = variance


Predictions = Mapping[Case, float]
"""Seconds by case, from one source."""


@dataclass(frozen=True)
class Spread:
    """Standard deviations, in logarithms, of the parts that make a case's time differ from its mean.

    `level` is common to all cases, `shape` to cases of near sizes and process counts, `algorithm` to all cases of one
    algorithm, `course` to near cases of one algorithm; `alone` belongs to a single case. Only the last three decide
    which case is the fastest, so only these are scaled.
    """

    level: float
    shape: float
    algorithm: float
    course: float
    alone: float


PREDICTED = Spread(level=0.7, shape=0.3, algorithm=0.2, course=0.2, alone=0.05)
"""The prior of predictions. One algorithm's predictions are some 30 % too long or too short relative to another's."""
FROM_LINES = Spread(level=0.7, shape=0.5, algorithm=0.2, course=0.8, alone=0.05)
"""The prior of lines through measured times, which miss pipelines and changes of protocol."""
_UNKNOWN = 10.0
"""The factor on the spread of a case without a prediction if other cases have predictions."""
_SCALES = 1.0, 2.0
"""Possible factors on the spread; measured times decide. None is below 1, since longer messages may deviate more."""
_FAR = (8.0, 4.0, 8.0)
"""The doublings of size, of process count and of segment size over which the similarity of cases falls to 1/e."""
_GUESSED_NOISE, _GUESSES = 0.03, 4
"""The assumed standard deviation of repetitions, as a share, and the number of observations that it counts as."""
_MIN_SECONDS = 1e-12
"""The seconds that stand for a measured time of 0, which has no logarithm."""
_BETWEEN_LAUNCHES = 0.01
"""The assumed standard deviation of the median from launch to launch, as a share."""
_TO_DEVIATION = 1.2
"""The factor from the mean distance from the median to the standard deviation; 1.13 to 1.25 for normal values."""


class Belief:
    """Means and covariances of the logarithms of times; `learn` takes measured times into account.

    The more the `predictions` of several sources disagree on a case, the more uncertain it is. Each launch repeats a
    case `in_a_round` times. `out` marks the cases that failed. `point` has the index of each case's point in `points`.
    """

    def __init__(self, cases: Sequence[Case], predictions: Sequence[Predictions] = (), in_a_round: int = 3) -> None:
        self.cases = list(cases)
        self._in_a_round = in_a_round
        self.out = np.zeros(len(cases), dtype=bool)
        self._noise = np.full(len(cases), _GUESSED_NOISE**2)
        points = [(case.procs, case.message_bytes) for case in cases]
        self.points = list(dict.fromkeys(points))
        places = {point: place for place, point in enumerate(self.points)}
        self.point = np.array([places[point] for point in points])
        self._places = np.array([_place(case) for case in cases]).reshape(len(cases), 3)
        names = {name: number for number, name in enumerate(dict.fromkeys(case.algorithm for case in cases))}
        self._same = np.equal.outer(*[np.array([names[case.algorithm] for case in cases])] * 2)
        logs = np.array(
            [
                [math.log(prediction[case]) if prediction.get(case, 0) > 0 else math.nan for case in cases]
                for prediction in predictions
            ]
        )
        self.predicted = bool(predictions) and not np.isnan(logs).all()
        self._prior, self._doubt = _sources(logs, len(cases))
        self._lines = grouped(range(len(cases)), lambda number: cases[number].algorithm)
        self._measured: dict[int, tuple[float, float]] = {}
        self._believe()

    def learn(self, timings: Mapping[Case, Timing]) -> None:
        """Replaces the measured times by these timings, which have all samples, and discards imagined measurements."""
        index = {case: number for number, case in enumerate(self.cases)}
        known = {index[case]: timing for case, timing in timings.items() if case in index}
        self.out[[number for number, timing in known.items() if not timing.ok]] = True
        kept = {number: timing for number, timing in known.items() if timing.ok}
        spread = {number: _relative_squares(timing) for number, timing in kept.items()}
        self._noise = self._noise_of(spread)
        self._measured = {}
        for number, timing in kept.items():
            variance = self._variance_of_median(self._noise_with(number, *spread[number]), timing.repetitions)
            self._measured[number] = math.log(max(timing.seconds, _MIN_SECONDS)), variance
        if not self.predicted:
            self._prior = self._from_lines()
        self._believe()

    def _noise_of(self, spread: Mapping[int, tuple[float, int]]) -> Array:
        """The relative variance of a repetition of each case, from the samples at its point and those at all points."""
        squares, freedom = np.zeros(len(self.cases)), np.zeros(len(self.cases))
        for number, (of_squares, of_freedom) in spread.items():
            squares[self.point[number]] += of_squares
            freedom[self.point[number]] += of_freedom
        everywhere = (_GUESSES * _GUESSED_NOISE**2 + squares.sum()) / (_GUESSES + freedom.sum())
        return ((_GUESSES * everywhere + squares) / (_GUESSES + freedom))[self.point]

    def visit_variance(self, repetitions: int) -> Array:
        """The variance of the logarithm of the median of this many repetitions, for each case."""
        return self._variance_of_median(self._noise, repetitions)

    def _variance_of_median(self, noise: Any, repetitions: int) -> Any:
        return (MEDIAN_VARIANCE * noise + _BETWEEN_LAUNCHES**2 * self._in_a_round) / repetitions

    def imagine(self, number: int, repetitions: int) -> None:
        """Lowers variances as measuring a case would; the reduction does not depend on the measured time."""
        column = self.covariance[:, number]
        column = column / math.sqrt(self.covariance[number, number] + self.visit_variance(repetitions)[number])
        self.covariance -= np.outer(column, column)

    @property
    def measured(self) -> NDArray[np.bool_]:
        """True for each case that has a measured time."""
        return np.isin(np.arange(len(self.cases)), list(self._measured))

    def half_width(self, number: int, timing: Timing, confidence: float) -> float:
        """The half-width of the median's confidence interval; samples of other cases contribute to the variance."""
        squares, freedom = _relative_squares(timing)
        variance = self._noise_with(number, squares, freedom)
        quantile = float(stats.t.ppf(0.5 + confidence / 2, _GUESSES + freedom))
        return quantile * math.sqrt(MEDIAN_VARIANCE * variance / timing.repetitions) * timing.seconds

    @property
    def is_informed(self) -> bool:
        """True if anything was predicted or measured."""
        return self.predicted or bool(self._measured)

    def _noise_with(self, number: int, squares: float, freedom: int) -> float:
        """The variance of a repetition of a case from its own samples, shrunk towards the variance at its point."""
        return float((_GUESSES * self._noise[number] + squares) / (_GUESSES + freedom))

    def _believe(self) -> None:
        """Sets means, covariances and the scale from the measured times."""
        scales = _SCALES if self._measured else (1.0,)
        processes = [Process(self._prior, partial(self._kernel, scale=scale), scale) for scale in scales]
        if self._measured:
            logs, variances = np.array(list(self._measured.values())).T
            for process in processes:
                process.learn(np.array(list(self._measured)), logs, variances)
        best = max(processes, key=lambda process: process.plausibility)
        self.scale, self.mean, self.covariance = best.scale, best.mean, best.covariance()

    def _kernel(self, rows: Numbers, columns: Numbers, scale: float) -> Array:
        far = [
            np.abs(np.subtract.outer(self._places[rows, axis], self._places[columns, axis])) / _FAR[axis]
            for axis in range(3)
        ]
        spread = PREDICTED if self.predicted else FROM_LINES
        near = np.exp(-far[0] - far[1])
        same = self._same[rows][:, columns] * np.outer(self._doubt[rows], self._doubt[columns]) * scale**2
        identical = same * (sum(far) == 0)
        return (
            spread.level**2
            + spread.shape**2 * near
            + same * (spread.algorithm**2 + spread.course**2 * near * np.exp(-far[2]))
            + spread.alone**2 * identical
        )

    def _from_lines(self) -> Array:
        """The logarithm of each case's time on its algorithm's line at the nearest measured P, or the others' mean."""
        prior = np.full(len(self.cases), math.nan)
        for numbers in self._lines.values():
            measured = (number for number in numbers if number in self._measured)
            by_procs = grouped(measured, lambda number: self.cases[number].procs)
            for number in numbers if by_procs else ():
                case = self.cases[number]
                nearest = min(by_procs, key=lambda procs: abs(math.log(procs / case.procs)))
                prior[number] = math.log(self._line(by_procs[nearest]) @ (1.0, case.message_bytes, piece_of(case)))
        return np.where(np.isnan(prior), np.nanmean(prior) if not np.isnan(prior).all() else 0.0, prior)

    def _line(self, numbers: Sequence[int]) -> Array:
        """The latency and the times per byte of the message and of a segment that minimise the relative errors."""
        cases = [self.cases[number] for number in numbers]
        seconds = np.exp([self._measured[number][0] for number in numbers])
        parts = np.array([(1.0, case.message_bytes, piece_of(case)) for case in cases])
        if np.ptp(parts[:, 1]) == 0:
            return np.array([seconds.mean(), 0.0, 0.0])
        return optimize.nnls(parts / seconds[:, None], np.ones(len(numbers)))[0]


def expected_gain(behind: Array, deviation: Array) -> Array:
    """E[max(0, X)] of a normal X with the mean -behind: the mean gain from a case that may turn out faster."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = behind / deviation
        gain = deviation * np.exp(-(ratio**2) / 2) / math.sqrt(2 * math.pi) - behind * special.ndtr(-ratio)
    return np.where(deviation > 0, np.maximum(gain, 0.0), np.maximum(-behind, 0.0))


def _sources(logs: Array, count: int) -> tuple[Array, Array]:
    """The mean of the sources' logarithms for each case, and a factor of doubt (1: all sources agree)."""
    if logs.size == 0 or np.isnan(logs).all():
        return np.zeros(count), np.ones(count)
    known = ~np.isnan(logs)
    number = known.sum(axis=0)
    filled = np.where(known, logs, 0.0)
    mean = filled.sum(axis=0) / np.maximum(number, 1)
    apart = np.sqrt((np.where(known, logs - mean, 0.0) ** 2).sum(axis=0) / np.maximum(number, 1))
    overall = float(mean[number > 0].mean())
    doubt = np.hypot(1.0, apart / math.hypot(PREDICTED.algorithm, PREDICTED.course))
    return np.where(number > 0, mean, overall), np.where(number > 0, doubt, _UNKNOWN)


def _place(case: Case) -> list[float]:
    """The logarithms of a case's message size, process count and largest piece."""
    sizes = max(case.message_bytes, 1), case.procs, max(piece_of(case), 1)
    return [math.log2(size) for size in sizes]


def piece_of(case: Case) -> int:
    """The bytes of a segment, or of the whole message if segments are not smaller than it."""
    return min(case.segment_bytes or case.message_bytes, case.message_bytes)


def _relative_squares(timing: Timing) -> tuple[float, int]:
    """The variance of the samples' logarithms times its degrees of freedom, and the degrees of freedom.

    It follows from the mean distance from the median, which a stall changes far less than a sum of squares.
    """
    logs = np.log(np.maximum(timing.samples or (timing.seconds,), _MIN_SECONDS))
    freedom = logs.size - 1
    if freedom == 0:
        return 0.0, 0
    deviation = _TO_DEVIATION * float(np.abs(logs - np.median(logs)).sum()) / freedom
    return freedom * deviation**2, freedom
