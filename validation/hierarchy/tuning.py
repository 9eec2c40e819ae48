"""Autotuning of hierarchical collectives: searches, their scores, and decisions for all inputs between sampled ones.

Two searches are from Luo et al. 2020, section III-C: `exhaustive` times every configuration for every input; `tasks`
times only tasks, from which the cost model computes whole collectives of any size. The third, `predict`, times few
whole collectives:

1. The schedule engine predicts every configuration for every input.
2. Measured times correct the predictions for similar cases, and show how uncertain all other predictions are
   (`Corrected`).
3. Each round times the cases with the largest expected improvement per machine time. These are mostly short messages;
   their times also correct the predictions for long ones.
4. The search ends when no case is worth its time any more, or when its budget is spent. The budget is a share of the
   exhaustive search's cost, which is estimated from the corrected predictions.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from collwise.common.errors import CollwiseError, UsageError
from collwise.simulator.bench import Timer
from collwise.simulator.timing import Case, Timing
from collwise.validation.hierarchy.corrected import Corrected
from collwise.validation.hierarchy.cost_model import ByTasks
from collwise.validation.hierarchy.space import BUDGET, EXHAUSTIVE, PREDICT, SEGMENTS, Input, Space, by_input
from collwise.validation.select.decisions import DecisionTable, Row
from collwise.validation.times.choice import Choice
from collwise.validation.times.grid import Grid, choice_of
from collwise.validation.times.slowdown import slowdown, summary_of
from collwise.validation.times.times import MEASURED_UNDER, Times

MIN_GAIN = 1e-5
"""A benchmark is made only if choices are expected to become faster by this share, on average over the inputs."""

_FIRST_ROUND, _FURTHER_ROUNDS = 1 / 32, 0.5
"""The first round's time, relative to the budget, and a further round's, relative to all time spent before."""


@dataclass
class Billed:
    """A timer that adds up the machine time of one search. Each benchmark counts only once."""

    timer: Timer
    timings: dict[Case, Timing] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """The machine time of all benchmarks, repetitions included."""
        return sum(timing.seconds * timing.repetitions for timing in self.timings.values())

    @property
    def repetitions(self) -> float:
        """The mean number of repetitions, weighted by the time of a single one."""
        once = sum(timing.seconds for timing in self.timings.values())
        return self.seconds / once if once > 0 else 1.0

    def time(self, cases: Sequence[Case], /) -> Mapping[Case, Timing]:
        """The timings of cases. Raises CollwiseError if a case fails."""
        found = self.timer.time(cases)
        for case in cases:
            if not found[case].ok:
                raise CollwiseError(
                    f"{case.collective} {case.algorithm} on {case.procs} processes failed: {found[case].error}"
                )
        self.timings.update((case, found[case]) for case in cases)
        return found


@dataclass(frozen=True)
class Found:
    """The result of a search, and its cost.

    `seconds` is the time that the search assumes for every configuration that it considers.
    """

    search: str
    seconds: Mapping[Case, float]
    bill: Billed

    @cached_property
    def by_input(self) -> dict[Input, dict[Choice, float]]:
        """The seconds of each configuration for each input."""
        groups = by_input(self.seconds).items()
        return {one: {choice_of(case): self.seconds[case] for case in cases} for one, cases in groups}

    @cached_property
    def best(self) -> dict[Input, Choice]:
        """The best configuration for each input."""
        return {one: min(seconds, key=seconds.__getitem__) for one, seconds in self.by_input.items()}


def search(
    name: str,
    cases: Sequence[Case],
    timer: Timer,
    predictor: Timer | None = None,
    budget: float = BUDGET,
    max_tasks: int = SEGMENTS,
) -> Found:
    """Runs the search of that name over the cases; `predictor` and `budget` are for the search 'predict'.

    The search 'tasks' times tasks with at most `max_tasks` segments. Raises CollwiseError if a benchmark fails, and
    ValueError if the search 'predict' has no predictor.
    """
    bill = Billed(timer)
    if name == PREDICT:
        return Found(name, _predicted_and_corrected(cases, bill, predictor, budget), bill)
    timings = (bill if name == EXHAUSTIVE else ByTasks(bill, max_tasks)).time(cases)
    return Found(name, {case: timings[case].seconds for case in cases}, bill)


def _predicted_and_corrected(
    cases: Sequence[Case], bill: Billed, predictor: Timer | None, budget: float
) -> Mapping[Case, float]:
    """The predictions for all cases, corrected by the measured times of the few that are worth a benchmark."""
    if predictor is None:
        raise ValueError("the search 'predict' needs predictions")
    predictions = Corrected(search(EXHAUSTIVE, cases, predictor).seconds)
    while True:
        spent = bill.seconds / bill.repetitions
        whole = budget * predictions.min_sum_of_seconds()
        round_seconds = max(_FIRST_ROUND * whole, _FURTHER_ROUNDS * spent)
        chosen = predictions.most_telling(round_seconds, whole - spent, MIN_GAIN * predictions.inputs)
        if not chosen:
            return predictions.seconds
        bill.time(chosen)
        predictions.add({case: bill.timings[case] for case in chosen})


@dataclass(frozen=True)
class SearchScore:
    """The cost of a search and the slowdowns of its choices, compared with timing every configuration.

    `cost` is the search's machine time relative to that of the exhaustive search. `best_found` is the number of inputs
    with the best choice, `mean` and `worst` are the mean and the largest slowdown of the choices, and `median_error` is
    the median error of the times that the search assumes. Slowdowns and error are nan unless the times of all
    configurations are known.
    """

    search: str
    benchmarks: int
    machine_seconds: float
    cost: float
    inputs: int
    best_found: int = 0
    mean: float = math.nan
    worst: float = math.nan
    worst_at: Input | None = None
    median_error: float = math.nan


@dataclass(frozen=True)
class Tuning:
    """Results of searches in a space, by the searches' names; the last search decides.

    `truth`, if known, contains the times of all configurations, which serve to judge choices. `exhaustive_seconds` is
    the machine time of the exhaustive search; if that search was not made, its time is estimated from the times that
    another search assumes for all configurations. `source` and `maker` say where the times come from (see `Times`).
    """

    space: Space
    found: dict[str, Found]
    truth: Found | None
    exhaustive_seconds: float
    platform: str = ""
    source: str = "simulated"
    maker: str = ""

    @property
    def is_estimate(self) -> bool:
        """True if the exhaustive search was not made."""
        return EXHAUSTIVE not in self.found

    @property
    def last(self) -> Found:
        """The result of the last search."""
        return next(reversed(self.found.values()))

    @cached_property
    def scores(self) -> tuple[SearchScore, ...]:
        """The scores of the searches."""
        return tuple(map(self._score, self.found.values()))

    def _score(self, found: Found) -> SearchScore:
        seconds, inputs = found.bill.seconds, list(found.best)
        cost = seconds / self.exhaustive_seconds if self.exhaustive_seconds > 0 else math.nan
        start = (found.search, len(found.bill.timings), seconds, cost, len(inputs))
        if self.truth is None:
            return SearchScore(*start)
        lost = summary_of(list(slowdowns(found, self.truth).values()), tolerance=0.0)
        errors = [abs(assumed / self.truth.seconds[case] - 1) for case, assumed in found.seconds.items()]
        return SearchScore(
            *start, lost.best_chosen, lost.mean, lost.worst, inputs[lost.worst_at[0]], float(np.median(errors))
        )


def slowdowns(found: Found, truth: Found) -> dict[Input, float]:
    """The slowdown of a search's choice for each input, against the best configuration for that input."""
    actual = truth.by_input
    return {
        one: float(slowdown(actual[one][choice], actual[one][truth.best[one]])) for one, choice in found.best.items()
    }


def tune(
    space: Space,
    searches: Sequence[str],
    timer: Timer,
    predictor: Timer | None = None,
    budget: float = BUDGET,
    true: Timer | None = None,
    max_tasks: int = SEGMENTS,
    **names: str,
) -> Tuning:
    """Runs the searches of these names; `predictor` and `budget` are for the search 'predict'.

    Choices are judged by the timer `true` if there is one, else by the times of the exhaustive search. `names` are the
    result's `platform`, `source` and `maker`. Raises CollwiseError if a benchmark fails.
    """
    cases = space.cases()
    found = {name: search(name, cases, timer, predictor, budget, max_tasks) for name in searches}
    made = found.get(EXHAUSTIVE)
    seconds = made.bill.seconds if made is not None else _estimate(list(found.values()))
    truth = made if true is None else search(EXHAUSTIVE, cases, true)
    return Tuning(space, found, truth, seconds, **names)


def _estimate(found: Sequence[Found]) -> float:
    """The cost of the exhaustive search, estimated from a search that assumes times of all configurations."""
    # 'tasks' is preferred: it timed each configuration's tasks, while 'predict' only predicted most configurations.
    nearest = min(found, key=lambda item: item.search == PREDICT)
    return sum(nearest.seconds.values()) * nearest.bill.repetitions


# --- Between sampled inputs -------------------------------------------------------------------------------------------


def decision_tables(tuning: Tuning) -> list[DecisionTable]:
    """Decisions that the last search implies for all inputs, with a table for each p.

    Between two message sizes, the choice for the larger size takes over at the size at which the times of the two
    choices, interpolated linearly in logarithms, are equal. An input between two sampled node counts takes the decision
    of the one that is nearer in proportion; the same holds for processes per node. A row starts at
    P = nodes x p, where p is the table's sampled value; in the first row, p is the smallest that the table covers.
    """
    space, found = tuning.space, tuning.last
    is_measured = tuning.source == "measured"
    # A measured search fills in some times without measuring them, so the intervals of all count as unknown.
    width = math.inf if is_measured else 0.0
    timings = {case: Timing(case, seconds, half_width_seconds=width) for case, seconds in found.seconds.items()}
    choices = tuple(dict.fromkeys(map(choice_of, timings)))
    what = f"search tasks, {found.search}"
    made_by = f"{MEASURED_UNDER} {tuning.maker}, {what}" if is_measured else f"{what}, {tuning.maker}"
    tables = []
    for min_per_node, per_node in starts(space.processes_per_node):
        rows = {nodes: row_between(space, found, (sampled, per_node)) for nodes, sampled in starts(space.nodes)}
        fewest = min(rows)
        rules = {nodes * (min_per_node if nodes == fewest else per_node): row for nodes, row in rows.items()}
        procs = tuple(sorted(nodes * per_node for nodes in space.nodes))
        grid = Grid(space.collective, choices, procs, tuple(sorted(space.message_bytes)), per_node)
        times = Times.of_timings(grid, timings, tuning.platform, tuning.source, tuning.maker)
        where = (tuning.platform, min_per_node, tuning.source)
        tables.append(DecisionTable(space.collective, *where, made_by, rules, times))
    return tables


def starts(sampled: Sequence[int]) -> list[tuple[int, int]]:
    """Pairs (smallest, sampled): the smallest number for which a sampled number decides, and the sampled number.

    The smallest is just above the geometric mean of the sampled number and the sampled number before it. The first
    sampled number decides only from itself on.
    """
    ordered = sorted(sampled)
    return [
        (number if before is None else math.isqrt(before * number) + 1, number)
        for before, number in zip([None, *ordered], ordered, strict=False)
    ]


def row_between(space: Space, found: Found, place: tuple[int, int]) -> Row:
    """The choices for one number of nodes and of processes per node, starting at the smallest sampled size."""
    inputs = [Input(*place, size) for size in sorted(space.message_bytes)]
    row = [(inputs[0].message_bytes, found.best[inputs[0]])]
    for low, high in itertools.pairwise(inputs):
        if found.best[high] != row[-1][1]:
            row.append((_switch(found, low, high), found.best[high]))
    return tuple(row)


def _switch(found: Found, low: Input, high: Input) -> int:
    """The size at which the choice of the larger input takes over from that of the smaller one."""
    leads = []
    for item in (low, high):
        seconds = found.by_input[item]
        lower, upper = (seconds[at_size(seconds, found.best[each], item.message_bytes)] for each in (low, high))
        leads.append(math.log(lower / upper))
    # leads[0] <= 0 <= leads[1] if each input's best choice has the smallest time.
    share = min(max(-leads[0] / (leads[1] - leads[0]), 0.0), 1.0) if leads[1] > leads[0] else 1.0
    size = low.message_bytes * (high.message_bytes / low.message_bytes) ** share
    return min(max(math.ceil(size), low.message_bytes + 1), high.message_bytes)


def at_size(sampled: Collection[Choice], choice: Choice, message_bytes: int) -> Choice:
    """The sampled configuration that does the same as `choice`, or nearly so, for a message of that size."""
    if choice in sampled:
        return choice
    alike = [item for item in sampled if (item.algorithm, item.parameter) == (choice.algorithm, choice.parameter)]

    def distance(one: Choice) -> tuple[float, float]:
        pieces = [min(each.limit_bytes or each.segment_bytes, message_bytes) for each in (one, choice)]
        segments = [min(each.segment_bytes, message_bytes) for each in (one, choice)]
        return (
            abs(math.log(segments[0] / segments[1])),
            abs(math.log(pieces[0] / pieces[1])),
        )

    return min(alike, key=distance)


def usual_choice(tables: Sequence[DecisionTable]) -> Choice:
    """The configuration with the smallest mean slowdown for all inputs. Raises UsageError for tables without times."""
    every = [
        (size, table.times.at_point(procs, size))
        for table in tables
        if table.times is not None
        for procs, size in table.times.grid.points
    ]
    if not every:
        raise UsageError(
            f"these decisions of {tables[0].collective} include no times, so the best choice for all sizes is not known"
        )

    def mean_slowdown(choice: Choice) -> float:
        ratios = [seconds[at_size(seconds, choice, size)] / min(seconds.values()) for size, seconds in every]
        return float(np.mean(ratios))

    return min(max(every, key=lambda entry: entry[0])[1], key=mean_slowdown)
