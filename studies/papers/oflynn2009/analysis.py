"""O'Flynn 2009: predictions for scatter and gather on the thesis's cluster, against simulation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

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
from collwise.studies.papers.oflynn2009.estimates import KIB, PROCS, errors
from collwise.validation.compare.scores import Scores, compare
from collwise.validation.fitting.models_by_name import models_of, parameters_on
from collwise.validation.fitting.recovery import recover
from collwise.validation.rank_mapping import best_mappings, mapping_gains
from collwise.validation.times.choice import Choice
from collwise.validation.times.grid import Grid
from collwise.validation.times.sources import simulate
from collwise.validation.times.times import State, Times

EXACT = "exact-heterogeneous"
SIZES = (*range(KIB, 8 * KIB, KIB), *range(8 * KIB, 200 * KIB + 1, 4 * KIB))
"""Blocks up to 200 KB, as in figures 5.3 and 5.4."""
WIDE_BYTES_PER_SECOND = 1e13
MAPPING_SIZES = (KIB, 4 * KIB, 16 * KIB, 64 * KIB)


def grid_of(collective: str, *choices: Choice) -> Grid:
    """Choices at all SIZES, one process on each node."""
    return Grid(collective, choices, (PROCS,), SIZES)


LINEAR, NONBLOCKING, BINOMIAL = map(Choice, ("linear", "linear_nonblocking", "binomial"))
GRIDS = (grid_of("scatter", LINEAR, NONBLOCKING, BINOMIAL), grid_of("gather", LINEAR, BINOMIAL))


def lmo_grids(thresholds: Thresholds) -> list[Grid]:
    """LMO_Gather and LMO_Scatter with these thresholds."""
    first = thresholds.gather_irregular_from_bytes or 0
    gather = Choice("lmo", first, limit_bytes=thresholds.last_irregular_bytes if first else 0)
    return [grid_of("gather", gather), grid_of("scatter", Choice("lmo", thresholds.scatter_leap_bytes or 0))]


def simulated(platform: HostPlatform, grids: Sequence[Grid], context: SimulationContext) -> dict[str, Times]:
    """Simulated times by collective. Raises CollwiseError when a case fails."""
    return {times.collective: times.complete() for times in simulate(platform, grids, context)}


def scores_of(right: Times, models: Mapping[str, CollectiveModel]) -> Scores:
    """The scores of models, by name; the non-blocking linear scatter is predicted as the linear one."""
    grid = right.grid
    names = [choice.algorithm.removesuffix("_nonblocking") for choice in grid.choices]

    def predicted(key: str, model: CollectiveModel) -> Times:
        seconds = np.array([[model.predict(grid.collective, name, PROCS, SIZES)] for name in names])
        return Times.of_seconds(grid, seconds, model.platform, "predicted", key, State.NO_FORMULA)

    return compare(right, *(predicted(*one) for one in models.items()))


def curve(times: Times, choice: Choice | None = None) -> Array:
    """Seconds of a choice, by default the first one, at all SIZES."""
    return np.asarray(times.array[0 if choice is None else times.choices.index(choice), 0])


def errors_of(scores: Scores, choice: Choice, where: np.ndarray) -> pd.DataFrame:
    """The error of each model over the sizes of SIZES where `where` is true."""
    place = scores.right.choices.index(choice)
    return errors({name: of.values[place, 0, where] for name, of in scores.errors.items()})


def errors_by_region(scores: Mapping[str, Scores], eager: np.ndarray) -> pd.DataFrame:
    """Errors by collective, algorithm, region and model: below the eager limit, above it, and over all sizes."""
    regions = {"below": eager, "above": ~eager, "all": eager | ~eager}
    return pd.concat({
        (collective, choice.algorithm, region): errors_of(of, choice, where)
        for collective, of in scores.items()
        for choice in of.right.choices
        for region, where in regions.items()
    })  # fmt: skip


def choices(scores: Scores, linear: Choice, where: np.ndarray) -> pd.DataFrame:
    """The number of sizes at which each model takes the `linear` scatter rather than the binomial one, and is `right`.

    'simulation' is among the models.
    """
    both = compare(scores.right.only((linear, BINOMIAL).__contains__), *scores.times.values())
    picks = {"simulation": both.right.best} | both.picks
    taken = pd.DataFrame({name: of.values[0, where] == both.right.index_of(linear) for name, of in picks.items()})
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
    times = simulated(wide, [grid_of("scatter", BINOMIAL)], context)["scatter"]
    where = binomial_regions(wide.eager_limit_bytes)["all eager"]
    return errors_of(scores_of(times, {"lmo": lmo, "hockney": hockney}), BINOMIAL, where)


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
    models = models_of(fitted) | models_of(by_regression)
    lmo, hockney = models["lmo_heterogeneous"], models["hockney_heterogeneous"]
    everywhere = np.ones(len(SIZES), dtype=bool)

    def found(ordered: HostPlatform, choice: Choice, **named: CollectiveModel) -> pd.DataFrame:
        times = simulated(ordered, [grid_of("scatter", choice)], context)["scatter"]
        return errors_of(scores_of(times, named), choice, everywhere)

    linear = found(platform, LINEAR, scatter=lmo, hockney_scatter=hockney)
    # (4.1) takes the maximum over the others: their order does not change it.
    served = found(slowest_last, LINEAR, slowest_last=lmo)
    every = pd.concat([linear, served, found(platform, BINOMIAL, binomial=lmo)])
    return pd.DataFrame(recover(platform, [wanted], lambda one: fitted)), every
