"""Comparisons as people read them: rows like those of tables 2, 3 and 8 of Nuriyev & Lastovetsky 2021."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from collwise.common.units import format_seconds, format_size
from collwise.validation.compare.comparison import Comparison, ComparisonResult, Pick


def table_columns(result: ComparisonResult) -> tuple[str, ...]:
    """The heads of `table_row`'s cells."""
    rows, title = result.rows, result.baseline.title
    shipped = f"{title} (%)"
    model = ("model (%)",) if result.has_model else ()
    if any(row.listed is not None for row in rows) and not chooses_segments(rows):
        return ("P", "m", "best", "time", *model, shipped, "with its segments (%)")
    return ("P", "m", "best", "time", *model, shipped)


def chooses_segments(rows: Sequence[Comparison]) -> bool:
    """Whether candidates have several segment sizes. The paper's comparison has one, also for Open MPI's algorithm."""
    return any("," in label for row in rows for label in row.simulated)


def table_row(row: Comparison) -> tuple[str, ...]:
    """The best choice with its time, and each pick with its slowdown in percent."""
    wide = chooses_segments([row])

    def name(pick: Pick, with_segment: bool = wide) -> str:
        return pick.choice.label if with_segment else pick.choice.algorithm

    model = (f"{name(row.model)} ({percent(row.model.slowdown)})",) if row.predicted else ()
    common = () if wide or row.listed is None else (f"{name(row.listed)} ({percent(row.listed.slowdown)})",)
    return (
        str(row.procs),
        format_size(row.message_bytes),
        name(row.best),
        format_seconds(row.best.seconds),
        *model,
        *common,
        f"{name(row.baseline, True)} ({percent(row.baseline.slowdown)})",
    )


def percent(slowdown: float) -> str:
    """'3', '160': whole percent, without a minus sign for nothing; '-' where there is no time."""
    return "-" if np.isnan(slowdown) else f"{slowdown * 100:z.0f}"


def summary_line(result: ComparisonResult, made_by: str = "") -> str:
    """Mean and worst slowdown of each source's picks, in one sentence; more lines name algorithms that are left out.

    `made_by` is what made the times that the model was fitted to, which a line names if it is not what judges.
    """
    title = result.baseline.title
    sources = [("model", "model"), ("baseline", title)]
    if any(row.listed is not None for row in result.rows) and not chooses_segments(result.rows):
        sources = [("model", "model"), ("listed", title), ("baseline", "with its segments")]
    if not result.has_model:
        sources = sources[1:]
    parts = []
    for source, name in sources:
        values = result.slowdowns(source) * 100
        if np.isnan(values).all():
            parts.append(f"{name} not known")
        else:
            parts.append(f"{name} {np.nanmean(values):.1f} % on average, {np.nanmax(values):.1f} % at worst")
    lines = ["Slowdown against the best: " + "; ".join(parts) + ("." if result.left_out else "")]
    maker = result.sweep.configuration.maker
    if result.has_model and made_by and made_by != maker:
        lines.append(f"The model was fitted to times by {made_by}, but is judged by times by {maker}, which differ.")
    return "\n".join([*lines, *([result.left_out] if result.left_out else [])])
