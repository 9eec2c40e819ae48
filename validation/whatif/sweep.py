"""Sweeps over a change: the choices at many factors, and the factors at which they change."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from collwise.common.errors import UsageError, check_name
from collwise.models.piecewise import Array
from collwise.models.switch_points import NOBODY, Indices, fastest
from collwise.platforms import HostPlatform
from collwise.platforms.changes import CHANGES, Change, changed, factor_of
from collwise.simulator.sweeps.context import SCHEDULE, SimulationContext
from collwise.simulator.sweeps.schedule_runner import ScheduleRunner
from collwise.simulator.timing import Timing
from collwise.validation.selection.cases import CaseGrid
from collwise.validation.selection.choice import Choice
from collwise.validation.selection.predictions import simulated_seconds

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
    """The factor from which on another choice is the fastest for P processes and m bytes, up to 0.2 %."""

    procs: int
    message_bytes: int
    factor: float
    below: Choice
    above: Choice


@dataclass(frozen=True)
class Sweep:
    """A grid timed at each factor: `seconds` of shape (factors, candidates, P, m), and the cross-over points.

    The schedule engine leaves out candidates that are slower than the best one (`leaves_out`): their seconds are nan.
    """

    platform: HostPlatform
    others: tuple[Change, ...]
    grid: CaseGrid
    factors: Factors
    seconds: Array
    crossovers: tuple[CrossOver, ...]
    made_by: str
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
    platform: HostPlatform, others: Sequence[Change], factors: Factors, grid: CaseGrid, context: SimulationContext
) -> Sweep:
    """Times a grid at each factor with the context's engine, and finds where the fastest candidate changes.

    `others` are changes that hold at all factors. Raises UsageError for changes that cannot be made.
    """
    failed: list[Timing] = []
    maker = ""
    # Candidates that cannot be the best are not timed to their end.
    context = replace(context, tolerances={grid.collective: 0.0})

    def seconds_at(factor: float, points: CaseGrid) -> Array:
        nonlocal maker
        new = changed(platform, [*others, factors.change(factor)]).platform
        sweep = context.simulate(new, points.cases(), f"{new.name}: timing")
        failed.extend(sweep.failed)
        maker = sweep.configuration.maker
        return simulated_seconds(points, sweep)

    def winner_at(point: CaseGrid) -> Callable[[float], int]:
        return lambda factor: int(fastest(seconds_at(factor, point))[0, 0])

    per_node = changed(platform, others).processes_per_node
    if per_node is not None:
        grid = replace(grid, processes_per_node=per_node)
    for procs in grid.procs:
        changed(platform, [*others, factors.change(1.0)]).platform.hosts_for(procs, grid.processes_per_node)
    seconds = np.array([seconds_at(factor, grid) for factor in factors.values])
    best = np.array([fastest(one) for one in seconds])
    choices = list(grid.candidates.values())
    found = []
    for i, procs in enumerate(grid.procs):
        for j, size in enumerate(grid.message_bytes):
            point = replace(grid, procs=(procs,), message_bytes=(size,))
            for k in range(len(factors.values) - 1):
                low, high = factors.values[k : k + 2]
                below, last = int(best[k, i, j]), int(best[k + 1, i, j])
                while NOBODY not in (below, last) and below != last:
                    low, above = _crossing(low, high, below, last, winner_at(point))
                    found.append(CrossOver(procs, size, low, choices[below], choices[above]))
                    below = above
    leaves_out = context.engine is SCHEDULE
    return Sweep(platform, tuple(others), grid, factors, seconds, tuple(found), maker, tuple(failed), leaves_out)


def _crossing(low: float, high: float, below: int, last: int, winner: Callable[[float], int]) -> tuple[float, int]:
    """The first factor at which the winner is no longer `below`, nearly, and who wins there; `last` wins at `high`."""
    while high / low > _EXACTLY:
        middle = math.sqrt(low * high)
        found = winner(middle)
        if found == below:
            low = middle
        else:
            high, last = middle, found
    return high, last
