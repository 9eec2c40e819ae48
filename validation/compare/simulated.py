"""Models and untuned libraries beside simulated times, which are the right ones here."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from collwise.common.errors import UsageError
from collwise.models.interface import CollectiveModel
from collwise.platforms import HostPlatform
from collwise.platforms.smpi import warn_of_free_messages
from collwise.simulator.sweeps.context import ShowProgress, SimulationContext
from collwise.validation.compare.deciders import timed_besides, untuned
from collwise.validation.compare.scores import Scores, compare
from collwise.validation.libraries.baselines import Baseline, remarks_on
from collwise.validation.times.defaults import EVALUATED_SEGMENTS
from collwise.validation.times.grid import Grid
from collwise.validation.times.points import warn_of_doubtful
from collwise.validation.times.sources import predicted, simulate
from collwise.validation.times.times import State, Times

_LARGEST_BYTES = {
    **dict.fromkeys(("bcast", "reduce", "allreduce", "reduce_scatter", "scan", "exscan"), 2**20),
    **dict.fromkeys(("scatter", "scatterv", "gather", "gatherv"), 2**18),
    **dict.fromkeys(("alltoall", "alltoallv", "allgather", "allgatherv", "reduce_scatter_block"), 2**16),
}


def beside_simulation(
    platform: HostPlatform,
    grid: Grid,
    predictions: Sequence[Times],
    context: SimulationContext,
    baseline: Baseline | None = None,
) -> Scores:
    """The scores of models, then of the untuned library, by simulated times; what is missing of these is simulated.

    Raises UsageError when the grid does not fit on the platform, and for a collective that the baseline does not
    decide.
    """
    deciders = [] if baseline is None else untuned(baseline, grid)
    (right,) = simulate(platform, [timed_besides(grid, deciders)], context)
    warn_of_free_messages(platform)
    warn_of_doubtful(platform, [grid])
    return compare(right, *predictions, *deciders)


def remarks(scores: Scores) -> list[str]:
    """Lines for the user: what models do not predict, and what untuned libraries run that the catalogue has not."""
    lines = [note for times in scores.times.values() for note in times.notes]
    libraries = [one for one in scores.deciders.values() if isinstance(one, Baseline)]
    return [*lines, *(line for one in libraries for line in remarks_on(one, scores.right.grid))]


def one_segment_is_none(times: Times) -> Times:
    """The times without those of choices whose segments cut nothing, where their algorithms have one without segments.

    A message of one segment is unsegmented, even if a model has other parameters for either.
    """
    whole = {one.algorithm for one in times.choices if not one.segment_bytes}
    cut = np.array([one.segment_bytes if one.algorithm in whole else 0 for one in times.grid.timed])[:, None, None]
    return times.where((cut == 0) | (cut < np.array(times.message_bytes)))


def usual_grid(platform: HostPlatform, collective: str, procs: Sequence[int] = ()) -> Grid:
    """P from 3 to all nodes, one process per node; m from 8 B by factors of 4; the paper's segments for trees."""
    nodes = len(platform.hosts)
    counts = tuple(procs) or tuple(sorted({p for p in (3, 5, 8, 12, 16, 24, nodes) if p <= nodes}))
    largest = _LARGEST_BYTES.get(collective)
    sizes = (0,) if largest is None else tuple(4**k * 8 for k in range(20) if 4**k * 8 <= largest)
    return Grid.of(collective, counts, sizes, segments=EVALUATED_SEGMENTS)


def evaluate(
    platform: HostPlatform,
    models: Sequence[CollectiveModel],
    grids: Sequence[Grid],
    context: SimulationContext,
    baseline: Baseline | None = None,
) -> list[Scores]:
    """The scores of models by simulated times of every algorithm that any of them covers, collective by collective.

    With a baseline, so are the picks of the untuned library, where it decides at all. Raises UsageError if a collective
    is covered by none of the models, and for a single process, which takes no time.
    """
    if any(min(grid.procs) < 2 for grid in grids):
        raise UsageError("models are scored from P = 2 on")
    deciders = {one: [baseline] for one in baseline.collectives} if baseline is not None else {}
    covered = [_covered(grid, models) for grid in grids]
    wide = [timed_besides(grid, deciders.get(grid.collective, [])) for grid in covered]
    label = f"{platform.name}: simulating {len(grids)} collectives"
    return [
        compare(
            right,
            *(_predicted(model, grid, context.progress) for model in models),
            *deciders.get(grid.collective, []),
        )
        for grid, right in zip(covered, simulate(platform, wide, context, label=label), strict=True)
    ]


def _covered(grid: Grid, models: Sequence[CollectiveModel]) -> Grid:
    covered = {name for model in models for name in model.algorithms(grid.collective)}
    found = grid.of_algorithms(covered).by_algorithm()
    if not found.choices:
        raise UsageError(f"none of the models {', '.join(model.name for model in models)} covers {grid.collective}")
    return found


def _predicted(model: CollectiveModel, grid: Grid, progress: ShowProgress) -> Times:
    """The predicted times of a grid, of none of its choices if the model covers none."""
    if grid.of_algorithms(model.algorithms(grid.collective)).choices:
        return predicted(model, grid, progress=progress)
    none = grid.only(lambda choice: False)
    seconds = np.zeros((0, len(grid.procs), len(grid.message_bytes)))
    return Times.of_seconds(none, seconds, model.platform, "predicted", f"model {model.name}", State.NO_FORMULA)
