"""Cost formulas of the gather algorithms: Nuriyev & Lastovetsky 2021, section III-B.

Messages that may cross the eager limit independently are separate parts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from collwise.models.implementation_aware.message_counts import Gamma, Messages, by_algorithm, ceil_log2
from collwise.models.interface import Points


def linear(points: Points, gamma: Gamma) -> Sequence[Messages]:
    """Formula (12): (P - 1) (alpha + m beta)."""
    return [Messages("main", points.procs - 1, points.message_bytes)]


def linear_sync(points: Points, gamma: Gamma) -> Sequence[Messages]:
    """(13) if two eager parts arrive together: (P - 1) (alpha + m / 2 beta); else (14): (P - 1) (2 alpha + m beta)."""
    half = np.floor(points.message_bytes / 2)
    first = np.minimum(np.where(points.segment_bytes > 0, points.segment_bytes, half), points.message_bytes)
    second = points.message_bytes - first
    both_eager = np.maximum(first, second) < points.eager_limit_bytes
    return [
        Messages("main", np.where(both_eager, points.procs - 1, 0.0), points.message_bytes / 2),
        Messages("main", np.where(both_eager, 0.0, points.procs - 1), first),
        Messages("main", np.where(both_eager, 0.0, points.procs - 1), second),
    ]


def linear_sync_as_printed(points: Points, gamma: Gamma) -> Sequence[Messages]:
    """Formula (13) or (14) with equal halves of a block, depending on the size of a half."""
    half = points.message_bytes / 2
    messages = np.where(half < points.eager_limit_bytes, 1.0, 2.0)
    return [Messages("main", messages * (points.procs - 1), half)]


def binomial(points: Points, gamma: Gamma) -> Sequence[Messages]:
    """Formula (15), step by step. The i-th step moves 2^(i-1) blocks, or fewer if the last child has fewer."""
    steps = int(np.max(ceil_log2(points.procs), initial=0.0))
    parts = []
    for step in range(steps):
        blocks = np.clip(points.procs - 2.0**step, 0.0, 2.0**step)
        parts.append(Messages("main", np.where(blocks > 0, 1.0, 0.0), blocks * points.message_bytes))
    return parts


def binomial_as_printed(points: Points, gamma: Gamma) -> Sequence[Messages]:
    """Formula (15): ceil(log2 P) alpha + (P - 1) m beta."""
    steps = ceil_log2(points.procs)
    return [Messages("main", steps, (points.procs - 1) * points.message_bytes / np.maximum(steps, 1))]


AS_PRINTED = by_algorithm(linear, linear_sync_as_printed, binomial_as_printed)
BY_PARTS = by_algorithm(linear, linear_sync, binomial)
