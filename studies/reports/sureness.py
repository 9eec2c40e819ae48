"""Sentences on how sure decisions by simulated times are, by what predictions of measured machines were off."""

from __future__ import annotations

import math
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from operator import add
from pathlib import Path
from statistics import fmean
from types import MappingProxyType
from typing import Any

from collwise.common.units import format_size
from collwise.studies.papers.published import row_of
from collwise.studies.present.shown import said
from collwise.validation.measurement.confidence import CLOSE, SURE, Discrepancy, PointOutlook, outlooks_of
from collwise.validation.select.decisions import DecisionTable

_LEARNED = tomllib.loads(Path(__file__).with_name("confidence.toml").read_text(encoding="utf-8"))
DISCREPANCY = row_of(Discrepancy, {name: one for name, one in _LEARNED.items() if name != "sure"})
"""The discrepancy of predictions on machines that others measured, as `check machines` learned it."""
_MAX_RIVALS = 4


Gains = Mapping[tuple[str, int, int], float]
"""The time of an untuned library divided by that of the decisions, by collective, P and message size."""


def sure_facts(tables: Sequence[DecisionTable], gains: Gains = MappingProxyType({})) -> dict[str, Any] | None:
    """The number of points and of sure ones, what to measure at others, and the losses. None except for simulated
    times.

    `others` are points without an outlook. `mean` is the geometric mean of the expected losses, `worst` the point of the largest 95th percentile. Losses are
    relative to the fastest choice. `untuned` is the mean for the library of the gains, or None if one is not known: a
    deviation has the mean 0, so each expected loss differs from that of the choice by the predicted gain.
    """
    found = {table.collective: outlooks_of(table, DISCREPANCY) for table in tables}
    points = [(name, one) for name, some in found.items() for one in some]
    if not points:
        return None
    doubtful = {name: [one for one in some if one.outlook.probability < SURE] for name, some in found.items()}
    known = [gains.get((name, one.procs, one.message_bytes), math.nan) for name, one in points]
    losses = [math.log1p(one.outlook.mean) for _, one in points]
    untuned = math.expm1(fmean(map(add, losses, map(math.log, known))))
    name, worst = max(points, key=lambda one: one[1].outlook.percentile_95)
    return {
        "points": len(points),
        "others": sum(len(table.times.grid.points) for table in tables if table.times is not None) - len(points),
        "sure": len(points) - sum(map(len, doubtful.values())),
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


def sure_points(table: DecisionTable) -> tuple[int, int]:
    """The number of points of a table at which the choice is sure, and of all; none but for simulated times."""
    found = outlooks_of(table, DISCREPANCY)
    return sum(one.outlook.probability >= SURE for one in found), len(found)


def sure_sentences(
    tables: Sequence[DecisionTable], gains: Gains = MappingProxyType({}), library: str = ""
) -> list[str]:
    """Sentences on the number of sure points, what to measure at others, and the worst case; simulated times only."""
    found = sure_facts(tables, gains)
    if found is None:
        return []
    limits = {"close": f"{100 * CLOSE:g}", "limit": f"{100 * SURE:g}"}
    return said(
        "sureness", **found, **limits, library=library, machines=len(DISCREPANCY.machines), learned=_LEARNED["sure"]
    )


def _to_measure(collective: str, points: Sequence[PointOutlook]) -> str:
    """The algorithms of a collective that may be the fastest, and where, with the most frequent ones first."""
    rivals = [name for name, _ in Counter(name for one in points for name in one.rivals).most_common(_MAX_RIVALS)]
    procs = ", ".join(map(str, sorted({one.procs for one in points})))
    sizes = sorted({one.message_bytes for one in points})
    reach = " to ".join(map(format_size, dict.fromkeys((sizes[0], sizes[-1]))))
    return f"{collective} (P = {procs}; {reach}): {', '.join(rivals)}"
