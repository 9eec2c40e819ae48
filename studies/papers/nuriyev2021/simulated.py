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
from collwise.platforms import HostPlatform, load, load_description
from collwise.platforms.changes import Change, changed
from collwise.simulator.bench import Simulated
from collwise.simulator.sweeps.context import SCHEDULE, SMPI, SMPI_ALGORITHM_1, SimulationContext
from collwise.studies.papers.nuriyev2021.published_model import (
    ADOPTED,
    EAGER_LIMIT_BYTES,
    INDISTINGUISHABLE_PERCENT,
    KIB,
    NEAR_OPTIMAL,
    PARAMETERS,
    TABLE_8_SHAHEEN,
    TABLES,
    predicted_seconds,
    segment_seconds,
)
from collwise.studies.reports.comparison_table import compared_places, percent
from collwise.validation.compare.scores import Scores
from collwise.validation.compare.simulated import beside_simulation
from collwise.validation.fitting.implementation_aware import FitPlan, fit
from collwise.validation.library_defaults.baselines import PAPERS
from collwise.validation.times.defaults import PAPER_SIZES, SEGMENT_BYTES
from collwise.validation.times.grid import Grid
from collwise.validation.times.slowdown import SlowdownSummary, slowdown, summary_of
from collwise.validation.times.sources import predicted, simulate
from collwise.validation.times.times import Times


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
        return [place for place in compared_places(self.scores) if place[0] == at]

    def seconds(self, times: Times) -> pd.DataFrame:
        """Seconds at the process count of tables 2 and 3, by message size and algorithm."""
        at = times.procs.index(self.cluster.table_procs)
        return pd.DataFrame(times.array[:, at].T, times.message_bytes, times.grid.names)

    def slowdowns(self) -> dict[str, SlowdownSummary]:
        """Those of the picks of SOURCES over all process counts and sizes."""
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
    """Fits the models on each cluster and compares their picks at the paper's sizes and process counts.

    Raises CollwiseError when an experiment or a case fails.
    """
    tables = []
    for cluster in CLUSTERS:
        platform = load(cluster.name)
        parameters = _fitted(cluster, platform, context)
        for collective, sizes in PAPER_SIZES.items():
            grid = _grid(cluster, collective, cluster.procs, sizes)
            scores = _compared(platform, grid, parameters, (BY_PARTS, AS_PRINTED), context)
            tables.append(FittedTable(cluster, collective, parameters, scores))
            scores.right.complete()
    return tables


def _fitted(cluster: ClusterUse, platform: HostPlatform, context: SimulationContext) -> ModelParameters:
    ppn, names = cluster.processes_per_node, PAPER_ALGORITHMS["bcast"]
    plan = FitPlan(cluster.fit_procs, ppn, SEGMENT_BYTES, more_segments=(), broadcasts=names)
    return fit(Simulated(platform, context), plan)


def _grid(cluster: ClusterUse, collective: str, procs: Sequence[int], sizes: Sequence[int]) -> Grid:
    names = PAPER_ALGORITHMS[collective]
    return Grid.of(collective, procs, sizes, cluster.processes_per_node, (SEGMENT_BYTES,), names)


def _compared(
    platform: HostPlatform, grid: Grid, parameters: ModelParameters, models: Sequence[str], context: SimulationContext
) -> Scores:
    """The scores of models and of Open MPI, both as the paper compares it and with its segments."""
    predictions = [predicted(ImplementationAware(parameters, name), grid) for name in models]
    return beside_simulation(platform, predictions[0].grid, predictions, context, PAPERS)


def picks_over_procs(table: FittedTable, context: SimulationContext) -> Scores:
    """Figure 6: broadcast with m fixed and P varying. Raises CollwiseError when a case fails."""
    grid = _grid(table.cluster, "bcast", table.cluster.procs_of_figure_6, SIZES_OF_FIGURE_6)
    scores = _compared(load(table.cluster.name), grid, table.parameters, (BY_PARTS,), context)
    scores.right.complete()
    return scores


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
        return self.table.seconds(self.table.scores.right)


def shaheen(context: SimulationContext) -> Shaheen:
    """Fits the models on some nodes in SMPI, and times the algorithms at the points of table 8 by both engines.

    Raises CollwiseError when an experiment or a case fails.
    """
    platform = load_description(SHAHEEN.name)
    parameters, scheduling = _fitted(SHAHEEN, platform, context), replace(context, engine=SCHEDULE)
    grid = _grid(SHAHEEN, "bcast", SHAHEEN.procs, tuple(TABLE_8_SHAHEEN.message_bytes))
    scores = _compared(platform, grid, parameters, (BY_PARTS, AS_PRINTED), scheduling)
    reached = replace(grid, message_bytes=tuple(size for size in grid.message_bytes if size <= SHAHEEN_SMPI_BYTES))
    eager = changed(platform, [Change("eager_limit", f"{EAGER_LIMIT_BYTES}B")]).platform
    table = FittedTable(SHAHEEN, "bcast", parameters, scores)
    by_smpi, by_eager = simulate(platform, [reached], context), simulate(eager, [grid], scheduling)
    return Shaheen(table, *(table.seconds(times.complete()) for times in (*by_smpi, *by_eager)))


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
    places, pick = of.table.printed_places, of.table.scores.pick
    shown = {"best": [pick(None, *at).name for at in places]} | {
        title: [f"{pick(model, *at).name} ({percent(pick(model, *at).slowdown)})" for at in places]
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
    lost = {
        "by the formulas": _slowdowns(formulas.set_axis(printed.index, axis=0)),
        "simulated": _slowdowns(of.scheduled),
        "simulated, eager segments": _slowdowns(of.eager),
    }
    rows = []
    for size, row in printed.iterrows():
        measured = {row.model: row.model_percent, row.openmpi: row.openmpi_percent, row.best: 0}
        for name, percents in measured.items():
            rows.append((row.kib, name, percents, *(100 * one.loc[size, name] for one in lost.values())))
    return pd.DataFrame(rows, columns=["m (KB)", "algorithm", "measured", *lost])


def _slowdowns(seconds: pd.DataFrame) -> pd.DataFrame:
    """The slowdowns of all algorithms against the best of each row."""
    return seconds.apply(lambda of: slowdown(of, seconds.min(axis=1)))


# Figure 3, and what the published parameters are beside those fitted here.


def traditional_and_ours(table: FittedTable) -> dict[str, pd.DataFrame]:
    """Figure 3: seconds of binary and binomial by message size, by kind of curve."""
    sizes, names = table.scores.right.message_bytes, list(bcast.TRADITIONAL)
    traditional = ImplementationAware(table.parameters, TRADITIONAL)
    predicted = {name: traditional.predict("bcast", name, table.cluster.table_procs, sizes) for name in names}
    return {
        "traditional": pd.DataFrame(predicted, sizes),
        "simulated": table.seconds(table.scores.right)[names],
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
    simulated = {
        (table.cluster.name, table.collective, size): row
        for table in tables
        for size, row in _slowdowns(table.seconds(table.scores.right)).iterrows()
    }
    rows = pd.concat(printed, ignore_index=True)
    points = [simulated[key] for key in zip(rows.cluster, rows.collective, rows.message_bytes, strict=True)]
    rows["simulated_best"] = [point.idxmin() for point in points]
    rows["same_best"] = rows["best_within_precision"] = rows.simulated_best == rows.best
    for source in ("best", "openmpi", "model"):
        rows[f"{source}_slowdown"] = [point[name] for point, name in zip(points, rows[source], strict=True)]
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
