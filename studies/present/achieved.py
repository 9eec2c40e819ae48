"""What a table has saved a program."""

from __future__ import annotations

import math
from collections.abc import Iterator

from collwise.common.units import format_seconds, format_size
from collwise.programs import AchievedResult
from collwise.studies.present.shown import Shown, Table

_HEADS = ("collective", "communicator", "P", "m", "calls", "ran", "before", "after", "saved", "expected")


def shown(found: AchievedResult) -> Shown:
    """A row for each collective, communicator and size, the most saved first."""
    rows = found.rows()
    cells = [
        (
            row["collective"], row["communicator"], row["processes"],
            "-" if row["least_bytes"] is None else f"from {format_size(row['least_bytes'])}",
            row["calls"], row["ran"], format_seconds(row["seconds_before"]), format_seconds(row["seconds_after"]),
            _signed(row["achieved_seconds"]), _signed(row["expected_seconds"]),
        )
        for row in sorted(rows, key=lambda row: -row["achieved_seconds"])
    ]  # fmt: skip
    title = "Time in collectives by the mean process, before and after"
    return Shown([Table(title, _HEADS, cells, left=2), *_summary(found)], rows)


def _summary(found: AchievedResult) -> Iterator[str]:
    """Sentences: what calls that another algorithm ran save, by how much the others differ, and what that means."""
    changed, others = found.saved(True), found.saved(False)
    if math.isnan(changed):
        yield "No algorithm of these calls changed."
    else:
        yield f"Saved by the mean process in calls whose algorithm changed: {_signed(changed)}."
    if not math.isnan(others):
        yield f"In calls that ran as before, which no rule changed: {_signed(others)}."
    if found.runs < 2:
        yield "A report of a single run has noise that it does not show: compare several runs on both sides."


def _signed(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    return ("-" if seconds < 0 else "") + format_seconds(abs(seconds))
