"""Models and untuned libraries compared with simulated times, which are the reference times here."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from collwise.platforms import HostPlatform
from collwise.platforms.smpi import warn_of_free_messages
from collwise.simulator.sweeps.context import SimulationContext
from collwise.validation.compare.deciders import timed_besides, untuned
from collwise.validation.compare.scores import Scores, compare
from collwise.validation.libraries.baselines import Baseline, remarks_on
from collwise.validation.times.grid import Grid
from collwise.validation.times.memory_limits import warn_of_doubtful
from collwise.validation.times.sources import simulate
from collwise.validation.times.times import Times


def beside_simulation(
    platform: HostPlatform,
    grid: Grid,
    predictions: Sequence[Times],
    context: SimulationContext,
    baseline: Baseline | None = None,
) -> Scores:
    """The scores of models and of the untuned library against simulated times; simulates those that the store lacks."""
    deciders = [] if baseline is None else untuned(baseline, grid)
    (right,) = simulate(platform, [timed_besides(grid, deciders)], context)
    warn_of_free_messages(platform)
    warn_of_doubtful(platform, [grid])
    return compare(right, *predictions, *deciders)


def remarks(scores: Scores) -> list[str]:
    """Lines for the user on what models do not predict, and on algorithms of libraries that the catalogue lacks."""
    lines = [note for times in scores.times.values() for note in times.notes]
    libraries = [decider for decider in scores.deciders.values() if isinstance(decider, Baseline)]
    return [*lines, *(line for library in libraries for line in remarks_on(library, scores.right.grid))]


def one_segment_is_none(times: Times) -> Times:
    """Removes the times of choices whose segment is the whole message, if the algorithm was also timed unsegmented.

    A message of one segment is unsegmented, even if a model has different parameters for segmented messages.
    """
    whole = {choice.algorithm for choice in times.choices if not choice.segment_bytes}
    cut = np.array([choice.segment_bytes if choice.algorithm in whole else 0 for choice in times.grid.timed])[
        :, None, None
    ]
    return times.where((cut == 0) | (cut < np.array(times.message_bytes)))
