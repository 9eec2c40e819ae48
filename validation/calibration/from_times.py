"""Fits the figures of platforms (figures.py) to measured times of collectives and of messages between two nodes.

The times are those of one machine, or of several machines together.

A factor multiplies each figure. The factor's logarithm has a normal prior about 0 with the figure's spread. If there
are several machines, each has its own factors, which scatter about common factors with the same spread. The common
factors are the expectation for any other machine.

The schedule engine predicts the cases, and a robust fit minimises the differences of the logarithms of times. A cell
contains the cases of one collective, P and size. Each cell enters the fit with the mean difference over its algorithms,
and with each algorithm's deviation from this mean; the deviations decide about choices. The cells of a collective on a
machine have similar errors, so all of them together count as one observation with the error ERROR. The eager messages
of a kind also count as one observation, and so do the longer messages, both with the smaller error MESSAGE_ERROR.

To choose what to measure next, the logarithms of the figures are assumed to have normal errors. In each cell the two
algorithms that are predicted fastest compete. Since figures have errors, the second may be the faster one. The expected
loss follows from the normal distribution of the logarithm of the ratio of the two times. A measured time, which itself
has the error ERROR, reduces the uncertainty of the figures as in linear regression. The measurements are chosen one
after another: each is the best one once those before it are known.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import UsageError
from collwise.common.experiments import PRTT, ROUNDTRIP, SATURATION
from collwise.common.grouping import grouped
from collwise.models.piecewise import Array
from collwise.platforms import Platform
from collwise.simulator.schedule.live import LiveCases
from collwise.simulator.schedule.networks import network_tables
from collwise.simulator.schedule.shared import recorded
from collwise.simulator.sweeps.played_experiments import PlayedExperiments
from collwise.simulator.timing import Case
from collwise.validation.calibration.figures import FIGURES, Factors, multiplied, present

ERROR = 0.3
"""The error of the engine on a collective: the standard deviation of its times' logarithms."""
MESSAGE_ERROR = 0.05
"""The same error for messages between two nodes, whose times follow directly from the figures."""
MESSAGES = {ROUNDTRIP: "latency", SATURATION: "stream", PRTT: "PRTT"}
"""The kinds of messages between two nodes that are fitted, by experiment."""
_JUMP, _TOLD = 0.25, 0.5
_ROBUST = 0.5
_STEP = 0.02
_MAX_MESSAGES = 100_000
"""Cases of more messages take too long to be played hundreds of times."""

Cell = tuple[str, int, int]
"""A collective or a kind of messages, P, and a message size."""


@dataclass(frozen=True)
class TimedCases:
    """The measured seconds of cases on a platform; their schedules are recorded once.

    All cases have the same number of processes on each node. The cases are collectives, and experiments between two
    nodes (MESSAGES).
    """

    platform: Platform
    measured: Mapping[Case, float]
    processes_per_node: int = 1

    @cached_property
    def cases(self) -> tuple[Case, ...]:
        """The cases that are played, in a fixed order: cases with few messages that fit on the platform."""
        return tuple(case for case in self.measured if self._is_played(case))

    @cached_property
    def seconds(self) -> Array:
        """The measured seconds of `cases`, in the same order."""
        return np.array([self.measured[case] for case in self.cases])

    @cached_property
    def cells(self) -> dict[Cell, list[int]]:
        """The indices of each cell's cases."""
        return grouped(range(len(self.cases)), lambda place: cell_of(self.cases[place]))

    def on(self, platform: Platform) -> Array:
        """The predicted seconds of the cases on a platform."""
        found = np.empty(len(self.cases))
        found[~self.are_messages] = self._live.times(
            lambda procs, sizes: network_tables(platform, procs, self.processes_per_node, sizes), every=True
        ).seconds
        if self.are_messages.any():
            # Benchmarks of streams send by MPI_Isend; netgauge does not.
            played = PlayedExperiments(platform)
            messages = (case for case in self.cases if case.experiment in MESSAGES)
            found[self.are_messages] = [played.seconds(case, case.experiment == SATURATION) for case in messages]
        return found

    @cached_property
    def are_messages(self) -> npt.NDArray[np.bool_]:
        """True for each case that is a message between two nodes."""
        return np.array([case.experiment in MESSAGES for case in self.cases], bool)

    @cached_property
    def _live(self) -> LiveCases:
        collectives = [case for case in self.cases if case.experiment not in MESSAGES]
        return LiveCases(collectives, lambda procs: None, exact=True)

    def only(self, cells: Container[Cell]) -> TimedCases:
        """The cases of some cells."""
        some = {case: seconds for case, seconds in self.measured.items() if cell_of(case) in cells}
        return replace(self, measured=some)

    def _is_played(self, case: Case) -> bool:
        if case.experiment in MESSAGES:
            return self.platform.nodes > 1
        entry = Catalogue.load().find(case.collective, case.algorithm)
        if entry is None or entry.by_node or case.processes_per_node != self.processes_per_node:
            return False
        if not 2 <= case.procs <= self.platform.max_procs(self.processes_per_node):
            return False
        return recorded(case, None)[0].messages <= _MAX_MESSAGES


def cell_of(case: Case) -> Cell:
    """The cell of a case."""
    return MESSAGES.get(case.experiment, case.collective), case.procs, case.message_bytes


@dataclass(frozen=True)
class Fitted:
    """The common factors, each machine's factors, and standard deviations of the logarithms of a machine's factors.

    `covariance` is the covariance of the logarithms of the common factors, in the order of `common`.
    """

    common: Factors
    of_machine: Mapping[str, Factors]
    deviations: Mapping[str, Mapping[str, float]]
    covariance: Array

    def interval(self, machine: str, name: str) -> tuple[float, float]:
        """The 95 % interval of a machine's factor."""
        middle, width = self.of_machine[machine][name], math.exp(1.96 * self.deviations[machine][name])
        return middle / width, middle * width

    def tells(self, machine: str, name: str) -> bool:
        """True if the times determine a figure: less than half of its spread is left, or the interval excludes 1."""
        low, high = self.interval(machine, name)
        return self.deviations[machine][name] < _TOLD * FIGURES[name].spread or not low <= 1 <= high


def fit(machines: Mapping[str, Sequence[TimedCases]]) -> Fitted:
    """Fits the common factors, and each machine's own factors, to the times of machines.

    `machines` has the timed cases of each machine. If there is only one machine, its factors are the common ones.
    """
    from scipy.optimize import least_squares

    for name, runs in machines.items():
        if not any(run.cases for run in runs):
            raise UsageError(f"{name}: the engine can play none of the timed cases, neither messages nor collectives")
    names = _fitted_names(machines)
    spreads = np.array([FIGURES[name].spread for name in names])
    alone = len(machines) == 1
    first = next(iter(machines))
    memo: dict[tuple[str, bytes], Array] = {}

    def misfit(machine: str, logs: Array) -> Array:
        key = machine, logs.tobytes()
        if key not in memo:
            memo[key] = _misfit(machines[machine], _factors(names, logs))
        return memo[key]

    def split(every: Array) -> tuple[Array, dict[str, Array]]:
        if alone:
            return every, {first: np.zeros(len(names))}
        parts = every.reshape(-1, len(names))
        return parts[0], dict(zip(machines, parts[1:], strict=True))

    def residuals(every: Array) -> Array:
        common, own = split(every)
        priors = [common / spreads, *([] if alone else [values / spreads for values in own.values()])]
        return np.concatenate([misfit(machine, common + values) for machine, values in own.items()] + priors)

    start = np.zeros(len(names) * (1 if alone else 1 + len(machines)))
    solved = least_squares(residuals, start, loss="soft_l1", f_scale=_ROBUST, diff_step=_STEP, x_scale=1.0, max_nfev=25)
    common, own = split(solved.x)
    covariance = np.linalg.inv(solved.jac.T @ solved.jac)
    return Fitted(
        _factors(names, common),
        {machine: _factors(names, common + values) for machine, values in own.items()},
        {
            machine: dict(zip(names, _deviations(covariance, len(names), 0 if alone else place), strict=True))
            for place, machine in enumerate(machines, 1)
        },
        covariance[: len(names), : len(names)],
    )


def _fitted_names(machines: Mapping[str, Sequence[TimedCases]]) -> list[str]:
    """The figures that all platforms have. Figures of reductions or copies stay fixed if no case reduces or copies."""
    has = [set(present(run.platform)) for runs in machines.values() for run in runs if run.cases]
    return [name for name in FIGURES if all(name in item for item in has)]


def _factors(names: Sequence[str], logs: Array) -> Factors:
    return dict(zip(names, np.exp(logs).tolist(), strict=True))


def _deviations(covariance: Array, count: int, place: int) -> list[float]:
    """Standard deviations of the first block of variables plus the block at `place`; a `place` of 0 adds nothing."""
    chosen = np.zeros((count, len(covariance)))
    chosen[:, :count] = np.eye(count)
    if place:
        chosen[:, place * count : (place + 1) * count] = np.eye(count)
    found: list[float] = np.sqrt(np.diag(chosen @ covariance @ chosen.T)).tolist()
    return found


def _misfit(runs: Sequence[TimedCases], factors: Factors) -> Array:
    """Weighted log ratios of predicted to measured times: each cell's deviations from its mean, then the mean."""
    found: list[Array] = []
    alike: list[tuple[str, bool]] = []
    for run in runs:
        if not run.cases:
            continue
        off = np.log(np.maximum(run.on(multiplied(run.platform, factors)), 1e-12)) - np.log(run.seconds)
        for cell, places in run.cells.items():
            mean = off[places].mean()
            found.append(np.append((off[places] - mean) / math.sqrt(len(places)), mean))
            long = run.are_messages[places[0]] and cell[2] >= run.platform.calibration.eager_limit_bytes
            alike.append((cell[0], bool(long)))
    counts = Counter(alike)
    errors = [MESSAGE_ERROR if entry[0] in MESSAGES.values() else ERROR for entry in alike]
    weights = [1 / (error * math.sqrt(counts[entry])) for error, entry in zip(errors, alike, strict=True)]
    return np.concatenate([weight * item for weight, item in zip(weights, found, strict=True)])


@dataclass(frozen=True)
class PredictedCells:
    """The relative errors of predicted times, and the regrets of the choices by them."""

    errors: Sequence[float]
    regrets: Sequence[float]


def check(runs: Iterable[TimedCases], factors: Factors) -> PredictedCells:
    """The errors of predicted times, and the regret of the case predicted fastest in each cell with several cases."""
    errors: list[float] = []
    regrets: list[float] = []
    for run in runs:
        if not run.cases:
            continue
        predicted = run.on(multiplied(run.platform, factors))
        errors += np.abs(predicted / run.seconds - 1).tolist()
        for places in run.cells.values():
            if len(places) > 1:
                measured = run.seconds[places]
                regrets.append(float(measured[predicted[places].argmin()] / measured.min() - 1))
    return PredictedCells(errors, regrets)


def without_each_collective(machine: str, runs: Sequence[TimedCases]) -> dict[str, PredictedCells]:
    """The cells of each collective, predicted by a fit to the other collectives; empty for a single collective."""
    every = sorted({name for run in runs for name, _, _ in run.cells})
    found = {}
    for left in every if len(every) > 1 else []:
        others = [run.only({cell for cell in run.cells if cell[0] != left}) for run in runs]
        own = [run.only({cell for cell in run.cells if cell[0] == left}) for run in runs]
        if any(run.cases for run in others):
            found[left] = check(own, fit({machine: others}).of_machine[machine])
    return found


def jump(messages: Mapping[Case, float]) -> tuple[int, float] | None:
    """The size at which the latency curve has its largest jump, and the jump relative to the time before it.

    The largest jump is the step that rises most above the slopes of both neighbouring steps. The result is None if no
    jump is at least a quarter of the time before it.
    """
    seconds = {case.message_bytes: message for case, message in messages.items() if case.experiment == ROUNDTRIP}
    sizes = sorted(seconds)
    slopes = [(seconds[more] - seconds[less]) / (more - less) for less, more in pairwise(sizes)]
    found = []
    for place in range(1, len(slopes) - 1):
        less, more = sizes[place], sizes[place + 1]
        usual = max(slopes[place - 1], slopes[place + 1], 0.0)
        found.append(((slopes[place] - usual) * (more - less) / seconds[less], more))
    further, size = max(found, default=(0.0, 0))
    return (size, further) if further >= _JUMP else None


_FIGURE_STEP = 0.05
_MIN_ERROR = 1e-9


def most_telling(platform: Platform, fitted: Fitted, cases: Sequence[Case], count: int = 5) -> list[Case]:
    """The cases to measure first, at most `count`, on a platform with the factors of a fit.

    Cases whose measurement would change nothing are left out.
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
        gains = np.array([lost - value for value in after])
        gains[chosen] = 0.0
        best = int(gains.argmax())
        if gains[best] <= 0:
            break
        chosen.append(best)
        known = _narrowed(known, slopes[best])
    return [timed.cases[place] for place in chosen]


def _slopes(timed: TimedCases, fitted: Fitted) -> tuple[Array, Array]:
    """The logarithms of predicted times, and their derivatives by figures' logarithms, shape (cases, figures)."""
    middle = np.log(timed.on(multiplied(timed.platform, fitted.common)))
    columns = []
    for name, factor in fitted.common.items():
        more = multiplied(timed.platform, {**fitted.common, name: factor * np.exp(_FIGURE_STEP)})
        columns.append((np.log(timed.on(more)) - middle) / _FIGURE_STEP)
    return middle, np.array(columns).T


def _narrowed(covariance: Array, slope: Array) -> Array:
    """The covariance after a case with these slopes was measured."""
    towards = covariance @ slope
    found: Array = covariance - np.outer(towards, towards) / (slope @ towards + ERROR**2)
    return found


def _expected_loss(ahead: Array, contrasts: Array, covariance: Array) -> float:
    """The expected loss of each cell's first choice, summed over cells; a loss is the logarithm of a ratio of times."""
    from scipy.stats import norm

    errors = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", contrasts, covariance, contrasts), _MIN_ERROR**2))
    sure = ahead / errors
    return float(np.sum(errors * (norm.pdf(sure) - sure * norm.sf(sure))))
