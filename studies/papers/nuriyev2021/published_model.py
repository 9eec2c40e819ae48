"""Nuriyev & Lastovetsky 2021 as printed: tables 2 to 8, and the choices by the paper's formulas and parameters.

IEEE Access 9, doi 10.1109/ACCESS.2021.3101689. Nothing is fitted or adjusted here. The formulas can be read in several
ways, which READINGS lists. A `table` is one of TABLES; `reading` and `gamma` are names in READINGS and GAMMAS. Sizes
are in the paper's KB (KiB), slowdowns in percent, times in seconds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from collwise.models.implementation_aware.message_counts import Formula, Gamma, Messages, ceil_log2, floor_log2
from collwise.models.interface import Points
from collwise.models.piecewise import Array
from collwise.models.registry import AS_PRINTED, MODELS
from collwise.models.single_messages import Hockney
from collwise.studies.papers.published import tables_of
from collwise.validation.libraries.openmpi_3 import decide_as_listed
from collwise.validation.times.defaults import SEGMENT_BYTES
from collwise.validation.times.slowdown import slowdown

KIB = 1024
EAGER_LIMIT_BYTES = 64 * KIB
"""The default eager limit of Open MPI that section V-C gives."""
NEAR_OPTIMAL = 0.10
"""Section V-C: a choice is near optimal if it is at most 10 % slower than the best."""
INDISTINGUISHABLE_PERCENT = 3
"""The paper's means are precise to 2.5 % (section V-A), and its tables print whole percent."""
BCAST_CLUSTERS = {"grisou": "Grisou", "gros": "Gros", "shaheen-ii": "Shaheen II"}
PUBLISHED = tables_of("nuriyev2021")


def _printed(number: int, cluster: str, collective: str, procs: int, rows: Sequence[Sequence[Any]]) -> pd.DataFrame:
    """The rows of a table, or of half a table. A KB is 1024 bytes, since sizes are multiples of the segment size."""
    columns = ["kib", "best", "model", "model_percent", "openmpi", "openmpi_percent"]
    return pd.DataFrame(rows, columns=columns).assign(
        table=f"Table {number}, {collective} on {cluster}, P = {procs}",
        cluster=cluster,
        collective=collective,
        procs=procs,
        message_bytes=lambda table: table.kib * KIB,
    )


TABLES = tuple(_printed(**item) for item in PUBLISHED["tables"])
TABLE_2_GRISOU, TABLE_2_GROS, TABLE_3_GRISOU, TABLE_3_GROS, TABLE_8_SHAHEEN = TABLES
PARAMETERS = {
    (cluster, collective): {name: Hockney(*pair) for name, pair in pairs.items()}
    for cluster, of_cluster in PUBLISHED["parameters"].items()
    for collective, pairs in of_cluster.items()
}
"""Tables 4, 5 and 7 by cluster and collective, then by algorithm."""


def _gamma(*values: float) -> Gamma:
    return Gamma((float(SEGMENT_BYTES),), (values,))


_GRISOU, _GROS = PUBLISHED["gamma"]["grisou"], PUBLISHED["gamma"]["gros"]
GAMMAS = {
    cluster: {"table 6": _gamma(*known), "table 6, constant beyond 7": _gamma(*known, *known[-1:] * 1000)}
    for cluster, known in (("grisou", _GRISOU), ("gros", _GROS))
} | {
    "shaheen-ii": {
        "Grisou's": _gamma(*_GRISOU),
        "Gros's": _gamma(*_GROS),
        "1, the lower bound of (2)": _gamma(1.0, 1.0),
        "p - 1, the upper bound of (2)": _gamma(1.0, 2.0),
    }
}
"""Gamma by cluster and name. Beyond p = 7, where table 6 ends, gamma is a straight line (section IV-B) or constant.

Shaheen II's gamma is not published. The gammas of the other two clusters, and the bounds of inequality (2), stand in.
"""

PLUS, PRODUCT = "plus", "product"
FLOOR, CEIL = "floor", "ceil"
OUTSIDE, INSIDE, DROPPED = "- 1 after the sum", "- 1 inside the sum", "no - 1"


def binomial_bcast(sign: str, rounding: str, minus_one: str) -> Formula:
    """Formula (7): n_s gamma(h + 1) plus or times the sum of gamma(k) for k = 2..h.

    h is log2 P, rounded as `rounding` says. `sign` is PLUS or PRODUCT.
    """

    def formula(points: Points, gamma: Gamma) -> Sequence[Messages]:
        height = floor_log2(points.procs) if rounding == FLOOR else ceil_log2(points.procs)
        first = points.segments * gamma(height + 1, points.segment_bytes)
        each = 1.0 if minus_one == INSIDE else 0.0
        addends = [
            np.where(k <= height, gamma(k, points.segment_bytes) - each, 0.0)
            for k in range(2, int(np.max(height, initial=1.0)) + 1)
        ]
        below = np.sum(addends, axis=0)
        steps = (first + below if sign == PLUS else first * below) - (1.0 if minus_one == OUTSIDE else 0.0)
        return [Messages("main", steps, points.message_bytes / points.segments)]

    return formula


def _split_binary_whole_segments(points: Points, gamma: Gamma) -> Sequence[Messages]:
    """Formula (9) with ceil(n_s / 2) segments in a half."""
    height = np.floor(np.log2(points.procs))
    segment = points.message_bytes / points.segments
    forwarding = Messages("main", 2 * (height + np.ceil(points.segments / 2) - 1), segment)
    return [forwarding, Messages("main", np.ones_like(segment), points.message_bytes / 2)]


def _k_chain_ceil(points: Points, gamma: Gamma) -> Sequence[Messages]:
    """Formula (11) with the longest chain, ceil((P - 1) / K)."""
    length = np.ceil((points.procs - 1) / points.parameter)
    steps = length + gamma(points.parameter + 1) * points.segments - 1
    return [Messages("main", steps, points.message_bytes / points.segments)]


def _linear_sync(rendezvous: Callable[[Array], NDArray[np.bool_]]) -> Formula:
    """Formula (13) if `rendezvous(m / 2)` is true, else (14)."""

    def formula(points: Points, gamma: Gamma) -> Sequence[Messages]:
        half = points.message_bytes / 2
        return [Messages("main", (points.procs - 1) * np.where(rendezvous(half), 2.0, 1.0), half)]

    return formula


_REPLACED: dict[str, dict[str, dict[str, Formula]]] = {
    "bcast": {
        f"(7) with {sign}, {rounding}, {minus_one}": {"binomial": binomial_bcast(sign, rounding, minus_one)}
        for sign in (PLUS, PRODUCT)
        for rounding in (FLOOR, CEIL)
        for minus_one in (OUTSIDE, INSIDE, DROPPED)
    } | {
        "(9) with whole segments of a half": {"split_binary": _split_binary_whole_segments},
        "(11) with ceil": {"k_chain": _k_chain_ceil},
    },
    "gather": {
        "as printed: (13) from halves of 64 KiB, else (14)": {},
        "(13) above halves of 64 KiB, else (14)": {"linear_sync": _linear_sync(lambda half: half > EAGER_LIMIT_BYTES)},
        "(13) throughout": {"linear_sync": _linear_sync(lambda half: half >= 0)},
        "(14) throughout": {"linear_sync": _linear_sync(lambda half: half < 0)},
    },
}  # fmt: skip
READINGS = {
    collective: {name: {**MODELS[AS_PRINTED].formulas[collective], **replaced} for name, replaced in readings.items()}
    for collective, readings in _REPLACED.items()
}
"""Formulas by collective, reading and algorithm. Each reading replaces some formulas of the model as printed."""
# The reading of the project's models. For (7) it follows from (6), which adds the times of the stages.
ADOPTED = {collective: next(iter(readings)) for collective, readings in READINGS.items()}
# Formula (7) word for word: the text of the article has no sign between the two terms.
LITERAL = f"(7) with {PRODUCT}, {FLOOR}, {OUTSIDE}"


def predicted_seconds(table: pd.DataFrame, reading: str, gamma: str) -> pd.DataFrame:
    """Seconds of every algorithm (columns) at the points of a table (rows), by the published parameters."""
    cluster, collective, procs = table[["cluster", "collective", "procs"]].iloc[0]
    seconds = {}
    for algorithm, pair in PARAMETERS[cluster, collective].items():
        segments = SEGMENT_BYTES if collective == "bcast" and algorithm != "linear" else 0
        points = Points.of(procs, table.message_bytes, segments, eager_limit_bytes=EAGER_LIMIT_BYTES)
        parts = READINGS[collective][reading][algorithm](points, GAMMAS[cluster][gamma])
        seconds[algorithm] = sum(part.count * pair.predict(part.bytes_each) for part in parts)
    return pd.DataFrame(seconds, index=table.index)


def slowdowns(seconds: pd.DataFrame) -> pd.DataFrame:
    """The slowdowns of all algorithms, a column each, against the best of each row."""
    return seconds.apply(lambda of: slowdown(of, seconds.min(axis=1)))


def named(values: pd.DataFrame, algorithms: pd.Series) -> pd.Series:
    """Takes from each row the value in the column that `algorithms` names for this row."""
    return pd.Series(values.to_numpy()[range(len(values)), values.columns.get_indexer(algorithms)], algorithms.index)


def all_matches() -> pd.DataFrame:
    """The number of rows in which the formulas make the printed choice, one line per table, reading and gamma."""
    return pd.DataFrame([
        {**table.loc[0, ["table", "collective", "cluster"]], "reading": reading, "gamma": gamma,
         "rows": (predicted_seconds(table, reading, gamma).idxmin(axis=1) == table.model).sum()}
        for table in TABLES
        for reading in READINGS[table.collective[0]]
        for gamma in GAMMAS[table.cluster[0]]
    ])  # fmt: skip


def openmpi_contradictions() -> pd.DataFrame:
    """Rows whose printed Open MPI choice contradicts Open MPI's decision function (for broadcast, Listing 1)."""
    rows = pd.concat(TABLES)
    points = zip(rows.collective, rows.procs, rows.message_bytes, strict=True)
    rows["decided"] = [decide_as_listed(*point) for point in points]
    return rows[rows.decided != rows.openmpi]


def half_digit(value: float) -> float:
    """Half a unit in the second significant digit, to which the paper prints alpha and beta."""
    return float(0.5 * 10.0 ** (math.floor(math.log10(value)) - 1))


def alpha_beta_ratios() -> pd.DataFrame:
    """The ratios m_s alpha / beta of broadcasts in tables 4, 5 and 7, with the ranges that rounding allows.

    A ratio of 1 means beta = m_s alpha, units aside. Among all pairs with the same alpha + m_s beta, the pair of least
    norm has a ratio of 1.
    """
    rows = []
    for cluster in BCAST_CLUSTERS:
        for algorithm, pair in PARAMETERS[cluster, "bcast"].items():
            alpha, beta = float(pair.alpha_seconds), float(pair.beta_seconds_per_byte)
            low = SEGMENT_BYTES * (alpha - half_digit(alpha)) / (beta + half_digit(beta))
            high = SEGMENT_BYTES * (alpha + half_digit(alpha)) / (beta - half_digit(beta))
            rows.append((cluster, algorithm, SEGMENT_BYTES * alpha / beta, low, high, low <= 1 <= high))
    return pd.DataFrame(rows, columns=["platform", "algorithm", "ratio", "from", "to", "1 possible?"])
