"""O'Flynn 2009: models estimated on the simulated cluster of the thesis, what that takes, and single messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from collwise.common.experiments import ROUNDTRIP, Effort, Experiment, Laboratory, Measurement
from collwise.models.fitting.cost import with_effort
from collwise.models.fitting.hockney import hockney_by_regression
from collwise.models.fitting.lmo import lmo_by_triplets
from collwise.models.fitting.procedures import request
from collwise.models.hockney import Hockney, mean_of_pairs
from collwise.models.interface import CollectiveModel
from collwise.models.lmo import LMO, Thresholds
from collwise.models.loading import models_of
from collwise.models.parameter_file import FittedParameters
from collwise.models.piecewise import Array
from collwise.models.plogp import HeterogeneousPLogP
from collwise.models.point_to_point import PointToPointModel
from collwise.platforms import HostPlatform
from collwise.simulator.sweeps.context import SimulationContext
from collwise.studies.papers.oflynn2009.tables import (
    HOMOGENEOUS_HOCKNEY,
    KIB,
    NODES_BY_TYPE,
    TABLE_7_1_MICROSECONDS,
)
from collwise.validation.fitting.models_by_name import simulated_parameters

PLATFORM = "hcl16"
PROCS = 16
PAIR = (0, 8)
"""For figure 5.2: the root, of type 1, and a node of type 3; the thesis does not name its pair."""
SIZES_OF_ALL_PAIRS = (3 * KIB, 24 * KIB, 56 * KIB, 96 * KIB, 176 * KIB)
MODELS: Mapping[str, str] = {
    "hockney": "Hockney, homogeneous",
    "hockney_heterogeneous": "Hockney, heterogeneous",
    "hockney_two_sizes": "Hockney, heterogeneous, by two sizes",
    "loggp": "LogGP, by Culler",
    "loggp_of_plogp": "LogGP, from PLogP",
    "plogp": "PLogP",
    "lmo": "LMO, homogeneous",
    "lmo_heterogeneous": "LMO, heterogeneous",
}
"""Models of collectives, and how the study calls them."""


# Estimation: table 7.1 and table 5.1.


@dataclass(frozen=True)
class Estimates:
    """Models of one platform, each with what its estimation took."""

    hockney: FittedParameters
    hockney_by_two_sizes: FittedParameters
    loggp: FittedParameters
    plogp: FittedParameters
    lmo: FittedParameters

    @property
    def thresholds(self) -> Thresholds:
        """S, M1 and M2."""
        assert isinstance(self.lmo.parameters, LMO)
        return self.lmo.parameters.thresholds

    def collective_models(self) -> dict[str, CollectiveModel]:
        """By the names of MODELS."""
        found = models_of(self.hockney) | models_of(self.loggp) | models_of(self.plogp) | models_of(self.lmo)
        plogp = self.plogp.parameters
        assert isinstance(plogp, HeterogeneousPLogP)
        of_plogp, two_sizes = plogp.homogeneous().as_loggp(), self.hockney_by_two_sizes
        found["loggp_of_plogp"] = PointToPointModel("loggp", two_sizes.platform, of_plogp)
        found["hockney_two_sizes"] = PointToPointModel(
            "hockney_heterogeneous", two_sizes.platform, two_sizes.parameters
        )
        return {name: found[name] for name in MODELS}


def estimates(platform: HostPlatform, context: SimulationContext) -> Estimates:
    """Heterogeneous models of all nodes, a process each."""
    wanted = [("hockney", "regression"), ("hockney", "two-sizes"), ("loggp", "culler"), ("plogp", "kielmann")]
    wanted.append(("lmo", "triplets"))
    return Estimates(*(simulated_parameters(platform, request(*one, heterogeneous=True), context) for one in wanted))


@dataclass(frozen=True)
class PairOfTypes:
    """A cell of table 7.1 and the means over its pairs of nodes: alpha in seconds, beta in seconds a byte."""

    types: tuple[int, int]
    published: tuple[float, float]
    by_regression: tuple[float, float]
    by_two_sizes: tuple[float, float]

    def deviation(self, found: tuple[float, float]) -> tuple[float, float]:
        """Of alpha and of beta, as parts of what is published."""
        return found[0] / self.published[0] - 1, found[1] / self.published[1] - 1


def types_of_nodes() -> list[int]:
    """The type of each node, in the platform's order."""
    return [kind for kind, nodes in NODES_BY_TYPE.items() for _ in range(nodes)]


def hockneys(found: Estimates) -> tuple[Hockney, Hockney]:
    """By regression and by two sizes."""
    regression, two_sizes = found.hockney.parameters, found.hockney_by_two_sizes.parameters
    assert isinstance(regression, Hockney)
    assert isinstance(two_sizes, Hockney)
    return regression, two_sizes


def table_7_1(regression: Hockney, two_sizes: Hockney) -> list[PairOfTypes]:
    """Every cell that the thesis prints, beside the estimates."""
    kinds = np.array(types_of_nodes())
    rows = []
    for types, (alpha, beta) in TABLE_7_1_MICROSECONDS.items():
        one, other = np.nonzero(np.triu((kinds[:, None] == types[0]) & (kinds[None, :] == types[1]), 1))
        found = [
            (
                float(np.mean(np.asarray(model.alpha_seconds)[one, other])),
                float(np.mean(np.asarray(model.beta_seconds_per_byte)[one, other])),
            )
            for model in (regression, two_sizes)
        ]
        rows.append(PairOfTypes(types, (alpha * 1e-6, beta * 1e-6), *found))
    return rows


def published_mean() -> tuple[float, float]:
    """The mean of table 7.1 over all pairs of the 16 nodes: alpha in seconds, beta in seconds a byte."""
    alpha, beta = np.mean([TABLE_7_1_MICROSECONDS[pair] for pair in combinations(types_of_nodes(), 2)], axis=0)
    return float(alpha) * 1e-6, float(beta) * 1e-6


def homogeneous_hockneys(found: Estimates) -> dict[str, tuple[float, float]]:
    """alpha (seconds) and beta (seconds a byte) of all that may be called the homogeneous model."""
    regression, two_sizes = (mean_of(one) for one in hockneys(found))
    return {
        "published homogeneous model": mean_of(HOMOGENEOUS_HOCKNEY),
        "mean of table 7.1 over all pairs of nodes": published_mean(),
        "mean of our estimates by two sizes": two_sizes,
        "mean of our estimates by regression": regression,
    }


def mean_of(model: Hockney) -> tuple[float, float]:
    """alpha and beta, or their means over pairs."""
    return mean_of_pairs(model.alpha_seconds), mean_of_pairs(model.beta_seconds_per_byte)


def cells_like_the_homogeneous_model() -> list[str]:
    """The cells of table 7.1 that have the published homogeneous parameters, digit for digit: '1-2'."""
    wanted = mean_of(HOMOGENEOUS_HOCKNEY)
    return [
        f"{one}-{other}"
        for (one, other), (alpha, beta) in TABLE_7_1_MICROSECONDS.items()
        if np.allclose((alpha * 1e-6, beta * 1e-6), wanted, rtol=1e-9, atol=0)
    ]


class OneAfterAnother:
    """A laboratory in which nothing runs side by side; its effort is counted from its making on."""

    def __init__(self, lab: Laboratory) -> None:
        self._lab = lab
        self.procs, self.least_bytes, self.eager_limit_bytes = lab.procs, lab.least_bytes, lab.eager_limit_bytes
        self.effort: Effort = lab.effort

    def run(self, experiments: Sequence[Experiment], in_parallel: bool = True) -> list[Measurement]:
        """As the laboratory does, one experiment after another."""
        return self._lab.run(experiments, in_parallel=False)


@dataclass(frozen=True)
class SideBySide:
    """Heterogeneous Hockney estimated both ways; the largest difference of a time that they predict, as a part."""

    parallel: Effort
    serial: Effort
    worst_difference: float


def side_by_side(platform: HostPlatform, context: SimulationContext) -> SideBySide:
    """Section 4.4: what measuring disjoint pairs at one time saves, and whether it changes the parameters."""
    lab = context.laboratory(platform)
    parallel, effort = with_effort(lab, lambda: hockney_by_regression(lab, heterogeneous=True))
    alone = OneAfterAnother(context.laboratory(platform))
    serial, serial_effort = with_effort(alone, lambda: hockney_by_regression(alone, heterogeneous=True))
    pairs = ~np.eye(lab.procs, dtype=bool)
    differences = [
        np.max(np.abs(np.asarray(one)[pairs] / np.asarray(other)[pairs] - 1))
        for one, other in (
            (serial.alpha_seconds, parallel.alpha_seconds),
            (serial.beta_seconds_per_byte, parallel.beta_seconds_per_byte),
        )
    ]
    return SideBySide(effort, serial_effort, float(max(differences)))


def mean_knots(found: Estimates) -> float:
    """How many sizes PLogP's gap has, on average over the pairs."""
    assert isinstance(found.plogp.parameters, HeterogeneousPLogP)
    pairs = [pair for row in found.plogp.parameters.pairs for pair in row if pair is not None]
    return float(np.mean([len(pair.gap.message_bytes) for pair in pairs]))


def effort_of_lmo_without_thresholds(
    platform: HostPlatform, thresholds: Thresholds, context: SimulationContext
) -> Effort:
    """What C, t, L and 1 / beta take, once the thresholds are known."""
    lab = context.laboratory(platform)
    return with_effort(lab, lambda: lmo_by_triplets(lab, thresholds))[1]


# Single messages: figure 5.2.


def message_predictions(found: Estimates, sizes: Sequence[int], pair: tuple[int, int]) -> dict[str, Array]:
    """Seconds of a message between two nodes by heterogeneous models, at every size."""
    plogp = found.plogp.parameters
    assert isinstance(plogp, HeterogeneousPLogP)
    of_plogp = plogp.pairs[pair[0]][pair[1]]
    assert of_plogp is not None
    m = np.asarray(sizes, dtype=float)
    return {
        "Hockney": found.hockney.parameters.predict(m, *pair),
        "LogGP, by Culler": found.loggp.parameters.predict(m, *pair),
        "LogGP, from PLogP": of_plogp.as_loggp().predict(m),
        "PLogP": of_plogp.predict(m),
        "LMO": found.lmo.parameters.predict(m, *pair),
    }


def message_seconds(
    platform: HostPlatform, sizes: Sequence[int], pairs: Sequence[tuple[int, int]], context: SimulationContext
) -> Array:
    """Half of the simulated roundtrips with the same size both ways, shape (pair, size)."""
    lab = context.laboratory(platform)
    experiments = [Experiment(ROUNDTRIP, pair, size, size) for pair in pairs for size in sizes]
    seconds = [one.seconds / 2 for one in lab.run(experiments)]
    return np.reshape(seconds, (len(pairs), len(sizes)))


@dataclass(frozen=True)
class ErrorOf:
    """|predicted / simulated - 1| of a model: the mean and the worst over so many points."""

    model: str
    points: int
    mean: float
    worst: float

    @classmethod
    def between(cls, model: str, predicted: Array, simulated: Array) -> ErrorOf:
        """Of the points that are predicted at all. Raises ValueError where there are none."""
        known = np.isfinite(predicted)
        errors = np.abs(predicted[known] / simulated[known] - 1)
        return cls(model, int(known.sum()), float(np.mean(errors)), float(np.max(errors)))


def message_errors(found: Estimates, simulated: Array, eager: bool) -> list[ErrorOf]:
    """Over all pairs, at those of SIZES_OF_ALL_PAIRS that are below the eager limit, or not.

    `simulated`: seconds, shape (pair, size).
    """
    chosen = [number for number, size in enumerate(SIZES_OF_ALL_PAIRS) if is_eager(found, size) == eager]
    sizes = [SIZES_OF_ALL_PAIRS[number] for number in chosen]
    predicted = [message_predictions(found, sizes, pair) for pair in combinations(range(PROCS), 2)]
    return [
        ErrorOf.between(name, np.array([one[name] for one in predicted]), simulated[:, chosen]) for name in predicted[0]
    ]


def is_eager(found: Estimates, message_bytes: int) -> bool:
    """Whether a message is below the eager limit of the simulated library."""
    return message_bytes < found.lmo.eager_limit_bytes
