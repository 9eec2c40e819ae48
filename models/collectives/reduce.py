"""Reductions: Pješivac-Grbović et al. 2007, table 3, for P >= 2.

Combining takes gamma = `points.reduce_seconds_per_byte`. Below, `message` is one of a segment of m_s bytes, combined:
its time and m_s gamma; inflow(s) is the time between two of them at their receiver, s = 1 if it then passes one on
(`steps.Steps`).

The table's lines do not agree with each other on where (m_s - 1) G, g and o_s go, so these are derived from the
algorithm: a single message between two processes takes what it takes, without gamma and overheads a reduction takes
what the broadcast does, and PLogP with a linear g becomes LogGP. Hockney's are as printed.
"""

from __future__ import annotations

import numpy as np

from collwise.models.collectives.steps import Steps
from collwise.models.interface import Points
from collwise.models.piecewise import Array


def linear(points: Points, steps: Steps) -> Array:
    """The flat tree: message + (n_s (P - 1) - 1) inflow(0).

    The print has, under LogGP, one (m_s - 1) G more and one g per segment however many processes send; under PLogP the
    first combining within the gap. The C code knows no segments here.
    """
    later = points.segments * (points.procs - 1) - 1
    return np.asarray(_message(points, steps) + later * _inflow(points, steps))


def chain(points: Points, steps: Steps) -> Array:
    """K chains that end at the root. l message + (n_s K - 1) inflow(0), l = ceil((P - 1) / K).

    Not in the table; K = 1 is the pipeline and K = P - 1 the linear tree.
    """
    chains = np.clip(float(points.parameter), 1.0, np.maximum(points.procs - 1, 1.0))
    length = np.ceil((points.procs - 1) / chains)
    at_root = chains * _inflow(points, steps)
    steady = np.maximum(at_root, _inflow(points, steps, length > 1))
    filling = length * _message(points, steps) + at_root - _inflow(points, steps)
    return np.asarray(filling + (points.segments - 1) * steady)


def pipeline(points: Points, steps: Steps) -> Array:
    """(P - 1) message + (n_s - 1) inflow(1); with two processes none both receives and sends.

    The print has (m_s - 1) G within LogGP's max; PLogP's adds o_s to the max, and has the first combining within the
    gap.
    """
    steady = _inflow(points, steps, points.procs > 2)
    return np.asarray((points.procs - 1) * _message(points, steps) + (points.segments - 1) * steady)


def binomial(points: Points, steps: Steps) -> Array:
    """ceil(log2 P) (message + (n_s - 1) inflow(0)).

    The print has a max with g for the only segment, too, and o_s within PLogP's max, though the root, for which all
    others wait, sends nothing. The C code receives by segments, then children, which takes the same time where P is a
    power of two.
    """
    steady = (points.segments - 1) * _inflow(points, steps)
    return np.asarray(np.ceil(np.log2(points.procs)) * (_message(points, steps) + steady))


def binary(points: Points, steps: Steps) -> Array:
    """d (message + inflow(0)) + (n_s - 1) (inflow(0) + inflow(1)), d = ceil(log2(P + 1)) - 1.

    The print has, under LogGP, (m_s - 1) G and g once for two children, and the summand with n_s - 1 d times. No
    process both receives and sends for P <= 3.
    """
    levels = np.ceil(np.log2(points.procs + 1)) - 1
    children = np.minimum(points.procs - 1, 2)
    filling = levels * (_message(points, steps) + (children - 1) * _inflow(points, steps))
    steady = (children - 1) * _inflow(points, steps) + _inflow(points, steps, points.procs > 3)
    return np.asarray(filling + (points.segments - 1) * steady)


def _message(points: Points, steps: Steps) -> Array:
    m = points.bytes_each
    return np.asarray(steps.message(m) + points.reduce_seconds_per_byte * m)


def _inflow(points: Points, steps: Steps, sends: bool | np.ndarray = False) -> Array:
    return steps.inflow(points.bytes_each, points.reduce_seconds_per_byte, np.asarray(sends, dtype=float))
