"""The confidence in choices by predicted times, from the errors that predictions had on measured machines.

The discrepancy of a cell is ln(measured / predicted) for each of the cell's candidates. It has a multivariate Student t
distribution, and is the sum of three deviations: each algorithm's own, one proportional to the logarithm of the number
of messages of the busiest process, and one proportional to the logarithm of the predicted time. Their scales are the
most likely ones under a wide prior; each job counts once.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from collwise.common.errors import UsageError
from collwise.models.piecewise import Array
from collwise.simulator.schedule.bounds import busiest_messages
from collwise.simulator.schedule.pipelines import bytes_a_step
from collwise.simulator.schedule.shared import recorded
from collwise.simulator.sweeps.context import ShowProgress, without_progress
from collwise.simulator.timing import Case
from collwise.validation.measurement.judging import PREDICTED, Cell
from collwise.validation.select.decisions import DIGITS, DecisionTable, is_doubtful
from collwise.validation.times.choice import LIBRARY_DECIDES, Choice
from collwise.validation.times.grid import case_of
from collwise.validation.times.times import Times

SURE, CLOSE = 0.9, 0.05
"""A choice is called sure if it loses less than 5 % (CLOSE) with at least this probability (SURE)."""
BY_MEAN, ROBUST = "least mean loss", "robust"
"""The deciders that use the discrepancy: they choose the least mean loss, or the least 95th percentile of the loss."""
_DRAWS, _SEED = 2000, 1
_START = np.array([-1.5, -1.5, -1.5, 1.0])
"""The centre of the prior for the logarithms of the scales, and for ln(degrees of freedom - 1)."""
_PRIOR_WEIGHT = 0.05
_FAR, _MAY_BE_FASTEST = 20, 0.1
"""Limits of what is worth measuring.

A choice is a candidate up to this ratio to the best predicted time. An algorithm may be the fastest if this is at least
so probable.
"""
_STEPS = 8
"""The messages of a longer pipeline are extrapolated from those of pipelines with this and with twice this number."""


@dataclass(frozen=True)
class Outlook:
    """The possible loss of a choice.

    `mean` is a geometric mean, `probability` that of a loss below 5 %, and `fastest` that of being the fastest.
    """

    mean: float
    percentile_95: float
    probability: float
    fastest: float


@dataclass(frozen=True)
class Discrepancy:
    """The scales of the three deviations: each algorithm's own, and those per factor e in messages and in seconds.

    `freedom` is the degrees of freedom of the Student t; the scales were learned from `machines`.
    """

    algorithm: float
    messages: float
    seconds: float
    freedom: float
    machines: tuple[str, ...] = ()

    def outlook(self, names: Sequence[str], messages: Array, seconds: Array) -> list[Outlook]:
        """The outlooks on candidates, given their algorithms, the busiest process's messages, and their seconds.

        Choices of one algorithm share its deviation. The random draws have a fixed seed.
        """
        return [*_outlooks(self, tuple(names), tuple(messages), tuple(seconds))]


@lru_cache(maxsize=1 << 12)
def _outlooks(
    of: Discrepancy, names: tuple[str, ...], messages: tuple[float, ...], seconds: tuple[float, ...]
) -> tuple[Outlook, ...]:
    """The outlooks at a point, which are cached since tables, sentences and facts of one result all need them."""
    which = {name: place for place, name in enumerate(dict.fromkeys(names))}
    random = np.random.default_rng(_SEED)
    width = np.sqrt(of.freedom / random.chisquare(of.freedom, (_DRAWS, 1)))
    slopes = random.standard_normal((_DRAWS, 2)) * (of.messages, of.seconds)
    own = of.algorithm * random.standard_normal((_DRAWS, len(which)))[:, [which[name] for name in names]]
    true = np.log(seconds) + width * (own + slopes @ _features(np.array(messages), np.array(seconds)).T)
    lost = true - true.min(axis=1, keepdims=True)
    means, percentiles = np.expm1(lost.mean(axis=0)), np.expm1(np.percentile(lost, 95, axis=0))
    close, fastest = (lost < math.log1p(CLOSE)).mean(axis=0), (lost == 0).mean(axis=0)
    return tuple(Outlook(*map(float, entry)) for entry in zip(means, percentiles, close, fastest, strict=True))


@dataclass(frozen=True)
class Sureness:
    """A cell's choice by predictions, and its probability of losing less than 5 % against the fastest candidate.

    `right` is True if it did lose less than 5 %, and `tells` if the second best candidate loses more than 5 %.
    """

    cell: Cell
    probability: float
    right: bool
    tells: bool


@dataclass(frozen=True)
class Kept:
    """The share of right choices, as the mean over jobs, with its 95 % interval by Clopper and Pearson."""

    choices: int
    right: int
    jobs: int
    share: float
    low: float
    high: float


@dataclass(frozen=True)
class PointOutlook:
    """The possible loss of a decision at a point, and the names of algorithms that may be the fastest there."""

    procs: int
    message_bytes: int
    outlook: Outlook
    rivals: tuple[str, ...]


def messages_of(collective: str, choice: Choice, procs: int, message_bytes: int, processes_per_node: int) -> float:
    """The messages that the busiest process sends and receives, as the schedule engine records them.

    Those of a long pipeline are extrapolated from short ones. Raises UsageError if the algorithm cannot run.
    """
    case = case_of(collective, choice, procs, message_bytes, processes_per_node)
    step = bytes_a_step(case)
    if step > 0 and message_bytes > 2 * _STEPS * step:
        few, more = (_messages(replace(case, message_bytes=number * step)) for number in (_STEPS, 2 * _STEPS))
        return few + (message_bytes / step - _STEPS) * (more - few) / _STEPS
    return _messages(case)


@lru_cache(maxsize=1 << 14)
def _messages(case: Case) -> float:
    return busiest_messages(recorded(case)[0])


def _features(messages: Array, seconds: Array) -> Array:
    """The logarithms that deviations are proportional to, minus their means over the candidates."""
    found = np.log(np.stack([np.maximum(messages, 1), seconds], axis=1))
    centred: Array = found - found.mean(axis=0)
    return centred


def _known(cell: Cell) -> tuple[list[str], Array, Array]:
    """The names of a cell's candidates, their messages and their predicted seconds."""
    at, predicted = cell.place, cell.predicted[PREDICTED]
    point = (at.procs, cell.message_bytes, at.processes_per_node)
    messages = [messages_of(at.collective, Choice(name), *point) for name in predicted]
    return list(predicted), np.array(messages), np.array([*predicted.values()])


def _at(
    times: Times, procs: int, size: int, known: Mapping[Choice, float], discrepancy: Discrepancy
) -> dict[Choice, Outlook]:
    """The outlook on each choice at one P and message size; `known` has the seconds of the choices."""
    point = (procs, size, times.processes_per_node)
    messages = np.array([messages_of(times.collective, choice, *point) for choice in known])
    each = discrepancy.outlook([choice.algorithm for choice in known], messages, np.array([*known.values()]))
    return dict(zip(known, each, strict=True))


def learned(cells: Sequence[Cell]) -> Discrepancy:
    """The discrepancy of the engine's predictions in measured cells. Each job counts once."""
    from scipy.optimize import minimize
    from scipy.special import gammaln

    jobs = Counter((cell.place.machine, cell.place.job) for cell in cells)
    by_size: dict[int, list[tuple[float, Array, Array]]] = {}
    for cell in cells:
        names, messages, seconds = _known(cell)
        contrasts = _contrasts(len(names))
        deviations = np.log([cell.seconds[name] for name in names]) - np.log(seconds)
        weight = 1 / jobs[cell.place.machine, cell.place.job]
        known = weight, contrasts @ deviations, contrasts @ _features(messages, seconds)
        by_size.setdefault(len(contrasts), []).append(known)
    weighed = [tuple(map(np.stack, zip(*alike, strict=True))) for alike in by_size.values()]

    def unlikelihood(logarithms: Array) -> float:
        own, *slopes = np.exp(2 * logarithms[:3])
        freedom = 1 + math.exp(logarithms[3])
        found = _PRIOR_WEIGHT * float(np.sum((logarithms - _START) ** 2))
        for weight, deviations, features in weighed:
            size = deviations.shape[1]
            covariance = own * np.eye(size) + features * slopes @ features.transpose(0, 2, 1)
            distance = np.sum(deviations * np.linalg.solve(covariance, deviations[..., None])[..., 0], axis=1)
            likely = (
                float(gammaln((freedom + size) / 2) - gammaln(freedom / 2))
                - (size * math.log(freedom * math.pi) + np.linalg.slogdet(covariance)[1]) / 2
                - (freedom + size) / 2 * np.log1p(distance / freedom)
            )
            found -= float(weight @ likely)
        return found

    found = minimize(unlikelihood, _START, method="L-BFGS-B", bounds=[(-5, 3)] * 3 + [(-3, 5)]).x
    algorithm, of_messages, of_seconds = np.exp(found[:3]).tolist()
    machines = tuple(sorted({cell.place.machine for cell in cells}))
    return Discrepancy(algorithm, of_messages, of_seconds, 1 + math.exp(found[3]), machines)


def _contrasts(number: int) -> Array:
    """Orthonormal rows whose products with values depend only on the differences between the values."""
    rows: Array = np.linalg.svd(np.eye(number) - 1 / number)[2][: number - 1]
    return rows


def left_out(cells: Sequence[Cell]) -> dict[str, Discrepancy]:
    """The discrepancy for each machine, learned from the cells of all other machines; empty for a single machine."""
    machines = sorted({cell.place.machine for cell in cells})
    if len(machines) < 2:
        return {}
    return {name: learned([cell for cell in cells if cell.place.machine != name]) for name in machines}


def judged(cells: Sequence[Cell], alone: Discrepancy | None = None) -> tuple[list[Cell], list[Sureness]]:
    """The cells with the choices of BY_MEAN and ROBUST added, and the sureness of each cell's choice by predictions.

    Each machine's discrepancy is learned from all other machines. For a single machine, `alone` is used if it is given.
    """
    found, sure = [], []
    known = left_out(cells) or ({cell.place.machine: alone for cell in cells} if alone is not None else {})
    for cell in cells:
        if cell.place.machine in known:
            names, messages, seconds = _known(cell)
            outlook = dict(zip(names, known[cell.place.machine].outlook(names, messages, seconds), strict=True))
            by_mean = min(outlook, key=lambda name: outlook[name].mean)
            robust = min(outlook, key=lambda name: outlook[name].percentile_95)
            cell = replace(cell, choices={**cell.choices, BY_MEAN: by_mean, ROBUST: robust})
            first, second = sorted(cell.seconds[name] for name in outlook)[:2]
            right = cell.seconds[cell.chosen] < first * (1 + CLOSE)
            sure.append(Sureness(cell, outlook[cell.chosen].probability, right, second > first * (1 + CLOSE)))
        found.append(cell)
    return found, sure


def kept(said: Sequence[Sureness], right: Sequence[bool]) -> Kept:
    """The share of the choices that were right."""
    from scipy.stats import beta

    by_job: dict[tuple[str, str], list[bool]] = {}
    for sureness, value in zip(said, right, strict=True):
        by_job.setdefault((sureness.cell.place.machine, sureness.cell.place.job), []).append(value)
    jobs = len(by_job)
    if not jobs:
        return Kept(0, 0, 0, math.nan, math.nan, math.nan)
    successes = sum(sum(values) / len(values) for values in by_job.values())
    low = float(beta.ppf(0.025, successes, jobs - successes + 1)) if successes > 0 else 0.0
    high = float(beta.ppf(0.975, successes + 1, jobs - successes)) if successes < jobs else 1.0
    return Kept(len(said), sum(right), jobs, successes / jobs, low, high)


def outlooks_of(
    table: DecisionTable, discrepancy: Discrepancy, progress: ShowProgress = without_progress
) -> list[PointOutlook]:
    """The outlooks on a table's decisions, at the points where two or more candidates have simulated times.

    The list is empty if the times are not simulated or lack the slower choices, or if they are those of mock-ups that
    use a library's decisions. Doubtful choices are candidates only if the table chooses them.
    """
    times = table.times
    if times is None or times.source != "simulated" or times.margin is not None or DIGITS in times.facts:
        return []
    found = []
    for procs, size in _in_turn(times, progress):
        known = times.at_point(procs, size)
        best = min(known.values(), default=math.nan)
        chosen = table.choice_at(procs, size)
        near = {choice: value for choice, value in known.items() if value < _FAR * best and choice != LIBRARY_DECIDES}
        names = {choice: near[choice] for choice in near if choice == chosen or not is_doubtful(times, choice, procs)}
        if chosen in names and len(names) > 1:
            try:
                each = _at(times, procs, size, names, discrepancy)
            except UsageError:  # mock-ups call the library's collectives; recording these needs the library's decisions
                return []
            fastest: dict[str, float] = {}
            for choice, outlook in each.items():
                fastest[choice.algorithm] = fastest.get(choice.algorithm, 0.0) + outlook.fastest
            rivals = tuple(name for name, share in fastest.items() if share >= _MAY_BE_FASTEST)
            found.append(PointOutlook(procs, size, each[chosen], rivals))
    return found


def _in_turn(times: Times, progress: ShowProgress) -> Iterator[tuple[int, int]]:
    """The points of the times, while their progress is shown."""
    points = times.grid.points
    with progress(f"{times.collective}: how sure choices are") as advance:
        for done, point in enumerate(points):
            if advance is not None:
                advance(None, done / len(points))
            yield point


def robust_times(times: Times, discrepancy: Discrepancy, progress: ShowProgress = without_progress) -> Times:
    """The times, changed so that a choice's loss against the fastest is the 95th percentile of its possible loss."""
    if times.source != "simulated" or times.margin is not None:
        have = "those with a margin" if times.margin is not None else f"{times.source} ones"
        raise UsageError(f"robust choices need simulated times of all choices, not {have}")
    seconds = times.seconds.copy(deep=True)
    for procs, size in _in_turn(times, progress):
        known = times.at_point(procs, size)
        names = {choice: known[choice] for choice in known if choice != LIBRARY_DECIDES}
        for choice, outlook in _at(times, procs, size, names, discrepancy).items():
            at = times.index_of(choice), times.procs.index(procs), times.message_bytes.index(size)
            seconds.values[at] = min(known.values()) * (1 + outlook.percentile_95)
    return replace(times, data=times.data.assign(seconds=seconds))
