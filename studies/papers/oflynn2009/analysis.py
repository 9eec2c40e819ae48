"""O'Flynn 2009 on the simulated cluster of the thesis: estimation and its effort, messages, scatter and gather."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from collwise.common.errors import CollwiseError
from collwise.common.experiments import ROUNDTRIP, Effort, Experiment, Laboratory, Measurement
from collwise.models.collectives.blocks import lmo_parts
from collwise.models.fitting.hockney import hockney_by_regression
from collwise.models.fitting.lmo import scatter_leap
from collwise.models.fitting.procedures import request
from collwise.models.fitting.rounds import with_effort
from collwise.models.interface import CollectiveModel
from collwise.models.parameters import FittedParameters
from collwise.models.piecewise import Array
from collwise.models.point_to_point import PointToPointModel
from collwise.models.registry import MODELS as KNOWN
from collwise.models.single_messages import LMO, Hockney, Thresholds
from collwise.platforms import HostPlatform, Platform, load
from collwise.platforms.description import HeterogeneousPlatform
from collwise.platforms.linear_costs import point_to_point
from collwise.simulator.bench import Simulated
from collwise.simulator.execution.installations import smpi_installation
from collwise.simulator.execution.smpirun import run_smpi
from collwise.simulator.sweeps.application_runner import ApplicationRunner, CollectivesInUse, application_cases
from collwise.simulator.sweeps.context import SimulationContext
from collwise.simulator.sweeps.runner import run_cases
from collwise.studies.papers.published import measured_for, row_of, tables_of
from collwise.validation.compare.scores import Errors, Scores, compare
from collwise.validation.fitting.models_by_name import models_of, parameters_on
from collwise.validation.fitting.recovery import recover, true_parameters
from collwise.validation.measurement.applications import application_of, arguments_of
from collwise.validation.measurement.irregular_regions import COMPARED_SIZES, HALF_BOUND, TIMEOUT_SECONDS
from collwise.validation.rank_mapping import best_mappings, mapping_gains
from collwise.validation.times.choice import Choice
from collwise.validation.times.grid import Grid, with_thresholds
from collwise.validation.times.sources import simulate
from collwise.validation.times.times import State, Times

KIB, HERE = 1024, Path(__file__).parent
PUBLISHED = tables_of("oflynn2009")
HOMOGENEOUS_HOCKNEY = row_of(Hockney, PUBLISHED["homogeneous_hockney"])
THRESHOLDS = row_of(Thresholds, PUBLISHED["thresholds"])
PROCS = 16
ALL_PAIRS = tuple(combinations(range(PROCS), 2))
PAIR = (0, 8)
"""The pair for figure 5.2: the root (type 1) and a node of type 3. The thesis does not name its pair."""
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


def errors(relative: Mapping[str, Array] | pd.DataFrame) -> pd.DataFrame:
    """The mean and the worst |predicted / simulated - 1| of each model, over the points that it predicts."""
    found = {name: item for name, values in relative.items() if (item := Errors.of(values))}
    rows = [(item.count, item.mean, abs(item.worst)) for item in found.values()]
    return pd.DataFrame(rows, index=list(found), columns=["points", "mean", "worst"])


def shown(found: pd.DataFrame) -> pd.Series:
    """'8.0 / 12.3': mean and worst of `errors` in percent."""
    return found["mean"].map(percent) + " / " + found["worst"].map(percent)


def percent(part: float) -> str:
    """'12.3': a share in percent. Zero has no minus sign."""
    return f"{100 * part:z.1f}"


# Estimation: table 7.1 and table 5.1.


ESTIMATES = {
    "Hockney": request("hockney", "regression", heterogeneous=True),
    "Hockney, two sizes": request("hockney", "two-sizes", heterogeneous=True),
    "LogGP": request("loggp", "culler", heterogeneous=True),
    "PLogP": request("plogp", "kielmann", heterogeneous=True),
    "LMO": request("lmo", "triplets", heterogeneous=True),
}
"""Heterogeneous models of all nodes, one process per node."""


def estimates(
    platform: HostPlatform, context: SimulationContext, names: Iterable[str] = ESTIMATES
) -> dict[str, FittedParameters]:
    """The estimated parameters of these entries of ESTIMATES, each with the effort of its estimation."""
    return {name: parameters_on(Simulated(platform, context), ESTIMATES[name]) for name in names}


def collective_models(fits: Mapping[str, FittedParameters]) -> dict[str, CollectiveModel]:
    """The models of collectives by the names of MODELS."""
    parameters: dict[str, Any] = {name: fit.parameters for name, fit in fits.items()}
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
    """Every cell that the thesis prints, beside the means of our estimates over all node pairs of the cell's types.

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
    pairs = {name: (float(model.alpha_seconds), float(model.beta_seconds_per_byte)) for name, model in models.items()}
    return pd.DataFrame.from_dict(pairs, orient="index", columns=["alpha", "beta"])


def cells_like(cells: pd.DataFrame, model: pd.Series) -> list[str]:
    """The published cells of `table_7_1`, such as '1-2', that equal a homogeneous model digit for digit."""
    return list(cells.index[np.isclose(cells.published, model, rtol=1e-9, atol=0).all(axis=1)])


class OneAfterAnother:
    """A laboratory whose experiments run one after another; it counts the effort from its creation on."""

    def __init__(self, lab: Laboratory) -> None:
        self._lab = lab
        self.procs, self.min_bytes, self.eager_limit_bytes = lab.procs, lab.min_bytes, lab.eager_limit_bytes
        self.effort: Effort = lab.effort

    def run(self, experiments: Sequence[Experiment], in_parallel: bool = True) -> list[Measurement]:
        """Runs the experiments, whatever `in_parallel` says."""
        return self._lab.run(experiments, in_parallel=False)


def side_by_side(platform: HostPlatform, context: SimulationContext) -> tuple[Effort, Effort, float]:
    """Section 4.4: the effort that measuring disjoint pairs at once saves, and the change of the parameters.

    Returns the efforts of estimating heterogeneous Hockney with pairs at once and with pairs one after another, and the
    largest relative difference of a parameter.
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
        "formula of the thesis": efforts.index.map(PUBLISHED["table_5_1_formulas"]),
        "by it, with our k": [by_formula.get(name, "-") for name in efforts.index],
        "counted": efforts.measurements.to_numpy(),
        "per pair": [f"{count / len(ALL_PAIRS):.1f}" for count in efforts.measurements],
        "seconds, ours": [f"{seconds:.2f}" for seconds in efforts.seconds],
        "seconds, thesis": [PUBLISHED["table_5_1_seconds"].get(name, "-") for name in efforts.index],
    })  # fmt: skip


# Single messages: figure 5.2.


def message_predictions(
    fits: Mapping[str, FittedParameters], sizes: Sequence[int], pair: tuple[int, int]
) -> pd.DataFrame:
    """Seconds of a message between two nodes, a row for each size and a column for each heterogeneous model."""
    parameters: dict[str, Any] = {name: fit.parameters for name, fit in fits.items()}
    culler, from_plogp = parameters["LogGP"], parameters["PLogP"].pairs[pair[0]][pair[1]].as_loggp()
    m = np.asarray(sizes, dtype=float)
    seconds = {
        "Hockney": parameters["Hockney"].predict(m, *pair),
        "LogGP, by Culler": culler.predict(m, *pair),
        "LogGP, from PLogP": from_plogp.predict(m),
        "PLogP": parameters["PLogP"].predict(m, *pair),
        "LMO": parameters["LMO"].predict(m, *pair),
    }
    return pd.DataFrame(seconds, sizes)


def message_seconds(
    platform: HostPlatform, sizes: Sequence[int], pairs: Sequence[tuple[int, int]], context: SimulationContext
) -> Array:
    """Half of the simulated roundtrips with the same size both ways, shape (pair, size)."""
    lab = context.laboratory(platform)
    experiments = [Experiment(ROUNDTRIP, pair, size, size) for pair in pairs for size in sizes]
    seconds = [measurement.seconds / 2 for measurement in lab.run(experiments)]
    return np.reshape(seconds, (len(pairs), len(sizes)))


def message_errors(fits: Mapping[str, FittedParameters], simulated: Array, eager: bool) -> pd.DataFrame:
    """Errors over all pairs at some of SIZES_OF_ALL_PAIRS: those below the eager limit if `eager`, else the others.

    `simulated`: seconds, shape (pair, size).
    """
    sizes = np.array(SIZES_OF_ALL_PAIRS)
    chosen = (sizes < fits["LMO"].eager_limit_bytes) == eager
    predicted = pd.concat([message_predictions(fits, sizes[chosen], pair) for pair in ALL_PAIRS])
    return errors(predicted.div(simulated[:, chosen].ravel(), axis=0) - 1)


# Scatter and gather: table 5.2, figures 5.3 to 5.5, and 7.1 to 7.3.

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
    return [grid_of(name, *with_thresholds(name, [Choice("lmo")], thresholds)) for name in ("gather", "scatter")]


def simulated(platform: HostPlatform, grids: Sequence[Grid], context: SimulationContext) -> dict[str, Times]:
    """Simulated times by collective. Raises CollwiseError when a case fails."""
    return {times.collective: times.complete() for times in simulate(platform, grids, context)}


def scores_of(right: Times, models: Mapping[str, CollectiveModel]) -> Scores:
    """The scores of models, by name; the non-blocking linear scatter is predicted as the linear one."""
    names, predicted = [choice.algorithm.removesuffix("_nonblocking") for choice in right.choices], []
    for key, model in models.items():
        seconds = np.array([[model.predict(right.collective, name, PROCS, SIZES)] for name in names])
        predicted.append(Times.of_seconds(right.grid, seconds, model.platform, "predicted", key, State.NO_FORMULA))
    return compare(right, *predicted)


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
    """The number of sizes at which each model picks `linear` rather than binomial scatter, and at which it is right.

    A pick is right if 'simulation', which is listed among the models, makes the same pick.
    """
    both = compare(scores.right.only((linear, BINOMIAL).__contains__), *scores.times.values())
    picks = {"simulation": both.right.best} | both.picks
    taken = pd.DataFrame({name: of.values[0, where] == both.right.index_of(linear) for name, of in picks.items()})
    return pd.DataFrame({"linear": taken.sum(), "right": taken.eq(taken.simulation, axis=0).sum()})


def with_true_parameters(name: str, platform: HostPlatform) -> PointToPointModel:
    """A heterogeneous model with the true parameters of the platform's processors and wires, not estimated ones."""
    return PointToPointModel(name, platform.name, true_parameters(KNOWN[name].family, point_to_point(platform)))


def without_shared_links(platform: HeterogeneousPlatform, context: SimulationContext) -> pd.DataFrame:
    """Errors of 'lmo' and 'hockney', with true parameters, for an eager binomial scatter if no link is shared.

    Wires still limit each single message.
    """
    kinds = tuple(replace(kind, link_bytes_per_second=WIDE_BYTES_PER_SECOND) for kind in platform.node_types)
    wide = replace(platform, node_types=kinds)
    models = {name: with_true_parameters(f"{name}_heterogeneous", wide) for name in ("lmo", "hockney")}
    times = simulated(wide, [grid_of("scatter", BINOMIAL)], context)["scatter"]
    where = binomial_regions(wide.eager_limit_bytes)["all eager"]
    return errors_of(scores_of(times, models), BINOMIAL, where)


def binomial_regions(eager_limit_bytes: int) -> dict[str, np.ndarray]:
    """Masks of SIZES: all, some or none of a binomial root's messages (1 to PROCS / 2 blocks) are eager."""
    sizes = np.array(SIZES)
    every, none = sizes * (PROCS // 2) < eager_limit_bytes, sizes >= eager_limit_bytes
    return {"all eager": every, "some eager": ~every & ~none, "none eager": none}


def all_mapping_gains(
    platform: HostPlatform, models: Mapping[str, CollectiveModel], context: SimulationContext
) -> pd.DataFrame:
    """The gain of each size's best mapping against the default mapping, by collective and model."""
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

    Returns LMO's true and estimated parameters, and the errors for simulated scatters: `scatter` (by LMO) and
    `hockney_scatter` for the linear scatter with ranks in the platform's order, `slowest_last` (by LMO's (4.1)) for the
    linear scatter that serves the slowest nodes last, and `binomial` (by LMO) for the binomial scatter.
    """
    platform = load(EXACT)
    fits = estimates(platform, context, ("LMO", "Hockney"))
    parameters = fits["LMO"].parameters
    assert isinstance(parameters, LMO)
    _, others = lmo_parts(parameters, PROCS, np.array([float(SIZES[-1])]))
    slowest_last = platform.reordered([0, *(1 + int(node) for node in np.argsort(others[:, 0]))])
    lmo, hockney = (models_of(fits[name])[f"{name.lower()}_heterogeneous"] for name in ("LMO", "Hockney"))
    everywhere = np.ones(len(SIZES), dtype=bool)

    def found(ordered: HostPlatform, choice: Choice, **named: CollectiveModel) -> pd.DataFrame:
        times = simulated(ordered, [grid_of("scatter", choice)], context)["scatter"]
        return errors_of(scores_of(times, named), choice, everywhere)

    linear = found(platform, LINEAR, scatter=lmo, hockney_scatter=hockney)
    # (4.1) takes the maximum over the other processes, so their order does not change the result.
    served = found(slowest_last, LINEAR, slowest_last=lmo)
    every = pd.concat([linear, served, found(platform, BINOMIAL, binomial=lmo)])
    return pd.DataFrame(recover(platform, [ESTIMATES["LMO"]], lambda one: fits["LMO"])), every


# The matrix multiplication: table 7.2.

TABLE_7_2 = pd.DataFrame(PUBLISHED["table_7_2"]).set_index("size")
"""Seconds with `native` and with `optimized` collectives, by matrix size."""
_RULES = "scatterv 1 1 0 {tree}\nbcast 1 1 0 binomial\ngatherv 1 1 0 {tree}\n"
_NO_COMPUTATION = 1e18
"""Operations per second with which multiplying takes no time. With rows in proportion to their speeds, all processes
would multiply equally long."""
_NUMBER_BYTES = 8


def multiplications(platform: HostPlatform, lmo: CollectiveModel, context: SimulationContext) -> pd.DataFrame:
    """Simulated seconds of communication in the multiplications of table 7.2, by matrix size.

    `flat` scatters and gathers by a flat tree, as native collectives do, and `binomial` by a binomial tree. `mapped`
    also uses the binomial tree, with processors mapped so that LMO predicts the least time. Raises CollwiseError when a
    multiplication fails.
    """
    blocks = [_NUMBER_BYTES * int(size) ** 2 // PROCS for size in TABLE_7_2.index]
    mapped = platform.reordered(best_mappings(lmo, "scatter", PROCS, blocks, common=True)[blocks[0]])
    ways = {"flat": (platform, "linear"), "binomial": (platform, "binomial"), "mapped": (mapped, "binomial")}
    matmul, found = application_of("matmul"), pd.DataFrame(index=TABLE_7_2.index, columns=[*ways], dtype=float)
    for name, (where, tree) in ways.items():
        rules = CollectivesInUse(name, rules=_RULES.format(tree=tree))
        case, within = application_cases(matmul.name, name, PROCS, 1)
        for size in TABLE_7_2.index:
            words = arguments_of(matmul, {"size": int(size), "fastest": 0}, _NO_COMPUTATION)
            runner = ApplicationRunner(where, matmul.name, words, rules, PROCS, context.simgrid)
            timing = run_cases(runner, [case, within], context.store).timings[case]
            if not timing.ok:
                raise CollwiseError(timing.error)
            found.loc[size, name] = timing.seconds
    return found


# Repetitions back to back: figures 2.1 and 2.2.

SERIES = {"single": ("--iterations", "1"), "series": ("--iterations", "30", "--barriers", "once")}
"""Options of the program `latency` for a single call after a barrier, and for a series of calls."""
SERIES_SIZES = "1KiB:128KiB"


def back_to_back(platform: HostPlatform, context: SimulationContext) -> dict[str, pd.DataFrame]:
    """Seconds that processes spend in simulated linear scatters and gathers, by block size.

    The columns are the minimum and the maximum over processes, for each of SERIES. Raises CollwiseError if a run fails.
    """
    smpi, found = smpi_installation(context.simgrid, PROCS), {}
    for collective in ("scatter", "gather"):
        columns: dict[str, pd.Series] = {}
        for name, words in SERIES.items():
            asked = ["--collectives", collective, "--sizes", SERIES_SIZES, *words]
            linear = [f"--cfg=smpi/{collective}:ompi_basic_linear"]
            run = run_smpi(smpi, platform, "latency", PROCS, asked, launcher_args=linear)
            if run.returncode != 0:
                raise CollwiseError(run.problem)
            columns |= {f"{name}, {what}": of for what, of in latencies(run.output_lines).items()}
        found[collective] = pd.DataFrame(columns)
    return found


def measured_series() -> dict[str, pd.DataFrame]:
    """The seconds that `back_to_back` simulates, as measured on a test bed: means over launches."""
    measured, _ = measured_for("oflynn2009", "series")
    means = measured.groupby(["collective", "message_bytes", "kind"])[["minimum", "maximum"]].mean().unstack()
    means.columns = [f"{kind}, {what}" for what, kind in means.columns]
    return {collective: means.loc[collective] for collective in ("scatter", "gather")}


def measured_timings() -> tuple[pd.DataFrame, str]:
    """Methods of timing linear scatter and gather on a test bed, and the date of the measurement.

    A row for each method and collective has the benchmark's seconds for one repetition of each size. It also has the
    median, least and greatest ratio, over the sizes, of the method's time to the time by the global clock.
    """
    measured, facts = measured_for("oflynn2009", "timing")
    barrier, timed = (measured[measured.collective.isin(of)] for of in (["barrier"], ["scatter", "gather"]))
    without = timed[timed.timing == "root"].assign(timing="root, barrier subtracted")
    without["seconds"] -= barrier.seconds.item()
    right = timed[timed.timing == "global"].set_index(["collective", "message_bytes"]).seconds.rename("right")
    both = pd.concat([timed, without]).sort_index(kind="stable").join(right, on=["collective", "message_bytes"])
    found = both.assign(ratio=both.seconds / both.right).groupby(["collective", "timing"], sort=False)
    rows = found.agg(
        benchmark_seconds=("benchmark_seconds", "first"), ratio=("ratio", "median"),
        least_ratio=("ratio", "min"), greatest_ratio=("ratio", "max"),
    )  # fmt: skip
    return rows.reset_index(), facts["measured_on"]


def latencies(lines: Iterable[str]) -> pd.DataFrame:
    """The least and largest seconds of a process, by size, in the output of the program `latency` for a collective."""
    rows = [[float(word) for word in line.split()] for line in lines if line[:1].isdigit()]
    printed = pd.DataFrame(rows, columns=["message_bytes", "average", "minimum", "maximum"])
    return printed.astype({"message_bytes": int}).set_index("message_bytes")[["minimum", "maximum"]] / 1e6


# Escalations: figures 7.3 and 7.4.

BED = HERE / "bed.toml"
"""Eight nodes at 100 Mbit/s; each switch port buffers 32 kB (30605 B without headers). No value was measured."""
MYRINET = HERE / "myrinet.toml"
"""The 64 nodes of figure 7.4, as far as the thesis describes them."""
BED_THRESHOLDS = Thresholds(gather_irregular_from_bytes=6 * KIB, gather_regular_from_bytes=64 * KIB)
"""M1 and M2, measured on such a bed (docs/regions.md)."""
BED_PROCS, MYRINET_PROCS = 8, 64


def gathers_with(thresholds: Thresholds) -> dict[str, Choice]:
    """Gathers by name. The bound of LMO_Gather is M1 of the thresholds, or half of M1."""
    first, limit = thresholds.gather_irregular_from_bytes or 0, thresholds.last_irregular_bytes
    return {
        "linear": LINEAR,
        "lmo": Choice("lmo", first, limit_bytes=limit),
        HALF_BOUND: Choice("lmo", first // 2, limit_bytes=limit),
        "linear_sync": Choice("linear_sync", KIB),
        "binomial": BINOMIAL,
    }


def predicted_gathers(context: SimulationContext, file: Path, procs: int, thresholds: Thresholds) -> pd.DataFrame:
    """Seconds of gathers by the schedule engine if switch ports have finite buffers, by block size and algorithm.

    'no losses' is the linear gather with unlimited buffers.
    """
    choices = gathers_with(thresholds)
    platform = load(str(file))
    assert isinstance(platform, Platform)
    assert platform.ports is not None
    boundless = replace(platform, ports=replace(platform.ports, buffers=None))
    grid = Grid("gather", tuple(choices.values()), (procs,), COMPARED_SIZES)
    times, lossless = (simulate(item, [grid], context)[0].complete() for item in (platform, boundless))
    columns = {name: times.array[times.choices.index(choice), 0] for name, choice in choices.items()}
    columns["no losses"] = lossless.array[lossless.choices.index(LINEAR), 0]
    return pd.DataFrame(columns, COMPARED_SIZES)


def leaping_scatters(context: SimulationContext) -> tuple[int | None, Array]:
    """S of the linear scatter in SMPI on the nodes of figure 7.4, and LMO_Scatter's times relative to linear.

    The relative times are for blocks from the thesis's S on. Raises CollwiseError when a case fails.
    """
    sizes, least = tuple(range(4 * KIB, 128 * KIB + 1, 4 * KIB)), THRESHOLDS.scatter_leap_bytes or 0
    grid = Grid("scatter", (LINEAR, Choice("lmo", least)), (MYRINET_PROCS,), sizes)
    (times,) = simulate(load(str(MYRINET)), [grid], context)
    linear, lmo = times.complete().array[:, 0]
    return scatter_leap(sizes, linear), (lmo / linear)[np.array(sizes) >= least]


def measured_gathers() -> pd.DataFrame:
    """Repetitions of gathers of blocks from M1 to M2 on the test bed, one row each.

    `ratio` is the time relative to a linear gather without escalation; `late` is true after a time-out. The time
    without escalation is the 10 % quantile, not the minimum: blocks that already wait for a late root shorten its time.
    """
    found, _ = measured_for("oflynn2009", "escalations")
    without = found[found.gather == "linear"].groupby("message_bytes").seconds.quantile(0.1)
    least = found.message_bytes.map(without)
    return found.assign(ratio=found.seconds / least, late=found.seconds >= least + TIMEOUT_SECONDS)


def escalations_beside_measured(measured: pd.DataFrame, predicted: pd.DataFrame) -> pd.DataFrame:
    """The distributions of `measured_gathers` beside predictions: a row for each algorithm.

    `median`, `ninetieth`, `mean` and `worst` are relative to linear gather without escalation. `share` is the share of
    repetitions with a time-out, `predicted_share` the share of sizes with a predicted time-out.
    """
    ratios = measured.groupby("gather", sort=False).ratio
    found = ratios.agg(["median", "mean"]).assign(
        ninetieth=ratios.quantile(0.9), worst=ratios.max(), share=measured.groupby("gather").late.mean()
    )
    return found.join(predicted_escalations(predicted, BED_THRESHOLDS).add_prefix("predicted_"))


def predicted_escalations(predicted: pd.DataFrame, thresholds: Thresholds) -> pd.DataFrame:
    """The escalation of `predicted_gathers` of blocks from M1 to M2, a row for each algorithm.

    `mean` and `worst` are relative to linear gather without losses; `share` is the share of sizes with a time-out.
    """
    medium = predicted[thresholds.irregular(predicted.index)]
    ratios = medium.div(medium["no losses"], axis=0)
    late = medium.sub(medium["no losses"], axis=0) >= TIMEOUT_SECONDS
    return pd.DataFrame({"mean": ratios.mean(), "worst": ratios.max(), "share": late.mean()})
