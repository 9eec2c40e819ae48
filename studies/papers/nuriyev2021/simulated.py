"""The method of Nuriyev & Lastovetsky 2021 repeated in simulation, and the simulated best beside the measured one.

- `fitted_tables`: the paper's tables from parameters fitted in simulation;
- `picks_over_procs`, `traditional_and_ours`: its figures 6 and 3;
- `agreement_with_measured_best`: whether the simulated best is the one that the paper measured;
- `shaheen`: table 8, on a simulated Shaheen II.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from collwise.common.units import format_seconds
from collwise.models.implementation_aware import bcast
from collwise.models.implementation_aware.model import ImplementationAware
from collwise.models.parameters import ModelParameters
from collwise.models.registry import AS_PRINTED, BY_PARTS, MODELS, TRADITIONAL
from collwise.platforms import load, load_description
from collwise.platforms.changes import Change, changed
from collwise.simulator.bench import Simulated
from collwise.simulator.sweeps.context import SCHEDULE, SMPI, SMPI_ALGORITHM_1, SimulationContext
from collwise.studies.papers.figures import over_sizes
from collwise.studies.papers.nuriyev2021.published_model import (
    ADOPTED,
    EAGER_LIMIT_BYTES,
    INDISTINGUISHABLE_PERCENT,
    KIB,
    NEAR_OPTIMAL,
    PARAMETERS,
    PUBLISHED,
    TABLE_8_SHAHEEN,
    TABLES,
    named,
    predicted_seconds,
    segment_seconds,
    slowdowns,
)
from collwise.studies.papers.published import row_of
from collwise.studies.reports.markdown import whole_percent
from collwise.validation.compare.scores import Scores
from collwise.validation.compare.simulated import beside_simulation
from collwise.validation.fitting.implementation_aware import FitPlan, fit
from collwise.validation.libraries.baselines import PAPERS
from collwise.validation.times.defaults import PAPER_SIZES, SEGMENT_BYTES
from collwise.validation.times.grid import Grid
from collwise.validation.times.slowdown import SlowdownSummary, summary_of
from collwise.validation.times.sources import predicted, simulate
from collwise.validation.times.times import Times


@dataclass(frozen=True)
class ClusterUse:
    """The cases in which the study uses a cluster, as published.toml says."""

    name: str
    procs: tuple[int, ...]
    table_procs: int
    fit_procs: tuple[int, ...]
    processes_per_node: int
    procs_of_figure_6: tuple[int, ...]


*CLUSTERS, SHAHEEN = (row_of(ClusterUse, one) for one in PUBLISHED["clusters"])
# The sizes of table 8 that SMPI simulates in about a minute.
SHAHEEN_SMPI_BYTES = 328 * KIB
# The algorithms of the paper, by collective; the catalogue has more.
PAPER_ALGORITHMS = {collective: tuple(formulas) for collective, formulas in MODELS[AS_PRINTED].formulas.items()}
# The paper's figure 6 does not say its message size. Here are one with few segments and one with many.
SIZES_OF_FIGURE_6 = (16 * KIB, 1024 * KIB)
NAMED = ("model", "openmpi", "best")
"""The columns of printed tables that name an algorithm."""
# The columns of choices by their makers, and what these are called in comparisons.
SOURCES = {
    "by parts": BY_PARTS,
    "as printed": AS_PRINTED,
    PAPERS.title: f"{PAPERS.title}, common segments",
    f"{PAPERS.title}, its segments": PAPERS.title,
}


@dataclass(frozen=True)
class FittedTable:
    """The scores of both models and of Open MPI by simulated times, for one collective on a cluster."""

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
        """The places of P and m at the process count of tables 2 and 3."""
        at = self.scores.right.procs.index(self.cluster.table_procs)
        return [place for place in self.scores.places(*self.scores.times) if place[0] == at]

    def seconds(self, times: Times | None = None) -> pd.DataFrame:
        """Seconds, by default simulated, at the process count of tables 2 and 3, by message size and algorithm."""
        return over_sizes(times or self.scores.right, self.cluster.table_procs)

    def slowdowns(self) -> dict[str, SlowdownSummary]:
        """The slowdowns of the picks of SOURCES over all process counts and sizes."""
        return {label: self.scores.summary(title) for label, title in SOURCES.items()}


def over_all(tables: Sequence[FittedTable], label: str) -> SlowdownSummary:
    """The slowdowns of the picks of one of SOURCES at the points of all tables."""
    return summary_of(np.concatenate([table.scores.slowdown[SOURCES[label]].values.ravel() for table in tables]), 0)


def mean_and_worst(found: SlowdownSummary) -> dict[str, float]:
    """The two as results are published."""
    return {"mean": found.mean, "worst": found.worst}


def with_algorithm_1(context: SimulationContext) -> SimulationContext:
    """The same context, but with the broadcasts of the paper's Algorithm 1, which post no receive ahead, under SMPI."""
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
    """The scores of models and of Open MPI, both as the paper compares it and with its segments."""
    predictions = [predicted(ImplementationAware(parameters, name), grid) for name in models]
    scores = beside_simulation(load(cluster.name), predictions[0].grid, predictions, context, PAPERS)
    scores.right.complete()
    return scores


def picks_over_procs(table: FittedTable, context: SimulationContext) -> Scores:
    """Figure 6: broadcast with m fixed and P varying. Raises CollwiseError when a case fails."""
    grid = _grid(table.cluster, "bcast", table.cluster.procs_of_figure_6, SIZES_OF_FIGURE_6)
    return _compared(table.cluster, grid, table.parameters, (BY_PARTS,), context)


# Table 8.


@dataclass(frozen=True)
class Shaheen:
    """Table 8 on a simulated Shaheen II: the schedule engine's comparison, and seconds by message size and algorithm.

    `smpi` are SMPI's times of the sizes that it reaches, `eager` those of the schedule engine if segments were eager.
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
    parameters, scheduling = _fitted(SHAHEEN, context), replace(context, engine=SCHEDULE)
    grid = _grid(SHAHEEN, "bcast", SHAHEEN.procs, tuple(TABLE_8_SHAHEEN.message_bytes))
    scores = _compared(SHAHEEN, grid, parameters, (BY_PARTS, AS_PRINTED), scheduling)
    table, platform = FittedTable(SHAHEEN, "bcast", parameters, scores), load_description(SHAHEEN.name)
    reached = replace(grid, message_bytes=tuple(size for size in grid.message_bytes if size <= SHAHEEN_SMPI_BYTES))
    eager = changed(platform, [Change("eager_limit", f"{EAGER_LIMIT_BYTES}B")]).platform
    by_smpi, by_eager = simulate(platform, [reached], context), simulate(eager, [grid], scheduling)
    return Shaheen(table, *(table.seconds(times.complete()) for times in (*by_smpi, *by_eager)))


def both_engines(of: Shaheen) -> pd.DataFrame:
    """The times for readers: the schedule engine's, with SMPI's behind a slash where it has one."""
    shown = of.scheduled.map(format_seconds)
    shown.update(shown.loc[of.smpi.index] + " / " + of.smpi.map(format_seconds))
    return _by_kib(shown)


def engines_apart(of: Shaheen) -> pd.Series:
    """The relative difference of SMPI's times from the schedule engine's at the points of both (0.1: 10 %)."""
    return (of.smpi / of.scheduled.loc[of.smpi.index] - 1).abs().stack()


def picks_of_models(of: Shaheen) -> pd.DataFrame:
    """The picks of both models, with their slowdowns in percent, beside the simulated best."""
    places, pick = of.table.printed_places, of.table.scores.pick
    shown = pd.DataFrame({"best": [pick(None, *at).name for at in places]}, of.scheduled.index)
    for model, title in ((AS_PRINTED, "model as printed"), (BY_PARTS, "model by parts")):
        shown[title] = [
            f"{picked.name} ({whole_percent(picked.slowdown)})" for picked in (pick(model, *at) for at in places)
        ]
    return _by_kib(shown)


def _by_kib(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with their message size, the index, as the first column in the paper's KB."""
    return rows.set_axis(rows.index // KIB, axis=0).rename_axis("m (KB)").reset_index()


def printed_picks(of: Shaheen) -> pd.DataFrame:
    """The slowdowns in percent of every algorithm that a row of table 8 names, against the best.

    They are as measured, by the published formulas, simulated, and simulated with eager segments.
    """
    printed = [TABLE_8_SHAHEEN.assign(best_percent=0)[["kib", one, f"{one}_percent"]] for one in NAMED]
    rows = pd.concat([one.set_axis(["m (KB)", "algorithm", "measured"], axis=1) for one in printed])
    rows = rows.sort_index(kind="stable").drop_duplicates(["m (KB)", "algorithm"])
    seconds = {
        "by the formulas": predicted_seconds(TABLE_8_SHAHEEN, ADOPTED["bcast"], "Gros's"),
        "simulated": of.scheduled,
        "simulated, eager segments": of.eager,
    }
    for source, one in seconds.items():
        lost = slowdowns(one).set_axis(TABLE_8_SHAHEEN.index, axis=0)
        rows[source] = 100 * named(lost.loc[rows.index], rows.algorithm)
    return rows.reset_index(drop=True)


# Figure 3, and what the published parameters are beside those fitted here.


def traditional_and_ours(table: FittedTable) -> dict[str, pd.DataFrame]:
    """Figure 3: seconds of binary and binomial by message size, by kind of curve."""
    sizes, names = table.scores.right.message_bytes, list(bcast.TRADITIONAL)
    traditional = ImplementationAware(table.parameters, TRADITIONAL)
    predicted = {name: traditional.predict("bcast", name, table.cluster.table_procs, sizes) for name in names}
    return {
        "traditional": pd.DataFrame(predicted, sizes),
        "simulated": table.seconds()[names],
        "by parts": table.seconds(table.scores.times[BY_PARTS])[names],
    }


def segment_times(tables: Sequence[FittedTable]) -> pd.DataFrame:
    """Seconds per broadcast segment, published and fitted here, by cluster and algorithm."""
    rows = [
        (table.cluster.name, name, segment_seconds(table.cluster.name, name), float(fitted.predict(SEGMENT_BYTES)))
        for table in tables
        if table.collective == "bcast"
        for name in PARAMETERS["grisou", "bcast"]
        for fitted in (table.parameters.fits[AS_PRINTED]["bcast"][name].parameters["main/eager"],)
    ]
    columns = ["cluster", "algorithm", "published", "fitted in simulation"]
    return pd.DataFrame(rows, columns=columns).set_index(["cluster", "algorithm"])


# The simulated best beside the measured one.


def agreement_with_measured_best(
    tables: Sequence[FittedTable], printed: Sequence[pd.DataFrame] = TABLES[:4]
) -> pd.DataFrame:
    """Every row of the printed tables, by default 2 and 3, beside the simulation of the same point.

    `SOURCE_slowdown` is the slowdown of the printed pick against the simulated best; `SOURCE_same_way` says whether the
    pick is near optimal in both or in neither. `best_within_precision` says whether the paper's measurements do not
    distinguish the simulated best from the measured one.
    """
    simulated = {(one.cluster.name, one.collective): one.seconds() for one in tables}
    return pd.concat(
        [_agreement(one, simulated[one.cluster[0], one.collective[0]]) for one in printed], ignore_index=True
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


def agreement_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of `agreement_with_measured_best` for readers."""
    openmpi, model = (
        rows[source] + " (" + rows[f"{source}_percent"].astype(str) + ")" for source in ("openmpi", "model")
    )
    shown = [
        *(rows.kib, rows.best, rows.simulated_best, rows.same_best, rows.best_within_precision),
        *(rows.best_slowdown.map(whole_percent), openmpi, rows.openmpi_slowdown.map(whole_percent)),
        *(model, rows.model_slowdown.map(whole_percent)),
    ]
    columns = [
        "m (KB)", "best, measured", "best, simulated", "same?", "indistinguishable?",
        "measured best in simulation (%)", "Open MPI, measured (%)", "same, simulated (%)",
        "model's pick, measured (%)", "same, simulated (%)",
    ]  # fmt: skip
    return pd.concat(shown, axis=1).set_axis(columns, axis=1)


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
