"""PLogP with L and g fitted to two collectives: Pješivac-Grbović et al. 2007, section 6.1.

The unsegmented chain broadcast takes (P - 1) (L + g(m)), the linear barrier at best P g(0) + 2 L (tables 1 and 2). Over
several P and m this is linear in L and every g(m). Overheads stay as they were measured between two processes.

The barrier's messages are empty (those of a simulated one carry a byte) and an empty broadcast sends none: g(0) is
assumed to be the g(1) of the chain.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from collwise.common.errors import CollwiseError
from collwise.common.experiments import CHAIN_BCAST, LINEAR_BARRIER, Experiment, Laboratory
from collwise.models.piecewise import PiecewiseLinear
from collwise.models.plogp import PLogP


def fitted_plogp(lab: Laboratory, measured: PLogP) -> PLogP:
    """`measured` with fitted L and g, by least squares of relative residuals.

    The knots are those of the measured gap, and 1 byte; the collectives run on 2, 4, 8 processes and so on, and on all.
    Raises CollwiseError for collectives that take no time.
    """
    communicators = sorted({*(1 << k for k in range(1, lab.procs.bit_length())), lab.procs})
    knots = sorted({1, *(max(1, int(size)) for size in measured.gap.message_bytes)})
    experiments = []
    # How often L and each g(m) occur in a time.
    rows = np.zeros((len(communicators), 1 + len(knots), 1 + len(knots)))
    for row, of in zip(rows, communicators, strict=True):
        experiments.append(Experiment(LINEAR_BARRIER, tuple(range(of)), 0))
        experiments += [Experiment(CHAIN_BCAST, tuple(range(of)), size) for size in knots]
        row[0, :2] = 2, of
        row[1:, 0] = of - 1
        row[1:, 1:] = (of - 1) * np.eye(len(knots))
    seconds = np.array([measurement.seconds for measurement in lab.run(experiments)])
    if seconds.min() <= 0:
        raise CollwiseError("a broadcast or a barrier took no time: there is nothing to fit PLogP to")
    equations = rows.reshape(len(seconds), -1) / seconds[:, None]
    latency, *gaps = np.linalg.lstsq(equations, np.ones(len(seconds)), rcond=None)[0]
    gap = PiecewiseLinear(tuple(map(float, knots)), tuple(map(float, gaps)))
    return replace(measured, latency_seconds=float(latency), gap=gap)
