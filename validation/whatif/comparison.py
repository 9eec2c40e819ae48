"""A platform before and after changes: the times of both, and where another choice is the best."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from collwise.models.switch_points import NOBODY
from collwise.platforms import HostPlatform
from collwise.platforms.changes import Changed
from collwise.simulator.sweeps.context import SimulationContext
from collwise.validation.times.choice import Choice
from collwise.validation.times.grid import Grid
from collwise.validation.times.slowdown import slowdown
from collwise.validation.times.sources import simulate
from collwise.validation.times.times import Times, joined

CHANGE, BEFORE, AFTER = "change", "before", "after"
"""The dimension of times before and after a change, and its labels."""

_SAME = 1e-9
"""Choices whose times differ by less than this share are equally good, so that nothing changes between them."""


def before_and_after(
    platform: HostPlatform,
    new: Changed,
    grid: Grid,
    context: SimulationContext,
    kept: Callable[[int, int], Choice | None] | None = None,
) -> Times:
    """The times of a grid on a platform and on the changed one, in the dimension `change`.

    Choices that cannot be the best may be left out, but not those `kept`, at each P and m, by default the best ones
    before the change. Kept choices compete at all points: nothing is the best that they beat. Raises UsageError for
    points that do not fit on the changed platform.
    """
    if kept is not None:
        grid = grid.with_besides(kept)
        grid = replace(grid, choices=grid.timed)
    after = replace(grid, processes_per_node=new.processes_per_node or grid.processes_per_node)
    for where, points in ((platform, grid), (new.platform, after)):
        for procs in points.procs:
            where.hosts_for(procs, points.processes_per_node)
    first = _timed(platform, grid, context)
    if kept is None:
        after = after.with_besides(first.best_choice)
    return joined([first, _timed(new.platform, after, context)], CHANGE, [BEFORE, AFTER])


def _timed(platform: HostPlatform, grid: Grid, context: SimulationContext) -> Times:
    [times] = simulate(platform, [grid], context, {grid.collective: _SAME}, f"{platform.name}: timing")
    return times


def changes_choice(times: Times) -> npt.NDArray[np.bool_]:
    """Where the best choice is another one than before, and not only as good, shape (P, m)."""
    before, after = (times.best.sel({CHANGE: label}).values for label in (BEFORE, AFTER))
    same = slowdown(times.at(before).values, times.at(times.best).values)[..., -1]
    found: npt.NDArray[np.bool_] = (before != NOBODY) & (after != NOBODY) & ~(same <= _SAME)
    return found
