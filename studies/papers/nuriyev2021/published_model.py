"""The choices of the formulas of Nuriyev & Lastovetsky 2021 with the parameters that the paper prints.

IEEE Access 9, doi 10.1109/ACCESS.2021.3101689. Nothing is fitted or adjusted here. The formulas can be read in several
ways, each of which is a `Reading`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from collwise.common.units import format_seconds
from collwise.models.hockney import Hockney
from collwise.models.implementation_aware import bcast
from collwise.models.implementation_aware.parts import Formula, Gamma, Part
from collwise.models.interface import Points
from collwise.models.piecewise import Array
from collwise.models.registry import AS_PRINTED, MODELS
from collwise.studies.papers.nuriyev2021.tables import (
    EAGER_LIMIT_BYTES,
    PARAMETERS,
    TABLE_6_GAMMA,
    TABLES,
    PublishedRow,
    PublishedTable,
    gammas_for,
)
from collwise.studies.reports.comparison_table import percent
from collwise.validation.openmpi.builtin_decisions import decide_as_listed
from collwise.validation.selection.defaults import BCAST_SIZES, SEGMENT_BYTES
from collwise.validation.selection.slowdown import slowdown

TITLES = {"grisou": "Grisou", "gros": "Gros", "shaheen": "Shaheen II"}


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
    """Formula (7): n_s gamma(h + 1), `sign`, the sum of gamma(k) for k = 2..h; h is log2 P rounded."""

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
# The reading of the project's models. For (7) it is what follows from (6): the times of the stages are added.
ADOPTED = {collective: next(r for r in READINGS if r.collective == collective) for collective in ("bcast", "gather")}
# Formula (7) word for word: the text of the article has no sign between the two terms.
LITERAL = next(reading for reading in READINGS if reading.name == f"(7) with {PRODUCT}, {FLOOR}, {OUTSIDE}")


@dataclass(frozen=True)
class PublishedChoice:
    """A row of a published table beside the times that the formulas predict, in seconds by algorithm.

    `within_rounding` says whether some alpha and beta that round to the printed ones would make the printed choice.
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
        return float(slowdown(self.predicted[self.row.model], self.predicted[self.choice]))

    @property
    def predicted_openmpi_slowdown(self) -> float:
        """The predicted slowdown of Open MPI's printed choice against the measured best."""
        return float(slowdown(self.predicted[self.row.openmpi], self.predicted[self.row.best]))


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
    """The choices of the formulas for each row of the table.

    By default the reading is the adopted one, and gamma, a name of `gammas_for`, the first of the table.
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
    """The number of rows with the printed choice, by (reading, gamma)."""
    return {
        (reading.name, name): sum(choice.matches for choice in published_choices(table, reading, name))
        for reading in READINGS
        if reading.collective == table.collective
        for name in gammas_for(table)
    }


def all_matches() -> pd.DataFrame:
    """The number of rows with the printed choice, one line per table, reading and gamma."""
    return pd.DataFrame(
        [
            (table.title, table.collective, table.platform, reading, gamma, rows)
            for table in TABLES
            for (reading, gamma), rows in matches_by_reading(table).items()
        ],
        columns=["table", "collective", "platform", "reading", "gamma", "rows"],
    )


def count_matches(matches: pd.DataFrame, reading: Reading, table: PublishedTable | None = None, gamma: str = "") -> int:
    """The number of rows of a table, or of all tables, with the printed choice under a reading with a gamma."""
    mine = (matches.reading == reading.name) & (matches.gamma == gamma)
    return int(matches[mine & ((table is None) | (matches.table == getattr(table, "title", "")))].rows.sum())


def matches_table(matches: pd.DataFrame, collective: str) -> pd.DataFrame:
    """The matches of a collective, one line per reading; gamma is named where a table has several."""
    mine = matches[(matches.collective == collective) & ((collective == "bcast") | (matches.gamma == "table 6"))]
    heads = mine.platform.map(TITLES) + (", gamma: " + mine.gamma if collective == "bcast" else "")
    wide = mine.assign(head=heads).pivot(index="reading", columns="head", values="rows")
    return wide.loc[mine.reading.unique(), heads.unique()].reset_index()


def row_by_row(table: PublishedTable, reading: Reading, gamma: str) -> pd.DataFrame:
    """Each row of a published table beside what the formulas choose."""
    rows = [
        (
            choice.row.message_kib,
            choice.row.model,
            choice.choice,
            choice.matches,
            "" if choice.matches else f"{percent(choice.excess_of_printed)} %",
            "" if choice.matches else "yes" if choice.within_rounding else "no",
            f"{choice.row.openmpi} ({choice.row.openmpi_percent})",
            percent(choice.predicted_openmpi_slowdown),
        )
        for choice in published_choices(table, reading, gamma)
    ]
    columns = [
        "m (KB)", "model, printed", "by the formulas", "same?", "printed choice predicted slower by",
        "explained by rounding?", "Open MPI, printed (%)", "Open MPI, by the formulas (%)",
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=columns)


def segment_ratios_that_match(
    table: PublishedTable, first: str, second: str, reading: Reading | None = None, gamma: str = ""
) -> tuple[float, float]:
    """The least and largest ratio of the segment times of `first` and `second` that give the printed choices.

    Only rows whose printed choice is one of the two count; the lower bound exceeds the upper one when no ratio fits
    them all. The segment time is alpha + m_s beta.
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
    """The published alpha + m_s beta of a broadcast algorithm."""
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


def alpha_beta_ratios() -> pd.DataFrame:
    """The ratios m_s alpha / beta of the broadcast rows of tables 4, 5 and 7, and what the printed digits allow.

    A ratio of 1 means alpha : beta = 1 : m_s as numbers, the direction of the smallest pair with a given alpha + m_s
    beta.
    """
    rows = []
    for platform, collectives in PARAMETERS.items():
        for algorithm, pair in collectives["bcast"].items():
            alpha, beta = float(pair.alpha_seconds), float(pair.beta_seconds_per_byte)
            low = SEGMENT_BYTES * (alpha - half_digit(alpha)) / (beta + half_digit(beta))
            high = SEGMENT_BYTES * (alpha + half_digit(alpha)) / (beta - half_digit(beta))
            rows.append((platform, algorithm, SEGMENT_BYTES * alpha / beta, low, high, low <= 1 <= high))
    return pd.DataFrame(rows, columns=["platform", "algorithm", "ratio", "from", "to", "1 possible?"])


def minimum_norm_pair(algorithm: str, true: Hockney, procs: int = 40) -> Hockney:
    """The least-norm solution for alpha and beta of a least-squares fit to exact broadcast times.

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


def minimum_norm_table(true: Hockney) -> pd.DataFrame:
    """The pairs of `minimum_norm_pair` for every broadcast algorithm of the paper."""
    rows = []
    for name in PARAMETERS["grisou"]["bcast"]:
        found = minimum_norm_pair(name, true)
        ratio = SEGMENT_BYTES * found.alpha_seconds / found.beta_seconds_per_byte
        rows.append(
            (
                *(name, f"{found.alpha_seconds:.3g}", f"{found.beta_seconds_per_byte:.3g}", f"{ratio:.3g}"),
                *(format_seconds(float(pair.predict(SEGMENT_BYTES))) for pair in (found, true)),
            )
        )
    columns = [
        "algorithm", "alpha found (s)", "beta found (s/byte)", "m_s alpha / beta", "alpha + m_s beta found",
        "made with",
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=columns)
