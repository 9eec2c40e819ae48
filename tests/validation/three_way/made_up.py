"""Scores of made-up times."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from collwise.validation.compare.deciders import Decider, Deciding
from collwise.validation.compare.scores import Scores
from collwise.validation.three_way.verdicts import OWN
from collwise.validation.times.choice import LIBRARY_DECIDES, Choice
from collwise.validation.times.grid import Grid
from collwise.validation.times.times import State, Times


def made_up(
    measured: Mapping[str | Choice, Sequence[float]],
    others: Mapping[str, Mapping[str | Choice, Sequence[float]]],
    *,
    sizes: Sequence[int] = (1024,),
    half_width: float = 0.0,
    own: Sequence[float] | None = None,
    collective: str = "bcast",
    place: str = "bed",
    procs: int = 8,
    per_node: int = 1,
) -> Scores:
    """Scores of other times (nan: none) by measured ones, each a time at every size by algorithm or choice."""
    choices = {name: name if isinstance(name, Choice) else Choice(name) for name in measured}
    grid = Grid(collective, tuple(choices.values()), (procs,), tuple(sizes), per_node)
    if own is not None:
        grid = grid.with_besides(lambda *_: LIBRARY_DECIDES)

    def times(
        seconds: Mapping[str | Choice, Sequence[float]], source: str, width: float, last: Sequence[float]
    ) -> Times:
        rows = [seconds.get(name, [math.nan] * len(sizes)) for name in choices] + ([last] if own is not None else [])
        array = np.array(rows, dtype=float).reshape(len(rows), 1, len(sizes))
        state = np.where(np.isfinite(array), State.TIMED, State.FAILED).astype(np.int8)
        values = {"seconds": array, "half_width_seconds": np.where(np.isfinite(array), width, np.nan), "state": state}
        return Times.of_values(grid, values, place, source, "MPI 1")

    named: dict[str, Times | Decider] = {
        name: times(seconds, "simulated", 0.0, [math.nan] * len(sizes)) for name, seconds in others.items()
    }
    if own is not None:
        named[OWN] = Deciding(OWN, lambda *_: LIBRARY_DECIDES)
    return Scores(times(measured, "measured", half_width, own or []), named)
