"""Searches for the best configuration of each input: the four of Luo et al. 2020, section III-C, and one of our own.

`exhaustive` times every configuration for every input, `tasks` only tasks, from which the cost model computes whole
collectives of any size. Each also exists with rules of thumb. `predict` times few whole collectives:

1. The schedule engine predicts every configuration for every input.
2. Where a collective was timed, the ratio of measured to predicted time corrects the predictions nearby.
3. Successive halving decides what is timed: for each input first the KEPT[0] configurations that look best, on a
   message a fraction as long, then half as many on one twice as long, and so on; inputs with short messages first.
   The best ones are then timed on the whole message, one after another.
4. Only configurations compete whose predictions differ by less than these are uncertain; where the best one has no
   competitor nothing is timed. It stops at a share of what the exhaustive search would cost, by its own predictions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from collwise.models.piecewise import Array
from collwise.validation.hierarchy.heuristics import worth_testing
from collwise.validation.hierarchy.machine import Bill, Machine, Predictor, Timer
from collwise.validation.hierarchy.space import Input, Point, Space, by_input
from collwise.validation.selection.choice import Choice

EXHAUSTIVE, PREDICT = "exhaustive", "predict"
"""The names of the search that the others are compared with, and of the one that needs predictions."""

BUDGET = 0.02
"""The share of the exhaustive search's machine time that `predict` may take."""

KEPT = (4, 2)
"""How many configurations are timed on messages of a fourth and of half of an input's size."""

_FINALS = 3
"""How often a best configuration is timed on the whole message of an input."""


@dataclass(frozen=True)
class Found:
    """What a search found: the best configuration and its seconds for each input, and what that cost.

    `seconds` has what the search takes every configuration's time for; it says where one takes over from another.
    """

    search: str
    best: Mapping[Input, Choice]
    seconds: Mapping[Point, float]
    bill: Bill


def _found(search: str, seconds: Mapping[Point, float], bill: Bill) -> Found:
    best = {
        one: min(points, key=lambda point: seconds[point]).choice for one, points in by_input(list(seconds)).items()
    }
    return Found(search, best, dict(seconds), bill)


def exhaustive(space: Space, timer: Timer, predict: Predictor | None = None) -> Found:
    """Times everything."""
    machine = Machine(timer)
    return _found(EXHAUSTIVE, machine.whole(list(space.points())), machine.bill)


def exhaustive_heuristics(space: Space, timer: Timer, predict: Predictor | None = None) -> Found:
    """Times everything that the rules of thumb allow."""
    machine = Machine(timer)
    return _found("exhaustive-heuristics", machine.whole(allowed(space)), machine.bill)


def tasks(space: Space, timer: Timer, predict: Predictor | None = None) -> Found:
    """Times the tasks of every configuration."""
    machine = Machine(timer)
    return _found("tasks", machine.tasks(list(space.points())), machine.bill)


def tasks_heuristics(space: Space, timer: Timer, predict: Predictor | None = None) -> Found:
    """Times the tasks of the configurations that the rules of thumb allow."""
    machine = Machine(timer)
    return _found("tasks-heuristics", machine.tasks(allowed(space)), machine.bill)


def allowed(space: Space) -> list[Point]:
    """The points that the rules of thumb let be tested; all of an input for which they would leave none."""
    points = list(space.points())
    kept = {one: [point for point in group if worth_testing(point)] for one, group in by_input(points).items()}
    return [point for one, group in by_input(points).items() for point in kept[one] or group]


def predict_and_correct(space: Space, timer: Timer, predict: Predictor | None = None, budget: float = BUDGET) -> Found:
    """Predicts everything, and times the few collectives that decide. Raises ValueError without predictions."""
    if predict is None:
        raise ValueError("the search 'predict' needs predictions")
    points = list(space.points())
    machine = Machine(timer)
    predictions = Corrected(predict(points))
    for round_points in _rounds(space, predictions):
        # Short messages come first: their ratios correct the predictions for long ones.
        for size in sorted({point.input.message_bytes for point in round_points}):
            group = [point for point in round_points if point.input.message_bytes == size]
            left = budget * predictions.sum_of_seconds - machine.bill.seconds / machine.bill.repetitions
            if chosen := _affordable(group, predictions, left):
                predictions.add(machine.whole(chosen))
    return _found(PREDICT, {point: predictions.seconds(point) for point in points}, machine.bill)


def _affordable(points: Sequence[Point], predictions: Corrected, seconds: float) -> list[Point]:
    """Those not measured yet, the fastest first, that take no longer than that together."""
    chosen = []
    for point in sorted(points, key=predictions.seconds):
        if not predictions.is_measured(point) and predictions.seconds(point) <= seconds:
            chosen.append(point)
            seconds -= predictions.seconds(point)
    return chosen


def _rounds(space: Space, predictions: Corrected) -> Iterator[list[Point]]:
    """What each round times, as the predictions stand when the round begins."""
    inputs = by_input(list(predictions.predicted))
    for number, kept in enumerate(KEPT):
        fraction = 2 ** (len(KEPT) - number)
        wanted: dict[Point, None] = {}
        for one, points in inputs.items():
            shorter = _shorter(space, one, one.message_bytes // fraction)
            for point in predictions.competitors(points)[:kept]:
                stand_in = replace(point, input=shorter)
                if stand_in in predictions.predicted:
                    wanted[stand_in] = None
        yield list(wanted)
    for _ in range(_FINALS):
        open_inputs = (predictions.competitors(points) for points in inputs.values())
        yield [
            next(point for point in points if not predictions.is_measured(point)) for points in open_inputs if points
        ]


def _shorter(space: Space, one: Input, message_bytes: int) -> Input:
    """The input with the sampled size that is nearest below; itself if there is none."""
    below = [size for size in space.message_bytes if size <= message_bytes]
    return replace(one, message_bytes=max(below)) if below else one


class Corrected:
    """Predictions, each multiplied by the mean ratio of measured to predicted time nearby, and measured times.

    Ratios are averaged by their logarithms, with weights that fall with the distance in the logarithms of all sizes and
    counts; another algorithm, or another way within a node, is as far as a factor of 16 in a size. Far from everything
    that was measured the mean of all ratios applies.
    """

    def __init__(self, predicted: Mapping[Point, float]) -> None:
        self.predicted = dict(predicted)
        points = list(self.predicted)
        self._position = {point: number for number, point in enumerate(points)}
        self._places = np.array([_place(point) for point in points]).reshape(len(points), -1)
        self._kinds = np.array([_kind(point) for point in points])
        self._weighted = np.zeros(len(points))
        self._weights = np.zeros(len(points))
        self._measured: dict[Point, float] = {}
        self._ratios: list[float] = []
        self._missed: list[float] = []
        self._seconds = np.array(list(self.predicted.values()))

    def is_measured(self, point: Point) -> bool:
        """Whether its time was measured."""
        return point in self._measured

    def seconds(self, point: Point) -> float:
        """The measured time of a point, else the corrected one."""
        return float(self._seconds[self._position[point]])

    @property
    def sum_of_seconds(self) -> float:
        """The time of all points: what the exhaustive search takes if it repeats nothing."""
        return float(self._seconds.sum())

    @property
    def uncertainty(self) -> float:
        """The standard deviation of a prediction's logarithm: of the ratios that corrections missed, and a guess."""
        missed = [*self._missed, *[_GUESSED] * _GUESSES]
        return math.sqrt(sum(one * one for one in missed) / len(missed))

    def competitors(self, points: Sequence[Point]) -> list[Point]:
        """The points that may be the best one, the fastest first; none if that one is certain.

        Certain is a point that is alone within two standard deviations, and one that was measured if all others that
        are as near were, too.
        """
        ordered = sorted(points, key=self.seconds)
        limit = self.seconds(ordered[0]) * math.exp(2 * self.uncertainty)
        near = [point for point in ordered if self.seconds(point) <= limit]
        return [] if len(near) == 1 or all(map(self.is_measured, near)) else near

    def add(self, measured: Mapping[Point, float]) -> None:
        """Takes measured times into account."""
        self._missed += [math.log(seconds / self.seconds(point)) for point, seconds in measured.items()]
        for point, seconds in measured.items():
            ratio = math.log(seconds / self.predicted[point])
            at = self._position[point]
            # In units of a factor of 4 for numbers, two such units for each name that differs.
            apart = ((self._places - self._places[at]) / 2) ** 2
            weights = np.exp(-0.5 * (apart.sum(axis=1) + 4.0 * (self._kinds != self._kinds[at]).sum(axis=1)))
            self._weighted += weights * ratio
            self._weights += weights
            self._ratios.append(ratio)
            self._measured[point] = seconds
        mean = float(np.mean(self._ratios))
        ratios: Array = (self._weighted + _FAR * mean) / (self._weights + _FAR)
        self._seconds = np.array(list(self.predicted.values())) * np.exp(ratios)
        for point, seconds in self._measured.items():
            self._seconds[self._position[point]] = seconds


_GUESSED, _GUESSES = 0.1, 4
"""The error of predictions before anything is known of them, and as how many measured ones it counts."""

_FAR = 0.01
"""The weight of the mean of all ratios: that of one measured three units away."""


def _place(point: Point) -> list[float]:
    """The numbers of a point by their logarithms: nodes, processes on each, message, segment, piece."""
    one, choice = point.input, point.choice
    segment = min(choice.segment_bytes, one.message_bytes)
    numbers = (one.nodes, one.processes_per_node, one.message_bytes, segment, choice.limit_bytes or segment)
    return [math.log2(number) for number in numbers]


def _kind(point: Point) -> tuple[str, str]:
    return point.choice.algorithm, str(point.choice.fanout)


Search = Callable[..., Found]
SEARCHES: Mapping[str, Search] = {
    EXHAUSTIVE: exhaustive,
    "exhaustive-heuristics": exhaustive_heuristics,
    "tasks": tasks,
    "tasks-heuristics": tasks_heuristics,
    PREDICT: predict_and_correct,
}
"""The searches by name."""
