"""Sources of times: predictions of a model, and simulations. The module `measured` has measurements in the store."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import ArrayLike

from collwise.common.errors import UsageError
from collwise.models.interface import CollectiveModel
from collwise.models.piecewise import Array
from collwise.platforms import HostPlatform
from collwise.simulator.bench import Simulated
from collwise.simulator.schedule.contest import hold_contests
from collwise.simulator.sweeps.context import ShowProgress, SimulationContext, without_progress
from collwise.simulator.sweeps.runner import run_concurrently
from collwise.simulator.timing import Case
from collwise.validation.times.choice import Choice
from collwise.validation.times.grid import Grid, is_all_at_once
from collwise.validation.times.times import State, Times, running, timed_at

if TYPE_CHECKING:
    from collwise.validation.fitting.scheduled_model import PlayedModel


def covered_by_model(model: CollectiveModel, grid: Grid) -> tuple[Grid, str]:
    """The grid with the algorithms that the model can predict, and a line for the user that names the others.

    The line is empty if there are no others. Raises UsageError if the model can predict no algorithm of the grid.
    """
    known = model.algorithms(grid.collective)
    others = [name for name in grid.names if name not in known]
    if others and len(others) == len(grid.names):
        raise UsageError(f"model '{model.name}' covers none of the {grid.collective} algorithms asked for")
    if not others:
        return grid, ""
    line = f"{grid.collective}: left out, as model {model.name} has no formula or parameters for them: "
    return grid.of_algorithms(known), line + ", ".join(others)


def without_prediction(times: Times) -> str:
    """A note on algorithms for which the model has no prediction at some point; empty without such algorithms.

    These algorithms are never chosen at such points.
    """
    missing = (times.competing(times.state) == State.NO_FORMULA).any((1, 2))
    names = dict.fromkeys(choice.algorithm for choice, lacks in zip(times.choices, missing, strict=True) if lacks)
    line = f"{times.collective}: never chosen where {times.maker} has no prediction for them: "
    return line + ", ".join(names) if names else ""


def predict_choice(
    model: CollectiveModel, collective: str, choice: Choice, procs: ArrayLike, message_bytes: ArrayLike
) -> Array:
    """Predicted seconds of a choice over arrays of points, nan where the model has no prediction."""
    return model.predict(collective, choice.algorithm, procs, message_bytes, choice.segment_bytes, choice.parameter)


def predicted(
    model: CollectiveModel, grid: Grid, margin: float | None = None, progress: ShowProgress = without_progress
) -> Times:
    """The times of a grid by a model; notes name the algorithms that the model cannot predict at every point.

    A model that replays schedules leaves out choices that are slower than the fastest by more than the `margin`, if one
    is given. Raises UsageError if the model can predict no algorithm of the grid.
    """
    grid, left_out = covered_by_model(model, grid)
    contested = margin is not None and model.plays
    if contested:
        seconds = _contested_seconds(cast("PlayedModel", model), grid, margin or 0.0, progress)
    else:
        seconds, margin = _seconds(model, grid, progress), None
    missing, maker = State.LEFT_OUT if contested else State.NO_FORMULA, f"model {model.name}"
    made = (model.platform, "predicted", maker, missing)
    times = Times.of_seconds(grid, seconds, *made, between=model, margin=margin)
    return replace(times, notes=tuple(filter(None, (left_out, without_prediction(times)))))


def _seconds(model: CollectiveModel, grid: Grid, progress: ShowProgress) -> Array:
    procs, sizes = np.array(grid.procs), np.array(grid.message_bytes)
    asked = running(grid) & timed_at(grid)
    seconds = np.full(asked.shape, np.nan)
    covered = model.algorithms(grid.collective)
    with progress(f"predicting {grid.collective}") as advance:
        for index, choice in enumerate(grid.timed):
            if choice.algorithm in covered and index < len(grid.choices):
                found = predict_choice(model, grid.collective, choice, procs[:, None], sizes[None, :])
                seconds[index] = np.where(asked[index], found, np.nan)
            elif choice.algorithm in covered and asked[index].any():
                i, j = np.nonzero(asked[index])
                seconds[index, i, j] = predict_choice(model, grid.collective, choice, procs[i], sizes[j])
            if advance is not None:
                advance(None, (index + 1) / len(seconds))
    return seconds


def _contested_seconds(model: PlayedModel, grid: Grid, tolerance: float, progress: ShowProgress) -> Array:
    """Seconds by replaying schedules; nan also for choices slower than the fastest by more than the tolerance."""
    seconds = np.full((len(grid.timed), len(grid.procs), len(grid.message_bytes)), np.nan)
    stop = threading.Event()
    done = iter(range(1, len(grid.procs) + 1))

    def play(case: Case, max_seconds: float) -> float | None:
        return None if stop.is_set() else model.seconds_within(case, max_seconds)

    def find(place: int) -> None:
        procs = grid.procs[place]
        points = {
            grid.case(choice, procs, size): (i, place, k)
            for i, choice in enumerate(grid.timed)
            for k, size in enumerate(grid.message_bytes)
            if grid.runs(choice, procs, size)
        }
        for case, value in hold_contests(points, play, tolerance, {}).items():
            seconds[points[case]] = value
        if advance is not None:
            advance(None, next(done) / len(grid.procs))

    tasks = [partial(find, place) for place in reversed(range(len(grid.procs)))]
    with progress(f"deciding {grid.collective}") as advance:
        run_concurrently(tasks, os.cpu_count() or 1, stop)
    return seconds


def simulate(
    platform: HostPlatform,
    grids: Sequence[Grid],
    context: SimulationContext,
    margins: Mapping[str, float] = MappingProxyType({}),
    label: str = "",
) -> list[Times]:
    """The times of each grid on a platform. One sweep over all grids simulates the cases that the store does not have.

    For collectives in `margins` an engine may leave out choices that are slower than the fastest one by more than the
    margin (0.01: 1 %), but never the additional choices. A choice is never left out because a doubtful choice
    (`is_all_at_once`) is faster. Raises UsageError when the engine is missing or a case does not fit.
    """
    bench = Simulated(platform, context, margins)
    margins = margins if context.engine.leaves_out else {}
    label = label or f"{platform.name}: simulating {', '.join(grid.collective for grid in grids)}"
    competing = [case for grid in grids for case in replace(grid, besides=()).cases()]
    apart = {case for case in competing if margins and is_all_at_once(case.collective, case.algorithm, case.procs)}
    sweep = bench.run([case for case in competing if case not in apart], label)
    besides = [case for grid in grids for case in replace(grid, choices=()).cases()]
    besides += [case for case in competing if case in apart]
    more = replace(bench, margins={}).run(besides, label) if besides else sweep
    timings, made = {**sweep.timings, **more.timings}, sweep.configuration
    facts = {"configuration": made.key, "reused": sweep.reused, "processes_started": sweep.processes_started}
    return [
        Times.of_timings(
            grid,
            timings,
            platform.name,
            "simulated",
            made.maker,
            margin=margins.get(grid.collective),
            max_procs=platform.max_procs(grid.processes_per_node),
            facts=facts,
        )
        for grid in grids
    ]
