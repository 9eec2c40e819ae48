"""The figures of platforms (latencies, rates, overheads), fitted to measured runs of machines or only to messages.

Messages are between two nodes of one machine. Figures that they do not determine stay as described; the prior of a
description says by how much such a figure may be wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from operator import itemgetter

import numpy as np

from collwise.platforms import HostPlatform, Platform
from collwise.platforms.description import COPY_SECONDS_PER_BYTE
from collwise.simulator.timing import Case
from collwise.validation.calibration.figures import FIGURES, Factors, from_data_sheets, multiplied, with_eager_limit
from collwise.validation.calibration.from_times import Cell as TimedCell, Fitted, TimedCases, fit, jump
from collwise.validation.measurement.judging import Cell, candidates, grids, platform_of, with_decided
from collwise.validation.measurement.runs import MeasuredRun
from collwise.validation.times.grid import case_of
from collwise.validation.times.times import Times


def timed(
    run: MeasuredRun, platform: HostPlatform | None = None, *, as_described: bool = False, messages: bool = False
) -> TimedCases | None:
    """The measured cases of a run with one process on each node; None if there are no cases or no platform.

    By default, the platform is the machine's. If `as_described` is true, it keeps the factors that its description
    lists. If `messages` is true, the messages between two nodes are added.
    """
    described = platform or platform_of(run.machine, run.facts, run.description)
    if not isinstance(described, Platform):
        return None
    own = described.calibration
    if own.copy_seconds_per_byte is None:
        described = replace(described, calibration=replace(own, copy_seconds_per_byte=COPY_SECONDS_PER_BYTE))
    measured: dict[Case, float] = dict(run.messages) if messages else {}
    for place, grid, times in grids(run):
        if place.processes_per_node == 1 and place.procs <= described.nodes:
            for size in grid.message_bytes:
                found = times.at_point(place.procs, size)
                known = [choice for choice in grid.choices if found.get(choice, 0.0) > 0]
                measured |= {grid.case(choice, place.procs, size): found[choice] for choice in known}
    return TimedCases(described if as_described else from_data_sheets(described), measured) if measured else None


def together(runs: Sequence[MeasuredRun], without: Collection[str] = ()) -> Fitted:
    """The figures fitted to the runs of all machines except those in `without`, starting from data sheets."""
    machines: dict[str, list[TimedCases]] = {}
    for run in runs:
        if run.machine not in without and (cases := timed(run)) is not None:
            machines.setdefault(run.machine, []).append(cases)
    return fit(machines)


TRAINED_ON, SIZES, COLLECTIVES, JOBS = "trained on", "other sizes", "other collectives", "other P or jobs"
_TRAINING_COLLECTIVES = 3


@dataclass(frozen=True)
class Trained:
    """The factors of a machine's figures, and the job and the cells whose times the factors were fitted to."""

    factors: Factors
    job: str
    cells: frozenset[TimedCell]

    def kind(self, cell: Cell) -> str:
        """The kind of difference between a cell and the training cells of its machine."""
        place = cell.place
        collectives, procs = {entry[0] for entry in self.cells}, {entry[1] for entry in self.cells}
        if place.job != self.job or place.procs not in procs or place.processes_per_node != 1:
            return JOBS
        if place.collective not in collectives:
            return COLLECTIVES
        return TRAINED_ON if (place.collective, place.procs, cell.message_bytes) in self.cells else SIZES


def trained(runs: Sequence[MeasuredRun]) -> Mapping[str, Trained]:
    """Each machine's figures, fitted to a few of the machine's own times, starting from its description.

    These times are from the job with the most collectives, at its smallest P: every second size of the first three
    collectives by name.
    """
    jobs: dict[str, dict[str, TimedCases]] = {}
    for run in runs:
        if (cases := timed(run, as_described=True)) is not None and cases.cases:
            jobs.setdefault(run.machine, {})[run.job] = cases
    found = {}
    for machine, of_job in jobs.items():
        job = max(of_job, key=lambda name: len({case.collective for case in of_job[name].cases}))
        least = min(procs for _, procs, _ in of_job[job].cells)
        cells = sorted(cell for cell in of_job[job].cells if cell[1] == least)
        by_collective = [[*group] for _, group in groupby(cells, key=itemgetter(0))]
        chosen = frozenset(cell for group in by_collective[:_TRAINING_COLLECTIVES] for cell in group[::2])
        fitted = fit({machine: [of_job[job].only(chosen)]})
        found[machine] = Trained(fitted.common, job, chosen)
    return found


_WITHIN_NODES = {"loopback_latency_seconds": 0.7, "loopback_bytes_per_second": 0.5, "memory_bytes_per_second": 0.5}
"""Figures within nodes, which messages between two nodes do not determine, and the spreads of their logarithms."""
_PERCENTILE_95 = 1.645
"""The 95th percentile of a normal distribution, in standard deviations."""


@dataclass(frozen=True)
class OtherFigure:
    """A parameter that times of point-to-point messages do not determine.

    `factors` are the 5th and 95th percentiles of its prior, relative to its value. `errors` are those of predictions in
    which the parameter is multiplied by each of the two factors.
    """

    title: str
    factors: tuple[float, float]
    errors: tuple[float, float]


@dataclass(frozen=True)
class FromMessages:
    """The median error with which a run's calls of a collective were predicted from the run's messages.

    `described` is the median error with the unchanged description. `told` has the factors of the figures that the
    messages determine, by title.
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
    for run in map(with_decided, runs):
        described = platform_of(run.machine, run.facts, run.description)
        if not (run.messages and isinstance(described, Platform)):
            continue
        leap = jump(run.messages)
        start = described if leap is None else with_eager_limit(described, leap[0])
        messages = timed(replace(run, times=()), start, as_described=True, messages=True)
        calls = [
            TimedCases(described, _calls(times, procs), processes_per_node=times.processes_per_node)
            for times in run.times
            for procs in times.procs
        ]
        if messages is not None and any(call.cases for call in calls):
            fitted = fit({run.machine: [messages]})
            told = {name: value for name, value in fitted.common.items() if fitted.tells(run.machine, name)}
            for call in calls:
                if call.cases:
                    yield _predicted(run, call, messages.platform, fitted.common, told)


def _calls(times: Times, procs: int) -> dict[Case, float]:
    """The measured calls of candidates."""
    found: dict[Case, float] = {}
    for size in times.message_bytes:
        known = times.at_point(procs, size)
        for choice in candidates(times):
            if known.get(choice, 0.0) > 0:
                found[case_of(times.collective, choice, procs, size, times.processes_per_node)] = known[choice]
    return found


def _predicted(
    run: MeasuredRun, calls: TimedCases, start: Platform, factors: Factors, told: Mapping[str, float]
) -> FromMessages:
    def error(platform: Platform) -> float:
        return float(np.median(np.abs(calls.on(platform) / calls.seconds - 1)))

    def at_bounds(title: str, spread: float, changed: Callable[[float], Platform]) -> OtherFigure:
        high = math.exp(_PERCENTILE_95 * spread)
        return OtherFigure(title, (1 / high, high), (error(changed(1 / high)), error(changed(high))))

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
    call = (first.collective, first.procs, calls.processes_per_node, len(calls.cases))
    titled = {FIGURES[name].title: factor for name, factor in told.items()}
    errors = (error(fitted), error(calls.platform))
    return FromMessages(run.machine, run.job, start.name, *call, *errors, titled, others)
