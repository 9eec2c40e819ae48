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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from collwise.common.errors import CollwiseError
from collwise.simulator.timing import Case, Timing
from collwise.validation.hierarchy.corrected import Corrected
from collwise.validation.hierarchy.cost_model import cost_seconds, runs_needed
from collwise.validation.hierarchy.space import Input, Point, Space
from collwise.validation.hierarchy.tasks import SEGMENTS, task_case, task_times
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

Timer = Callable[[Sequence[Case]], Mapping[Case, Timing]]
"""Times cases: SMPI, the schedule engine, or a real MPI, each through the store."""

Predictor = Callable[[Sequence[Point]], dict[Point, float]]
"""Predicts whole collectives without the machine, as `Machine.whole` of another timer does."""


@dataclass
class Bill:
    """The benchmarks that a search made; each is paid for once, however often its time is asked for."""

    timings: dict[Case, Timing] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """The machine time of all benchmarks, repetitions included."""
        return sum(one.seconds * one.repetitions for one in self.timings.values())

    @property
    def repetitions(self) -> float:
        """The mean number of repetitions, weighted by the time of a single one."""
        once = sum(one.seconds for one in self.timings.values())
        return self.seconds / once if once > 0 else 1.0

    @property
    def benchmarks(self) -> int:
        """The number of benchmarks."""
        return len(self.timings)


class Machine:
    """Times whole collectives and tasks for one search, with a bill of its own."""

    def __init__(self, timer: Timer) -> None:
        self._timer = timer
        self.bill = Bill()

    def whole(self, points: Sequence[Point]) -> dict[Point, float]:
        """The seconds of whole collectives. Raises CollwiseError if one fails."""
        found = self._timed([point.case for point in points])
        return {point: found[point.case].seconds for point in points}

    def tasks(self, points: Sequence[Point], most: int = SEGMENTS) -> dict[Point, float]:
        """The seconds of whole collectives by the cost model: only tasks are timed, once for all sizes of messages.

        Raises CollwiseError if one fails.
        """
        alike: dict[tuple[object, ...], list[Point]] = {}
        for point in points:
            alike.setdefault(_tasks_key(point), []).append(point)
        runs = {}
        for key, group in alike.items():
            segments = {point.segments for point in group}
            needed = runs_needed(group[0].collective, segments, most, group[0].choice.fanout)
            runs[key] = [task_case(group[0], count) for count in needed]
        found = self._timed([case for cases in runs.values() for case in cases])
        seconds: dict[Point, float] = {}
        for key, group in alike.items():
            times = [task_times(found[case]) for case in runs[key]]
            seconds |= {point: cost_seconds(times, point.segments) for point in group}
        return {point: seconds[point] for point in points}

    def _timed(self, cases: Sequence[Case]) -> Mapping[Case, Timing]:
        found = self._timer(cases)
        for case in cases:
            if not found[case].ok:
                raise CollwiseError(
                    f"{case.collective} {case.algorithm} on {case.procs} processes failed: {found[case].error}"
                )
        self.bill.timings.update((case, found[case]) for case in cases)
        return found


def _tasks_key(point: Point) -> tuple[object, ...]:
    """What the tasks of a point depend on: all but the number of segments."""
    size = min(point.choice.segment_bytes, point.input.message_bytes)
    return point.collective, point.input.place, replace(point.choice, segment_bytes=size)


@dataclass(frozen=True)
class Found:
    """What a search found, and what that cost.

    `seconds` is the time that the search assumes for every configuration that it considers.
    """

    search: str
    seconds: Mapping[Point, float]
    bill: Bill

    @cached_property
    def by_input(self) -> dict[Input, dict[Choice, float]]:
        """The seconds of each configuration for each input."""
        found: dict[Input, dict[Choice, float]] = {}
        for point, seconds in self.seconds.items():
            found.setdefault(point.input, {})[point.choice] = seconds
        return found

    @cached_property
    def best(self) -> dict[Input, Choice]:
        """The best configuration for each input."""
        return {one: min(seconds, key=seconds.__getitem__) for one, seconds in self.by_input.items()}


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
    return Found(name, dict(seconds), machine.bill)


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
