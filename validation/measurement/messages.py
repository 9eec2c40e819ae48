"""Times of collectives predicted from messages between two nodes of a machine, with nothing else of that machine.

The figures of its description are fitted to the messages alone. What they do not tell keeps the figure of the
description, whose prior says by how much it may be wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from collwise.models.piecewise import Array
from collwise.platforms import Platform
from collwise.simulator.timing import Case
from collwise.validation.calibration.figures import FIGURES, Factors, multiplied, with_eager_limit
from collwise.validation.calibration.from_times import TimedCases, fit, jump
from collwise.validation.measurement.deciding import known_library
from collwise.validation.measurement.judging import candidates, platform_of
from collwise.validation.measurement.runs import MeasuredRun
from collwise.validation.measurement.training import timed
from collwise.validation.times.choice import LIBRARY_DECIDES, Choice
from collwise.validation.times.grid import case_of
from collwise.validation.times.times import Times

_WITHIN_NODES = {
    "loopback_latency_seconds": 0.7,
    "loopback_bytes_per_second": 0.5,
    "memory_bytes_per_second": 0.5,
}
"""The spreads of the logarithms of figures within nodes, which no message between two tells."""
_PERCENTILE_95 = 1.645
"""The 95th percentile of a normal distribution, in deviations."""


@dataclass(frozen=True)
class OtherFigure:
    """A figure that messages do not tell: the factors at its prior's 5th and 95th percentile, and the errors there."""

    title: str
    factors: tuple[float, float]
    errors: tuple[float, float]


@dataclass(frozen=True)
class FromMessages:
    """A run's calls of a collective, predicted from its messages: median errors.

    `described` is that of the description as it is. `told` are the factors of the figures that the messages tell, by
    title.
    """

    machine: str
    job: str
    platform: str
    collective: str
    procs: int
    processes_per_node: int
    times: int
    error: float
    described: float
    told: Mapping[str, float]
    others: Sequence[OtherFigure]


def from_messages(runs: Sequence[MeasuredRun]) -> Iterator[FromMessages]:
    """The predictions for each collective and P of the runs that have messages and a description."""
    for run in runs:
        described = platform_of(run.machine, run.facts, run.description)
        if not (run.messages and isinstance(described, Platform)):
            continue
        leap = jump(run.messages)
        start = described if leap is None else with_eager_limit(described, leap[0])
        messages = timed(replace(run, times=()), start, as_described=True, messages=True)
        calls = [
            TimedCases(described, _calls(run, times, procs), processes_per_node=times.processes_per_node)
            for times in run.times
            for procs in times.procs
        ]
        if messages is not None and any(one.cases for one in calls):
            fitted = fit({run.machine: [messages]})
            told = {name: one for name, one in fitted.common.items() if fitted.tells(run.machine, name)}
            for one in calls:
                if one.cases:
                    yield _predicted(run, one, messages.platform, fitted.common, told)


def _calls(run: MeasuredRun, times: Times, procs: int) -> dict[Case, float]:
    """The measured calls on this many processes. They are of candidates, or else of the library's known decisions."""
    forced, library = candidates(times), known_library(run.library, times.processes_per_node)
    found: dict[Case, float] = {}
    for size in times.message_bytes:
        known = times.at_point(procs, size)
        chosen: dict[Choice | None, float] = {one: known[one] for one in forced if one in known}
        if not forced and library is not None and LIBRARY_DECIDES in known:
            chosen = {library.choice(times.collective, procs, size): known[LIBRARY_DECIDES]}
        for choice, seconds in chosen.items():
            if choice is not None and seconds > 0:
                found[case_of(times.collective, choice, procs, size, times.processes_per_node)] = seconds
    return found


def _predicted(
    run: MeasuredRun, calls: TimedCases, start: Platform, factors: Factors, told: Mapping[str, float]
) -> FromMessages:
    def error(platform: Platform) -> float:
        off: Array = np.abs(calls.on(platform) / calls.seconds - 1)
        return float(np.median(off))

    def bounds(spread: float) -> tuple[float, float]:
        width = math.exp(_PERCENTILE_95 * spread)
        return 1 / width, width

    def at_bounds(title: str, spread: float, changed: Callable[[float], Platform]) -> OtherFigure:
        low, high = bounds(spread)
        return OtherFigure(title, (low, high), (error(changed(low)), error(changed(high))))

    def with_figure(name: str, factor: float) -> Platform:
        return multiplied(start, {**factors, name: factor})

    def within_nodes(name: str, factor: float) -> Platform:
        return replace(fitted, **{name: getattr(fitted, name) * factor})

    fitted = multiplied(start, factors)
    others = [
        at_bounds(FIGURES[name].title, FIGURES[name].spread, partial(with_figure, name))
        for name in factors
        if name not in told
    ]
    if calls.processes_per_node > 1:
        others += [
            at_bounds(name, spread, partial(within_nodes, name))
            for name, spread in _WITHIN_NODES.items()
            if getattr(fitted, name) is not None
        ]
    first = calls.cases[0]
    return FromMessages(
        run.machine,
        run.job,
        start.name,
        first.collective,
        first.procs,
        calls.processes_per_node,
        len(calls.cases),
        error(fitted),
        error(calls.platform),
        {FIGURES[name].title: factor for name, factor in told.items()},
        others,
    )
