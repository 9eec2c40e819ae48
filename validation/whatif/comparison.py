"""A platform and a changed one side by side: the choices and times that change, and what rules cost that are kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from collwise.common.errors import UsageError
from collwise.models.piecewise import Array
from collwise.models.switch_points import NOBODY, Indices, fastest, picked_seconds
from collwise.platforms import HostPlatform
from collwise.platforms.changes import Change, changed
from collwise.simulator.sweeps.context import SimulationContext
from collwise.simulator.timing import Timing
from collwise.validation.select.decisions import DecisionTable
from collwise.validation.times.choice import Choice
from collwise.validation.times.grid import CaseGrid
from collwise.validation.times.predictions import seconds_of, simulated_seconds
from collwise.validation.times.slowdown import slowdown

_SAME = 1e-9
"""Choices whose times differ by less than this share are equally good, so that nothing changes between them."""


@dataclass(frozen=True)
class Side:
    """One of the two platforms: its points and the seconds of the candidates there, shape (candidates, P, m).

    With the schedule engine `seconds` are nan for most candidates that are slower than the best one. `kept_seconds` are
    those of the kept rules' choices, nan where there is none.
    """

    platform: HostPlatform
    grid: CaseGrid
    seconds: Array
    kept_seconds: Array

    @cached_property
    def best(self) -> Indices:
        """The fastest candidate at each point, NOBODY where none has a time."""
        return fastest(self.seconds)

    @cached_property
    def best_seconds(self) -> Array:
        """The time of the fastest candidate at each point."""
        return picked_seconds(self.seconds, self.best)

    def choice(self, i: int, j: int) -> Choice | None:
        """The fastest choice at the i-th P and the j-th m."""
        index = int(self.best[i, j])
        return None if index == NOBODY else list(self.grid.candidates.values())[index]


@dataclass(frozen=True)
class WhatIf:
    """A platform before and after changes, and the kept rules: the best choices before, or those of a table.

    `kept` are the choices of these rules, of shape (P, m), None where they decide nothing. They are candidates
    everywhere. `made_by` is what timed.
    """

    changes: tuple[Change, ...]
    before: Side
    after: Side
    kept: tuple[tuple[Choice | None, ...], ...]
    kept_rules: str
    made_by: str
    failed: tuple[Timing, ...] = ()

    @property
    def time_ratio(self) -> Array:
        """The best time after the change, relative to the best one before, shape (P, m)."""
        return self.after.best_seconds / self.before.best_seconds

    @property
    def kept_slowdown(self) -> Array:
        """The slowdown of the kept rules on the changed platform, nan where they decide nothing, shape (P, m)."""
        return slowdown(self.after.kept_seconds, self.after.best_seconds)

    @property
    def kept_slowdown_before(self) -> Array:
        """The slowdown of the kept rules on the platform as it was, nan where they decide nothing, shape (P, m)."""
        return slowdown(self.before.kept_seconds, self.before.best_seconds)

    @property
    def changes_choice(self) -> npt.NDArray[np.bool_]:
        """Where the best choice is another one than before, and not only as good, shape (P, m)."""
        known = (self.before.best != NOBODY) & (self.after.best != NOBODY)
        same = picked_seconds(self.after.seconds, self.before.best)
        return known & ~(slowdown(same, self.after.best_seconds) <= _SAME)


def what_if(
    platform: HostPlatform,
    changes: Sequence[Change],
    grid: CaseGrid,
    context: SimulationContext,
    rules: DecisionTable | None = None,
) -> WhatIf:
    """Times a grid on a platform and on the changed one, with the context's engine.

    `rules` are what is kept, by default the best choices before the change. Raises UsageError for changes that cannot
    be made, for points that do not fit on the changed platform, and for rules of another collective.
    """
    if rules is not None and rules.collective != grid.collective:
        raise UsageError(f"the rules are for {rules.collective}, not for {grid.collective}")
    kept: dict[tuple[int, int], Choice | None] = {}
    if rules is not None:
        kept = {point: rules.choice_at(*point) for point in grid.points}
        # Nothing is the best that the rules beat.
        grid = replace(grid, further=tuple(one for one in kept.values() if one is not None))
    new = changed(platform, changes)
    after_grid = replace(grid, processes_per_node=new.processes_per_node or grid.processes_per_node)
    for where, points in ((platform, grid), (new.platform, after_grid)):
        for procs in points.procs:
            where.hosts_for(procs, points.processes_per_node)
    before, failed, made_by = _timed(platform, grid, kept, context)
    if rules is None:
        kept = {(p, m): before.choice(i, j) for i, p in enumerate(grid.procs) for j, m in enumerate(grid.message_bytes)}
        before = replace(before, kept_seconds=before.best_seconds)
    after, more, _ = _timed(new.platform, after_grid, kept, context)
    named = "the best choices before the change" if rules is None else f"the table made by {rules.made_by}"
    rows = tuple(tuple(kept[p, m] for m in grid.message_bytes) for p in grid.procs)
    return WhatIf(tuple(changes), before, after, rows, named, made_by, (*failed, *more))


def _timed(
    platform: HostPlatform,
    grid: CaseGrid,
    kept: Mapping[tuple[int, int], Choice | None],
    context: SimulationContext,
) -> tuple[Side, tuple[Timing, ...], str]:
    """A side with the times of the grid's candidates and of the kept choices, the cases that failed, and what timed."""
    at = {point: choice for point, choice in kept.items() if choice is not None}
    label = f"{platform.name}: timing"
    # Candidates that cannot be the best are not timed to their end; the kept choices are, wherever they stand.
    sweep = replace(context, tolerances={grid.collective: _SAME}).simulate(platform, grid.cases(), label)
    extra = grid.cases_of(lambda p, m: [at[p, m]] if (p, m) in at else [])
    kept_sweep = context.simulate(platform, extra, label) if extra else sweep
    kept_seconds = np.array(
        [
            [seconds_of(grid, kept_sweep, at[p, m], p, m) if (p, m) in at else np.nan for m in grid.message_bytes]
            for p in grid.procs
        ]
    )
    side = Side(platform, grid, simulated_seconds(grid, sweep), kept_seconds)
    failed = dict.fromkeys([*sweep.failed, *kept_sweep.failed])
    return side, tuple(failed), sweep.configuration.maker
