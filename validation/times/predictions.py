"""Predicted and simulated seconds of the candidates of a grid, and what a model has no prediction for."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import UsageError
from collwise.models.interface import CollectiveModel
from collwise.models.piecewise import Array
from collwise.simulator.schedule.contest import hold_contests
from collwise.simulator.sweeps.context import ShowProgress, without_progress
from collwise.simulator.sweeps.runner import RunResult, run_concurrently
from collwise.simulator.timing import Case
from collwise.validation.fitting.critical_path import CriticalPath
from collwise.validation.times.choice import Choice
from collwise.validation.times.grid import CaseGrid


def covered_by_model(model: CollectiveModel, grid: CaseGrid) -> tuple[CaseGrid, str]:
    """The grid with the algorithms that the model can predict, and a line for the user that names the others.

    The line is empty where there are none. Raises UsageError if the model can predict no algorithm of the grid.
    """
    known = model.algorithms(grid.collective)
    covered = tuple(name for name in grid.names if name in known)
    others = [name for name in grid.names if name not in known]
    if not covered:
        raise UsageError(f"model '{model.name}' covers none of the {grid.collective} algorithms asked for")
    if not others:
        return grid, ""
    line = f"{grid.collective}: left out, as model {model.name} has no formula or parameters for them: "
    return replace(grid, algorithms=covered), line + ", ".join(others)


def without_prediction(model: CollectiveModel, grid: CaseGrid, predicted: Array | None = None) -> str:
    """A line for the user that names the algorithms for which the model has no prediction at some point, or nothing.

    They are never chosen there. `predicted` are the grid's `predicted_seconds`, if they are known.
    """
    if isinstance(model, CriticalPath):
        return ""  # it predicts whatever runs
    seconds = predicted_seconds(model, grid) if predicted is None else predicted
    times = zip(grid.candidates.values(), seconds, strict=True)
    here = {name: _runs(grid, name) for name in grid.names}
    names = {one.algorithm: None for one, seconds in times if np.isnan(seconds[here[one.algorithm]]).any()}
    line = f"{grid.collective}: never chosen where model {model.name} has no prediction for them: "
    return line + ", ".join(names) if names else ""


def predict_choice(
    model: CollectiveModel, collective: str, choice: Choice, procs: ArrayLike, message_bytes: ArrayLike
) -> Array:
    """Predicted seconds of a choice over arrays of points, nan where the model has no prediction."""
    return model.predict(collective, choice.algorithm, procs, message_bytes, choice.segment_bytes, choice.fanout)


def predicted_seconds(model: CollectiveModel, grid: CaseGrid, progress: ShowProgress = without_progress) -> Array:
    """Predicted times of the grid's candidates, shape (candidates, P, m).

    They are nan where the model has no prediction and where the candidate does not run.
    """
    procs, sizes = np.array(grid.procs)[:, None], np.array(grid.message_bytes)[None, :]
    seconds = np.full((len(grid.candidates), len(grid.procs), len(grid.message_bytes)), np.nan)
    covered = model.algorithms(grid.collective)
    with progress(f"predicting {grid.collective}") as advance:
        for index, choice in enumerate(grid.candidates.values()):
            if choice.algorithm in covered:
                predicted = predict_choice(model, grid.collective, choice, procs, sizes)
                seconds[index] = np.where(_runs(grid, choice.algorithm), predicted, np.nan)
            if advance is not None:
                advance(None, (index + 1) / len(seconds))
    return seconds


def contested_seconds(
    model: CriticalPath, grid: CaseGrid, tolerance: float, progress: ShowProgress = without_progress
) -> Array:
    """Like `predicted_seconds`, by playing schedules; nan also for choices beyond the tolerance."""
    choices = list(grid.candidates.values())
    seconds = np.full((len(choices), len(grid.procs), len(grid.message_bytes)), np.nan)
    stop = threading.Event()
    done = iter(range(1, len(grid.procs) + 1))

    def play(case: Case, most_seconds: float) -> float | None:
        return None if stop.is_set() else model.seconds_within(case, most_seconds)

    def find(place: int) -> None:
        procs = grid.procs[place]
        points = {
            grid.case(choice, procs, size): (i, place, k)
            for i, choice in enumerate(choices)
            for k, size in enumerate(grid.message_bytes)
            if grid.fits(procs, size)
            and not Catalogue.load().algorithm(grid.collective, choice.algorithm).objection(procs)
        }
        for case, value in hold_contests(points, play, tolerance, {}).items():
            seconds[points[case]] = value
        if advance is not None:
            advance(None, next(done) / len(grid.procs))

    tasks = [partial(find, place) for place in reversed(range(len(grid.procs)))]
    with progress(f"deciding {grid.collective}") as advance:
        run_concurrently(tasks, os.cpu_count() or 1, stop)
    return seconds


def simulated_seconds(grid: CaseGrid, sweep: RunResult) -> Array:
    """Simulated times of the grid's candidates, shape (candidates, P, m); nan for what failed or does not run."""
    return seconds_of_choices(grid, sweep, list(grid.candidates.values()))


def seconds_of_choices(grid: CaseGrid, sweep: RunResult, choices: Sequence[Choice]) -> Array:
    """The same for other choices, shape (choices, P, m)."""
    found = [seconds_of(grid, sweep, choice, *point) for choice in choices for point in grid.points]
    return np.reshape(found, (len(choices), len(grid.procs), len(grid.message_bytes)))


def seconds_of(grid: CaseGrid, sweep: RunResult, choice: Choice, procs: int, message_bytes: int) -> float:
    """The simulated time of a choice at a point; nan where it failed or does not run."""
    timing = sweep.timings.get(grid.case(choice, procs, message_bytes))
    return timing.seconds if timing is not None else np.nan


def _runs(grid: CaseGrid, algorithm: str) -> np.ndarray:
    """The points of the grid at which an algorithm runs and the buffers fit: booleans of shape (P, m)."""
    entry = Catalogue.load().algorithm(grid.collective, algorithm)
    runs = np.array([not entry.objection(procs) for procs in grid.procs])[:, None]
    longest = np.array([grid.most_bytes(procs) for procs in grid.procs])[:, None]
    return runs & (np.array(grid.message_bytes) <= longest)
