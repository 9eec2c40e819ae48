"""Decision maps: the best choice at every (P, m) by simulation and by models, and the slowdown of the models' picks.

Figures 6 and 7 of Pješivac-Grbović et al. 2007, who call an algorithm at a segment size a method.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from collwise.common.errors import UsageError
from collwise.models.interface import CollectiveModel
from collwise.models.piecewise import Array
from collwise.models.switch_points import NOBODY, Indices, fastest, picked_seconds
from collwise.platforms import HostPlatform
from collwise.platforms.smpi import warn_of_free_messages
from collwise.simulator.sweeps.context import ShowProgress, SimulationContext
from collwise.simulator.sweeps.runner import RunResult
from collwise.simulator.timing import Case
from collwise.validation.library_defaults.baselines import Baseline, remarks_on
from collwise.validation.times.choice import Choice
from collwise.validation.times.grid import CaseGrid
from collwise.validation.times.points import warn_of_doubtful
from collwise.validation.times.predictions import (
    covered_by_model,
    predicted_seconds,
    seconds_of_choices,
    simulated_seconds,
    without_prediction,
)
from collwise.validation.times.slowdown import slowdown, summary_of

# Simulated times that differ by less than this share are equal: the clock is no finer.
_CLOCK = 1e-6


@dataclass(frozen=True)
class ModelMap:
    """The picks of a model: indices of methods, or NOBODY, and the picks' slowdowns, both of shape (P, m).

    The slowdown is nan where the model picks nothing or no simulated time is there. `remarks` are lines for the user.
    """

    winners: Indices
    slowdown: Array
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class MapSummary:
    """The score of a model's map. `best_share` is the share of the points at which it picks a best method.

    The worst slowdown is at (`worst_procs`, `worst_bytes`), where the model picks `worst_pick`.
    """

    best_share: float
    mean_slowdown: float
    worst_slowdown: float
    worst_procs: int
    worst_bytes: int
    worst_pick: Choice


@dataclass(frozen=True)
class DecisionMaps:
    """Maps of one collective over the points of a grid.

    `seconds` are the simulated times of the methods, shape (methods, P, m), nan where a method does not run; `best` the
    index of the fastest candidate; `models` the maps by model, `library` that of an untuned library by its title, whose
    picks that are no candidates are `more` methods.
    """

    grid: CaseGrid
    seconds: Array
    best: Indices
    models: Mapping[str, ModelMap]
    sweep: RunResult
    library: Mapping[str, ModelMap] = field(default_factory=dict)
    more: Sequence[Choice] = ()

    @property
    def methods(self) -> list[Choice]:
        """The choices in the order of the indices: the grid's candidates, which compete, and the library's others."""
        return [*self.grid.candidates.values(), *self.more]

    @property
    def maps(self) -> dict[str, ModelMap]:
        """The maps of models and the library by name."""
        return {**self.models, **self.library}

    def summary(self, model: str) -> MapSummary:
        """The summary of a model's or the library's map. Raises UsageError if it has no slowdown anywhere."""
        found = self.maps[model]
        summary = summary_of(found.slowdown, _CLOCK)
        if not summary.points:
            raise UsageError(f"model '{model}' picks nothing at the points asked for")
        i, j = summary.worst_at
        return MapSummary(
            best_share=summary.best_chosen / summary.points,
            mean_slowdown=summary.mean,
            worst_slowdown=summary.worst,
            worst_procs=self.grid.procs[i],
            worst_bytes=self.grid.message_bytes[j],
            worst_pick=self.methods[found.winners[i, j]],
        )


def decision_maps(
    platform: HostPlatform,
    grid: CaseGrid,
    models: Sequence[CollectiveModel],
    context: SimulationContext,
    baseline: Baseline | None = None,
) -> DecisionMaps:
    """Simulates what is missing of the grid's candidates, and lays each model's picks beside the fastest ones.

    With a baseline, so are those of the untuned library, which need not be candidates. Raises UsageError when the grid
    does not fit on the platform, or a model covers none of its algorithms.
    """
    covered = [covered_by_model(model, grid) for model in models]
    shipped = shipped_choices(baseline, grid)
    cases = list(dict.fromkeys([*grid.cases(), *cases_shipped(baseline, grid)]))
    sweep = context.simulate(platform, cases, f"{platform.name}: simulating {grid.collective}")
    warn_of_free_messages(platform)
    warn_of_doubtful(platform, [grid])
    seconds = simulated_seconds(grid, sweep)
    best = fastest(seconds)
    made = {}
    for model, (asked, line) in zip(models, covered, strict=True):
        winners = _picks(model, grid, context.progress)
        remarks = filter(None, (line, without_prediction(model, asked)))
        made[model.name] = ModelMap(winners, slowdown_of_picks(seconds, winners, best), tuple(remarks))
    if baseline is None:
        return DecisionMaps(grid, seconds, best, made, sweep)
    methods = list(dict.fromkeys([*grid.candidates.values(), *filter(None, shipped.values())]))
    more = methods[len(seconds) :]
    seconds = np.concatenate([seconds, seconds_of_choices(grid, sweep, more)])
    theirs = [shipped[point] for point in grid.points]
    places = [NOBODY if choice is None else methods.index(choice) for choice in theirs]
    winners = np.reshape(places, best.shape)
    slower = slowdown_of_picks(seconds, winners, best)
    library = {baseline.title: ModelMap(winners, slower, tuple(remarks_on(baseline, grid)))}
    return DecisionMaps(grid, seconds, best, made, sweep, library, more)


def shipped_choices(baseline: Baseline | None, grid: CaseGrid) -> dict[tuple[int, int], Choice | None]:
    """The choices of the untuned library by point; None where the catalogue has none that is the same."""
    if baseline is None:
        return {}
    return {point: baseline.choice(grid.collective, *point) for point in grid.points}


def cases_shipped(baseline: Baseline | None, grid: CaseGrid) -> list[Case]:
    """The cases that time the choices of the untuned library, where a node can hold the buffers."""
    shipped = shipped_choices(baseline, grid).items()
    return [grid.case(one, *point) for point, one in shipped if one is not None and grid.fits(*point)]


def slowdown_of_picks(seconds: Array, picks: Indices, best: Indices) -> Array:
    """Slowdowns from seconds of shape (choices, P, m) and indices of shape (P, m); nan where an index is NOBODY."""
    return slowdown(picked_seconds(seconds, picks), picked_seconds(seconds, best))


def _picks(model: CollectiveModel, grid: CaseGrid, progress: ShowProgress) -> Indices:
    """The method that the model predicts to be the fastest, at every point."""
    times = predicted_seconds(model, grid, progress)
    sizes = np.array(grid.message_bytes)
    choices = list(grid.candidates.values())
    unsegmented = {choice.algorithm for choice in choices if choice.segment_bytes == 0}
    for choice, seconds in zip(choices, times, strict=True):
        if choice.segment_bytes and choice.algorithm in unsegmented:
            # A message of one segment is unsegmented, even if the model has other parameters for either.
            seconds[:, sizes <= choice.segment_bytes] = np.nan
    return fastest(times)
