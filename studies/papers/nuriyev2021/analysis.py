"""Nuriyev & Lastovetsky 2021 against its own data and against simulation: what a study of the paper needs.

IEEE Access 9, doi 10.1109/ACCESS.2021.3101689. The paper's tables are in nuriyev2021_tables; the functions answer:

- `published_choices`: do the printed formulas with the printed parameters choose what the paper prints?
- `alpha_beta_ratios`, `minimum_norm_pair`: what one segment size can say about alpha and beta;
- `fitted_tables`: the same tables from parameters fitted in simulation;
- `agreement_with_measured_best`: is the simulated best the one that the paper measured?
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from collwise.common.errors import CollwiseError
from collwise.models.hockney import Hockney
from collwise.models.implementation_aware import bcast
from collwise.models.implementation_aware.model import ImplementationAware
from collwise.models.implementation_aware.parameters import ModelParameters
from collwise.models.implementation_aware.parts import Formula, Gamma, Part
from collwise.models.interface import Points
from collwise.models.piecewise import Array
from collwise.models.registry import AS_PRINTED, BY_PARTS, MODELS, TRADITIONAL
from collwise.platforms import load
from collwise.simulator.sweeps.context import SimulationContext
from collwise.studies.papers.nuriyev2021.tables import (
    EAGER_LIMIT_BYTES,
    KIB,
    NEAR_OPTIMAL,
    PARAMETERS,
    TABLE_6_GAMMA,
    TABLES,
    PublishedRow,
    PublishedTable,
    gammas_for,
)
from collwise.validation.fitting.implementation_aware import FitPlan, fit
from collwise.validation.openmpi.builtin_decisions import decide_as_listed
from collwise.validation.selection.comparison import Comparison, ComparisonPlan, ComparisonResult, compare
from collwise.validation.selection.grid import BCAST_SIZES, PAPER_SIZES, SEGMENT_BYTES

# (a) What the printed formulas choose with the printed parameters.


@dataclass(frozen=True)
class Reading:
    """One way to read the formulas of a collective: those of the model as printed, with some replaced."""

    collective: str
    name: str
    replaced: Mapping[str, Formula] = field(default_factory=dict)

    def formula(self, algorithm: str) -> Formula:
        """The algorithm's formula under this reading."""
        return self.replaced.get(algorithm, MODELS[AS_PRINTED].formulas[self.collective][algorithm])


PLUS, PRODUCT = "plus", "product"
FLOOR, CEIL = "floor", "ceil"
OUTSIDE, INSIDE, DROPPED = "- 1 after the sum", "- 1 inside the sum", "no - 1"


def binomial_bcast(sign: str, rounding: str, minus_one: str) -> Formula:
    """Formula (7): n_s gamma(h + 1) `sign` the sum of gamma(k) for k = 2..h, and its - 1; h is log2 P rounded."""

    def formula(points: Points, gamma: Gamma) -> Sequence[Part]:
        exact = math.log2(float(np.max(points.procs)))
        height = math.floor(exact) if rounding == FLOOR else math.ceil(exact)
        first = points.segments * gamma(height + 1)
        each = 1.0 if minus_one == INSIDE else 0.0
        below = sum(float(gamma(height - i + 1)) - each for i in range(1, height))
        steps = (first + below if sign == PLUS else first * below) - (1.0 if minus_one == OUTSIDE else 0.0)
        return [Part("main", steps, points.message_bytes / points.segments)]

    return formula


def _split_binary_whole_segments(points: Points, gamma: Gamma) -> Sequence[Part]:
    """Formula (9) with ceil(n_s / 2) segments in a half."""
    height = np.floor(np.log2(points.procs))
    segment = points.message_bytes / points.segments
    forwarding = Part("main", 2 * (height + np.ceil(points.segments / 2) - 1), segment)
    return [forwarding, Part("main", np.ones_like(segment), points.message_bytes / 2)]


def _k_chain_ceil(points: Points, gamma: Gamma) -> Sequence[Part]:
    """Formula (11) with the longest chain, ceil((P - 1) / K)."""
    length = np.ceil((points.procs - 1) / points.fanout)
    steps = length + gamma(points.fanout + 1) * points.segments - 1
    return [Part("main", steps, points.message_bytes / points.segments)]


def _linear_sync(rendezvous: Callable[[Array], NDArray[np.bool_]]) -> Formula:
    """Formula (13) where `rendezvous(m / 2)` says so, else (14)."""

    def formula(points: Points, gamma: Gamma) -> Sequence[Part]:
        half = points.message_bytes / 2
        return [Part("main", (points.procs - 1) * np.where(rendezvous(half), 2.0, 1.0), half)]

    return formula


READINGS = (
    *(
        Reading("bcast", f"(7) with {sign}, {rounding}, {minus_one}",
                {"binomial": binomial_bcast(sign, rounding, minus_one)})
        for sign in (PLUS, PRODUCT)
        for rounding in (FLOOR, CEIL)
        for minus_one in (OUTSIDE, INSIDE, DROPPED)
    ),
    Reading("bcast", "(9) with whole segments of a half", {"split_binary": _split_binary_whole_segments}),
    Reading("bcast", "(11) with ceil", {"k_chain": _k_chain_ceil}),
    Reading("gather", "as printed: (13) from halves of 64 KiB, else (14)"),
    Reading(
        "gather", "(13) above halves of 64 KiB, else (14)",
        {"linear_sync": _linear_sync(lambda half: half > EAGER_LIMIT_BYTES)},
    ),
    Reading("gather", "(13) throughout", {"linear_sync": _linear_sync(lambda half: half >= 0)}),
    Reading("gather", "(14) throughout", {"linear_sync": _linear_sync(lambda half: half < 0)}),
)  # fmt: skip
# The reading that `models` has. For (7) it is what follows from (6): the stages' times are added.
ADOPTED = {collective: next(r for r in READINGS if r.collective == collective) for collective in ("bcast", "gather")}
# What (7) says word for word: the text of the article has no sign between the two terms.
LITERAL = next(reading for reading in READINGS if reading.name == f"(7) with {PRODUCT}, {FLOOR}, {OUTSIDE}")


@dataclass(frozen=True)
class PublishedChoice:
    """A row of a published table beside what the formulas give. `predicted`: seconds by algorithm.

    `within_rounding`: whether some alpha and beta that round to the printed ones would make the printed choice.
    """

    table: PublishedTable
    row: PublishedRow
    reading: str
    gamma: str
    predicted: Mapping[str, float]
    choice: str
    within_rounding: bool

    @property
    def matches(self) -> bool:
        """Whether the formulas choose what the paper prints as the model's choice."""
        return self.choice == self.row.model

    @property
    def excess_of_printed(self) -> float:
        """How much longer the printed choice is predicted to take than the formulas' own (0.1: 10 %)."""
        return self.predicted[self.row.model] / self.predicted[self.choice] - 1

    @property
    def predicted_openmpi_degradation(self) -> float:
        """What the formulas say that Open MPI's printed choice costs against the measured best."""
        return self.predicted[self.row.openmpi] / self.predicted[self.row.best] - 1


def predict_published(
    table: PublishedTable, message_bytes: Sequence[int], reading: Reading, gamma: Gamma, rounding: int = 0
) -> dict[str, Array]:
    """Seconds of every algorithm with the published parameters.

    `rounding` -1 or 1 takes the least or greatest alpha and beta that round to the printed ones.
    """
    segments = SEGMENT_BYTES if table.collective == "bcast" else 0
    seconds = {}
    for algorithm, pair in PARAMETERS[table.platform][table.collective].items():
        own_segments = 0 if algorithm == "linear" else segments
        points = Points.of(table.procs, np.array(message_bytes), own_segments, eager_limit_bytes=EAGER_LIMIT_BYTES)
        alpha, beta = (
            printed + rounding * half_digit(printed)
            for printed in (float(pair.alpha_seconds), float(pair.beta_seconds_per_byte))
        )
        parts = reading.formula(algorithm)(points, gamma)
        seconds[algorithm] = np.asarray(sum(part.count * (alpha + part.bytes_each * beta) for part in parts))
    return seconds


def half_digit(value: float) -> float:
    """Half a unit in the second significant digit, to which the paper prints alpha and beta."""
    return float(0.5 * 10.0 ** (math.floor(math.log10(value)) - 1))


def published_choices(table: PublishedTable, reading: Reading | None = None, gamma: str = "") -> list[PublishedChoice]:
    """For each row of the table what the formulas choose. Nothing is fitted or adjusted.

    `reading`: the adopted one unless given; `gamma`: a name of `gammas_for`, the first unless given.
    """
    reading = reading or ADOPTED[table.collective]
    gammas = gammas_for(table)
    gamma = gamma or next(iter(gammas))
    sizes = [row.message_bytes for row in table.rows]
    middle, least, most = (predict_published(table, sizes, reading, gammas[gamma], side) for side in (0, -1, 1))
    choices = []
    for index, row in enumerate(table.rows):
        seconds = {name: float(values[index]) for name, values in middle.items()}
        others = [float(values[index]) for name, values in most.items() if name != row.model]
        choices.append(
            PublishedChoice(
                table, row, reading.name, gamma, seconds, min(seconds, key=seconds.__getitem__),
                float(least[row.model][index]) <= min(others),
            )
        )  # fmt: skip
    return choices


def matches_by_reading(table: PublishedTable) -> dict[tuple[str, str], int]:
    """How many rows choose as printed, by (reading, gamma)."""
    return {
        (reading.name, name): sum(choice.matches for choice in published_choices(table, reading, name))
        for reading in READINGS
        if reading.collective == table.collective
        for name in gammas_for(table)
    }


def segment_ratios_that_match(
    table: PublishedTable, first: str, second: str, reading: Reading | None = None, gamma: str = ""
) -> tuple[float, float]:
    """Between which ratios of the segment times of `first` and `second` the formulas choose as printed between them.

    Looks only at rows where the printed choice is one of the two; the lower bound exceeds the upper when no ratio
    would do. The segment time is alpha + m_s beta.
    """
    reading = reading or ADOPTED[table.collective]
    gammas = gammas_for(table)
    sizes = [row.message_bytes for row in table.rows]
    seconds = predict_published(table, sizes, reading, gammas[gamma or next(iter(gammas))])
    units = {name: seconds[name] / segment_seconds(table.platform, name) for name in (first, second)}
    low, high = 0.0, math.inf
    for index, row in enumerate(table.rows):
        balance = float(units[second][index] / units[first][index])
        if row.model == first:
            high = min(high, balance)
        elif row.model == second:
            low = max(low, balance)
    return low, high


def segment_seconds(platform: str, algorithm: str) -> float:
    """alpha + m_s beta of a broadcast algorithm with the published parameters."""
    return float(PARAMETERS[platform]["bcast"][algorithm].predict(SEGMENT_BYTES))


def openmpi_contradictions() -> list[tuple[PublishedTable, PublishedRow, str]]:
    """Rows whose printed Open MPI choice is not what its decision function (Listing 1 for broadcast) gives."""
    rows = []
    for table in TABLES:
        for row in table.rows:
            decided = decide_as_listed(table.collective, table.procs, row.message_bytes)
            if decided != row.openmpi:
                rows.append((table, row, decided))
    return rows


# What one segment size can say about alpha and beta.


@dataclass(frozen=True)
class AlphaBetaRatio:
    """alpha over m_s beta of a published broadcast row, and the interval that the printed digits allow."""

    platform: str
    algorithm: str
    ratio: float
    low: float
    high: float

    @property
    def is_one(self) -> bool:
        """Whether alpha : beta may be 1 : m_s."""
        return self.low <= 1 <= self.high


def alpha_beta_ratios() -> list[AlphaBetaRatio]:
    """m_s alpha / beta of the broadcast rows of tables 4, 5 and 7 (seconds over seconds a byte, times 8192).

    1 means alpha : beta = 1 : m_s as numbers, the direction of the smallest pair with a given alpha + m_s beta.
    """
    ratios = []
    for platform, collectives in PARAMETERS.items():
        for algorithm, pair in collectives["bcast"].items():
            alpha, beta = float(pair.alpha_seconds), float(pair.beta_seconds_per_byte)
            ratios.append(
                AlphaBetaRatio(
                    platform, algorithm, SEGMENT_BYTES * alpha / beta,
                    SEGMENT_BYTES * (alpha - half_digit(alpha)) / (beta + half_digit(beta)),
                    SEGMENT_BYTES * (alpha + half_digit(alpha)) / (beta - half_digit(beta)),
                )
            )  # fmt: skip
    return ratios


def minimum_norm_pair(algorithm: str, true: Hockney, procs: int = 40) -> Hockney:
    """alpha and beta by least squares of least norm from exact broadcast times of one segment size.

    Where all messages have the size of a segment, the equations are the same but for a factor, and any pair with the
    same alpha + m_s beta solves them. The linear tree and split-binary's exchange have messages of other sizes.
    """
    points = Points.of(procs, np.array(BCAST_SIZES), 0 if algorithm == "linear" else SEGMENT_BYTES)
    parts = bcast.AS_PRINTED[algorithm](points, TABLE_6_GAMMA["grisou"])
    count = np.asarray(sum(part.count for part in parts))
    total = np.asarray(sum(part.count * part.bytes_each for part in parts))
    columns = np.column_stack([count, total])
    times = count * true.alpha_seconds + total * true.beta_seconds_per_byte
    alpha, beta = np.linalg.lstsq(columns, times, rcond=None)[0]
    return Hockney(float(alpha), float(beta))


# (b) The same tables from parameters fitted in simulation.


@dataclass(frozen=True)
class Cluster:
    """How a cluster is used: P of the tables, P of the fit, processes a node, P of figure 6."""

    name: str
    procs: tuple[int, ...]
    fit_procs: tuple[int, ...]
    processes_per_node: int
    procs_of_figure_6: tuple[int, ...]


CLUSTERS = (
    Cluster("grisou", (50, 80, 90), (40,), 2, tuple(range(10, 91, 10))),
    Cluster("gros", (80, 100, 124), (124,), 1, (10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 124)),
)
COMPARED_MODELS = (BY_PARTS, AS_PRINTED)
# The algorithms of the paper, by collective; the catalogue has more.
PAPER_ALGORITHMS = {collective: tuple(formulas) for collective, formulas in MODELS[AS_PRINTED].formulas.items()}
# The paper's figure 6 does not say its message size. One where segments are few, one where they are many.
SIZES_OF_FIGURE_6 = (16 * KIB, 1024 * KIB)


@dataclass(frozen=True)
class FittedTable:
    """Comparisons on a cluster, by model: simulated times are common, picks are each model's."""

    cluster: Cluster
    collective: str
    parameters: ModelParameters
    by_model: Mapping[str, ComparisonResult]

    def rows(self, model: str = BY_PARTS, procs: int | None = None) -> list[Comparison]:
        """The rows of a model, for one P or all."""
        return [row for row in self.by_model[model].rows if procs in (None, row.procs)]

    def mean_and_worst(self, model: str = BY_PARTS, source: str = "model") -> tuple[float, float]:
        """Mean and worst degradation of a source's picks over all rows."""
        values = self.by_model[model].degradations(source)
        return float(np.mean(values)), float(np.max(values))


def plan_of(cluster: Cluster) -> FitPlan:
    """The experiments of the paper's fit, for its algorithms."""
    return FitPlan(
        cluster.fit_procs, cluster.processes_per_node, SEGMENT_BYTES,
        more_segments=(), broadcasts=PAPER_ALGORITHMS["bcast"],
    )  # fmt: skip


def fitted_tables(
    context: SimulationContext,
) -> list[FittedTable]:
    """Fits each cluster and compares at the paper's sizes and process counts, by parts and as printed.

    Raises CollwiseError when an experiment or a case fails.
    """
    tables = []
    for cluster in CLUSTERS:
        platform = load(cluster.name)
        parameters = fit(platform, plan_of(cluster), context)
        for collective, sizes in PAPER_SIZES.items():
            names = PAPER_ALGORITHMS[collective]
            plan = ComparisonPlan(collective, cluster.procs, sizes, cluster.processes_per_node, SEGMENT_BYTES, names)
            by_model = {
                model: compare(platform, plan, ImplementationAware(parameters, model), context)
                for model in COMPARED_MODELS
            }
            _stop_if_failed(by_model[BY_PARTS])
            tables.append(FittedTable(cluster, collective, parameters, by_model))
    return tables


def _stop_if_failed(result: ComparisonResult) -> None:
    if result.sweep.failed:
        failed = result.sweep.failed[0]
        raise CollwiseError(
            f"{len(result.sweep.failed)} cases of the study failed; first: {failed.case}: {failed.error}"
        )


def picks_over_procs(
    table: FittedTable,
    context: SimulationContext,
) -> ComparisonResult:
    """Figure 6: broadcast with m fixed and P varying. Raises CollwiseError when a case fails."""
    cluster = table.cluster
    plan = ComparisonPlan(
        "bcast", cluster.procs_of_figure_6, SIZES_OF_FIGURE_6, cluster.processes_per_node, SEGMENT_BYTES,
        PAPER_ALGORITHMS["bcast"],
    )  # fmt: skip
    result = compare(load(cluster.name), plan, ImplementationAware(table.parameters, BY_PARTS), context)
    _stop_if_failed(result)
    return result


def traditional_and_ours(table: FittedTable, procs: int) -> tuple[list[int], dict[str, dict[str, Array]]]:
    """Figure 3: message sizes, and seconds of binary and binomial by kind of curve."""
    rows = table.rows(BY_PARTS, procs)
    sizes = [row.message_bytes for row in rows]
    names = tuple(bcast.TRADITIONAL)
    traditional = ImplementationAware(table.parameters, TRADITIONAL)
    return sizes, {
        "traditional": {name: traditional.predict("bcast", name, procs, np.array(sizes)) for name in names},
        "simulated": {name: np.array([row.simulated[name] for row in rows]) for name in names},
        "by parts": {name: np.array([row.predicted[name] for row in rows]) for name in names},
    }


# (c) The simulated best against the measured one.


@dataclass(frozen=True)
class Agreement:
    """A row of tables 2 and 3 beside the simulation of the same point."""

    table: PublishedTable
    row: PublishedRow
    simulated: Comparison

    @property
    def same_best(self) -> bool:
        """Whether the simulated best is the measured one."""
        return self.simulated.best.choice.algorithm == self.row.best

    @property
    def best_within_precision(self) -> bool:
        """Whether the simulated best is one that the paper's measurements cannot tell from the best."""
        return self.simulated.best.choice.algorithm in self.row.indistinguishable

    def simulated_degradation(self, algorithm: str) -> float:
        """What an algorithm costs in simulation against the simulated best."""
        return self.simulated.simulated[algorithm] / self.simulated.best.seconds - 1

    @property
    def degradation_of_measured_best(self) -> float:
        """What the paper's best costs in simulation."""
        return self.simulated_degradation(self.row.best)

    @property
    def openmpi_same_way(self) -> bool:
        """Whether Open MPI's printed choice is near optimal (10 %) in both or in neither."""
        return (self.row.openmpi_percent <= NEAR_OPTIMAL * 100) == (
            self.simulated_degradation(self.row.openmpi) <= NEAR_OPTIMAL
        )

    @property
    def model_same_way(self) -> bool:
        """Whether the model's printed choice is near optimal (10 %) in both or in neither."""
        return (self.row.model_percent <= NEAR_OPTIMAL * 100) == (
            self.simulated_degradation(self.row.model) <= NEAR_OPTIMAL
        )


def agreement_with_measured_best(tables: Sequence[FittedTable]) -> list[Agreement]:
    """Every row of tables 2 and 3 whose point was simulated."""
    simulated = {
        (table.cluster.name, table.collective, row.procs, row.message_bytes): row
        for table in tables
        for row in table.rows()
    }
    return [
        Agreement(table, row, simulated[key])
        for table in TABLES
        for row in table.rows
        if (key := (table.platform, table.collective, table.procs, row.message_bytes)) in simulated
    ]
