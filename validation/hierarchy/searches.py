"""Searches for the best configuration of each input: two of Luo et al. 2020, section III-C, and one of our own.

`exhaustive` times every configuration for every input, `tasks` only tasks, from which the cost model computes whole
collectives of any size. `predict` times few whole collectives:

1. The schedule engine predicts every configuration for every input.
2. Measured times correct predictions nearby, and tell how uncertain the others are (`Corrected`).
3. Each round times what is expected to improve the choices most for its machine time, mostly short messages, whose
   times also correct the predictions for long ones.
4. It ends where nothing is worth its time any more, or with a share of what the exhaustive search would cost, of which
   it is sure by its own predictions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from collwise.validation.hierarchy.corrected import Corrected
from collwise.validation.hierarchy.machine import Bill, Machine, Predictor, Timer
from collwise.validation.hierarchy.space import Input, Point, Space, by_input
from collwise.validation.times.choice import Choice

EXHAUSTIVE, PREDICT = "exhaustive", "predict"
"""The names of the search that the others are compared with, and of the one that needs predictions."""

SEARCHES = (EXHAUSTIVE, "tasks", PREDICT)
"""The names of the searches."""

BUDGET = 0.02
"""The share of the exhaustive search's machine time that `predict` may take."""

LEAST_GAIN = 1e-5
"""A benchmark is made only if choices are expected to become faster by this share, on average over the inputs."""

_FIRST_ROUND, _FURTHER_ROUNDS = 1 / 32, 0.5
"""The first round's share of the budget, and what a further one takes at most of what was spent before it."""


@dataclass(frozen=True)
class Found:
    """What a search found: the best configuration and its seconds for each input, and what that cost.

    `seconds` is the time that the search assumes for every configuration; it says where one takes
    over from another.
    """

    search: str
    best: Mapping[Input, Choice]
    seconds: Mapping[Point, float]
    bill: Bill


def search(
    name: str,
    space: Space,
    timer: Timer,
    predict: Predictor | None = None,
    budget: float = BUDGET,
    points: Sequence[Point] = (),
) -> Found:
    """Makes the search of that name, one of SEARCHES; `predict` and `budget` are for the one that predicts.

    The others may be limited to some of the space's `points`.
    Raises CollwiseError if a benchmark fails, and ValueError without predictions for the search that needs them.
    """
    machine = Machine(timer)
    if name == PREDICT:
        seconds = _predicted_and_corrected(space, machine, predict, budget)
    else:
        seconds = (machine.tasks if name == "tasks" else machine.whole)(points or list(space.points()))
    best = {
        one: min(points, key=lambda point: seconds[point]).choice for one, points in by_input(list(seconds)).items()
    }
    return Found(name, best, dict(seconds), machine.bill)


def _predicted_and_corrected(
    space: Space, machine: Machine, predict: Predictor | None, budget: float
) -> Mapping[Point, float]:
    """The predictions for all configurations, corrected by the times of the few collectives that decide."""
    if predict is None:
        raise ValueError("the search 'predict' needs predictions")
    predictions = Corrected(predict(list(space.points())))
    while True:
        spent = machine.bill.seconds / machine.bill.repetitions
        whole = budget * predictions.least_sum_of_seconds()
        round_seconds = max(_FIRST_ROUND * whole, _FURTHER_ROUNDS * spent)
        chosen = predictions.most_telling(round_seconds, whole - spent, LEAST_GAIN * predictions.inputs)
        if not chosen:
            return predictions.seconds
        machine.whole(chosen)
        predictions.add({point: machine.bill.timings[point.case] for point in chosen})
