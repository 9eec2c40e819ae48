"""Searches for the best configuration of each input: the four of Luo et al. 2020, section III-C, and one of our own.

`exhaustive` times every configuration for every input, `tasks` only tasks, from which the cost model computes whole
collectives of any size. Each also exists with rules of thumb. `predict` times few whole collectives:

1. The schedule engine predicts every configuration for every input.
2. Measured times correct predictions nearby, and tell how uncertain the others are (`Corrected`).
3. Each round times what is expected to improve the choices most for its machine time, mostly short messages, whose
   times also correct the predictions for long ones.
4. It ends where nothing is worth its time any more, or with a share of what the exhaustive search would cost, of which
   it is sure by its own predictions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from collwise.validation.hierarchy.corrected import Corrected
from collwise.validation.hierarchy.heuristics import worth_testing
from collwise.validation.hierarchy.machine import Bill, Machine, Predictor, Timer
from collwise.validation.hierarchy.space import Input, Point, Space, by_input
from collwise.validation.selection.choice import Choice

EXHAUSTIVE, PREDICT = "exhaustive", "predict"
"""The names of the search that the others are compared with, and of the one that needs predictions."""

BUDGET = 0.02
"""The share of the exhaustive search's machine time that `predict` may take."""

LEAST_GAIN = 1e-5
"""A benchmark is made only if choices are expected to become faster by this share, on average over the inputs."""

_FIRST_ROUND, _FURTHER_ROUNDS = 1 / 32, 0.5
"""The first round's share of the budget, and what a further one takes at most of what was spent before it."""


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
    machine = Machine(timer)
    predictions = Corrected(predict(list(space.points())))
    while True:
        spent = machine.bill.seconds / machine.bill.repetitions
        whole = budget * predictions.least_sum_of_seconds()
        round_seconds = max(_FIRST_ROUND * whole, _FURTHER_ROUNDS * spent)
        chosen = predictions.most_telling(round_seconds, whole - spent, LEAST_GAIN * predictions.inputs)
        if not chosen:
            return _found(PREDICT, predictions.seconds, machine.bill)
        machine.whole(chosen)
        predictions.add({point: machine.bill.timings[point.case] for point in chosen})


Search = Callable[..., Found]
SEARCHES: Mapping[str, Search] = {
    EXHAUSTIVE: exhaustive,
    "exhaustive-heuristics": exhaustive_heuristics,
    "tasks": tasks,
    "tasks-heuristics": tasks_heuristics,
    PREDICT: predict_and_correct,
}
"""The searches by name."""
