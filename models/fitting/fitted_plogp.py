"""PLogP with L and g fitted to two collectives: Pješivac-Grbović et al. 2007, section 6.1.

The unsegmented chain broadcast takes (P - 1) (L + g(m)), the linear barrier at best P g(0) + 2 L (tables 1 and 2). Over
several P and m this is linear in L and every g(m). Overheads stay as they were measured between two processes.

The barrier's messages are empty (those of a simulated one carry a byte) and an empty broadcast sends none: g(0) is
assumed to be the g(1) of the chain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from collwise.common.errors import CollwiseError, UsageError
from collwise.common.experiments import CHAIN_BCAST, LINEAR_BARRIER, Experiment, Laboratory
from collwise.models.piecewise import PiecewiseLinear
from collwise.models.plogp import PLogP


def fitted_plogp(
    lab: Laboratory, measured: PLogP, sizes: Sequence[int] | None = None, procs: Sequence[int] | None = None
) -> PLogP:
    """`measured` with fitted L and g, by least squares of relative residuals.

    `sizes` in bytes are the knots of the measured gap unless given, and 1 byte; `procs` are 2, 4, 8 and so on, and all,
    unless given. Raises UsageError for sizes and processes that do not fit and CollwiseError for collectives that take
    no time.
    """
    communicators = _communicators(lab, procs)
    chosen = [int(size) for size in (sizes or measured.gap.message_bytes)]
    if min(chosen) < 0:
        raise UsageError(f"messages of {min(chosen)} bytes: at least 0 is valid")
    knots = sorted({1, *(max(1, size) for size in chosen)})
    experiments, rows = [], []
    for of in communicators:
        experiments.append(Experiment(LINEAR_BARRIER, tuple(range(of)), 0))
        rows.append(_row(len(knots), 2.0, 0, float(of)))
        for index, size in enumerate(knots):
            experiments.append(Experiment(CHAIN_BCAST, tuple(range(of)), size))
            rows.append(_row(len(knots), of - 1.0, index, of - 1.0))
    seconds = np.array([measurement.seconds for measurement in lab.run(experiments)])
    if seconds.min() <= 0:
        raise CollwiseError("a broadcast or a barrier took no time: there is nothing to fit PLogP to")
    latency, *gaps = np.linalg.lstsq(np.array(rows) / seconds[:, None], np.ones(len(rows)), rcond=None)[0]
    gap = PiecewiseLinear(tuple(map(float, knots)), tuple(map(float, gaps)))
    return replace(measured, latency_seconds=float(latency), gap=gap)


def _communicators(lab: Laboratory, procs: Sequence[int] | None) -> list[int]:
    chosen = sorted({*(1 << k for k in range(1, lab.procs.bit_length()) if 1 << k <= lab.procs), lab.procs})
    if procs is not None:
        chosen = sorted(set(procs))
    if not chosen or chosen[0] < 2 or chosen[-1] > lab.procs or len(chosen) < 2:
        raise UsageError(
            f"fitting PLogP on {', '.join(map(str, chosen)) or 'no'} processes: "
            f"2 to {lab.procs} are valid, two different numbers at least"
        )
    return chosen


def _row(gaps: int, latencies: float, index: int, times: float) -> list[float]:
    """The number of times that L and each g(m) occur in a time."""
    row = [latencies, *([0.0] * gaps)]
    row[1 + index] = times
    return row
