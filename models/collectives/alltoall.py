"""Alltoall: Pješivac-Grbović et al. 2007, table 4, for P >= 2. m is the block sent to each other process."""

from __future__ import annotations

import numpy as np

from collwise.models.collectives.steps import Steps
from collwise.models.interface import Points
from collwise.models.piecewise import Array


def linear(points: Points, steps: Steps) -> Array:
    """message + (P - 2) gap. The C code starts all sends of all processes at once, as in P concurrent scatters.

    In the linear algorithm of table 4, one process after another sends to all others; models/collectives/printed.py
    contains that formula.
    """
    m = points.message_bytes
    return np.asarray(steps.message(m) + (points.procs - 2) * steps.gap(m, points.procs - 1))


def pairwise(points: Points, steps: Steps) -> Array:
    """P - 1 rounds in which all processes send and receive."""
    return np.asarray((points.procs - 1) * steps.round(points.message_bytes))
