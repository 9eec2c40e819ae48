"""The adaptive search, which measures in each round the cases that inform most per second of machine time.

A round is one execution of MPI, which repeats each case a few times. The next case of a round is the one with the
largest expected gain divided by its time (the knowledge gradient). A measurement gains if it changes the choice at the
case's point. In the end the choice of every point has been measured.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from collwise.common.grouping import grouped
from collwise.models.piecewise import Array
from collwise.simulator.execution.launchers import LocalMachine
from collwise.simulator.execution.targets import ExecutionTarget
from collwise.simulator.limits import check_measured_sizes
from collwise.simulator.store import Store
from collwise.simulator.sweeps.method import MEDIAN_VARIANCE, USUAL_METHOD, Method, half_width
from collwise.simulator.sweeps.mpi_runner import MpiRunner
from collwise.simulator.sweeps.runner import Runner
from collwise.simulator.timing import Case, Configuration, Timing
from collwise.validation.adaptive import GOAL, Goal
from collwise.validation.adaptive.belief import Belief, Numbers, Predictions, expected_gain, piece_of

REPETITIONS, MAX_REPETITIONS = 3, 10
"""The minimum and maximum number of repetitions of a case in a round, after the untimed ones."""
_LAUNCH_SECONDS = 2.0
"""The assumed start-up time of an execution of MPI, which is used until an execution was timed."""
_ROUND_SHARE, _ROUND_LAUNCHES = 0.3, 3.0
"""A round takes this share of the time spent before, but at least this many times its start-up time."""
_CASE_SECONDS = 0.005
"""The assumed time of a case in addition to its repetitions."""
_MARGIN = 1.25
"""The time reserved for points without measurements, divided by the expected time of measuring them."""
_DEEPER = 0.5
"""A round is planned to reach this share of the wanted loss, so that few rounds are needed."""
_UNKNOWN_SECONDS = 0.01
"""The assumed time of a repetition before anything is known."""


@dataclass
class Spent:
    """The machine time of a search: of its executions of MPI, and of the repetitions that stored times come from."""

    seconds: float = 0.0
    rounds: int = 0
    repetitions: int = 0
    launch_seconds: float = _LAUNCH_SECONDS


@dataclass(frozen=True)
class PointFound:
    """A point, the choice among its measured cases, and its expected loss as a share of the best time.

    If nothing was measured at the point, `timing` is None and `loss` is nan.
    """

    collective: str
    procs: int
    message_bytes: int
    timing: Timing | None
    loss: float
    candidates: int
    measured: int


@dataclass(frozen=True)
class Searched:
    """The result of a search: its points, all timings, their machine time, and the machine time of the full grid.

    `full_seconds` is a lower bound on the machine time of the full grid, with the fewest repetitions of each case.
    """

    points: tuple[PointFound, ...]
    timings: Mapping[Case, Timing]
    cases: int
    spent: Spent
    full_seconds: float
    stopped: str
    configuration: Configuration

    @property
    def mean_loss(self) -> float:
        """The expected loss over all points that have a choice."""
        return float(np.mean([point.loss for point in self.points if point.timing is not None] or [math.nan]))

    @property
    def failed(self) -> list[Timing]:
        """The timings of cases that did not run."""
        return [timing for timing in self.timings.values() if not timing.ok]


@dataclass
class AdaptiveSearch:
    """A search over the cases of one or several collectives; `runner` times each case with a few repetitions.

    The store has the pooled times of all rounds under `configuration`, and a search that was stopped resumes from them.
    `usual` is the method by which the full grid would be measured, and `clock` gives the machine time.
    """

    runner: Runner
    configuration: Configuration
    cases: Sequence[Case]
    store: Store
    predictions: Sequence[Predictions] = ()
    goal: Goal = GOAL
    usual: Method = USUAL_METHOD
    clock: Callable[[], float] = time.monotonic
    on_round: Callable[[int, int, float], None] = lambda number, cases, spent: None
    _timings: dict[Case, Timing] = field(default_factory=dict, init=False)
    _spent: Spent = field(default_factory=Spent, init=False)
    _fields: list[_Field] = field(default_factory=list, init=False)
    # The time of the last round's repetitions divided by the time that the fewest repetitions would have taken.
    _overrun: float = field(default=1.0, init=False)

    def run(self) -> Searched:
        """Measures round by round. Raises the runner's errors; the store then has the times measured before."""
        wanted = set(self.cases)
        stored = self.store.timings(self.configuration)
        self._timings = {case: timing for case, timing in stored.items() if case in wanted and timing.ok}
        known = self._timings.values()
        self._spent.repetitions = sum(timing.repetitions for timing in known)
        self._spent.seconds = sum(timing.repetitions * self._repetition_cost(timing) for timing in known)
        by_collective = grouped(self.cases, lambda case: case.collective)
        self._fields = [_Field(cases, self.predictions) for cases in by_collective.values()]
        self._learn()
        stopped = "the budget is spent"
        while self._left() > 0:
            chosen = self._next_round()
            if not chosen:
                unmeasured = any(len(item.unmeasured()) for item in self._fields)
                if not (unmeasured or self._expected_loss() > self.goal.loss):
                    stopped = f"the choices are expected to lose at most {self.goal.loss * 100:g} % on average"
                break
            self._measure(chosen)
            self._learn()
        self._settle()
        return self._result(stopped)

    def _left(self) -> float:
        """The machine time that is left for cases, after the start of another round."""
        return self.goal.budget_seconds - self._spent.seconds - self._spent.launch_seconds

    def _learn(self) -> None:
        for item in self._fields:
            item.learn(self._timings)

    def _settle(self) -> None:
        """Gives every median a confidence interval, to which the spread of other cases contributes."""
        confidence = self.usual.precision.confidence
        for item in self._fields:
            for number in np.flatnonzero(item.measured).tolist():
                known = self._timings[item.cases[number]]
                width = item.half_width(number, known, confidence)
                self._timings[known.case] = replace(known, half_width_seconds=width)
        if self._timings:
            self.store.add(self.configuration, list(self._timings.values()))

    def _runs(self, repetitions: int) -> int:
        return repetitions + self.usual.warmup

    def _repetition_cost(self, timing: Timing) -> float:
        """The machine time of a repetition, including its share of the untimed repetitions."""
        return timing.seconds * self._runs(REPETITIONS) / REPETITIONS

    def _next_round(self) -> list[Case]:
        """The cases of the next round, the most informative first, within the time of a round and the budget."""
        undecided = [(item, number) for item in self._fields for number in item.undecided()]
        least = _ROUND_LAUNCHES * self._spent.launch_seconds
        kept = _MARGIN * sum(self._cost(one, number) for one, number in undecided) + self._spent.launch_seconds
        allowed = min(max(least, _ROUND_SHARE * self._spent.seconds), self._left() - kept)
        if not self._timings:
            allowed = min(self._left(), max(allowed, self._left() / 4)) if math.isfinite(self._left()) else math.inf
            return self._affordable([case for item in self._fields for case in item.first()], allowed)
        if self._expected_loss() > self.goal.loss and (chosen := self._telling(allowed)):
            return chosen
        confirming = undecided or [(item, number) for item in self._fields for number in item.unmeasured()]
        return self._affordable([one.cases[number] for one, number in confirming], self._left())

    def _telling(self, allowed: float) -> list[Case]:
        """The cases with the largest expected gain for their machine time, until the loss is small or time is up."""
        chosen: dict[Case, None] = {}
        telling = [item.most_telling() for item in self._fields]
        losses = [item.losses() for item in self._fields]
        while float(np.mean(np.concatenate(losses))) > self.goal.loss * _DEEPER:
            place = max(range(len(telling)), key=lambda place: telling[place][1])
            (number, value), best = telling[place], self._fields[place]
            allowed -= self._cost(best, number)
            if value <= 0 or allowed < 0:
                break
            chosen[best.cases[number]] = None
            best.take(number)
            telling[place], losses[place] = best.most_telling(), best.losses()
        return list(chosen)

    def _expected_loss(self) -> float:
        return float(np.mean(np.concatenate([item.losses() for item in self._fields])))

    def _affordable(self, cases: Sequence[Case], seconds: float) -> list[Case]:
        """The cases that together take at most `seconds`, the shortest first; in the first round at least one case."""
        numbered = ((item, number, case) for item in self._fields for number, case in enumerate(item.cases))
        costs = {case: self._cautious_cost(item, number) for item, number, case in numbered}
        kept: list[Case] = []
        for case in sorted(cases, key=lambda case: costs[case]):
            seconds -= costs[case]
            if seconds < 0 and (kept or self._timings):
                break
            kept.append(case)
        return kept

    def _cost(self, one: _Field, number: int) -> float:
        return self._overrun * (self._runs(REPETITIONS) * one.seconds(number) + _CASE_SECONDS)

    def _cautious_cost(self, one: _Field, number: int) -> float:
        """The cost of a case if its time exceeds the expectation by two standard deviations."""
        doubt = math.sqrt(max(float(one.covariance[number, number]), 0.0)) if self._timings else 0.0
        return self._cost(one, number) * math.exp(min(2 * doubt, 10.0))

    def _measure(self, chosen: Sequence[Case]) -> None:
        """Measures one round, and stores each case as soon as it is done, with its repetitions of earlier rounds."""
        self._spent.rounds += 1
        self.on_round(self._spent.rounds, len(chosen), self._spent.seconds)
        own = 0.0

        def keep(timing: Timing) -> None:
            nonlocal own
            before = self._timings.get(timing.case)
            known = pooled(before, timing, self.usual.precision.confidence)
            self._timings[timing.case] = known
            self.store.add(self.configuration, [known])
            if timing.ok:
                self._spent.repetitions += timing.repetitions
                own += timing.repetitions * self._repetition_cost(timing)

        begun = self.clock()
        try:
            self.runner.make(chosen, keep)
        finally:
            took = self.clock() - begun
            self._spent.seconds += took
        least = max(took - own, 0.0)
        known = [self._timings[case].seconds for case in chosen if self._timings[case].ok]
        planned = sum(self._runs(REPETITIONS) * seconds + _CASE_SECONDS for seconds in known)
        self._overrun = max(1.0, own / planned) if known else self._overrun
        self._spent.launch_seconds += (least - self._spent.launch_seconds) / self._spent.rounds

    def _result(self, stopped: str) -> Searched:
        repetitions = self._runs(self.usual.precision.min_repetitions)
        seconds = sum(item.seconds(number) for item in self._fields for number in range(len(item.cases)))
        full_seconds = self.usual.launches * (repetitions * seconds + self._spent.launch_seconds)
        points = tuple(found for item in self._fields for found in item.found(self._timings))
        return Searched(
            points,
            dict(self._timings),
            len(self.cases),
            self._spent,
            full_seconds,
            stopped,
            self.configuration,
        )


class _Field(Belief):
    """The candidates of one collective at all its points, and the expected gains of measuring them."""

    def __init__(self, cases: Sequence[Case], predictions: Sequence[Predictions]) -> None:
        super().__init__(cases, predictions, REPETITIONS)
        self._members = [np.flatnonzero(self.point == place) for place in range(len(self.points))]
        self._every = np.arange(len(cases))
        self._taken = np.zeros(len(cases), dtype=bool)
        # The number of the case that looks best, by point.
        self._leading = self._best_by(self.mean)

    def _best_by(self, values: Array) -> Numbers:
        """The number of the first case with the smallest value, by point."""
        return np.array([members[np.argmin(values[members])] for members in self._members], dtype=np.intp)

    def seconds(self, number: int) -> float:
        """The expected seconds of a case; 0 for one that failed."""
        if self.out[number]:
            return 0.0
        return math.exp(min(float(self.mean[number]), 10.0)) if self.is_informed else _UNKNOWN_SECONDS

    def learn(self, timings: Mapping[Case, Timing]) -> None:
        """Takes measured times into account, and starts an empty round."""
        super().learn(timings)
        self._leading = self._best_by(np.where(self.out, np.inf, self.mean))
        self._taken[:] = False

    def take(self, number: int) -> None:
        """Adds a case to the round."""
        self._taken[number] = True
        self.imagine(number, REPETITIONS)

    def _rivalry(self, leaders: Numbers) -> tuple[Numbers, Array, Array]:
        """The leader at each case's point, how far the case is behind the leader, and the covariance of the two."""
        leader = leaders[self.point]
        return leader, self.mean - self.mean[leader], self.covariance[self._every, leader]

    def losses(self, leaders: Numbers | None = None) -> Array:
        """The expected loss of each point's leader against its strongest rival, as a share."""
        leader, behind, together = self._rivalry(self._leading if leaders is None else leaders)
        own = np.diag(self.covariance)
        deviation = np.sqrt(np.maximum(own + own[leader] - 2 * together, 0.0))
        gains = np.where(self.out | (self._every == leader), 0.0, expected_gain(behind, deviation))
        found = np.zeros(len(self.points))
        np.maximum.at(found, self.point, gains)
        return found

    def unmeasured(self) -> Numbers:
        """The cases that look best at their points and have no measured time."""
        return self._leading[~(self.measured | self.out)[self._leading]]

    def undecided(self) -> Numbers:
        """The cases that look best at points where nothing is measured."""
        known = np.array([self.measured[members].any() for members in self._members])
        return self._leading[~(known | self.out[self._leading])]

    def _values(self) -> Array:
        """The expected gain of measuring each case at its point."""
        leader, behind, together = self._rivalry(self._leading)
        own, variance = np.diag(self.covariance), self.visit_variance(REPETITIONS)
        rivals = ~self.out & (self._every != leader)
        by_rival = np.abs(own - together) / np.sqrt(own + variance)
        by_leader = np.abs(own[leader] - together) / np.sqrt(own[leader] + variance[leader])
        values = np.where(rivals, expected_gain(behind, by_rival), 0.0)
        of_leader = np.where(rivals, expected_gain(behind, by_leader), 0.0)
        np.maximum.at(values, leader, of_leader)
        values[self._taken] = 0.0
        return values

    def most_telling(self) -> tuple[int, float]:
        """The case with the largest expected gain for its machine time, and the ratio of the two."""
        ratios = self._values() / (np.exp(np.minimum(self.mean, 10.0)) + _CASE_SECONDS / REPETITIONS)
        number = int(np.argmax(ratios))
        return number, float(ratios[number])

    def first(self) -> list[Case]:
        """The first cases to measure, at two sizes: each algorithm's predicted best, or without predictions all."""
        cases = self.cases
        sizes = sorted({case.message_bytes for case in cases})
        counts = {min(case.procs for case in cases), max(case.procs for case in cases)}
        wanted = {sizes[0], sizes[len(sizes) // 2]}
        found: dict[object, int] = {}
        for number, case in enumerate(cases):
            if case.procs not in counts or case.message_bytes not in wanted:
                continue
            cut = () if self.predicted else (piece_of(case), case.parameter, case.limit_bytes)
            key = (case.algorithm, *cut, case.procs, case.message_bytes)
            if key not in found or self.mean[number] < self.mean[found[key]]:
                found[key] = number
        return [cases[number] for number in found.values()]

    def found(self, timings: Mapping[Case, Timing]) -> list[PointFound]:
        """The points in their order, each with the measured choice and its expected loss."""
        known = [timings[case] if has else None for case, has in zip(self.cases, self.measured, strict=True)]
        leaders = self._best_by(np.array([math.inf if item is None else item.seconds for item in known]))
        losses = self.losses(leaders)
        found = []
        for point, members, number, loss in zip(self.points, self._members, leaders, losses, strict=True):
            counts = (len(members), int(self.measured[members].sum()))
            lost = float(loss) if known[number] else math.nan
            found.append(PointFound(self.cases[number].collective, *point, known[number], lost, *counts))
        return found


def search_on(
    target: ExecutionTarget,
    cases: Sequence[Case],
    store: Store,
    predictions: Sequence[Predictions],
    goal: Goal,
    method: Method,
    on_round: Callable[[int, int, float], None],
) -> Searched:
    """Runs a search on an execution target; `method` is the method by which the full grid would be measured.

    Raises the errors of measuring on the target.
    """
    check_measured_sizes(cases, isinstance(target, LocalMachine))
    few = replace(method.precision, min_repetitions=REPETITIONS, max_repetitions=MAX_REPETITIONS)
    runner = MpiRunner(target, replace(method, precision=few, keep_samples=True))
    made = runner.configuration
    repetitions = f"adaptive, {REPETITIONS} to {MAX_REPETITIONS} in a round, their median"
    details = {**dict(made.details), "repetitions": repetitions}
    configuration = replace(made, details=tuple(sorted(details.items())))
    return AdaptiveSearch(runner, configuration, cases, store, predictions, goal, usual=method, on_round=on_round).run()


def pooled(before: Timing | None, new: Timing, confidence: float = 0.95) -> Timing:
    """The median of all repetitions of a case, with its interval; if the new round failed, the case failed."""
    if not new.ok or not new.samples:
        return new
    earlier = before if before is not None and before.ok else None
    samples = (*(earlier.samples or () if earlier else ()), *new.samples)
    return replace(
        new,
        seconds=float(np.median(samples)),
        half_width_seconds=math.sqrt(MEDIAN_VARIANCE) * half_width(samples, confidence),
        repetitions=len(samples),
        median_seconds=float(np.median(samples)),
        least_seconds=min(samples),
        greatest_seconds=max(samples),
        late_starts=new.late_starts + (earlier.late_starts if earlier else 0),
        samples=samples,
    )
