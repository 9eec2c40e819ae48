"""The table of a three-way comparison: measured cases, with what simulation and models predict for each.

A row has the execution target (a test bed's name), collective, P, m in bytes, algorithm, measured mean in seconds and
the half-width of its confidence interval, then the seconds that each source predicts, nan without a prediction. Rows
whose algorithm is empty are of the MPI library's own collectives. Algorithms whose processes do not send messages
within a node have names such as 'tasks_chain, shared memory'.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from collwise.algorithms.catalogue import Catalogue
from collwise.models.interface import CollectiveModel
from collwise.simulator.timing import Case, Timing
from collwise.validation.compare import scores
from collwise.validation.hierarchy.space import WITHIN

SIMULATED = "simulated"
"""The source of times simulated by SMPI."""
SCHEDULED = "schedule"
"""The source of times by the schedule engine. All other sources are models, by their names."""
POINT = ["target", "collective", "procs", "message_bytes"]
"""The columns of a point at which algorithms compete."""
LABEL_SEPARATOR = ", "
"""Between an algorithm's name and the way in which the processes of a node communicate, where that is not messages."""
_MEASURED = [*POINT, "algorithm", "seconds", "half_width_seconds"]


def table_of(
    target: str,
    measured: Iterable[Timing],
    simulated: Mapping[str, Mapping[Case, Timing]],
    models: Sequence[CollectiveModel] = (),
    builtin: Iterable[Timing] = (),
) -> pd.DataFrame:
    """The comparison on a target; `simulated` has the timings of each engine, by the name of the source.

    A measured time is the median of the launches' medians, so that launches disturbed by other work do not count, and
    its interval is that of the mean. Timings that failed, in measurement or simulation, are left out.
    """
    timings = [timing for timing in (*measured, *builtin) if timing.ok]
    table = pd.DataFrame(
        [(target, *_what(one.case), _typical_seconds(one), one.half_width_seconds) for one in timings],
        columns=_MEASURED,
    )
    for source, made in simulated.items():
        found = [made.get(timing.case) for timing in timings]
        table[source] = [one.seconds if one is not None and one.ok else math.nan for one in found]
    segments = pd.Series([timing.case.segment_bytes for timing in timings])
    for model in models:
        predicted = pd.Series(np.nan, index=table.index)
        for (collective, algorithm), rows in ours(table).groupby(["collective", "algorithm"]):
            if algorithm in model.algorithms(collective):
                points = (rows.procs.to_numpy(), rows.message_bytes.to_numpy(), segments[rows.index].to_numpy())
                seconds = np.broadcast_to(model.predict(collective, algorithm, *points), len(rows))
                predicted[rows.index] = np.where(np.isfinite(seconds) & (seconds > 0), seconds, np.nan)
        table[model.name] = predicted
    return table


def _typical_seconds(timing: Timing) -> float:
    """The median, or the mean where a record from elsewhere has no median."""
    return timing.median_seconds if math.isfinite(timing.median_seconds) else timing.seconds


def _what(case: Case) -> tuple[str, int, int, str]:
    return case.collective, case.procs, case.message_bytes, _label(case)


def _label(case: Case) -> str:
    if case.algorithm == "-":
        return ""
    counts_ways = Catalogue.load().algorithm(case.collective, case.algorithm).count_parameter == "within"
    return case.algorithm + (f"{LABEL_SEPARATOR}{WITHIN[case.fanout]}" if counts_ways and case.fanout else "")


def ours(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of our algorithms."""
    return table[table.algorithm != ""]


def own(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of the MPI library's own collectives."""
    return table[table.algorithm == ""]


def sources(table: pd.DataFrame) -> list[str]:
    """The names of all sources that predict anything here: engines first, then the models."""
    return [name for name in table.columns if name not in _MEASURED and table[name].notna().any()]


def predicted_by(source: str, rows: pd.DataFrame) -> pd.DataFrame:
    """The rows that the source predicts."""
    return rows.dropna(subset=[source]) if source in rows else rows[:0]


def fastest(rows: pd.DataFrame, column: str, by: Sequence[str] = POINT) -> pd.DataFrame:
    """The row with the least time in a column, the first of equal ones, at each point, or in other groups of rows."""
    return rows.loc[rows.groupby([*by], sort=False)[column].idxmin()] if len(rows) else rows


def distinguishable(a: Any, b: Any) -> Any:
    """Whether the means of two rows, or tables, differ by more than their intervals: |a - b| > sqrt(h_a^2 + h_b^2)."""
    return scores.distinguishable(a.seconds, a.half_width_seconds, b.seconds, b.half_width_seconds)


def with_points(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows as plain data, with their points as a separate part."""
    return [{"point": {name: row.pop(name) for name in POINT}, **row} for row in table.to_dict("records")]


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows as plain data, with the points and each source's predictions as separate parts."""
    names = [name for name in table.columns if name not in _MEASURED]
    found = with_points(table)
    for row in found:
        row["predicted"] = {name: value for name in names if not math.isnan(value := row.pop(name))}
    return found
