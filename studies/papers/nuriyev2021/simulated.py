"""The method of Nuriyev & Lastovetsky 2021 repeated in simulation, and the simulated best beside the measured one.

- `fitted_tables`: the paper's tables from parameters fitted in simulation;
- `picks_over_procs`, `traditional_and_ours`: its figures 6 and 3;
- `agreement_with_measured_best`: whether the simulated best is the one that the paper measured;
- `shaheen`: table 8, on a simulated Shaheen II.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from collwise.common.units import format_seconds
from collwise.models.implementation_aware import bcast
from collwise.models.implementation_aware.model import ImplementationAware
from collwise.models.implementation_aware.parameters import ModelParameters
from collwise.models.piecewise import Array
from collwise.models.registry import AS_PRINTED, BY_PARTS, MODELS, TRADITIONAL
from collwise.platforms import HostPlatform, load, load_description
from collwise.platforms.changes import Change, changed
from collwise.simulator.sweeps.context import SCHEDULE, SMPI, SMPI_ALGORITHM_1, SimulationContext
from collwise.studies.papers.nuriyev2021.published_model import ADOPTED, predicted_seconds, segment_seconds
from collwise.studies.papers.nuriyev2021.tables import (
    EAGER_LIMIT_BYTES,
    INDISTINGUISHABLE_PERCENT,
    KIB,
    NEAR_OPTIMAL,
    PARAMETERS,
    TABLE_8_SHAHEEN,
    TABLES,
)
from collwise.studies.reports.comparison_table import percent
from collwise.validation.compare.comparison import Comparison, ComparisonResult, compare
from collwise.validation.fitting.implementation_aware import FitPlan, fit
from collwise.validation.library_defaults.baselines import PAPERS
from collwise.validation.times.defaults import PAPER_SIZES, SEGMENT_BYTES
from collwise.validation.times.grid import CaseGrid
from collwise.validation.times.predictions import simulated_seconds
from collwise.validation.times.slowdown import slowdown


@dataclass(frozen=True)
class ClusterUse:
    """The cases in which the study uses a cluster.

    `procs` and `table_procs` are the process counts of its figure 5 and of tables 2 and 3; `fit_procs` those of the
    fit, `procs_of_figure_6` those of figure 6.
    """

    name: str
    procs: tuple[int, ...]
    table_procs: int
    fit_procs: tuple[int, ...]
    processes_per_node: int
    procs_of_figure_6: tuple[int, ...]


CLUSTERS = (
    ClusterUse("grisou", (50, 80, 90), 90, (40,), 2, tuple(range(10, 91, 10))),
    ClusterUse("gros", (80, 100, 124), 100, (124,), 1, (10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 124)),
)
# Table 8: one process per CPU of 512 nodes. The article does not say on how many processes it fitted its parameters.
SHAHEEN = ClusterUse("shaheen-ii", (1024,), 1024, (64,), 2, ())
# The sizes of table 8 that SMPI simulates in about a minute.
SHAHEEN_SMPI_BYTES = 328 * KIB
# The algorithms of the paper, by collective; the catalogue has more.
PAPER_ALGORITHMS = {collective: tuple(formulas) for collective, formulas in MODELS[AS_PRINTED].formulas.items()}
# The paper's figure 6 does not say its message size. Here are one with few segments and one with many.
SIZES_OF_FIGURE_6 = (16 * KIB, 1024 * KIB)
# The columns of choices by their makers: the model of a comparison, and a source of it.
SOURCES = {
    "by parts": (BY_PARTS, "model"),
    "as printed": (AS_PRINTED, "model"),
    "Open MPI 3.1": (BY_PARTS, "listed"),
    "Open MPI 3.1, its segments": (BY_PARTS, "baseline"),
}


@dataclass(frozen=True)
class FittedTable:
    """Comparisons of one collective on a cluster, by model; the simulated times are the same for all models."""

    cluster: ClusterUse
    collective: str
    parameters: ModelParameters
    by_model: Mapping[str, ComparisonResult]

    @property
    def printed_rows(self) -> list[Comparison]:
        """The rows of the model by parts at the process count of tables 2 and 3."""
        return [row for row in self.by_model[BY_PARTS].rows if row.procs == self.cluster.table_procs]


def with_algorithm_1(context: SimulationContext) -> SimulationContext:
    """The same context, but with the broadcasts of the paper's Algorithm 1, which post no receive ahead, under SMPI."""
    return replace(context, engine=SMPI_ALGORITHM_1) if context.engine is SMPI else context


def fitted_tables(context: SimulationContext) -> list[FittedTable]:
    """Fits the models on each cluster and compares their picks at the paper's sizes and process counts.

    Raises CollwiseError when an experiment or a case fails.
    """
    tables = []
    for cluster in CLUSTERS:
        platform, ppn = load(cluster.name), cluster.processes_per_node
        plan = FitPlan(cluster.fit_procs, ppn, SEGMENT_BYTES, more_segments=(), broadcasts=PAPER_ALGORITHMS["bcast"])
        parameters = fit(platform, plan, context)
        for collective, sizes in PAPER_SIZES.items():
            names = PAPER_ALGORITHMS[collective]
            points = CaseGrid(collective, cluster.procs, sizes, ppn, (SEGMENT_BYTES,), names)
            by_model = {
                model: compare(platform, points, ImplementationAware(parameters, model), context, PAPERS)
                for model in (BY_PARTS, AS_PRINTED)
            }
            tables.append(FittedTable(cluster, collective, parameters, by_model))
            by_model[BY_PARTS].sweep.complete()
    return tables


def picks_over_procs(table: FittedTable, context: SimulationContext) -> ComparisonResult:
    """Figure 6: broadcast with m fixed and P varying. Raises CollwiseError when a case fails."""
    cluster = table.cluster
    plan = CaseGrid(
        "bcast", cluster.procs_of_figure_6, SIZES_OF_FIGURE_6, cluster.processes_per_node, (SEGMENT_BYTES,),
        PAPER_ALGORITHMS["bcast"],
    )  # fmt: skip
    result = compare(load(cluster.name), plan, ImplementationAware(table.parameters, BY_PARTS), context, PAPERS)
    result.sweep.complete()
    return result


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
        rows = self.table.printed_rows
        return pd.DataFrame([row.simulated for row in rows], [row.message_bytes for row in rows])


def shaheen(context: SimulationContext) -> Shaheen:
    """Fits the models on some nodes in SMPI, and times the algorithms at the points of table 8 by both engines.

    Raises CollwiseError when an experiment or a case fails.
    """
    platform, ppn, names = load_description(SHAHEEN.name), SHAHEEN.processes_per_node, PAPER_ALGORITHMS["bcast"]
    plan = FitPlan(SHAHEEN.fit_procs, ppn, SEGMENT_BYTES, more_segments=(), broadcasts=names)
    parameters = fit(platform, plan, context)
    points = CaseGrid("bcast", SHAHEEN.procs, tuple(TABLE_8_SHAHEEN.message_bytes), ppn, (SEGMENT_BYTES,), names)
    scheduling = replace(context, engine=SCHEDULE)
    by_model = {
        model: compare(platform, points, ImplementationAware(parameters, model), scheduling, PAPERS)
        for model in (BY_PARTS, AS_PRINTED)
    }
    reached = replace(points, message_bytes=tuple(size for size in points.message_bytes if size <= SHAHEEN_SMPI_BYTES))
    eager = changed(platform, [Change("eager_limit", f"{EAGER_LIMIT_BYTES}B")]).platform
    return Shaheen(
        FittedTable(SHAHEEN, "bcast", parameters, by_model),
        _seconds(platform, reached, context),
        _seconds(eager, points, scheduling),
    )


def both_engines(of: Shaheen) -> pd.DataFrame:
    """The times for readers: the schedule engine's, with SMPI's behind a slash where it has one."""
    shown = of.scheduled.map(format_seconds)
    shown.update(shown.loc[of.smpi.index] + " / " + of.smpi.map(format_seconds))
    return _by_kib(shown)


def engines_apart(of: Shaheen) -> pd.Series:
    """How far SMPI's times are from the schedule engine's at the points of both (0.1: 10 %)."""
    return (of.smpi / of.scheduled.loc[of.smpi.index] - 1).abs().stack()


def picks_of_models(of: Shaheen) -> pd.DataFrame:
    """The picks of both models, with their slowdowns in percent, beside the simulated best."""
    table = of.table
    shown = {"best": [row.best.choice.algorithm for row in table.printed_rows]} | {
        title: [f"{row.model.choice.algorithm} ({percent(row.model.slowdown)})" for row in table.by_model[model].rows]
        for title, model in (("model as printed", AS_PRINTED), ("model by parts", BY_PARTS))
    }
    return _by_kib(pd.DataFrame(shown, of.scheduled.index))


def _by_kib(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with their message size, the index, as the first column in the paper's KB."""
    return rows.set_axis(rows.index // KIB, axis=0).rename_axis("m (KB)").reset_index()


def printed_picks(of: Shaheen) -> pd.DataFrame:
    """The slowdowns in percent of every algorithm that a row of table 8 names, against the best.

    They are as measured, by the published formulas, simulated, and simulated with eager segments.
    """
    formulas = predicted_seconds(TABLE_8_SHAHEEN, ADOPTED["bcast"], "Gros's")
    printed = TABLE_8_SHAHEEN.set_index("message_bytes", drop=False)
    sources = {
        "by the formulas": formulas.set_axis(printed.index, axis=0),
        "simulated": of.scheduled,
        "simulated, eager segments": of.eager,
    }
    rows = []
    for size, row in printed.iterrows():
        measured = {row.model: row.model_percent, row.openmpi: row.openmpi_percent, row.best: 0}
        for name, percents in measured.items():
            found = [100 * float(slowdown(one.loc[size, name], one.loc[size].min())) for one in sources.values()]
            rows.append((row.kib, name, percents, *found))
    return pd.DataFrame(rows, columns=["m (KB)", "algorithm", "measured", *sources])


def _seconds(platform: HostPlatform, points: CaseGrid, context: SimulationContext) -> pd.DataFrame:
    """Simulated seconds of a grid with one P, by message size and algorithm."""
    sweep = context.simulate(platform, points.cases())
    sweep.complete()
    return pd.DataFrame(simulated_seconds(points, sweep)[:, 0].T, points.message_bytes, list(points.candidates))


# Slowdowns of picks against the best.


def mean_and_worst(values: Array) -> dict[str, float]:
    """The mean and the largest of these values."""
    return {"mean": float(np.mean(values)), "worst": float(np.max(values))}


def slowdowns(tables: Sequence[FittedTable]) -> pd.DataFrame:
    """Slowdowns over all process counts and sizes, an array in each cell: one row per table, a column per source."""
    return pd.DataFrame(
        [[table.by_model[model].slowdowns(source) for model, source in SOURCES.values()] for table in tables],
        index=[f"{table.cluster.name} {table.collective}" for table in tables],
        columns=list(SOURCES),
    )


# Figure 3, and what the published parameters are beside those fitted here.


def traditional_and_ours(table: FittedTable) -> dict[str, pd.DataFrame]:
    """Figure 3: seconds of binary and binomial by message size, by kind of curve."""
    rows, names = table.printed_rows, list(bcast.TRADITIONAL)
    sizes = [row.message_bytes for row in rows]
    traditional = ImplementationAware(table.parameters, TRADITIONAL)
    predicted = {name: traditional.predict("bcast", name, table.cluster.table_procs, sizes) for name in names}
    return {
        "traditional": pd.DataFrame(predicted, sizes),
        "simulated": pd.DataFrame([row.simulated for row in rows], sizes, names),
        "by parts": pd.DataFrame([row.predicted for row in rows], sizes, names),
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
    simulated = {
        (table.cluster.name, table.collective, row.message_bytes): row for table in tables for row in table.printed_rows
    }
    rows = pd.concat(printed, ignore_index=True)
    points = [simulated[key] for key in zip(rows.cluster, rows.collective, rows.message_bytes, strict=True)]
    rows["simulated_best"] = [point.best.choice.algorithm for point in points]
    rows["same_best"] = rows["best_within_precision"] = rows.simulated_best == rows.best
    for source in ("best", "openmpi", "model"):
        seconds = [point.simulated[name] for point, name in zip(points, rows[source], strict=True)]
        rows[f"{source}_slowdown"] = slowdown(seconds, [point.best.seconds for point in points])
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
        *(rows.best_slowdown.map(percent), openmpi, rows.openmpi_slowdown.map(percent)),
        *(model, rows.model_slowdown.map(percent)),
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
