"""Sweeps over a change: the choices at many factors, and the factors at which they change."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from collwise.common.errors import UsageError, check_name
from collwise.models.piecewise import Array
from collwise.models.switch_points import NOBODY, Indices, fastest
from collwise.platforms import HostPlatform
from collwise.platforms.changes import CHANGES, Change, changed, factor_of
from collwise.simulator.sweeps.context import SCHEDULE, SimulationContext
from collwise.simulator.sweeps.schedule_runner import ScheduleRunner
from collwise.simulator.timing import Timing
from collwise.validation.times.choice import Choice
from collwise.validation.times.grid import CaseGrid
from collwise.validation.times.predictions import simulated_seconds

SWEPT = tuple(name for name, kind in CHANGES.items() if kind.has_factor)
"""The changes that a sweep can make."""

STEPS_A_DOUBLING = 4
_MOST_FACTORS = 200
_EXACTLY = 1.002
"""Cross-over points are found up to this factor."""


@dataclass(frozen=True)
class Factors:
    """The factors of a sweep over one change, ascending, evenly spaced in logarithms; 1 is among them if it is within.

    `name` is the change's.
    """

    name: str
    values: tuple[float, ...]

    def change(self, factor: float) -> Change:
        """The change by a factor."""
        return Change(self.name, f"x{factor:.10g}")


@dataclass(frozen=True)
class CrossOver:
    """The factor, up to 0.2 %, from which on the choice `above` is faster than `below` for P processes and m bytes."""

    procs: int
    message_bytes: int
    factor: float
    below: Choice
    above: Choice


@dataclass(frozen=True)
class Sweep:
    """A grid timed at each factor: `seconds` of shape (factors, candidates, P, m), and the cross-over points.

    With a `tolerance` of 0.01 a choice stays until it is 1 % slower than the fastest one: choices that are nearly as
    fast as each other at many factors do not take turns. The schedule engine leaves out candidates that are slower than
    the best one (`leaves_out`): their seconds are nan.
    """

    platform: HostPlatform
    others: tuple[Change, ...]
    grid: CaseGrid
    factors: Factors
    seconds: Array
    crossovers: tuple[CrossOver, ...]
    made_by: str
    tolerance: float = 0.0
    failed: tuple[Timing, ...] = ()
    leaves_out: bool = False

    @property
    def best(self) -> Indices:
        """The fastest candidate, shape (factors, P, m)."""
        return np.array([fastest(seconds) for seconds in self.seconds])

    @property
    def choices(self) -> list[Choice]:
        """The candidates, in the order of the indices."""
        return list(self.grid.candidates.values())

    def every_second(self, procs: int, message_bytes: int) -> Array:
        """The seconds of all candidates at one point, shape (factors, candidates).

        Those that were left out are played now; nan stays for what does not run, and for mock-ups.
        """
        i, j = self.grid.procs.index(procs), self.grid.message_bytes.index(message_bytes)
        seconds = self.seconds[:, :, i, j].copy()
        point = replace(self.grid, procs=(procs,), message_bytes=(message_bytes,))
        runs = set(point.cases()) if self.leaves_out else set()
        for k, factor in enumerate(self.factors.values):
            runner = ScheduleRunner(self.platform_at(factor))
            for index in np.flatnonzero(np.isnan(seconds[k])):
                case = self.grid.case(self.choices[index], procs, message_bytes)
                if case in runs:
                    seconds[k, index] = runner.timing(case).seconds
        return seconds

    def platform_at(self, factor: float) -> HostPlatform:
        """The platform with the other changes and this factor."""
        return changed(self.platform, [*self.others, self.factors.change(factor)]).platform


def parse_factors(text: str) -> Factors:
    """The factors that 'bandwidth=x0.25:x8' says. Raises UsageError for what is malformed or cannot be swept."""
    name, equals, span = (part.strip() for part in text.partition("="))
    check_name("change to sweep over", name, SWEPT)
    low_text, colon, high_text = span.partition(":")
    if not equals or not colon:
        raise UsageError(f"malformed sweep '{text}' (valid: {name}=x0.25:x8)")
    try:
        low, high = factor_of(low_text), factor_of(high_text)
    except UsageError as problem:
        raise UsageError(f"sweep '{text}': {problem}; a sweep goes from factor to factor, as {name}=x0.25:x8") from None
    first, last = math.log2(low) * STEPS_A_DOUBLING, math.log2(high) * STEPS_A_DOUBLING
    if not first < last < first + _MOST_FACTORS:
        raise UsageError(f"sweep '{text}' has no factors, or more than {_MOST_FACTORS} (valid: {name}=x0.25:x8)")
    inner = range(math.floor(first) + 1, math.ceil(last))
    return Factors(name, (low, *(2.0 ** (step / STEPS_A_DOUBLING) for step in inner), high))


def sweep_over(
    platform: HostPlatform,
    others: Sequence[Change],
    factors: Factors,
    grid: CaseGrid,
    context: SimulationContext,
    tolerance: float = 0.0,
) -> Sweep:
    """Times a grid at each factor with the context's engine, and finds where the fastest candidate changes.

    `others` are changes that hold at all factors; `tolerance`, see `Sweep`. Raises UsageError for changes that cannot
    be made.
    """
    failed: list[Timing] = []
    maker = ""
    # Candidates that are slower than the tolerance allows are not timed to their end.
    context = replace(context, tolerances={grid.collective: tolerance})

    def seconds_at(points: CaseGrid, factor: float) -> Array:
        nonlocal maker
        new = changed(platform, [*others, factors.change(factor)]).platform
        sweep = context.simulate(new, points.cases(), f"{new.name}: timing")
        failed.extend(sweep.failed)
        maker = sweep.configuration.maker
        return simulated_seconds(points, sweep)

    per_node = changed(platform, others).processes_per_node
    if per_node is not None:
        grid = replace(grid, processes_per_node=per_node)
    for procs in grid.procs:
        changed(platform, [*others, factors.change(1.0)]).platform.hosts_for(procs, grid.processes_per_node)
    seconds = np.array([seconds_at(grid, factor) for factor in factors.values])
    choices = list(grid.candidates.values())
    found = []
    for i, procs in enumerate(grid.procs):
        for j, size in enumerate(grid.message_bytes):
            point = replace(grid, procs=(procs,), message_bytes=(size,))
            swept = dict(zip(factors.values, seconds[:, :, i, j], strict=True))
            for factor, below, above in _cross_overs(swept, partial(seconds_at, point), tolerance):
                found.append(CrossOver(procs, size, factor, choices[below], choices[above]))
    return Sweep(
        platform,
        tuple(others),
        grid,
        factors,
        seconds,
        tuple(found),
        maker,
        tolerance,
        tuple(failed),
        leaves_out=context.engine is SCHEDULE,
    )


def _cross_overs(
    swept: Mapping[float, Array], seconds_at: Callable[[float], Array], tolerance: float
) -> Iterator[tuple[float, int, int]]:
    """The factors at which the choice of a point changes, with the candidates below and above.

    `swept` has the seconds of all candidates at ascending factors; `seconds_at` gives them at any other one, in the
    shape of a grid of a single point.
    """
    now = NOBODY
    # The largest factors so far: at which the choice was looked for, and at which it was also the fastest.
    last, led = math.nan, math.nan
    for factor, seconds in swept.items():
        best = int(fastest(seconds))
        if NOBODY in (now, best):
            now, led = best, factor
        while now != (after := _chosen(now, tolerance, seconds)):
            left, after = _first(last, factor, after, now, seconds_at, partial(_chosen, now, tolerance))
            crossed, _ = _first(led, left, after, now, seconds_at, partial(_faster, now, after))
            yield crossed, now, after
            now, last, led = after, left, left
        if now == best:
            led = factor
        last = factor


def _chosen(now: int, tolerance: float, seconds: Array) -> int:
    """The candidate to choose at the next larger factor if `now` is chosen."""
    best = int(fastest(seconds))
    return now if best != NOBODY and seconds[now] <= (1 + tolerance) * seconds[best] else best


def _faster(one: int, other: int, seconds: Array) -> int:
    """Which of two candidates is the faster one; candidates that were left out are slower than others."""
    return other if fastest(seconds[[one, other]]) == 1 else one


def _first(
    low: float,
    high: float,
    at_high: int,
    at_low: int,
    seconds_at: Callable[[float], Array],
    rule: Callable[[Array], int],
) -> tuple[float, int]:
    """The first factor, nearly, at which a rule no longer names `at_low`, and what it names; `at_high` at `high`."""
    while high / low > _EXACTLY:
        middle = math.sqrt(low * high)
        found = rule(seconds_at(middle)[:, 0, 0])
        if found == at_low:
            low = middle
        else:
            high, at_high = middle, found
    return high, at_high
