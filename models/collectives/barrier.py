"""Barriers: Pješivac-Grbović et al. 2007, table 1, for P >= 2. Messages are empty, see `steps.EMPTY_BYTES`."""

from __future__ import annotations

import numpy as np

from collwise.models.collectives.steps import EMPTY_BYTES, Steps
from collwise.models.interface import Points
from collwise.models.piecewise import Array


def linear(points: Points, steps: Steps, conservative: bool = False) -> Array:
    """The flat tree at best, T_min of the paper: one report, and then the release of P - 1 processes.

    `conservative` gives T_max, in which the root receives the other P - 2 reports one after another. For Hockney the
    paper prints (P - 1) alpha, but one receive and P - 1 sends take P alpha, as in the paper's formulas for LogGP and
    PLogP.
    """
    further = points.procs - 2
    seconds = 2 * steps.message(EMPTY_BYTES) + further * steps.gap(EMPTY_BYTES, points.procs - 1)
    return np.asarray(seconds + further * steps.receiving(EMPTY_BYTES) if conservative else seconds)


def double_ring(points: Points, steps: Steps) -> Array:
    """2 P steps. Under LogGP a step takes L + o + g, as printed, although a message without delay takes L + 2 o."""
    return np.asarray(2 * points.procs * steps.round(EMPTY_BYTES))


def recursive_doubling(points: Points, steps: Steps) -> Array:
    """log2 P steps, or floor(log2 P) + 2 if P is not a power of two. The paper's Hockney formula has no floor."""
    whole = np.floor(np.log2(points.procs))
    extra = np.where(2**whole == points.procs, 0.0, 2.0)
    return np.asarray((whole + extra) * steps.round(EMPTY_BYTES))


def bruck(points: Points, steps: Steps) -> Array:
    """ceil(log2 P) steps."""
    return np.asarray(np.ceil(np.log2(points.procs)) * steps.round(EMPTY_BYTES))
