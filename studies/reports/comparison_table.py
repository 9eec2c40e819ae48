"""Comparisons as people read them: rows like those of tables 2, 3 and 8 of Nuriyev & Lastovetsky 2021."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from collwise.common.units import format_seconds, format_size
from collwise.validation.selection.comparison import Comparison, ComparisonResult, Pick


def table_columns(rows: Sequence[Comparison]) -> tuple[str, ...]:
    """The heads of `table_row`'s cells."""
    common = () if chooses_segments(rows) else ("Open MPI (%)",)
    shipped = "Open MPI 3.1 (%)" if chooses_segments(rows) else "with its segments (%)"
    return ("P", "m", "best", "time", "model (%)", *common, shipped)


def chooses_segments(rows: Sequence[Comparison]) -> bool:
    """Whether candidates have several segment sizes. The paper's comparison has one, also for Open MPI's algorithm."""
    return any("," in label for row in rows for label in row.simulated)


def table_row(row: Comparison) -> tuple[str, ...]:
    """The best choice with its time, and each pick with its slowdown in percent."""
    wide = chooses_segments([row])

    def name(pick: Pick, with_segment: bool = wide) -> str:
        return pick.choice.label if with_segment else pick.choice.algorithm

    common = () if wide else (f"{name(row.openmpi)} ({percent(row.openmpi.slowdown)})",)
    return (
        str(row.procs),
        format_size(row.message_bytes),
        name(row.best),
        format_seconds(row.best.seconds),
        f"{name(row.model)} ({percent(row.model.slowdown)})",
        *common,
        f"{name(row.openmpi_shipped, True)} ({percent(row.openmpi_shipped.slowdown)})",
    )


def percent(slowdown: float) -> str:
    """'3', '160': whole percent, without a minus sign for nothing."""
    return f"{slowdown * 100:z.0f}"


def summary_line(result: ComparisonResult) -> str:
    """Mean and worst slowdown of each source's picks, in one sentence; more lines name algorithms that are left out."""
    sources = [("model", "model"), ("openmpi", "Open MPI"), ("openmpi_shipped", "with its segments")]
    if chooses_segments(result.rows):
        sources = [("model", "model"), ("openmpi_shipped", "Open MPI 3.1")]
    parts = []
    for source, name in sources:
        values = result.slowdowns(source) * 100
        parts.append(f"{name} {np.mean(values):.1f} % on average, {np.max(values):.1f} % at worst")
    return "Slowdown against the best: " + "; ".join(parts) + (f".\n{result.left_out}" if result.left_out else "")
