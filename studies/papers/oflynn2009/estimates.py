"""O'Flynn 2009: models estimated on the simulated cluster of the thesis, the effort, and single messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np
import pandas as pd

from collwise.common.experiments import ROUNDTRIP, Effort, Experiment, Laboratory, Measurement
from collwise.models.fitting.hockney import hockney_by_regression
from collwise.models.fitting.lmo import lmo_by_triplets
from collwise.models.fitting.procedures import request
from collwise.models.fitting.rounds import with_effort
from collwise.models.hockney import Hockney
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
    HOCKNEY_SIZES,
    HOMOGENEOUS_HOCKNEY,
    KIB,
    NODES_BY_TYPE,
    TABLE_5_1_FORMULAS,
    TABLE_5_1_SECONDS,
    TABLE_7_1_MICROSECONDS,
)
from collwise.validation.fitting.models_by_name import simulated_parameters

PLATFORM = "hcl16"
PROCS = 16
ALL_PAIRS = tuple(combinations(range(PROCS), 2))
PAIR = (0, 8)
"""The pair of figure 5.2: the root, of type 1, and a node of type 3; the thesis does not name its own pair."""
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
"""The models of collectives, and their names in the study."""


@dataclass(frozen=True)
class PredictionError:
    """The mean and the largest |predicted / simulated - 1| of a model over so many points."""

    model: str
    points: int
    mean: float
    worst: float

    @classmethod
    def between(cls, model: str, predicted: Array, simulated: Array) -> PredictionError:
        """The error over the points that are predicted at all. Raises ValueError where there are none."""
        known = np.isfinite(predicted)
        errors = np.abs(predicted[known] / simulated[known] - 1)
        return cls(model, int(known.sum()), float(np.mean(errors)), float(np.max(errors)))

    def document(self) -> dict[str, float]:
        """The mean and the worst as plain data."""
        return {"mean": self.mean, "worst": self.worst}

    def __str__(self) -> str:
        """'8.0 / 12.3': mean and worst in percent."""
        return f"{percent(self.mean)} / {percent(self.worst)}"


def percent(part: float) -> str:
    """'12.3', without a minus sign for nothing."""
    return f"{100 * part:z.1f}"


# Estimation: table 7.1 and table 5.1.


@dataclass(frozen=True)
class Estimates:
    """The models of one platform, each with the effort of its estimation."""

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
        """The models of collectives by the names of MODELS."""
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
    """Heterogeneous models of all nodes, one process per node."""
    wanted = [("hockney", "regression"), ("hockney", "two-sizes"), ("loggp", "culler"), ("plogp", "kielmann")]
    wanted.append(("lmo", "triplets"))
    return Estimates(*(simulated_parameters(platform, request(*one, heterogeneous=True), context) for one in wanted))


@dataclass(frozen=True)
class PairOfTypes:
    """A cell of table 7.1 and the means over its pairs of nodes: alpha in seconds, beta in seconds per byte."""

    types: tuple[int, int]
    published: tuple[float, float]
    by_regression: tuple[float, float]
    by_two_sizes: tuple[float, float]

    def deviation(self, found: tuple[float, float]) -> tuple[float, float]:
        """The relative difference of alpha and of beta from the published values."""
        return found[0] / self.published[0] - 1, found[1] / self.published[1] - 1


def types_of_nodes() -> list[int]:
    """The type of each node, in the platform's order."""
    return [kind for kind, nodes in NODES_BY_TYPE.items() for _ in range(nodes)]


def hockneys(found: Estimates) -> tuple[Hockney, Hockney]:
    """The Hockney models by regression and by two sizes."""
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


def table_7_1_beside_estimates(cells: Sequence[PairOfTypes]) -> pd.DataFrame:
    """`table_7_1` in microseconds and nanoseconds per byte."""
    columns = ["types", "published", "two sizes", "difference", "regression", "difference"]
    rows = [
        (
            *("-".join(map(str, cell.types)), _alpha_and_beta(cell.published)),
            *(_alpha_and_beta(cell.by_two_sizes), ", ".join(map(percent, cell.deviation(cell.by_two_sizes)))),
            *(_alpha_and_beta(cell.by_regression), ", ".join(map(percent, cell.deviation(cell.by_regression)))),
        )
        for cell in cells
    ]
    return pd.DataFrame(rows, columns=columns)


def _alpha_and_beta(pair: tuple[float, float]) -> str:
    return f"{pair[0] * 1e6:.1f}, {pair[1] * 1e9:.2f}"


def worst_deviations(cells: Sequence[PairOfTypes]) -> tuple[float, float, float]:
    """The largest deviation of any parameter by two sizes, and those of alpha and of beta by regression."""
    two_sizes, regression = (
        np.abs([cell.deviation(getattr(cell, name)) for cell in cells]) for name in ("by_two_sizes", "by_regression")
    )
    alpha, beta = regression.max(axis=0)
    return float(two_sizes.max()), float(alpha), float(beta)


def published_mean() -> tuple[float, float]:
    """The mean of table 7.1 over all pairs of the 16 nodes: alpha in seconds, beta in seconds per byte."""
    alpha, beta = np.mean([TABLE_7_1_MICROSECONDS[pair] for pair in combinations(types_of_nodes(), 2)], axis=0)
    return float(alpha) * 1e-6, float(beta) * 1e-6


def homogeneous_hockneys(found: Estimates) -> dict[str, tuple[float, float]]:
    """alpha (seconds) and beta (seconds per byte) of every candidate for the homogeneous model, by its name."""
    regression, two_sizes = (mean_of(one) for one in hockneys(found))
    return {
        "published homogeneous model": mean_of(HOMOGENEOUS_HOCKNEY),
        "mean of table 7.1 over all pairs of nodes": published_mean(),
        "mean of our estimates by two sizes": two_sizes,
        "mean of our estimates by regression": regression,
    }


def homogeneous_table(models: Mapping[str, tuple[float, float]]) -> pd.DataFrame:
    """`homogeneous_hockneys` in microseconds."""
    rows = [(name, f"{alpha * 1e6:.1f}", f"{beta * 1e6:.5f}") for name, (alpha, beta) in models.items()]
    return pd.DataFrame(rows, columns=["", "alpha (us)", "beta (us per byte)"])


def mean_of(model: Hockney) -> tuple[float, float]:
    """alpha and beta, or their means over pairs."""
    means = model.homogeneous()
    return float(means.alpha_seconds), float(means.beta_seconds_per_byte)


def cells_like_the_homogeneous_model() -> list[str]:
    """The cells of table 7.1 that have the published homogeneous parameters, digit for digit: '1-2'."""
    wanted = mean_of(HOMOGENEOUS_HOCKNEY)
    return [
        f"{one}-{other}"
        for (one, other), (alpha, beta) in TABLE_7_1_MICROSECONDS.items()
        if np.allclose((alpha * 1e-6, beta * 1e-6), wanted, rtol=1e-9, atol=0)
    ]


class OneAfterAnother:
    """A laboratory whose experiments run one after another; it counts the effort from its creation on."""

    def __init__(self, lab: Laboratory) -> None:
        self._lab = lab
        self.procs, self.least_bytes, self.eager_limit_bytes = lab.procs, lab.least_bytes, lab.eager_limit_bytes
        self.effort: Effort = lab.effort

    def run(self, experiments: Sequence[Experiment], in_parallel: bool = True) -> list[Measurement]:
        """Runs the experiments, whatever `in_parallel` says."""
        return self._lab.run(experiments, in_parallel=False)


@dataclass(frozen=True)
class SideBySide:
    """The effort of estimating heterogeneous Hockney both ways, and the largest relative difference of a parameter."""

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
    """The mean number of message sizes of PLogP's gap over the pairs."""
    assert isinstance(found.plogp.parameters, HeterogeneousPLogP)
    pairs = [pair for row in found.plogp.parameters.pairs for pair in row if pair is not None]
    return float(np.mean([len(pair.gap.message_bytes) for pair in pairs]))


def effort_of_lmo_without_thresholds(
    platform: HostPlatform, thresholds: Thresholds, context: SimulationContext
) -> Effort:
    """The effort of estimating C, t, L and 1 / beta when the thresholds are known."""
    lab = context.laboratory(platform)
    return with_effort(lab, lambda: lmo_by_triplets(lab, thresholds))[1]


def efforts(found: Estimates, lmo_alone: Effort) -> dict[str, Effort]:
    """The effort of estimating each model, in the order of table 5.1; LMO's is without its thresholds."""
    fits = {"Hockney": found.hockney, "LogGP": found.loggp, "PLogP": found.plogp}
    return {name: Effort(one.measurements, one.seconds) for name, one in fits.items()} | {"LMO": lmo_alone}


def table_5_1(found: Mapping[str, Effort]) -> pd.DataFrame:
    """`efforts` beside the thesis's formulas and seconds."""
    by_formula = {
        "Hockney": HOCKNEY_SIZES * comb(PROCS, 2),
        "LMO": 2 * comb(PROCS, 2) + 3 * 2 * comb(PROCS, 3),
    }
    rows = [
        (
            *(name, TABLE_5_1_FORMULAS[name], by_formula.get(name, "-"), effort.measurements),
            *(f"{effort.measurements / len(ALL_PAIRS):.1f}", f"{effort.seconds:.2f}"),
            TABLE_5_1_SECONDS.get(name, "-"),
        )
        for name, effort in found.items()
    ]
    columns = [
        "model", "formula of the thesis", "by it, with our k", "counted", "per pair", "seconds, ours",
        "seconds, thesis",
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=columns, dtype=object)


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


def message_errors(found: Estimates, simulated: Array, eager: bool) -> list[PredictionError]:
    """Errors over all pairs, at those of SIZES_OF_ALL_PAIRS that are below the eager limit, or not.

    `simulated`: seconds, shape (pair, size).
    """
    chosen = [number for number, size in enumerate(SIZES_OF_ALL_PAIRS) if is_eager(found, size) == eager]
    sizes = [SIZES_OF_ALL_PAIRS[number] for number in chosen]
    predicted = [message_predictions(found, sizes, pair) for pair in ALL_PAIRS]
    return [
        PredictionError.between(name, np.array([one[name] for one in predicted]), simulated[:, chosen])
        for name in predicted[0]
    ]


def is_eager(found: Estimates, message_bytes: int) -> bool:
    """Whether a message is below the eager limit of the simulated library."""
    return message_bytes < found.lmo.eager_limit_bytes


def message_errors_table(below: Sequence[PredictionError], above: Sequence[PredictionError]) -> pd.DataFrame:
    """Errors below the eager limit and above it, mean / worst in percent."""
    rows = [(one.model, str(one), str(other)) for one, other in zip(below, above, strict=True)]
    return pd.DataFrame(rows, columns=["model", "below the eager limit", "above it"])
