"""Reductions: Pješivac-Grbović et al. 2007, table 3, for P >= 2. Hockney's formulas are as printed.

`message` includes combining; inflow(s) is the time between two messages at their receiver, which sends each segment on
if s is 1. The table places (m_s - 1) G, g and o_s inconsistently, so we derived the other formulas under three
conditions: a single message between two processes takes its point-to-point time; without gamma and overheads, a
reduction takes as long as the broadcast; PLogP with a linear g becomes LogGP.
"""

from __future__ import annotations

import numpy as np

from collwise.models.collectives.steps import Steps
from collwise.models.interface import Points
from collwise.models.piecewise import Array


def linear(points: Points, steps: Steps) -> Array:
    """The flat tree: message + (n_s (P - 1) - 1) inflow(0). The C code does not segment messages here.

    The printed formula for LogGP has one more (m_s - 1) G, and one g per segment. In the one for PLogP, the combining
    of the first message overlaps with the gap.
    """
    later = points.segments * (points.procs - 1) - 1
    return np.asarray(_message(points, steps) + later * _inflow(points, steps))


def chain(points: Points, steps: Steps) -> Array:
    """K chains that end at the root; not in the table. l message + (n_s K - 1) inflow(0), l = ceil((P - 1) / K)."""
    chains = np.clip(float(points.parameter), 1.0, np.maximum(points.procs - 1, 1.0))
    length = np.ceil((points.procs - 1) / chains)
    at_root = chains * _inflow(points, steps)
    steady = np.maximum(at_root, _inflow(points, steps, length > 1))
    filling = length * _message(points, steps) + at_root - _inflow(points, steps)
    return np.asarray(filling + (points.segments - 1) * steady)


def pipeline(points: Points, steps: Steps) -> Array:
    """(P - 1) message + (n_s - 1) inflow(1); inflow(0) if P = 2, since then no process both receives and sends."""
    steady = _inflow(points, steps, points.procs > 2)
    return np.asarray((points.procs - 1) * _message(points, steps) + (points.segments - 1) * steady)


def binomial(points: Points, steps: Steps) -> Array:
    """ceil(log2 P) (message + (n_s - 1) inflow(0)); the C code takes as long if P is a power of two.

    The printed formulas take the max with g even for a single segment. The one for PLogP has o_s within the max,
    although the root sends nothing.
    """
    steady = (points.segments - 1) * _inflow(points, steps)
    return np.asarray(np.ceil(np.log2(points.procs)) * (_message(points, steps) + steady))


def binary(points: Points, steps: Steps) -> Array:
    """d (message + inflow(0)) + (n_s - 1) (inflow(0) + inflow(1)), d = ceil(log2(P + 1)) - 1.

    If P <= 3, no process both receives and sends, and inflow(0) replaces inflow(1). LogGP's printed formula counts (m_s
    - 1) G and g once for two children, and d also multiplies the summand with n_s - 1.
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
