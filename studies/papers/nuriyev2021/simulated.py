"""The method of Nuriyev & Lastovetsky 2021 repeated in simulation, and the simulated best beside the measured one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from collwise.models.implementation_aware import bcast
from collwise.models.implementation_aware.fitting import fit_algorithm
from collwise.models.implementation_aware.message_counts import Formula
from collwise.models.implementation_aware.model import ImplementationAware
from collwise.models.parameters import ModelParameters
from collwise.models.registry import AS_PRINTED, BY_PARTS, MODELS, TRADITIONAL
from collwise.platforms import load, load_description
from collwise.platforms.changes import Change, changed
from collwise.simulator.bench import Simulated
from collwise.simulator.sweeps.context import (
    SCHEDULE,
    SCHEDULE_WITH_EXPERIMENTS,
    SMPI,
    SMPI_ALGORITHM_1,
    SimulationContext,
)
from collwise.studies.papers.figures import over_sizes
from collwise.studies.papers.nuriyev2021.published_model import (
    ADOPTED,
    EAGER_LIMIT_BYTES,
    INDISTINGUISHABLE_PERCENT,
    KIB,
    LITERAL,
    NEAR_OPTIMAL,
    PARAMETERS,
    PUBLISHED,
    READINGS,
    TABLE_8_SHAHEEN,
    TABLES,
    named,
    predicted_seconds,
    slowdowns,
)
from collwise.studies.papers.published import row_of
from collwise.studies.reports.markdown import whole_percent
from collwise.validation.compare.scores import Scores
from collwise.validation.compare.simulated import beside_simulation
from collwise.validation.fitting.implementation_aware import FitPlan, as_paper, fit
from collwise.validation.libraries.baselines import PAPERS
from collwise.validation.times.defaults import PAPER_SIZES, SEGMENT_BYTES
from collwise.validation.times.grid import Grid
from collwise.validation.times.slowdown import SlowdownSummary, summary_of
from collwise.validation.times.sources import predicted, simulate
from collwise.validation.times.times import Times

AS_PRODUCT = f"{AS_PRINTED}, (7) as a product"
"""The model as printed, but fitted and evaluated with the literal reading of formula (7), the binomial broadcast."""
PRODUCT_ROW = "binomial, (7) as a product"


class LiteralModel(ImplementationAware):
    """The fitted model AS_PRODUCT, which reads formula (7) literally."""

    @classmethod
    def of(cls, parameters: ModelParameters) -> LiteralModel:
        """The model of fitted parameters; the binomial broadcast is fitted again to the same experiments."""
        used = as_paper("bcast", parameters.observations["bcast"]["binomial"])
        known = parameters.gamma, parameters.eager_limit_bytes
        again = fit_algorithm(AS_PRINTED, "bcast", "binomial", used, *known, READINGS["bcast"][LITERAL]["binomial"])
        printed = parameters.fits[AS_PRINTED]
        fits = {**printed, "bcast": {**printed["bcast"], "binomial": again}}
        return cls(replace(parameters, fits={**parameters.fits, AS_PRINTED: fits}), AS_PRINTED)

    def formula(self, collective: str, algorithm: str) -> Formula:
        """The formula of an algorithm; broadcasts have the formula in the literal reading."""
        ours = READINGS[collective][LITERAL] if collective == "bcast" else self.kind.formulas[collective]
        return ours[algorithm]


@dataclass(frozen=True)
class ClusterUse:
    """The process counts with which the study uses a cluster, from published.toml."""

    name: str
    procs: tuple[int, ...]
    table_procs: int
    fit_procs: tuple[int, ...]
    processes_per_node: int
    procs_of_figure_6: tuple[int, ...]


*CLUSTERS, SHAHEEN = (row_of(ClusterUse, item) for item in PUBLISHED["clusters"])
# The sizes of table 8 that SMPI simulates in about a minute.
SHAHEEN_SMPI_BYTES = 328 * KIB
# The algorithms of the paper, by collective; the catalogue has more.
PAPER_ALGORITHMS = {collective: tuple(formulas) for collective, formulas in MODELS[AS_PRINTED].formulas.items()}
# The paper does not state the message size of its figure 6. Here are a size of few segments and a size of many.
SIZES_OF_FIGURE_6 = (16 * KIB, 1024 * KIB)
SecondsOfTables = Mapping[tuple[str, str], pd.DataFrame]
"""Frames of seconds by message size and algorithm, for each cluster and collective."""
NAMED = ("model", "openmpi", "best")
"""The columns of printed tables that name an algorithm."""
# The columns of tables of picks, and the titles of their sources in comparisons.
SOURCES = {
    "by parts": BY_PARTS,
    "as printed": AS_PRINTED,
    "(7) as a product": AS_PRODUCT,
    PAPERS.title: f"{PAPERS.title}, common segments",
    f"{PAPERS.title}, its segments": PAPERS.title,
}


@dataclass(frozen=True)
class FittedTable:
    """The scores of the models and of Open MPI against simulated times, for one collective on one cluster."""

    cluster: ClusterUse
    collective: str
    parameters: ModelParameters
    scores: Scores

    @property
    def title(self) -> str:
        """'grisou bcast'."""
        return f"{self.cluster.name} {self.collective}"

    @property
    def printed_places(self) -> list[tuple[int, int]]:
        """The indices (of P, of m) in the scores at which P is that of tables 2 and 3."""
        at = self.scores.right.procs.index(self.cluster.table_procs)
        return [place for place in self.scores.places(*self.scores.times) if place[0] == at]

    def seconds(self, times: Times | None = None) -> pd.DataFrame:
        """Seconds by message size and algorithm at the process count of tables 2 and 3; simulated ones by default."""
        return over_sizes(times or self.scores.right, self.cluster.table_procs)

    def slowdowns(self) -> dict[str, SlowdownSummary]:
        """The slowdowns of each source's picks over all process counts and sizes, by label in SOURCES."""
        return {label: self.scores.summary(title) for label, title in SOURCES.items()}


def over_all(tables: Sequence[FittedTable], label: str) -> SlowdownSummary:
    """Summarizes one source's slowdowns over the points of all tables; `label` is the source's key in SOURCES."""
    return summary_of(np.concatenate([table.scores.slowdown[SOURCES[label]].values.ravel() for table in tables]), 0)


def mean_and_worst(found: SlowdownSummary) -> dict[str, float]:
    """The mean and the worst slowdown, in the form in which results are published."""
    return {"mean": found.mean, "worst": found.worst}


def with_algorithm_1(context: SimulationContext) -> SimulationContext:
    """The context, but with SMPI, broadcasts run the paper's Algorithm 1, which posts no receive ahead."""
    return replace(context, engine=SMPI_ALGORITHM_1) if context.engine is SMPI else context


def fitted_tables(context: SimulationContext) -> list[FittedTable]:
    """Fits the models on each cluster and compares their picks at the paper's sizes and process counts."""
    tables = []
    for cluster in CLUSTERS:
        parameters = _fitted(cluster, context)
        for collective, sizes in PAPER_SIZES.items():
            grid = _grid(cluster, collective, cluster.procs, sizes)
            scores = _compared(cluster, grid, parameters, (BY_PARTS, AS_PRINTED), context)
            tables.append(FittedTable(cluster, collective, parameters, scores))
    return tables


def _fitted(cluster: ClusterUse, context: SimulationContext) -> ModelParameters:
    ppn, names = cluster.processes_per_node, PAPER_ALGORITHMS["bcast"]
    plan = FitPlan(cluster.fit_procs, ppn, SEGMENT_BYTES, more_segments=(), broadcasts=names)
    return fit(Simulated(load(cluster.name), context), plan)


def _grid(cluster: ClusterUse, collective: str, procs: Sequence[int], sizes: Sequence[int]) -> Grid:
    names = PAPER_ALGORITHMS[collective]
    return Grid.of(collective, procs, sizes, cluster.processes_per_node, (SEGMENT_BYTES,), names)


def _compared(
    cluster: ClusterUse, grid: Grid, parameters: ModelParameters, models: Sequence[str], context: SimulationContext
) -> Scores:
    """The scores of models and of Open MPI, the latter with the paper's common segment size and with its own."""
    predictions = [predicted(ImplementationAware(parameters, name), grid) for name in models]
    scores = beside_simulation(load(cluster.name), predictions[0].grid, predictions, context, PAPERS)
    scores.right.complete()
    if AS_PRINTED in models:
        scores = Scores(scores.right, {**scores.others, AS_PRODUCT: predicted(LiteralModel.of(parameters), grid)})
    return scores


def picks_over_procs(table: FittedTable, context: SimulationContext) -> Scores:
    """Figure 6: broadcast with m fixed and P varying. Raises CollwiseError when a case fails."""
    grid = _grid(table.cluster, "bcast", table.cluster.procs_of_figure_6, SIZES_OF_FIGURE_6)
    return _compared(table.cluster, grid, table.parameters, (BY_PARTS,), context)


# Table 8.


BY_RANGES = "by parts, fitted on 64 and 1024"
"""The model with parameters for the nearest range of P, which here is 1024 processes."""


@dataclass(frozen=True)
class Shaheen:
    """Table 8 on a simulated Shaheen II: the schedule engine's comparison, and seconds by message size and algorithm.

    Models are fitted in SMPI on 64 processes, and by the schedule engine on 1024 (BY_RANGES). `smpi` has SMPI's times
    of the sizes that SMPI can simulate, `eager` the times that the schedule engine finds if segments are eager.
    """

    table: FittedTable
    smpi: pd.DataFrame
    eager: pd.DataFrame

    @property
    def scheduled(self) -> pd.DataFrame:
        """Seconds of the schedule engine, by message size and algorithm."""
        return self.table.seconds()


def shaheen(context: SimulationContext) -> Shaheen:
    """Fits the models on some nodes in SMPI, and times the points of table 8 by both engines."""
    parameters, scheduling = _fitted(SHAHEEN, context), replace(context, engine=SCHEDULE_WITH_EXPERIMENTS)
    grid = _grid(SHAHEEN, "bcast", SHAHEEN.procs, tuple(TABLE_8_SHAHEEN.message_bytes))
    scores = _compared(SHAHEEN, grid, parameters, (BY_PARTS, AS_PRINTED), scheduling)
    at_1024 = _fitted(replace(SHAHEEN, fit_procs=SHAHEEN.procs), scheduling)
    by_ranges = predicted(ImplementationAware(at_1024, BY_PARTS), grid)
    scores = Scores(scores.right, {**scores.others, BY_RANGES: by_ranges})
    table, platform = FittedTable(SHAHEEN, "bcast", parameters, scores), load_description(SHAHEEN.name)
    reached = replace(grid, message_bytes=tuple(size for size in grid.message_bytes if size <= SHAHEEN_SMPI_BYTES))
    eager = changed(platform, [Change("eager_limit", f"{EAGER_LIMIT_BYTES}B")]).platform
    by_smpi, by_eager = simulate(platform, [reached], context), simulate(eager, [grid], scheduling)
    return Shaheen(table, *(table.seconds(times.complete()) for times in (*by_smpi, *by_eager)))


def engines_apart(of: Shaheen) -> pd.Series:
    """The relative difference of SMPI's times from the schedule engine's, at the points that both time (0.1: 10 %)."""
    return (of.smpi / of.scheduled.loc[of.smpi.index] - 1).abs().stack()


def picks_of_models(of: Shaheen, rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of table 8 (`agreement_with_measured_best`) with the picks of the models, slowdowns in percent.

    SMPI's column has '-' for the sizes that SMPI cannot simulate.
    """
    pick = of.table.scores.pick
    shown = agreement_rows({"engine": rows})
    reached = TABLE_8_SHAHEEN[TABLE_8_SHAHEEN.message_bytes.isin(of.smpi.index)]
    by_smpi = agreement_rows({"SMPI": agreement_with_measured_best({(SHAHEEN.name, "bcast"): of.smpi}, [reached])})
    shown.insert(2, "by SMPI", by_smpi["by SMPI"].reindex(shown.index).fillna("-"))
    for model, title in (
        (AS_PRINTED, "as printed"),
        (AS_PRODUCT, "(7) as a product"),
        (BY_PARTS, "by parts"),
        (BY_RANGES, "by parts, of 1024"),
    ):
        picked = [pick(model, *at) for at in of.table.printed_places]
        shown[title] = [f"{item.name} {whole_percent(item.slowdown)}" for item in picked]
    return shown


def printed_picks(of: Shaheen) -> pd.DataFrame:
    """The slowdown against the best, in percent, of every algorithm that a row of table 8 names.

    The columns have this slowdown as measured, by the published formulas, simulated, and simulated with eager segments.
    """
    printed = [TABLE_8_SHAHEEN.assign(best_percent=0)[["kib", name, f"{name}_percent"]] for name in NAMED]
    rows = pd.concat([item.set_axis(["m (KB)", "algorithm", "measured"], axis=1) for item in printed])
    rows = rows.sort_index(kind="stable").drop_duplicates(["m (KB)", "algorithm"])
    seconds = {
        "by the formulas": predicted_seconds(TABLE_8_SHAHEEN, ADOPTED["bcast"], "Gros's"),
        "simulated": of.scheduled,
        "simulated, eager segments": of.eager,
    }
    for source, second in seconds.items():
        lost = slowdowns(second).set_axis(TABLE_8_SHAHEEN.index, axis=0)
        rows[source] = 100 * named(lost.loc[rows.index], rows.algorithm)
    return rows.reset_index(drop=True)


# Figure 3, and the published parameters beside the parameters fitted here.


def traditional_and_ours(table: FittedTable) -> dict[str, pd.DataFrame]:
    """Figure 3: seconds of binary and binomial broadcasts by message size, a table for each kind of curve."""
    sizes, names = table.scores.right.message_bytes, list(bcast.TRADITIONAL)
    traditional = ImplementationAware(table.parameters, TRADITIONAL)
    predicted = {name: traditional.predict("bcast", name, table.cluster.table_procs, sizes) for name in names}
    return {
        "traditional": pd.DataFrame(predicted, sizes),
        "simulated": table.seconds()[names],
        "by parts": table.seconds(table.scores.times[BY_PARTS])[names],
    }


def fitted_beside_printed(tables: Sequence[FittedTable]) -> pd.DataFrame:
    """Parameters of tables 4, 5 and 7 beside those of the model as printed, fitted in simulation.

    `printed_seconds` and `our_seconds` are alpha + m_s beta, the time of a segment; for a gather, they are the time of
    a block of 64 KiB. The binomial broadcast is fitted by both readings of (7).
    """
    rows = []
    for table in tables:
        cluster, collective = table.cluster.name, table.collective
        size = SEGMENT_BYTES if collective == "bcast" else EAGER_LIMIT_BYTES
        printed = PARAMETERS.get((cluster, collective), {})
        fits = table.parameters.fits[AS_PRINTED][collective]
        fitted = [(name, hockney, fits[name]) for name, hockney in printed.items()]
        if collective == "bcast":
            again = LiteralModel.of(table.parameters).parameters.fits[AS_PRINTED][collective]
            fitted.append((PRODUCT_ROW, printed["binomial"], again["binomial"]))
        for name, hockney, ours_fitted in fitted:
            known = ours_fitted.parameters
            ours = next(known[key] for key in ("main/rendezvous", "main/eager") if key in known)
            sums = [float(pair.predict(size)) for pair in (hockney, ours)]
            rows.append((cluster, collective, name, hockney, ours, *sums))
    columns = ["cluster", "collective", "algorithm", "printed", "ours", "printed_seconds", "our_seconds"]
    return pd.DataFrame(rows, columns=columns)


def parameter_rows(found: pd.DataFrame) -> pd.DataFrame:
    """The parameters of `fitted_beside_printed` as text, each as 'printed/fitted here'."""

    def both(printed: pd.Series, ours: pd.Series, unit: float) -> pd.Series:
        return (unit * printed).map("{:.2g}".format) + "/" + (unit * ours).map("{:.2g}".format)

    printed, ours = (found[column].map(vars).apply(pd.Series) for column in ("printed", "ours"))
    return pd.DataFrame({
        "cluster": found.cluster,
        "algorithm": found.algorithm.where(found.collective == "bcast", "gather_" + found.algorithm),
        "alpha (us)": both(printed.alpha_seconds, ours.alpha_seconds, 1e6),
        "beta (ns/byte)": both(printed.beta_seconds_per_byte, ours.beta_seconds_per_byte, 1e9),
        "alpha + m beta (us)": both(found.printed_seconds, found.our_seconds, 1e6),
    })  # fmt: skip


# The simulated best and the measured one.


def by_schedule(tables: Sequence[FittedTable], context: SimulationContext) -> SecondsOfTables:
    """Seconds of the schedule engine at the points of tables 2 and 3, in the form of `by_own_engine`."""
    found = {}
    for table in tables:
        grid = replace(table.scores.right.grid, procs=(table.cluster.table_procs,), besides=())
        (times,) = simulate(load(table.cluster.name), [grid], replace(context, engine=SCHEDULE))
        found[table.cluster.name, table.collective] = table.seconds(times.complete())
    return found


def by_own_engine(tables: Sequence[FittedTable]) -> SecondsOfTables:
    """Seconds of each table's own scores, by cluster and collective, then by message size and algorithm."""
    return {(table.cluster.name, table.collective): table.seconds() for table in tables}


def agreement_with_measured_best(
    simulated: SecondsOfTables, printed: Sequence[pd.DataFrame] = TABLES[:4]
) -> pd.DataFrame:
    """Every row of the printed tables, by default 2 and 3, beside the simulation of the same point.

    `SOURCE_slowdown` is the slowdown of the printed pick against the simulated best. `SOURCE_same_way` is true if the
    pick is near optimal both as measured and in simulation, or in neither. `best_within_precision` is true if the
    paper's measurements cannot distinguish the simulated best from the measured best.
    """
    return pd.concat(
        [_agreement(item, simulated[item.cluster[0], item.collective[0]]) for item in printed], ignore_index=True
    )


def _agreement(printed: pd.DataFrame, seconds: pd.DataFrame) -> pd.DataFrame:
    seconds = seconds.loc[printed.message_bytes].set_axis(printed.index, axis=0)
    rows = printed.assign(simulated_best=seconds.idxmin(axis=1))
    rows["same_best"] = rows["best_within_precision"] = rows.simulated_best == rows.best
    for source in NAMED:
        rows[f"{source}_slowdown"] = named(slowdowns(seconds), rows[source])
    for source in ("openmpi", "model"):
        measured, near = rows[f"{source}_percent"], rows[f"{source}_slowdown"] <= NEAR_OPTIMAL
        rows[f"{source}_same_way"] = (measured <= NEAR_OPTIMAL * 100) == near
        rows.best_within_precision |= (rows[source] == rows.simulated_best) & (measured <= INDISTINGUISHABLE_PERCENT)
    return rows


def agreement_rows(by_engine: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Rows of `agreement_with_measured_best` by several engines as text, with slowdowns in percent.

    The column of an engine has the engine's best algorithm, and the slowdown of the measured best. The column of a pick
    has the pick, its measured slowdown, and its slowdown by each engine.
    """
    first = next(iter(by_engine.values()))
    shown = {"m (KB)": first.kib, "measured best": first.best}
    for engine, rows in by_engine.items():
        shown[f"by {engine}"] = rows.simulated_best.str.cat(rows.best_slowdown.map(whole_percent), sep="/")
    for source, name in (("model", "model's pick"), ("openmpi", "Open MPI's")):
        slowdowns = [rows[f"{source}_slowdown"].map(whole_percent) for rows in by_engine.values()]
        shown[name] = first[source].str.cat([first[f"{source}_percent"].astype(str), *slowdowns], sep="/")
    return pd.DataFrame(shown)


def agreement_counts(rows: pd.DataFrame) -> pd.DataFrame:
    """The number of rows of `agreement_with_measured_best` that agree, by 'cluster collective'."""
    return rows.groupby(rows.cluster + " " + rows.collective, sort=False).agg(
        rows=("kib", "size"),
        same_best=("same_best", "sum"),
        best_within_precision=("best_within_precision", "sum"),
        worst_slowdown_of_measured_best=("best_slowdown", "max"),
        openmpi_same_way=("openmpi_same_way", "sum"),
        model_same_way=("model_same_way", "sum"),
    )
