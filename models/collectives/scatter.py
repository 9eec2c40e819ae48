"""Scatter: O'Flynn 2009, sections 4.2, 5.1 and 5.2, for P >= 2. m is the block of each process; the root is rank 0."""

from __future__ import annotations

import numpy as np

from collwise.models.collectives.steps import Steps
from collwise.models.collectives.trees import TreeModel, binomial_seconds, by_procs
from collwise.models.interface import Points
from collwise.models.piecewise import Array
from collwise.models.single_messages import LMO, Hockney


def linear(points: Points, steps: Steps) -> Array:
    """message + (P - 2) gap.

    That is (P - 1) (alpha + m beta) under Hockney, L + 2 o + (P - 1) (m - 1) G + (P - 2) g under LogGP, and
    L + (P - 1) g(m) under PLogP.
    """
    m = points.message_bytes
    return np.asarray(steps.message(m) + (points.procs - 2) * steps.gap(m, points.procs - 1))


def linear_between_pairs(points: Points, model: Hockney) -> Array:
    """The sum of alpha_0i + m beta_0i (table 5.2)."""
    return by_procs(points, lambda procs, m: np.sum([model.predict(m, 0, i) for i in range(1, procs)], axis=0))


def linear_lmo(points: Points, model: LMO) -> Array:
    """(4.1): (P - 1) (C_0 + m t_0) + max over i of (L_0i + C_i + m t_i + m / beta_0i).

    Table 5.2 prints m t_i twice. If that were right, a scatter between two processors would take longer than one
    message.
    """

    def seconds(procs: int, m: Array) -> Array:
        root, others = lmo_parts(model, procs, m)
        return np.asarray((procs - 1) * root + np.max(others, axis=0))

    return by_procs(points, seconds)


def lmo_parts(model: LMO, procs: int, message_bytes: Array) -> tuple[Array, Array]:
    """The root's part C_0 + m t_0, and the part L_0i + C_i + m t_i + m / beta_0i of each other processor i.

    For k message sizes, the shapes of the two arrays are (k,) and (P - 1, k).
    """
    pairs = model.as_hockney()
    constant = np.ravel(model.processor_seconds)[0]
    per_byte = np.ravel(model.processor_seconds_per_byte)[0]
    root = np.asarray(constant + message_bytes * per_byte)
    return root, np.asarray([pairs.predict(message_bytes, 0, i) - root for i in range(1, procs)])


def binomial(points: Points, model: TreeModel) -> Array:
    """The recursion of `trees.binomial_seconds`, with rank r on processor r.

    Under Hockney, if P is a power of two, this is log2 P alpha + (P - 1) m beta (Chan et al., cited in section 5.1).
    """
    return by_procs(points, lambda procs, m: binomial_seconds(model, range(procs), m))
