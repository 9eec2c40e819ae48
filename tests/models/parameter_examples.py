"""Fitted parameters of every family, with numbers that are all different."""

from __future__ import annotations

import numpy as np

from collwise.models.parameters import FittedParameters, Parameters
from collwise.models.piecewise import Array, PiecewiseLinear
from collwise.models.single_messages import LMO, HeterogeneousPLogP, Hockney, HockneyBySize, LogGP, PLogP, Thresholds

PROCS = 3


def vector(scale: float) -> Array:
    return scale * np.arange(1.0, PROCS + 1)


def matrix(scale: float) -> Array:
    ranks = np.arange(PROCS)
    return scale * (1.0 + ranks[:, None] + 10.0 * ranks[None, :]) * ~np.eye(PROCS, dtype=bool)


def plogp(scale: float) -> PLogP:
    def function(seconds: float) -> PiecewiseLinear:
        return PiecewiseLinear((1.0, 1024.0, 65536.0), (seconds, 2 * seconds, 50 * seconds))

    return PLogP(scale, function(0.1 * scale), function(0.2 * scale), function(0.3 * scale))


EXAMPLES: dict[str, tuple[str, Parameters]] = {
    "hockney": ("hockney", Hockney(5e-5, 1e-8)),
    "hockney of pairs": ("hockney", Hockney(matrix(5e-5), matrix(1e-8))),
    "hockney by size": ("hockney_by_size", HockneyBySize(PiecewiseLinear((1.0, 4096.0), (5e-5, 9e-5)))),
    "logp": ("logp", LogGP(4e-5, 5e-6, 6e-6, 8e-6)),
    "logp of pairs": ("logp", LogGP(matrix(4e-5), vector(5e-6), vector(6e-6), matrix(8e-6), matrix(0.0))),
    "loggp": ("loggp", LogGP(4e-5, 5e-6, 6e-6, 8e-6, 1e-8)),
    "loggp of pairs": ("loggp", LogGP(matrix(4e-5), vector(5e-6), vector(6e-6), matrix(8e-6), matrix(1e-8))),
    "plogp": ("plogp", plogp(4e-5)),
    "plogp of pairs": (
        "plogp",
        HeterogeneousPLogP(
            tuple(tuple(None if i == j else plogp((1 + i + 10 * j) * 1e-6) for j in range(PROCS)) for i in range(PROCS))
        ),
    ),
    "lmo": ("lmo", LMO(5e-6, 1.2e-8, 4e-5, -8e-9, Thresholds(65536, 2048, 131072))),
    "lmo of pairs": ("lmo", LMO(vector(5e-6), vector(1.2e-8), matrix(4e-5), matrix(8e-9), Thresholds(None, 2048))),
}


def fitted(example: str, platform: str = "gros") -> FittedParameters:
    """Parameters that a procedure might have found."""
    family, parameters = EXAMPLES[example]
    return FittedParameters(
        family, "some-procedure", platform, "made up", PROCS, 65536, 2e-10, parameters, 120, 0.75, ("a note",)
    )
