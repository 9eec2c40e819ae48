"""Autotuning of hierarchical collectives: scores of searches, and decisions for any n, p and m between the sampled."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from collwise.validation.hierarchy.searches import BUDGET, EXHAUSTIVE, PREDICT, Found, Machine, Predictor, Timer, search
from collwise.validation.hierarchy.space import Input, Point, Space, by_input
from collwise.validation.hierarchy.tasks import SEGMENTS
from collwise.validation.select.decisions import DecisionTable, Row
from collwise.validation.times.choice import Choice
from collwise.validation.times.slowdown import slowdown, summary_of


@dataclass(frozen=True)
class SearchScore:
    """What a search cost and what its choices cost, against timing every configuration.

    `cost` is its machine time relative to the exhaustive search's, `mean` and `worst` are slowdowns of its choices
    against the best configuration, `best_found` counts the inputs for which it chose that one. nan where the exhaustive
    search's times are unknown.
    """

    search: str
    benchmarks: int
    machine_seconds: float
    cost: float
    inputs: int
    best_found: int
    mean: float
    worst: float
    worst_at: Input | None


def score(found: Found, truth: Found | None, exhaustive_seconds: float) -> SearchScore:
    """The score of a search. `truth` is what the exhaustive search finds, None if that is unknown.

    `exhaustive_seconds` is that search's machine time, or an estimate of it.
    """
    bill = found.bill
    cost = bill.seconds / exhaustive_seconds if exhaustive_seconds > 0 else math.nan
    inputs = list(found.best)
    start = (found.search, bill.benchmarks, bill.seconds, cost, len(inputs))
    if truth is None:
        return SearchScore(*start, 0, math.nan, math.nan, None)
    summary = summary_of(list(slowdowns(found, truth).values()), tolerance=0.0)
    return SearchScore(*start, summary.best_chosen, summary.mean, summary.worst, inputs[summary.worst_at[0]])


def slowdowns(found: Found, truth: Found) -> dict[Input, float]:
    """The slowdown of each choice of a search against the best configuration of that input."""
    actual = truth.by_input
    return {
        one: float(slowdown(actual[one][choice], actual[one][truth.best[one]])) for one, choice in found.best.items()
    }


@dataclass(frozen=True)
class Spread:
    """The times of all configurations for an input, as figure 9 shows them."""

    best: float
    mean: float
    median: float
    worst: float


def spreads(truth: Found) -> dict[Input, Spread]:
    """The times of all configurations for each input, from the exhaustive search."""
    found = {}
    for one, seconds in truth.by_input.items():
        values = list(seconds.values())
        found[one] = Spread(min(values), float(np.mean(values)), float(np.median(values)), max(values))
    return found


@dataclass(frozen=True)
class Tuning:
    """What searches found in a space, by their names, and their scores.

    `exhaustive_seconds` is the machine time of the exhaustive search; it `is_estimate` if that was not made: the sum of
    the times that another search takes all configurations for.
    """

    space: Space
    found: Mapping[str, Found]
    scores: tuple[SearchScore, ...]
    exhaustive_seconds: float
    is_estimate: bool


def tune(
    space: Space,
    searches: Sequence[str],
    timer: Timer,
    predict: Predictor | None = None,
    budget: float = BUDGET,
    true: Timer | None = None,
) -> Tuning:
    """Makes the searches of these names; `predict` and `budget` are for the one that predicts.

    Choices are judged by the true times where these are known beside the timer's, else by those of the exhaustive
    search. Raises CollwiseError if a benchmark fails.
    """
    found = {name: search(name, space, timer, predict, budget) for name in searches}
    made = found.get(EXHAUSTIVE)
    seconds = made.bill.seconds if made is not None else _estimate(space, list(found.values()))
    truth = made if true is None else search(EXHAUSTIVE, space, true)
    scores = tuple(score(one, truth, seconds) for one in found.values())
    return Tuning(space, found, scores, seconds, made is None)


def _estimate(space: Space, found: Sequence[Found]) -> float:
    """What the exhaustive search would take, by a search that knows times of all configurations; nan without one."""
    every = len(list(space.points()))
    complete = [one for one in found if len(one.seconds) == every]
    # The tasks of each configuration were timed, while predictions are corrected for most.
    by_tasks = sorted(complete, key=lambda one: one.search == PREDICT)
    return sum(by_tasks[0].seconds.values()) * by_tasks[0].bill.repetitions if by_tasks else math.nan


@dataclass(frozen=True)
class ModelCheck:
    """The cost model beside whole collectives (figures 4 and 7): seconds of every configuration, and machine time."""

    modelled: Mapping[Point, float]
    measured: Mapping[Point, float]
    modelled_cost: float
    measured_cost: float

    @property
    def errors(self) -> dict[Point, float]:
        """(model - measured) / measured of each configuration."""
        return {point: self.modelled[point] / self.measured[point] - 1 for point in self.measured}

    @property
    def median_error(self) -> float:
        """The median of the errors' magnitudes."""
        return float(np.median(np.abs(list(self.errors.values()))))

    @property
    def picks(self) -> dict[Input, tuple[Point, Point, float]]:
        """For each input the model's pick, the best configuration, and the slowdown of the pick."""
        found = {}
        for one, points in by_input(list(self.measured)).items():
            pick, best = (min(points, key=lambda point: seconds[point]) for seconds in (self.modelled, self.measured))
            found[one] = (pick, best, float(slowdown(self.measured[pick], self.measured[best])))
        return found


def check_model(space: Space, timer: Timer, most: int = SEGMENTS) -> ModelCheck:
    """Times the tasks and the whole collective of every configuration. Raises CollwiseError if one fails."""
    points = list(space.points())
    by_tasks, by_whole = Machine(timer), Machine(timer)
    modelled, measured = by_tasks.tasks(points, most), by_whole.whole(points)
    return ModelCheck(modelled, measured, by_tasks.bill.seconds, by_whole.bill.seconds)


# --- Between sampled inputs -------------------------------------------------------------------------------------------


def decision_tables(space: Space, found: Found, platform: str, maker: str, source: str) -> list[DecisionTable]:
    """Decisions for all inputs between the least and the largest sampled ones, a table for each p.

    Between two message sizes the choice of the larger one takes over where their times, on straight lines between the
    two sizes in logarithms, are equal. Between two node counts, or two numbers of processes per node, the nearer one in
    proportion decides. The rows of a table are by the process counts of the sampled p, but the first one holds from the
    fewest processes on that it is for.
    """
    made_by = f"hierarchy tune, search {found.search}, {maker}"
    tables = []
    for least_per_node, per_node in starts(space.processes_per_node):
        rows = {nodes: row_between(space, found, (sampled, per_node)) for nodes, sampled in starts(space.nodes)}
        fewest = min(rows)
        rules = {nodes * (least_per_node if nodes == fewest else per_node): row for nodes, row in rows.items()}
        tables.append(DecisionTable(space.collective, platform, least_per_node, source, made_by, rules))
    return tables


def starts(sampled: Sequence[int]) -> list[tuple[int, int]]:
    """For each sampled number, the least one that it decides for: from the geometric mean with the one before on."""
    ordered = sorted(sampled)
    return [
        (number if before is None else math.isqrt(before * number) + 1, number)
        for before, number in zip([None, *ordered], ordered, strict=False)
    ]


def row_between(space: Space, found: Found, place: tuple[int, int]) -> Row:
    """The choices for one number of nodes and processes on each, from the least sampled size on."""
    inputs = [Input(*place, size) for size in sorted(space.message_bytes)]
    row = [(inputs[0].message_bytes, found.best[inputs[0]])]
    for low, high in itertools.pairwise(inputs):
        if found.best[high] != row[-1][1]:
            row.append((_switch(space, found, low, high), found.best[high]))
    return tuple(row)


def _switch(space: Space, found: Found, low: Input, high: Input) -> int:
    """The size at which the choice of the larger input takes over from that of the smaller one."""
    leads = [
        math.log(_seconds(space, found, one, found.best[low]) / _seconds(space, found, one, found.best[high]))
        for one in (low, high)
    ]
    # The first is not above 0 and the second not below it, unless a search's best is not what it takes for the best.
    share = min(max(-leads[0] / (leads[1] - leads[0]), 0.0), 1.0) if leads[1] > leads[0] else 1.0
    size = low.message_bytes * (high.message_bytes / low.message_bytes) ** share
    return min(max(math.ceil(size), low.message_bytes + 1), high.message_bytes)


def _seconds(space: Space, found: Found, one: Input, choice: Choice) -> float:
    """The time of a configuration for an input; with segments larger than the message, of its equal that is sampled."""
    return found.seconds.get(Point(space.collective, one, at_size(space, choice, one.message_bytes)), math.nan)


def at_size(space: Space, choice: Choice, message_bytes: int) -> Choice:
    """The sampled configuration that does the same, or most nearly so, for a message of that size."""
    valid = space.choices(message_bytes)
    if choice in valid:
        return choice
    alike = [one for one in valid if (one.algorithm, one.fanout) == (choice.algorithm, choice.fanout)]

    def distance(one: Choice) -> tuple[float, float]:
        pieces = [min(each.limit_bytes or each.segment_bytes, message_bytes) for each in (one, choice)]
        segments = [min(each.segment_bytes, message_bytes) for each in (one, choice)]
        return (
            abs(math.log(segments[0] / segments[1])),
            abs(math.log(pieces[0] / pieces[1])),
        )

    return min(alike, key=distance)


def usual_choice(space: Space, found: Found) -> Choice:
    """The one configuration for all inputs with the least mean slowdown against the best, by a search's times."""
    best = {one: found.seconds[Point(space.collective, one, choice)] for one, choice in found.best.items()}

    def mean_slowdown(choice: Choice) -> float:
        return float(np.nanmean([_seconds(space, found, one, choice) / seconds for one, seconds in best.items()]))

    known = {point.choice for point in found.seconds}
    return min((one for one in space.choices(max(space.message_bytes)) if one in known), key=mean_slowdown)
