"""The method of Nuriyev & Lastovetsky 2021 repeated in simulation, and the simulated best beside the measured one.

- `fitted_tables`: the paper's tables from parameters fitted in simulation;
- `picks_over_procs`, `traditional_and_ours`: its figures 6 and 3;
- `agreement_with_measured_best`: whether the simulated best is the one that the paper measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from collwise.common.units import format_seconds, format_size
from collwise.models.implementation_aware import bcast
from collwise.models.implementation_aware.model import ImplementationAware
from collwise.models.implementation_aware.parameters import ModelParameters
from collwise.models.piecewise import Array
from collwise.models.registry import AS_PRINTED, BY_PARTS, MODELS, TRADITIONAL
from collwise.platforms import load
from collwise.simulator.sweeps.context import SimulationContext
from collwise.studies.papers.nuriyev2021.published_model import segment_seconds
from collwise.studies.papers.nuriyev2021.tables import (
    KIB,
    NEAR_OPTIMAL,
    TABLE_4_GRISOU,
    TABLES,
    PublishedRow,
    PublishedTable,
)
from collwise.studies.reports.comparison_table import percent, table_columns, table_row
from collwise.validation.fitting.implementation_aware import FitPlan, fit
from collwise.validation.selection.cases import CaseGrid
from collwise.validation.selection.comparison import Comparison, ComparisonResult, compare
from collwise.validation.selection.defaults import PAPER_SIZES, SEGMENT_BYTES
from collwise.validation.selection.slowdown import slowdown


@dataclass(frozen=True)
class ClusterUse:
    """How the study uses a cluster.

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
COMPARED_MODELS = (BY_PARTS, AS_PRINTED)
# The algorithms of the paper, by collective; the catalogue has more.
PAPER_ALGORITHMS = {collective: tuple(formulas) for collective, formulas in MODELS[AS_PRINTED].formulas.items()}
# The paper's figure 6 does not say its message size. Here are one with few segments and one with many.
SIZES_OF_FIGURE_6 = (16 * KIB, 1024 * KIB)
# What makes a choice, as its column is called: a model of COMPARED_MODELS, and a source of the comparison.
SOURCES = {
    "by parts": (BY_PARTS, "model"),
    "as printed": (AS_PRINTED, "model"),
    "Open MPI 3.1": (BY_PARTS, "openmpi"),
    "Open MPI 3.1, its segments": (BY_PARTS, "openmpi_shipped"),
}


@dataclass(frozen=True)
class FittedTable:
    """Comparisons of one collective on a cluster, by model; the simulated times are the same for all models."""

    cluster: ClusterUse
    collective: str
    parameters: ModelParameters
    by_model: Mapping[str, ComparisonResult]

    @property
    def name(self) -> str:
        """'grisou bcast'."""
        return f"{self.cluster.name} {self.collective}"

    def rows(self, model: str = BY_PARTS, procs: int | None = None) -> list[Comparison]:
        """The rows of a model, for one process count or all."""
        return [row for row in self.by_model[model].rows if procs in (None, row.procs)]

    def printed_rows(self) -> pd.DataFrame:
        """The rows at the process count of tables 2 and 3, as the paper prints them."""
        rows = self.rows(procs=self.cluster.table_procs)
        return pd.DataFrame([table_row(row)[1:] for row in rows], columns=list(table_columns(rows)[1:]))


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
                model: compare(platform, points, ImplementationAware(parameters, model), context)
                for model in COMPARED_MODELS
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
    result = compare(load(cluster.name), plan, ImplementationAware(table.parameters, BY_PARTS), context)
    result.sweep.complete()
    return result


# Slowdowns of picks against the best.


def mean_and_worst(values: Array) -> dict[str, float]:
    """The mean and the largest of these values."""
    return {"mean": float(np.mean(values)), "worst": float(np.max(values))}


def slowdowns(tables: Sequence[FittedTable]) -> dict[str, dict[str, dict[str, float]]]:
    """Mean and worst slowdown over all process counts and sizes, by table and source."""
    return {
        table.name: {
            label: mean_and_worst(table.by_model[model].slowdowns(source)) for label, (model, source) in SOURCES.items()
        }
        for table in tables
    }


def slowdowns_table(tables: Sequence[FittedTable]) -> pd.DataFrame:
    """`slowdowns` in percent."""
    found = slowdowns(tables)
    rows = [
        (
            *(table.name, ", ".join(map(str, table.cluster.procs))),
            *(f"{100 * one['mean']:.1f} / {100 * one['worst']:.1f}" for one in found[table.name].values()),
        )
        for table in tables
    ]
    return pd.DataFrame(rows, columns=["cluster and collective", "P", *SOURCES])


def slowdowns_everywhere(tables: Sequence[FittedTable], label: str) -> Array:
    """The slowdown of a source of SOURCES at every point of all tables."""
    model, source = SOURCES[label]
    return np.concatenate([table.by_model[model].slowdowns(source) for table in tables])


def costly_picks(tables: Sequence[FittedTable]) -> pd.DataFrame:
    """The rows where the pick of the model as printed is not near optimal."""
    rows = [
        (
            *(table.cluster.name, row.procs, format_size(row.message_bytes), row.best.choice.algorithm),
            f"{row.model.choice.algorithm} ({percent(row.model.slowdown)})",
        )
        for table in tables
        for row in table.rows(AS_PRINTED)
        if row.model.slowdown > NEAR_OPTIMAL
    ]
    return pd.DataFrame(rows, columns=["cluster", "P", "m", "best", "pick (%)"])


# Figure 3, and what the published parameters are beside those fitted here.

Curves = Mapping[str, Mapping[str, Array]]
"""Seconds at every size, by kind of curve and algorithm."""


def traditional_and_ours(table: FittedTable) -> tuple[list[int], Curves]:
    """Figure 3: message sizes and the curves of binary and binomial."""
    procs = table.cluster.table_procs
    rows = table.rows(BY_PARTS, procs)
    sizes = [row.message_bytes for row in rows]
    names = tuple(bcast.TRADITIONAL)
    traditional = ImplementationAware(table.parameters, TRADITIONAL)
    return sizes, {
        "traditional": {name: traditional.predict("bcast", name, procs, np.array(sizes)) for name in names},
        "simulated": {name: np.array([row.simulated[name] for row in rows]) for name in names},
        "by parts": {name: np.array([row.predicted[name] for row in rows]) for name in names},
    }


def binomial_is_faster(curves: Curves) -> dict[str, int]:
    """At how many sizes each kind of curve has the binomial tree below the binary one."""
    return {kind: int(np.sum(of["binomial"] < of["binary"])) for kind, of in curves.items()}


def largest_factors(curves: Curves) -> dict[str, float]:
    """The largest factor between each kind of curve and simulation, for either tree."""
    return {
        kind: max(float(np.exp(np.max(np.abs(np.log(of[name] / curves["simulated"][name]))))) for name in of)
        for kind, of in curves.items()
        if kind != "simulated"
    }


def segment_times(tables: Sequence[FittedTable]) -> dict[tuple[str, str], tuple[float, float]]:
    """Seconds per broadcast segment, published and fitted here, by cluster and algorithm."""
    return {
        (table.cluster.name, name): (
            segment_seconds(table.cluster.name, name),
            float(table.parameters.fits[AS_PRINTED]["bcast"][name].parameters["main/eager"].predict(SEGMENT_BYTES)),
        )
        for table in tables
        if table.collective == "bcast"
        for name in TABLE_4_GRISOU["bcast"]
    }


def segment_times_table(times: Mapping[tuple[str, str], tuple[float, float]]) -> pd.DataFrame:
    """`segment_times` with units."""
    rows = [(*key, *map(format_seconds, pair)) for key, pair in times.items()]
    return pd.DataFrame(rows, columns=["cluster", "algorithm", "published", "fitted in simulation"])


def chain_segment_and_half_roundtrip(table: FittedTable) -> tuple[float, float]:
    """Seconds per further segment of the chain broadcast, and of half a roundtrip of a segment's size, as fitted."""
    parameters = table.parameters
    step = parameters.fits[BY_PARTS]["bcast"]["chain"].parameters["steady/eager"]
    return float(step.predict(SEGMENT_BYTES)), float(parameters.hockney.predict(SEGMENT_BYTES))


# The simulated best beside the measured one.


@dataclass(frozen=True)
class BestAgreement:
    """A row of tables 2 and 3 beside the simulation of the same point."""

    table: PublishedTable
    row: PublishedRow
    simulated: Comparison

    @property
    def simulated_best(self) -> str:
        """The algorithm that is the fastest in simulation."""
        return self.simulated.best.choice.algorithm

    @property
    def same_best(self) -> bool:
        """Whether the simulated best is the measured one."""
        return self.simulated_best == self.row.best

    @property
    def best_within_precision(self) -> bool:
        """Whether the paper's measurements do not distinguish the simulated best from the measured one."""
        return self.simulated_best in self.row.indistinguishable

    def simulated_slowdown(self, algorithm: str) -> float:
        """The slowdown of an algorithm in simulation against the simulated best."""
        return float(slowdown(self.simulated.simulated[algorithm], self.simulated.best.seconds))

    @property
    def slowdown_of_measured_best(self) -> float:
        """The slowdown of the paper's best in simulation."""
        return self.simulated_slowdown(self.row.best)

    def same_way(self, algorithm: str, measured_percent: int) -> bool:
        """Whether an algorithm with this measured slowdown is near optimal in both or in neither."""
        return (measured_percent <= NEAR_OPTIMAL * 100) == (self.simulated_slowdown(algorithm) <= NEAR_OPTIMAL)


def agreement_with_measured_best(tables: Sequence[FittedTable]) -> list[BestAgreement]:
    """Every row of tables 2 and 3 whose point was simulated."""
    simulated = {
        (table.cluster.name, table.collective, row.procs, row.message_bytes): row
        for table in tables
        for row in table.rows()
    }
    return [
        BestAgreement(table, row, simulated[key])
        for table in TABLES
        for row in table.rows
        if (key := (table.platform, table.collective, table.procs, row.message_bytes)) in simulated
    ]


def agreement_rows(agreements: Sequence[BestAgreement], table: PublishedTable) -> pd.DataFrame:
    """The rows of a published table beside simulation."""
    columns = [
        "m (KB)", "best, measured", "best, simulated", "same?", "indistinguishable?",
        "measured best in simulation (%)", "Open MPI, measured (%)", "same, simulated (%)",
        "model's pick, measured (%)", "same, simulated (%)",
    ]  # fmt: skip
    rows = [
        (
            *(a.row.message_kib, a.row.best, a.simulated_best),
            *(a.same_best, a.best_within_precision),
            percent(a.slowdown_of_measured_best),
            *(f"{a.row.openmpi} ({a.row.openmpi_percent})", percent(a.simulated_slowdown(a.row.openmpi))),
            *(f"{a.row.model} ({a.row.model_percent})", percent(a.simulated_slowdown(a.row.model))),
        )
        for a in agreements
        if a.table is table
    ]
    return pd.DataFrame(rows, columns=columns)


def agreement_counts(agreements: Sequence[BestAgreement]) -> pd.DataFrame:
    """How many rows agree, by 'cluster collective'."""
    rows = pd.DataFrame(
        {
            "name": f"{a.table.platform} {a.table.collective}",
            "rows": 1,
            "same_best": a.same_best,
            "best_within_precision": a.best_within_precision,
            "worst_slowdown_of_measured_best": a.slowdown_of_measured_best,
            "openmpi_same_way": a.same_way(a.row.openmpi, a.row.openmpi_percent),
            "model_same_way": a.same_way(a.row.model, a.row.model_percent),
        }
        for a in agreements
    )
    how = dict.fromkeys(rows.columns[1:], "sum") | {"worst_slowdown_of_measured_best": "max"}
    return rows.groupby("name", sort=False).agg(how)


def agreement_table(counts: pd.DataFrame) -> pd.DataFrame:
    """`agreement_counts` for readers."""
    shown = counts.assign(worst_slowdown_of_measured_best=counts.worst_slowdown_of_measured_best.map(percent))
    columns = [
        "table", "rows", "same best", "indistinguishable", "measured best in simulation, worst (%)",
        "Open MPI the same way", "model's pick the same way",
    ]  # fmt: skip
    return shown.reset_index().set_axis(columns, axis=1)
