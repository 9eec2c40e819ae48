"""O'Flynn 2009: predictions for scatter and gather on the thesis's cluster, against simulation."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import TypeVar

import numpy as np
import pandas as pd

from collwise.models.collectives.scatter import lmo_parts
from collwise.models.fitting.procedures import request
from collwise.models.interface import CollectiveModel
from collwise.models.lmo import LMO, Thresholds
from collwise.models.piecewise import Array
from collwise.models.point_to_point import PointToPointModel
from collwise.platforms import HostPlatform, load
from collwise.platforms.description import HeterogeneousPlatform
from collwise.platforms.truth import point_to_point
from collwise.simulator.bench import Simulated
from collwise.simulator.sweeps.context import SimulationContext
from collwise.simulator.timing import Case
from collwise.studies.papers.oflynn2009.estimates import PROCS, errors
from collwise.studies.papers.oflynn2009.tables import KIB
from collwise.validation.fitting.models_by_name import models_of, parameters_on
from collwise.validation.fitting.recovery import recover
from collwise.validation.rank_mapping import best_mappings, mapping_gains

EXACT = "exact-heterogeneous"
SIZES = (*range(KIB, 8 * KIB, KIB), *range(8 * KIB, 200 * KIB + 1, 4 * KIB))
"""Blocks up to 200 KB, as in figures 5.3 and 5.4."""
WIDE_BYTES_PER_SECOND = 1e13
MAPPING_SIZES = (KIB, 4 * KIB, 16 * KIB, 64 * KIB)
SERIES = {
    (collective, algorithm): Case(collective, algorithm, PROCS, 0)
    for collective, algorithms in (("scatter", ("linear", "linear_nonblocking", "binomial")),
                                   ("gather", ("linear", "binomial")))
    for algorithm in algorithms
}  # fmt: skip
"""The cases that are simulated at all SIZES, by collective and algorithm."""
SCATTER_BINOMIAL = ("scatter", "binomial")

Key = TypeVar("Key", bound=Hashable)
Curves = Mapping[tuple[str, str], Array]
"""Seconds at SIZES, by collective and algorithm."""


def simulated_curves(
    platform: HostPlatform, series: Mapping[Key, Case], context: SimulationContext
) -> dict[Key, Array]:
    """Simulated times of each case at all SIZES. Raises CollwiseError when a case fails."""
    cases = {key: [replace(case, message_bytes=size) for size in SIZES] for key, case in series.items()}
    sweep = context.simulate(platform, [case for several in cases.values() for case in several]).complete()
    return {key: np.array([sweep.timings[case].seconds for case in several]) for key, several in cases.items()}


def lmo_cases(thresholds: Thresholds) -> dict[str, Case]:
    """LMO_Gather and LMO_Scatter with these thresholds."""
    first = thresholds.gather_irregular_from_bytes or 0
    limit = thresholds.last_irregular_bytes if first else 0
    return {
        "gather": Case("gather", "lmo", PROCS, 0, segment_bytes=first, limit_bytes=limit),
        "scatter": Case("scatter", "lmo", PROCS, 0, segment_bytes=thresholds.scatter_leap_bytes or 0),
    }


def predicted_curves(models: Mapping[str, CollectiveModel], collective: str, algorithm: str) -> dict[str, Array]:
    """Seconds at SIZES, by model. The non-blocking linear scatter is predicted as the linear one."""
    name = algorithm.removesuffix("_nonblocking")
    return {key: model.predict(collective, name, PROCS, SIZES) for key, model in models.items()}


def errors_of(
    models: Mapping[str, CollectiveModel], curves: Curves, series: tuple[str, str], where: np.ndarray
) -> pd.DataFrame:
    """The error of each model over the sizes of SIZES where `where` is true."""
    predicted = {name: seconds[where] for name, seconds in predicted_curves(models, *series).items()}
    return errors(predicted, curves[series][where])


def scores(models: Mapping[str, CollectiveModel], curves: Curves, eager: np.ndarray) -> pd.DataFrame:
    """Errors by collective, algorithm, region and model: below the eager limit, above it, and over all sizes."""
    regions = {"below": eager, "above": ~eager, "all": eager | ~eager}
    return pd.concat(
        {
            (*series, region): errors_of(models, curves, series, where)
            for series in SERIES
            for region, where in regions.items()
        }
    )


def choices(models: Mapping[str, CollectiveModel], curves: Curves, linear: str, where: np.ndarray) -> pd.DataFrame:
    """The number of sizes at which each model takes the `linear` scatter rather than the binomial one, and is `right`.

    'simulation' is among the models. `linear` is 'linear' or 'linear_nonblocking'.
    """
    flat, tree = (predicted_curves(models, "scatter", name) for name in (linear, "binomial"))
    taken = pd.DataFrame(
        {"simulation": curves["scatter", linear] < curves["scatter", "binomial"]}
        | {name: flat[name] < tree[name] for name in models}
    )[where]
    return pd.DataFrame({"linear": taken.sum(), "right": taken.eq(taken.simulation, axis=0).sum()})


def with_true_parameters(platform: HostPlatform) -> PointToPointModel:
    """LMO with the true parameters of the platform's processors and wires instead of estimated ones."""
    truth = point_to_point(platform)
    return PointToPointModel(
        "lmo_heterogeneous", platform.name,
        LMO(truth.processor_seconds, truth.processor_seconds_per_byte, truth.latency_seconds,
            truth.network_seconds_per_byte),
    )  # fmt: skip


def without_shared_links(platform: HostPlatform, context: SimulationContext) -> pd.DataFrame:
    """Errors for the binomial scatter where all of the root's messages are eager and links too wide to be shared.

    The models 'lmo' and 'hockney' have the true parameters of that platform. Wires still limit each single message.
    """
    assert isinstance(platform, HeterogeneousPlatform)
    kinds = tuple(replace(kind, link_bytes_per_second=WIDE_BYTES_PER_SECOND) for kind in platform.node_types)
    wide = replace(platform, node_types=kinds)
    lmo = with_true_parameters(wide)
    assert isinstance(lmo.parameters, LMO)
    hockney = PointToPointModel("hockney_heterogeneous", wide.name, lmo.parameters.as_hockney())
    curves = simulated_curves(wide, {SCATTER_BINOMIAL: SERIES[SCATTER_BINOMIAL]}, context)
    where = binomial_regions(wide.eager_limit_bytes)["all eager"]
    return errors_of({"lmo": lmo, "hockney": hockney}, curves, SCATTER_BINOMIAL, where)


def binomial_regions(eager_limit_bytes: int) -> dict[str, np.ndarray]:
    """Masks of SIZES by how the root of a binomial tree sends; its messages have 1 to PROCS / 2 blocks."""
    sizes = np.array(SIZES)
    largest_eager = sizes * (PROCS // 2) < eager_limit_bytes
    none_eager = sizes >= eager_limit_bytes
    return {"all eager": largest_eager, "some eager": ~largest_eager & ~none_eager, "none eager": none_eager}


def all_mapping_gains(
    platform: HostPlatform, models: Mapping[str, CollectiveModel], context: SimulationContext
) -> pd.DataFrame:
    """The gain of the best mapping of each size against the default, by collective and model."""
    rows = []
    for collective in ("scatter", "gather"):
        for name in ("hockney_heterogeneous", "lmo_heterogeneous"):
            mappings = best_mappings(models[name], collective, PROCS, MAPPING_SIZES)
            rows += [
                (collective, name, gain.message_bytes, gain.predicted_gain, gain.simulated_gain)
                for gain in mapping_gains(platform, models[name], collective, PROCS, mappings, context)
            ]
    return pd.DataFrame(rows, columns=["collective", "model", "message_bytes", "predicted", "simulated"])


def on_the_exact_platform(context: SimulationContext) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Estimation and scatters on the platform whose parameters are known exactly.

    Returns LMO's true and estimated parameters, and the errors for simulated scatters: `scatter` and `hockney_scatter`
    for the linear scatter with ranks in the platform's order, `slowest_last` for (4.1) with the slowest nodes served
    last, and `binomial` for the binomial scatter by LMO.
    """
    platform = load(EXACT)
    wanted = request("lmo", "triplets", heterogeneous=True)
    fitted = parameters_on(Simulated(platform, context), wanted)
    by_regression = parameters_on(Simulated(platform, context), request("hockney", "regression", heterogeneous=True))
    assert isinstance(fitted.parameters, LMO)
    _, others = lmo_parts(fitted.parameters, PROCS, np.array([float(SIZES[-1])]))
    slowest_last = platform.reordered([0, *(1 + int(node) for node in np.argsort(others[:, 0]))])
    lmo = models_of(fitted)["lmo_heterogeneous"]
    hockney = models_of(by_regression)["hockney_heterogeneous"]
    found = []
    for name, model, ordered, algorithm in (
        ("scatter", lmo, platform, "linear"),
        # (4.1) takes the maximum over the others: their order does not change it.
        ("slowest_last", lmo, slowest_last, "linear"),
        ("hockney_scatter", hockney, platform, "linear"),
        ("binomial", lmo, platform, "binomial"),
    ):
        curve = simulated_curves(ordered, {name: SERIES["scatter", algorithm]}, context)[name]
        found.append(errors({name: model.predict("scatter", algorithm, PROCS, SIZES)}, curve))
    return pd.DataFrame(recover(platform, [wanted], lambda one: fitted)), pd.concat(found)
