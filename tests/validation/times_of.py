"""Times that tests make up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from collwise.validation.times.choice import Choice
from collwise.validation.times.grid import Grid
from collwise.validation.times.times import State, Times


def times_of(
    collective: str,
    choices: Sequence[Choice],
    procs: Sequence[int],
    sizes: Sequence[int],
    seconds: Any,
    source: str = "simulated",
    half_widths: Any = 0.0,
) -> Times:
    """Times on a platform `bed`, of shape (choices, P, m) or what is the same for all of them; nan where none is."""
    grid = Grid(collective, tuple(choices), tuple(procs), tuple(sizes))
    values = np.broadcast_to(np.asarray(seconds, dtype=float), (len(choices), len(procs), len(sizes)))
    widths = np.where(np.isnan(values), np.nan, np.broadcast_to(np.asarray(half_widths, dtype=float), values.shape))
    state = np.where(np.isnan(values), State.NOT_ASKED, State.TIMED).astype(np.int8)
    return Times.of_values(
        grid, {"seconds": values, "half_width_seconds": widths, "state": state}, "bed", source, "test"
    )
