"""O'Flynn 2009: models estimated on the simulated cluster of the thesis, the effort, and single messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import pandas as pd

from collwise.common.experiments import ROUNDTRIP, Effort, Experiment, Laboratory, Measurement
from collwise.models.fitting.hockney import hockney_by_regression
from collwise.models.fitting.procedures import request
from collwise.models.fitting.rounds import with_effort
from collwise.models.hockney import Hockney
from collwise.models.interface import CollectiveModel
from collwise.models.lmo import Thresholds
from collwise.models.parameter_file import FittedParameters
from collwise.models.piecewise import Array
from collwise.models.point_to_point import PointToPointModel
from collwise.platforms import HostPlatform, load
from collwise.platforms.description import HeterogeneousPlatform
from collwise.simulator.bench import Simulated
from collwise.simulator.sweeps.context import SimulationContext
from collwise.studies.papers.published import Published, row_of
from collwise.validation.compare.scores import Errors
from collwise.validation.fitting.models_by_name import models_of, parameters_on

KIB = 1024
PUBLISHED = Published("oflynn2009")
HOMOGENEOUS_HOCKNEY = row_of(Hockney, PUBLISHED["homogeneous_hockney"])
THRESHOLDS = row_of(Thresholds, PUBLISHED["thresholds"])
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


def errors(relative: Mapping[str, Array]) -> pd.DataFrame:
    """The mean and the worst |predicted / simulated - 1| of each model, over the points that it predicts at all."""
    found = {name: Errors.of(values) for name, values in relative.items()}
    rows = {
        name: {"points": one.count, "mean": one.mean, "worst": abs(one.worst)} for name, one in found.items() if one
    }
    return pd.DataFrame.from_dict(rows, orient="index")


def shown(found: pd.DataFrame) -> pd.Series:
    """'8.0 / 12.3': mean and worst of `errors` in percent."""
    return found["mean"].map(percent) + " / " + found["worst"].map(percent)


def percent(part: float) -> str:
    """'12.3', without a minus sign for nothing."""
    return f"{100 * part:z.1f}"


# Estimation: table 7.1 and table 5.1.


def estimates(platform: HostPlatform, context: SimulationContext) -> dict[str, FittedParameters]:
    """Heterogeneous models of all nodes, one process per node, each with the effort of its estimation."""
    wanted = {
        "Hockney": ("hockney", "regression"),
        "Hockney, two sizes": ("hockney", "two-sizes"),
        "LogGP": ("loggp", "culler"),
        "PLogP": ("plogp", "kielmann"),
        "LMO": ("lmo", "triplets"),
    }
    return {
        name: parameters_on(Simulated(platform, context), request(*one, heterogeneous=True))
        for name, one in wanted.items()
    }


def collective_models(fits: Mapping[str, FittedParameters]) -> dict[str, CollectiveModel]:
    """The models of collectives by the names of MODELS."""
    parameters: dict[str, Any] = {name: one.parameters for name, one in fits.items()}
    platform = fits["PLogP"].platform
    of_plogp, two_sizes = parameters["PLogP"].homogeneous().as_loggp(), parameters["Hockney, two sizes"]
    found: dict[str, CollectiveModel] = {
        "loggp_of_plogp": PointToPointModel("loggp", platform, of_plogp),
        "hockney_two_sizes": PointToPointModel("hockney_heterogeneous", platform, two_sizes),
    }
    for name in ("Hockney", "LogGP", "PLogP", "LMO"):
        found |= models_of(fits[name])
    return {name: found[name] for name in MODELS}


def cluster() -> HeterogeneousPlatform:
    """The thesis's cluster."""
    platform = load("hcl16")
    assert isinstance(platform, HeterogeneousPlatform)
    return platform


def types_of_nodes(platform: HeterogeneousPlatform) -> list[str]:
    """The type of each node, in the platform's order."""
    return [kind.name for kind in platform.types_of_hosts]


def table_7_1(platform: HeterogeneousPlatform, regression: Hockney, two_sizes: Hockney) -> pd.DataFrame:
    """Every cell that the thesis prints, beside the means of the estimates over its pairs of nodes.

    The columns are alpha (seconds) and beta (seconds per byte): `published`, by `two_sizes` and by `regression`.
    """
    kinds = np.array(types_of_nodes(platform))
    rows = {}
    for types, cell in platform.published["hockney"].items():
        first, second = types.split("-")
        pairs = np.nonzero(np.triu((kinds[:, None] == first) & (kinds[None, :] == second), 1))
        rows[types] = {
            (source, name): np.mean(np.asarray(values)[pairs])
            for source, model in (("two_sizes", two_sizes), ("regression", regression))
            for name, values in (("alpha", model.alpha_seconds), ("beta", model.beta_seconds_per_byte))
        } | {("published", "alpha"): cell["alpha_seconds"], ("published", "beta"): cell["beta_seconds_per_byte"]}
    return pd.DataFrame.from_dict(rows, orient="index")


def table_7_1_beside_estimates(cells: pd.DataFrame) -> pd.DataFrame:
    """`table_7_1` in microseconds and nanoseconds per byte, with the differences from the published values."""

    def both(pairs: pd.DataFrame) -> pd.Series:
        return (pairs.alpha * 1e6).map("{:.1f}".format) + ", " + (pairs.beta * 1e9).map("{:.2f}".format)

    columns = [both(cells.published)]
    for source in ("two_sizes", "regression"):
        difference = (cells[source] / cells.published - 1).map(percent)
        columns += [both(cells[source]), difference.alpha + ", " + difference.beta]
    heads = ["types", "published", "two sizes", "difference", "regression", "difference"]
    return pd.concat(columns, axis=1).reset_index().set_axis(heads, axis=1)


def homogeneous_hockneys(platform: HeterogeneousPlatform, regression: Hockney, two_sizes: Hockney) -> pd.DataFrame:
    """alpha (seconds) and beta (seconds per byte) of every candidate for the homogeneous model, by its name."""
    cells = [platform.published["hockney"]["-".join(pair)] for pair in combinations(types_of_nodes(platform), 2)]
    models = {
        "published homogeneous model": HOMOGENEOUS_HOCKNEY,
        "mean of table 7.1 over all pairs of nodes": Hockney(**pd.DataFrame(cells).mean()),
        "mean of our estimates by two sizes": two_sizes.homogeneous(),
        "mean of our estimates by regression": regression.homogeneous(),
    }
    pairs = {name: (float(one.alpha_seconds), float(one.beta_seconds_per_byte)) for name, one in models.items()}
    return pd.DataFrame.from_dict(pairs, orient="index", columns=["alpha", "beta"])


def cells_like(cells: pd.DataFrame, model: pd.Series) -> list[str]:
    """The published cells of `table_7_1` that have a homogeneous model's parameters, digit for digit: '1-2'."""
    return list(cells.index[np.isclose(cells.published, model, rtol=1e-9, atol=0).all(axis=1)])


class OneAfterAnother:
    """A laboratory whose experiments run one after another; it counts the effort from its creation on."""

    def __init__(self, lab: Laboratory) -> None:
        self._lab = lab
        self.procs, self.least_bytes, self.eager_limit_bytes = lab.procs, lab.least_bytes, lab.eager_limit_bytes
        self.effort: Effort = lab.effort

    def run(self, experiments: Sequence[Experiment], in_parallel: bool = True) -> list[Measurement]:
        """Runs the experiments, whatever `in_parallel` says."""
        return self._lab.run(experiments, in_parallel=False)


def side_by_side(platform: HostPlatform, context: SimulationContext) -> tuple[Effort, Effort, float]:
    """Section 4.4: what measuring disjoint pairs at one time saves, and whether it changes the parameters.

    Returns the efforts of estimating heterogeneous Hockney that way and with pairs one after another, and the largest
    relative difference of a parameter.
    """
    lab, alone = context.laboratory(platform), OneAfterAnother(context.laboratory(platform))
    parallel, effort = with_effort(lab, lambda: hockney_by_regression(lab, heterogeneous=True))
    serial, serial_effort = with_effort(alone, lambda: hockney_by_regression(alone, heterogeneous=True))
    pairs = ~np.eye(lab.procs, dtype=bool)
    ratios = [np.asarray(vars(serial)[name])[pairs] / np.asarray(vars(parallel)[name])[pairs] for name in vars(serial)]
    return effort, serial_effort, float(np.max(np.abs(np.subtract(ratios, 1))))


def table_5_1(efforts: pd.DataFrame) -> pd.DataFrame:
    """The measurements and seconds of each model's estimation beside the thesis's formulas and seconds."""
    by_formula = {
        "Hockney": PUBLISHED["hockney_sizes"] * comb(PROCS, 2),
        "LMO": 2 * comb(PROCS, 2) + 3 * 2 * comb(PROCS, 3),
    }
    return pd.DataFrame({
        "model": efforts.index,
        "formula of the thesis": efforts.index.map(PUBLISHED.words("table_5_1_formulas")),
        "by it, with our k": [by_formula.get(name, "-") for name in efforts.index],
        "counted": efforts.measurements.to_numpy(),
        "per pair": [f"{count / len(ALL_PAIRS):.1f}" for count in efforts.measurements],
        "seconds, ours": [f"{seconds:.2f}" for seconds in efforts.seconds],
        "seconds, thesis": [PUBLISHED["table_5_1_seconds"].get(name, "-") for name in efforts.index],
    })  # fmt: skip


# Single messages: figure 5.2.


def message_predictions(
    fits: Mapping[str, FittedParameters], sizes: Sequence[int], pair: tuple[int, int]
) -> dict[str, Array]:
    """Seconds of a message between two nodes by heterogeneous models, at every size."""
    plogp: Any = fits["PLogP"].parameters
    m = np.asarray(sizes, dtype=float)
    return {
        "Hockney": fits["Hockney"].parameters.predict(m, *pair),
        "LogGP, by Culler": fits["LogGP"].parameters.predict(m, *pair),
        "LogGP, from PLogP": plogp.pairs[pair[0]][pair[1]].as_loggp().predict(m),
        "PLogP": plogp.predict(m, *pair),
        "LMO": fits["LMO"].parameters.predict(m, *pair),
    }


def message_seconds(
    platform: HostPlatform, sizes: Sequence[int], pairs: Sequence[tuple[int, int]], context: SimulationContext
) -> Array:
    """Half of the simulated roundtrips with the same size both ways, shape (pair, size)."""
    lab = context.laboratory(platform)
    experiments = [Experiment(ROUNDTRIP, pair, size, size) for pair in pairs for size in sizes]
    seconds = [one.seconds / 2 for one in lab.run(experiments)]
    return np.reshape(seconds, (len(pairs), len(sizes)))


def message_errors(fits: Mapping[str, FittedParameters], simulated: Array, eager: bool) -> pd.DataFrame:
    """Errors over all pairs, at those of SIZES_OF_ALL_PAIRS that are below the eager limit, or not.

    `simulated`: seconds, shape (pair, size).
    """
    sizes = np.array(SIZES_OF_ALL_PAIRS)
    chosen = (sizes < fits["LMO"].eager_limit_bytes) == eager
    predicted = pd.DataFrame([message_predictions(fits, sizes[chosen], pair) for pair in ALL_PAIRS])
    return errors({name: np.stack(predicted[name]) / simulated[:, chosen] - 1 for name in predicted})
