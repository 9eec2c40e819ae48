"""O'Flynn 2009: predictions for scatter and gather on the thesis's cluster, against simulation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import pandas as pd

from collwise.common.units import format_size
from collwise.models.collectives.scatter import lmo_parts
from collwise.models.fitting.procedures import request
from collwise.models.interface import CollectiveModel, entry
from collwise.models.lmo import LMO, Thresholds
from collwise.models.loading import models_of
from collwise.models.piecewise import Array
from collwise.models.point_to_point import PointToPointModel
from collwise.platforms import HostPlatform, load
from collwise.platforms.description import HeterogeneousPlatform
from collwise.platforms.truth import point_to_point
from collwise.simulator.sweeps.context import SimulationContext
from collwise.simulator.timing import Case
from collwise.studies.papers.oflynn2009.estimates import MODELS, PROCS, Estimates, PredictionError, is_eager, percent
from collwise.studies.papers.oflynn2009.tables import FIGURE_5_5_BYTES, KIB, THRESHOLDS
from collwise.validation.fitting.models_by_name import simulated_parameters
from collwise.validation.fitting.recovery import Recovered, recover
from collwise.validation.selection.rank_mapping import MappingGain, best_mappings, mapping_gains

EXACT = "exact-heterogeneous"
SIZES = (*range(KIB, 8 * KIB, KIB), *range(8 * KIB, 200 * KIB + 1, 4 * KIB))
"""Blocks up to 200 KB, as in figures 5.3 and 5.4."""
WIDE_BYTES_PER_SECOND = 1e13
MAPPING_SIZES = (KIB, 4 * KIB, 16 * KIB, 64 * KIB)
SERIES = (
    ("scatter", "linear"),
    ("scatter", "linear_nonblocking"),
    ("scatter", "binomial"),
    ("gather", "linear"),
    ("gather", "binomial"),
)

Curves = Mapping[tuple[str, str], Array]
"""Seconds at SIZES, by collective and algorithm."""


def simulated_curves(
    platform: HostPlatform,
    series: Sequence[tuple[str, str]],
    context: SimulationContext,
    thresholds: Thresholds | None = None,
) -> dict[tuple[str, str], Array]:
    """Simulated times; `thresholds` are for the algorithms 'lmo'. Raises CollwiseError when a case fails."""
    cases = {one: [_case(*one, size, thresholds) for size in SIZES] for one in series}
    sweep = context.simulate(platform, [case for several in cases.values() for case in several]).complete()
    return {one: np.array([sweep.timings[case].seconds for case in several]) for one, several in cases.items()}


def _case(collective: str, algorithm: str, size: int, thresholds: Thresholds | None) -> Case:
    case = Case(collective, algorithm, PROCS, size)
    if thresholds is None or algorithm != "lmo":
        return case
    if collective == "scatter":
        return replace(case, segment_bytes=thresholds.scatter_leap_bytes or 0)
    bounds = thresholds.gather_irregular_from_bytes or 0, thresholds.gather_regular_from_bytes or 0
    return replace(case, segment_bytes=bounds[0], limit_bytes=bounds[1] if bounds[0] else 0)


def predicted_curves(models: Mapping[str, CollectiveModel], collective: str, algorithm: str) -> dict[str, Array]:
    """Seconds at SIZES, by model. The non-blocking linear scatter is predicted as the linear one."""
    name = algorithm.removesuffix("_nonblocking")
    return {key: model.predict(collective, name, PROCS, SIZES) for key, model in models.items()}


def eager_sizes(found: Estimates) -> np.ndarray:
    """A mask of the SIZES below the eager limit."""
    return np.array([is_eager(found, size) for size in SIZES])


class Scores:
    """Errors of all models for every series of SERIES: below the eager limit, above it, and over all sizes."""

    def __init__(self, models: Mapping[str, CollectiveModel], curves: Curves, eager: np.ndarray) -> None:
        regions = {"below": eager, "above": ~eager, "all": eager | ~eager}
        self.by_key = {
            (*series, region): errors(models, curves, series, where)
            for series in SERIES
            for region, where in regions.items()
        }

    def mean(self, algorithm: str, region: str, model: str, collective: str = "scatter") -> str:
        """'8.0': the mean error in percent."""
        return percent(self.by_key[collective, algorithm, region][model].mean)

    def table(self) -> pd.DataFrame:
        """All errors, mean / worst in percent."""
        rows = [
            (
                key[1].replace("linear_nonblocking", "linear") + f" {key[0]}"
                + (", non-blocking sends" if key[1].endswith("nonblocking") else ""),
                key[2],
                *(str(of[name]) for name in MODELS),
            )
            for key, of in self.by_key.items()
        ]  # fmt: skip
        return pd.DataFrame(rows, columns=["algorithm", "blocks", *MODELS.values()])

    def lmo_is_better(self, algorithm: str, region: str) -> str:
        """'yes' or 'no', and the mean errors of LMO and of heterogeneous and homogeneous Hockney for a scatter."""
        score = self.by_key["scatter", algorithm, region]
        lmo, *others = (score[name].mean for name in ("lmo_heterogeneous", "hockney_heterogeneous", "hockney"))
        verdict = "yes" if lmo < min(others) else "no"
        return f"{verdict}, {percent(lmo)} % against {percent(others[0])} % and {percent(others[1])} %"

    def document(self) -> dict[str, dict[str, dict[str, float]]]:
        """All errors as plain data."""
        return {
            " ".join(key): {name: {"points": one.points} | one.document() for name, one in of.items()}
            for key, of in self.by_key.items()
        }


def errors(
    models: Mapping[str, CollectiveModel], curves: Curves, series: tuple[str, str], where: np.ndarray
) -> dict[str, PredictionError]:
    """The error of each model over the sizes of SIZES where `where` is true."""
    return {
        name: PredictionError.between(name, predicted[where], curves[series][where])
        for name, predicted in predicted_curves(models, *series).items()
    }


def choices(
    models: Mapping[str, CollectiveModel], curves: Curves, linear: str, where: np.ndarray
) -> dict[str, tuple[int, int]]:
    """At how many sizes each model takes the linear scatter rather than the binomial one, and how often it is right.

    'simulation' is among the names. `linear` is 'linear' or 'linear_nonblocking'.
    """
    truth = curves["scatter", linear][where] < curves["scatter", "binomial"][where]
    taken = {"simulation": truth}
    flat, tree = (predicted_curves(models, "scatter", name) for name in (linear, "binomial"))
    taken |= {name: flat[name][where] < tree[name][where] for name in models}
    return {name: (int(one.sum()), int(np.sum(one == truth))) for name, one in taken.items()}


Chosen = Mapping[tuple[str, str], Mapping[str, tuple[int, int]]]
"""Results of `choices` by linear algorithm and region of sizes."""


def choices_table(chosen: Chosen) -> pd.DataFrame:
    """`choices` with the number of sizes, and how often a model is right in brackets."""
    rows = [
        (
            "non-blocking sends" if kind == "linear_nonblocking" else "blocking sends",
            *(region, counts["simulation"][1], counts["simulation"][0]),
            *(f"{counts[name][0]} ({counts[name][1]})" for name in MODELS),
        )
        for (kind, region), counts in chosen.items()
    ]
    return pd.DataFrame(rows, columns=["linear scatter", "blocks", "sizes", "simulation", *MODELS.values()])


def sizes_of_figure_5_5() -> np.ndarray:
    """A mask of the SIZES that the figure shows."""
    return np.array([FIGURE_5_5_BYTES[0] <= size <= FIGURE_5_5_BYTES[1] for size in SIZES])


def with_true_parameters(platform: HostPlatform) -> PointToPointModel:
    """LMO with the true parameters of the platform's processors and wires instead of estimated ones."""
    truth = point_to_point(platform)
    return PointToPointModel(
        "lmo_heterogeneous", platform.name,
        LMO(truth.processor_seconds, truth.processor_seconds_per_byte, truth.latency_seconds,
            truth.network_seconds_per_byte),
    )  # fmt: skip


def without_shared_links(platform: HostPlatform, context: SimulationContext) -> dict[str, PredictionError]:
    """Errors for the binomial scatter where all of the root's messages are eager and links too wide to be shared.

    The models 'lmo' and 'hockney' have the true parameters of that platform. Wires still limit each single message.
    """
    assert isinstance(platform, HeterogeneousPlatform)
    kinds = tuple(replace(kind, link_bytes_per_second=WIDE_BYTES_PER_SECOND) for kind in platform.node_types)
    wide = replace(platform, node_types=kinds)
    lmo = with_true_parameters(wide)
    assert isinstance(lmo.parameters, LMO)
    hockney = PointToPointModel("hockney_heterogeneous", wide.name, lmo.parameters.as_hockney())
    curves = simulated_curves(wide, [("scatter", "binomial")], context)
    where = binomial_regions(wide.eager_limit_bytes)["all eager"]
    return errors({"lmo": lmo, "hockney": hockney}, curves, ("scatter", "binomial"), where)


def serial_gather(models: Mapping[str, CollectiveModel]) -> CollectiveModel:
    """Heterogeneous LMO that uses (4.3) for every gather, as if M2 were 0."""
    model = models["lmo_heterogeneous"]
    assert isinstance(model, PointToPointModel)
    assert isinstance(model.parameters, LMO)
    serial = replace(model.parameters, thresholds=Thresholds(gather_regular_from_bytes=0))
    return replace(model, parameters=serial)


def root_rates(found: Estimates, platform: HostPlatform) -> tuple[float, float, float]:
    """Seconds per byte at the root: t_0 as estimated, t_0 of its processor alone, and the time of its link."""
    assert isinstance(found.lmo.parameters, LMO)
    truth = point_to_point(platform)
    link = float(np.min(truth.network_seconds_per_byte[0, 1:]))
    estimated = np.asarray(found.lmo.parameters.processor_seconds_per_byte)[0]
    return float(estimated), float(truth.processor_seconds_per_byte[0]), link


def spread_of_rates(found: Estimates) -> tuple[float, float]:
    """The least and the largest t_i, seconds per byte."""
    assert isinstance(found.lmo.parameters, LMO)
    rates = np.asarray(found.lmo.parameters.processor_seconds_per_byte)
    return float(rates.min()), float(rates.max())


def binomial_regions(eager_limit_bytes: int) -> dict[str, np.ndarray]:
    """Masks of SIZES by how the root of a binomial tree sends; its messages have 1 to PROCS / 2 blocks."""
    sizes = np.array(SIZES)
    largest_eager = sizes * (PROCS // 2) < eager_limit_bytes
    none_eager = sizes >= eager_limit_bytes
    return {"all eager": largest_eager, "some eager": ~largest_eager & ~none_eager, "none eager": none_eager}


def negative_networks(found: Estimates) -> tuple[int, int]:
    """How many pairs have a negative 1 / beta, and how many pairs there are."""
    assert isinstance(found.lmo.parameters, LMO)
    matrix = found.lmo.parameters.network_seconds_per_byte
    pairs = [entry(matrix, i, j) for i, j in combinations(range(PROCS), 2)]
    return sum(value < 0 for value in pairs), len(pairs)


def binomial_regions_table(
    regions: Mapping[str, np.ndarray], split: Mapping[str, Mapping[str, PredictionError]]
) -> pd.DataFrame:
    """Errors for the binomial scatter by the regions of `binomial_regions`, mean / worst in percent."""
    rows = [(name, int(regions[name].sum()), *(str(score[model]) for model in MODELS)) for name, score in split.items()]
    return pd.DataFrame(rows, columns=["messages of the root", "sizes", *MODELS.values()])


# Thresholds.


def thresholds_table(found: Thresholds) -> pd.DataFrame:
    """The thresholds of the thesis and those found here."""
    rows = [
        (
            name,
            *(
                format_size(value) if value else "none found"
                for value in (one.scatter_leap_bytes, one.gather_irregular_from_bytes, one.gather_regular_from_bytes)
            ),
        )
        for name, one in (("thesis, LAM on the cluster", THRESHOLDS), ("estimated", found))
    ]
    return pd.DataFrame(rows, columns=["", "S", "M1", "M2"])


def lmo_over_linear(cut: Curves, curves: Curves) -> tuple[Array, Array, bool]:
    """The time of the LMO_ versions relative to the linear algorithms.

    Returns the ratios of LMO_Gather at medium blocks, from M1 to M2 of the thesis, those of LMO_Scatter at large ones,
    from its S on, and whether the gather's are all 1 at every size.
    """
    gather, scatter = (cut[name, "lmo"] / curves[name, "linear"] for name in ("gather", "scatter"))
    medium = np.array([bool(THRESHOLDS.irregular(size)) for size in SIZES])
    large = np.array(SIZES) >= (THRESHOLDS.scatter_leap_bytes or 0)
    return gather[medium], scatter[large], bool(np.all(gather == 1))


# Mappings.


def all_mapping_gains(
    platform: HostPlatform, models: Mapping[str, CollectiveModel], context: SimulationContext
) -> dict[tuple[str, str], list[MappingGain]]:
    """The gain of the best mapping of each size against the default, by collective and model."""
    gains = {}
    for collective in ("scatter", "gather"):
        for name in ("hockney_heterogeneous", "lmo_heterogeneous"):
            mappings = best_mappings(models[name], collective, PROCS, MAPPING_SIZES)
            gains[collective, name] = mapping_gains(platform, models[name], collective, PROCS, mappings, context)
    return gains


MappingGains = Mapping[tuple[str, str], Sequence[MappingGain]]


def mapping_table(gains: MappingGains) -> pd.DataFrame:
    """The gains in percent: predicted, simulated."""
    rows = [
        (
            *(f"binomial {collective}", MODELS[name]),
            *(f"{percent(gain.predicted_gain)}, {percent(gain.simulated_gain)}" for gain in several),
        )
        for (collective, name), several in gains.items()
    ]
    return pd.DataFrame(rows, columns=["collective", "model", *map(format_size, MAPPING_SIZES)])


def mapping_document(gains: MappingGains) -> dict[str, dict[str, dict[str, float]]]:
    """The gains as plain data."""
    return {
        f"{collective} {name}": {
            str(gain.message_bytes): {"predicted": gain.predicted_gain, "simulated": gain.simulated_gain}
            for gain in several
        }
        for (collective, name), several in gains.items()
    }


# Where all of LMO's assumptions hold.


@dataclass(frozen=True)
class ExactCase:
    """LMO on the synthetic platform: recovered parameters, and errors for simulated scatters.

    `scatter` and `hockney_scatter` are for the linear scatter with ranks in the platform's order, `slowest_last` for
    (4.1) with the slowest nodes served last, and `binomial` for the binomial scatter by LMO.
    """

    recovered: Sequence[Recovered]
    scatter: PredictionError
    slowest_last: PredictionError
    hockney_scatter: PredictionError
    binomial: PredictionError


def on_the_exact_platform(context: SimulationContext) -> ExactCase:
    """Estimation and scatters on the platform whose parameters are known exactly."""
    platform = load(EXACT)
    wanted = request("lmo", "triplets", heterogeneous=True)
    fitted = simulated_parameters(platform, wanted, context)
    hockney = simulated_parameters(platform, request("hockney", "regression", heterogeneous=True), context)
    assert isinstance(fitted.parameters, LMO)
    _, others = lmo_parts(fitted.parameters, PROCS, np.array([float(SIZES[-1])]))
    slowest_last = platform.reordered([0, *(1 + int(node) for node in np.argsort(others[:, 0]))])

    def error(model: CollectiveModel, ordered: HostPlatform, algorithm: str = "linear") -> PredictionError:
        curve = simulated_curves(ordered, [("scatter", algorithm)], context)["scatter", algorithm]
        # (4.1) takes the maximum over the others: their order does not change it.
        return PredictionError.between(model.name, model.predict("scatter", algorithm, PROCS, SIZES), curve)

    lmo = models_of(fitted)["lmo_heterogeneous"]
    return ExactCase(
        recover(platform, [wanted], lambda one: fitted),
        error(lmo, platform),
        error(lmo, slowest_last),
        error(models_of(hockney)["hockney_heterogeneous"], platform),
        error(lmo, platform, "binomial"),
    )


def recovered_table(recovered: Sequence[Recovered]) -> pd.DataFrame:
    """True and estimated parameters, and the worst error of each."""
    rows = [
        (row.parameter, f"{row.true:.6g}", f"{row.estimated:.6g}", f"{100 * row.worst_error:.4f}") for row in recovered
    ]
    return pd.DataFrame(rows, columns=["parameter", "true", "estimated", "worst error"])
