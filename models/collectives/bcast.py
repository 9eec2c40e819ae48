"""Broadcasts: Pješivac-Grbović et al. 2007, table 2, for P >= 2.

In every tree, as in the C code, a process sends a segment to all its children before it sends the next segment.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from collwise.models.collectives.steps import Steps
from collwise.models.interface import Points
from collwise.models.piecewise import Array


def linear(points: Points, steps: Steps) -> Array:
    """n_s (P - 1) messages in a row; the C code segments messages only in its non-blocking form."""
    m = points.bytes_each
    return np.asarray(steps.message(m) + (points.segments * (points.procs - 1) - 1) * steps.gap(m, points.procs - 1))


def chain(points: Points, steps: Steps) -> Array:
    """The pipeline: (P - 1) message + (n_s - 1) gap."""
    m = points.bytes_each
    return np.asarray((points.procs - 1) * steps.message(m) + (points.segments - 1) * steps.gap(m))


def binomial(points: Points, steps: Steps) -> Array:
    """ceil(log2 P) (message + (n_s - 1) gap).

    In the paper, a process sends the whole message to one child before it sends to the next. The C code takes the same
    time if P is a power of two, since the root sends n_s ceil(log2 P) messages in both orders.
    """
    m = points.bytes_each
    children = np.ceil(np.log2(points.procs))
    return np.asarray(children * (steps.message(m) + (points.segments - 1) * steps.gap(m, children)))


def binary(points: Points, steps: Steps) -> Array:
    """d (message + gap) + (n_s - 1) fork, d = ceil(log2(P + 1)) - 1; a chain if P = 2.

    In print, a step under Hockney takes 2 alpha + m_s beta instead of 2 (alpha + m_s beta), and LogGP's second summand
    has another factor than n_s - 1. Under PLogP, the max in `fork` applies only if P > 3, since otherwise no process
    both receives and sends.
    """
    return _down_binary_tree(points, steps, points.segments, points.bytes_each)


def split_binary(points: Points, steps: Steps) -> Array:
    """The binary tree with half the segments, then an exchange of m / 2, which the printed formula for PLogP lacks.

    The C code segments each half, so an unsegmented message goes down the tree in pieces of m / 2, not of m.
    """
    half = replace(points, message_bytes=points.message_bytes / 2)
    return np.asarray(
        _down_binary_tree(points, steps, half.segments, half.bytes_each) + steps.message(half.message_bytes)
    )


def _down_binary_tree(points: Points, steps: Steps, segments: Array, bytes_each: Array) -> Array:
    levels = np.ceil(np.log2(points.procs + 1)) - 1
    children = np.minimum(points.procs - 1, 2)
    gap = steps.gap(bytes_each, children)
    steady = np.where(points.procs > 3, steps.fork(bytes_each), children * gap)
    return np.asarray(levels * (steps.message(bytes_each) + (children - 1) * gap) + (segments - 1) * steady)
