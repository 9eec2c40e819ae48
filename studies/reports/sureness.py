"""Sentences on how sure decisions by simulated times are, given the errors of predictions for measured machines."""

from __future__ import annotations

import math
import tomllib
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from operator import add
from pathlib import Path
from statistics import fmean
from types import MappingProxyType
from typing import Any

from collwise.common.units import format_size
from collwise.studies.papers.published import row_of
from collwise.studies.present.progress import sweep_progress
from collwise.studies.present.shown import said
from collwise.validation.measurement.confidence import CLOSE, SURE, Discrepancy, PointOutlook, outlooks_of
from collwise.validation.select.decisions import DecisionTable

_LEARNED = tomllib.loads(Path(__file__).with_name("confidence.toml").read_text(encoding="utf-8"))
DISCREPANCY = row_of(Discrepancy, {name: item for name, item in _LEARNED.items() if name != "sure"})
"""The discrepancy of predictions on machines that others measured, as `check machines` learned it."""
_MAX_RIVALS = 4


Gains = Mapping[tuple[str, int, int], float]
"""The time of an untuned library divided by the time of the decisions, by collective, P and message size."""


def sure_facts(
    tables: Sequence[DecisionTable],
    gains: Gains = MappingProxyType({}),
    unsettled: Collection[tuple[str, int, int]] = (),
) -> dict[str, Any] | None:
    """The numbers of points and of sure points, what to measure at doubtful points, and the losses.

    The result is None unless the times are simulated. Points in `unsettled` are not sure.

    `others` is the number of points without an outlook. `mean` is the geometric mean of the expected losses, `worst`
    the point at which the 95th percentile of the loss is largest. Losses are relative to the fastest choice. `untuned`
    is the mean expected loss of the untuned library of `gains`, or None if any gain is unknown. Since deviations have
    the mean 0, the library's expected time relative to the fastest choice is that of our choice times the gain.
    """
    found = {table.collective: outlooks_of(table, DISCREPANCY, sweep_progress) for table in tables}
    points = [(name, outlook) for name, some in found.items() for outlook in some]
    if not points:
        return None
    doubtful = {
        name: [
            outlook
            for outlook in some
            if outlook.outlook.probability < SURE or (name, outlook.procs, outlook.message_bytes) in unsettled
        ]
        for name, some in found.items()
    }
    known = [gains.get((name, outlook.procs, outlook.message_bytes), math.nan) for name, outlook in points]
    losses = [math.log1p(outlook.outlook.mean) for _, outlook in points]
    untuned = math.expm1(fmean(map(add, losses, map(math.log, known))))
    name, worst = max(points, key=lambda point: point[1].outlook.percentile_95)
    return {
        "points": len(points),
        "others": sum(len(table.times.grid.points) for table in tables if table.times is not None) - len(points),
        "sure": len(points) - sum(map(len, doubtful.values())),
        "unsettled": len(unsettled),
        "measure": [_to_measure(name, some) for name, some in doubtful.items() if some],
        "mean": math.expm1(fmean(losses)),
        "untuned": None if math.isnan(untuned) else untuned,
        "worst": {
            "collective": name,
            "procs": worst.procs,
            "message_bytes": worst.message_bytes,
            "percentile_95": worst.outlook.percentile_95,
        },
    }


def sure_points(table: DecisionTable, unsettled: Collection[tuple[str, int, int]] = ()) -> dict[tuple[int, int], bool]:
    """True for points at which the choice is sure, by P and message size, of all points with an outlook.

    The result is empty unless the times are simulated. Points in `unsettled` are not sure.
    """
    return {
        (one.procs, one.message_bytes): one.outlook.probability >= SURE
        and (table.collective, one.procs, one.message_bytes) not in unsettled
        for one in outlooks_of(table, DISCREPANCY, sweep_progress)
    }


def sure_sentences(
    tables: Sequence[DecisionTable],
    gains: Gains = MappingProxyType({}),
    library: str = "",
    unsettled: Collection[tuple[str, int, int]] = (),
) -> list[str]:
    """Sentences on the number of sure points, what to measure at doubtful points, and the worst case.

    The list is empty unless the times are simulated.
    """
    found = sure_facts(tables, gains, unsettled)
    if found is None:
        return []
    limits = {"close": f"{100 * CLOSE:g}", "limit": f"{100 * SURE:g}"}
    return said(
        "sureness", **found, **limits, library=library, machines=len(DISCREPANCY.machines), learned=_LEARNED["sure"]
    )


def _to_measure(collective: str, points: Sequence[PointOutlook]) -> str:
    """The points of a collective to be measured, and the algorithms that may be fastest, the most frequent first."""
    rivals = [name for name, _ in Counter(name for point in points for name in point.rivals).most_common(_MAX_RIVALS)]
    procs = ", ".join(map(str, sorted({point.procs for point in points})))
    sizes = sorted({point.message_bytes for point in points})
    reach = " to ".join(map(format_size, dict.fromkeys((sizes[0], sizes[-1]))))
    return f"{collective} (P = {procs}; {reach}): {', '.join(rivals)}"
