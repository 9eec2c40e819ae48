"""Cost formulas of the reduce algorithms, which the papers lack, split into parts like those of the broadcasts.

`fill` counts the messages on the slowest path up the tree, `inflow` the messages that wait at one process, which
combines each while the next is under way, and `steady` the messages of later segments. beta includes combining.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from collwise.models.implementation_aware.message_counts import Gamma, Messages, by_algorithm, ceil_log2, floor_log2
from collwise.models.interface import Points, longest_segment
from collwise.models.piecewise import Array


def linear(points: Points, gamma: Gamma) -> Sequence[Messages]:
    """One message, then P - 2 that wait at the root. The C code does not segment messages here."""
    return _parts(points, np.ones_like(points.procs), points.procs - 2, np.zeros_like(points.procs), whole=True)


def pipeline(points: Points, gamma: Gamma) -> Sequence[Messages]:
    """P - 1 steps to fill the chain, then n_s - 1 steps."""
    return _parts(points, points.procs - 1, np.zeros_like(points.procs), points.segments - 1)


def chain(points: Points, gamma: Gamma) -> Sequence[Messages]:
    """The messages of the longest of K chains, K - 1 more at the root, and K for each further segment."""
    chains = np.minimum(points.parameter, np.maximum(points.procs - 1, 1))
    return _parts(points, np.ceil((points.procs - 1) / chains), chains - 1, chains * (points.segments - 1))


def binary(points: Points, gamma: Gamma) -> Sequence[Messages]:
    """Two messages at each of floor(log2 P) levels and for each further segment; one in place of two if P = 2."""
    children = np.minimum(points.procs - 1, 2)
    fill = floor_log2(points.procs) * children
    return _parts(points, fill, np.zeros_like(fill), children * (points.segments - 1))


def binomial(points: Points, gamma: Gamma) -> Sequence[Messages]:
    """ceil(log2 P) steps, the largest subtree last; the root receives as many messages for each further segment."""
    children = ceil_log2(points.procs)
    return _parts(points, children, np.zeros_like(children), children * (points.segments - 1))


def _parts(points: Points, fill: Array, inflow: Array, steady: Array, whole: bool = False) -> list[Messages]:
    m = points.message_bytes
    bytes_each, longest = (m, m) if whole else (points.bytes_each, longest_segment(m, points.segment_bytes))
    counts = {"fill": fill, "inflow": inflow, "steady": steady}
    return [
        Messages(name, np.where(points.procs > 1, np.maximum(count, 0.0), 0.0), bytes_each, longest=longest)
        for name, count in counts.items()
    ]


BY_PARTS = by_algorithm(linear, chain, pipeline, binary, binomial)
