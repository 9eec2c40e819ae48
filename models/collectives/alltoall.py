"""Alltoall: Pješivac-Grbović et al. 2007, table 4, for P >= 2. m is the block that each process sends to each other."""

from __future__ import annotations

import numpy as np

from collwise.models.collectives.steps import Steps
from collwise.models.interface import Points
from collwise.models.piecewise import Array


def linear(points: Points, steps: Steps) -> Array:
    """message + (P - 2) gap. The C code starts all sends of all processes at once, which is P scatters side by side.

    The table's algorithm of that name is another one, see `linear_in_turn`.
    """
    m = points.message_bytes
    return np.asarray(steps.message(m) + (points.procs - 2) * steps.gap(m))


def linear_in_turn(points: Points, steps: Steps) -> Array:
    """One process after another sends to all others, each as soon as it has the message of the previous one.

    P message + (N - P) gap, N = (P - 1) (n_s P + 1 - P / 2). The print lacks the - g of linear broadcast under LogGP,
    once per process; its Hockney line has no beta in the second summand and counts P messages twice.
    """
    m, procs = points.bytes_each, points.procs
    messages = (procs - 1) * (points.segments * procs + 1 - procs / 2)
    return np.asarray(procs * steps.message(m) + (messages - procs) * steps.gap(m))


def pairwise(points: Points, steps: Steps) -> Array:
    """P - 1 rounds in which all processes send and receive."""
    return np.asarray((points.procs - 1) * steps.round(points.message_bytes))
