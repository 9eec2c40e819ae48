"""Predictions that are corrected by measured times, and the value of measuring another configuration.

The logarithm of the ratio of measured to predicted time is a Gaussian process over all configurations and inputs. This
process is a sum of independent parts. Cases share a part as follows:

1. All cases share one part.
2. Cases with similar message sizes, nodes and processes per node share a part.
3. Cases that also use the same algorithm share a further part.
4. Cases that also have similar segments and pieces share a further part.
5. Cases with the same configuration and similar inputs share a last part.

Parts 3 and 4 have a scale, which is estimated: of a few scales, it is the one under which the measured times are most
likely. Part 5 has no such scale, since even if predictions were right so far, others may still be wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import partial

import numpy as np
import numpy.typing as npt

from collwise.models.piecewise import Array
from collwise.simulator.timing import Case, Timing
from collwise.validation.adaptive.belief import Numbers, Process
from collwise.validation.hierarchy.space import Input, input_of

_LEVEL, _SIZE, _ALGORITHM, _CUT, _ALONE = 0.3, 0.2, 0.15, 0.1, 0.05
"""The standard deviations of the parts, in logarithms; those for algorithms, segments and pieces apply at scale 1."""

_SCALES = (0.125, 0.25, 0.5, 1.0, 2.0)
"""The scales that are tried."""

_FAR_SIZE, _FAR_SIZE_ALONE, _FAR_PLACE, _FAR_CUT = 8.0, 4.0, 4.0, 4.0
"""The doublings over which the covariance falls to 1/e.

In this order: doublings of the message size, for common parts; of the message size, for a configuration's own part; of
nodes and processes per node; of segments and pieces.
"""

_EXACT = 1e-8
"""The least variance of a measured logarithm."""

_95_PERCENT = 1.96

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(9)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()

_MAX = 256
"""The maximum number of cases considered for the next benchmark: those most likely to be the best for their input."""


class Corrected:
    """Predictions for cases, corrected by measured times of some of these; cases are in the order of their inputs."""

    def __init__(self, predicted: Mapping[Case, float]) -> None:
        self.cases = list(predicted)
        self._position = {case: number for number, case in enumerate(self.cases)}
        inputs: dict[Input, int] = {}
        of_input = [inputs.setdefault(input_of(case), len(inputs)) for case in self.cases]
        self._first = np.flatnonzero(np.diff(of_input, prepend=-1))
        self._counts = np.diff([*self._first.tolist(), len(of_input)])
        logs = np.log(list(predicted.values()))
        alike = _alike_among(self.cases)
        self._beliefs = [Process(logs, partial(alike, scale), scale) for scale in _SCALES]
        self._open = np.ones(len(self.cases), dtype=bool)

    @property
    def inputs(self) -> int:
        """The number of inputs."""
        return len(self._first)

    @property
    def seconds(self) -> Mapping[Case, float]:
        """The corrected time of every case; that of a measured case depends on the measured time and its noise."""
        return dict(zip(self.cases, np.exp(self._belief.mean).tolist(), strict=True))

    def add(self, timings: Mapping[Case, Timing]) -> None:
        """Corrects the predictions by measured times, and removes the measured cases from the candidates."""
        if not timings:
            return
        numbers = np.array([self._position[case] for case in timings])
        seconds, widths = np.array([(timing.seconds, timing.half_width_seconds) for timing in timings.values()]).T
        self._open[numbers] = False
        for belief in self._beliefs:
            belief.learn(numbers, np.log(seconds), (widths / _95_PERCENT / seconds) ** 2 + _EXACT)

    def min_sum_of_seconds(self) -> float:
        """A lower bound on the time of all cases together: two standard deviations below their corrected sum."""
        belief = self._belief
        seconds = np.exp(belief.mean)
        longest = np.argsort(seconds)[-_MAX:]
        shares = seconds[longest] / seconds[longest].sum()
        variance = float(shares @ belief.covariance(longest)[longest] @ shares)
        return float(seconds.sum()) * math.exp(-2 * math.sqrt(max(variance, 0.0)))

    def most_telling(self, seconds: float, budget: float, min_gain: float) -> list[Case]:
        """The next benchmarks, which take about `seconds`: those with the largest expected benefit per second.

        They take no more than `budget` seconds even if each takes two standard deviations longer than expected. The
        benefit is the share by which choices become faster, summed over all inputs; benchmarks with an expected benefit
        below `min_gain` are left out.
        """
        belief, still_open = copy(self._belief), self._open.copy()
        chosen: list[Case] = []
        while seconds > 0:
            candidates = self._candidates(belief, still_open)
            expected = np.exp(belief.mean[candidates])
            cautious = expected * np.exp(2 * np.sqrt(belief.variance[candidates]))
            gains = self._gains(belief, candidates)
            gains[(cautious > budget) | (gains < min_gain)] = 0.0
            if not gains.any():
                break
            best = int(np.argmax(gains / expected))
            seconds -= expected[best]
            budget -= cautious[best]
            belief.imagine(candidates[best], _EXACT)
            still_open[candidates[best]] = False
            chosen.append(self.cases[candidates[best]])
        return chosen

    @property
    def _belief(self) -> Process:
        return max(self._beliefs, key=lambda belief: belief.plausibility)

    def _candidates(self, belief: Process, still_open: npt.NDArray[np.bool_]) -> Numbers:
        """The unmeasured cases that are most likely the best of their input, the likeliest first; at most _MAX."""
        behind = belief.mean - np.repeat(np.minimum.reduceat(belief.mean, self._first), self._counts)
        found = np.flatnonzero(still_open)
        order = np.argsort(behind[found] / np.sqrt(belief.variance[found] + _EXACT), kind="stable")
        return found[order[:_MAX]]

    def _gains(self, belief: Process, candidates: Numbers) -> Array:
        """The knowledge gradients: by how much measuring each candidate is expected to lower the inputs' best means."""
        if not len(candidates):
            return np.zeros(0)
        steps = belief.covariance(candidates) / np.sqrt(belief.variance[candidates] + _EXACT)
        gains = np.zeros(len(candidates))
        for node, weight in zip(_NODES, _WEIGHTS, strict=True):
            best = np.minimum.reduceat(belief.mean + node * steps.T, self._first, axis=1)
            gains -= weight * best.sum(axis=1)
        found: Array = gains + np.minimum.reduceat(belief.mean, self._first).sum()
        return found


def _alike_among(cases: Sequence[Case]) -> Callable[[float, Numbers, Numbers], Array]:
    """A function for the covariances of cases (rows, columns) at a scale, before anything was measured."""
    places = [(case.message_bytes, case.nodes, case.processes_per_node) for case in cases]
    cuts = [(case.segment_bytes, case.limit_bytes or case.segment_bytes) for case in cases]
    sizes = np.log2(np.hstack([places, cuts], dtype=float)).T
    named = [(case.algorithm, case.parameter) for case in cases]
    kinds = np.array([named.index(kind) for kind in named])

    def alike(scale: float, rows: Numbers, columns: Numbers) -> Array:
        size, nodes, per_node, segment, piece = (np.abs(np.subtract.outer(item[rows], item[columns])) for item in sizes)
        place, cut = (nodes + per_node) / _FAR_PLACE, segment + piece
        same = np.equal.outer(kinds[rows], kinds[columns])
        scaled = scale**2 * same * (_ALGORITHM**2 + _CUT**2 * np.exp(-cut / _FAR_CUT))
        near = np.exp(-size / _FAR_SIZE - place) * (_SIZE**2 + scaled)
        alone = np.exp(-size / _FAR_SIZE_ALONE - place) * _ALONE**2 * (same & (cut == 0))
        found: Array = _LEVEL**2 + near + alone
        return found

    return alike
