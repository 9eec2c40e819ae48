"""The measured gain of decisions over Open MPI's own."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from functools import partial
from statistics import geometric_mean
from typing import TYPE_CHECKING

from collwise.common.units import format_seconds, format_size
from collwise.studies.present.shown import Shown, Table, said
from collwise.validation.measurement.gain import LIBCOLLWISE, RULES, GainRow, MeanTime, MeasuredGain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLUMNS = ("collective", "P", "m", "choice", "default", "rules", "libcollwise", "rules gain", "libcollwise gains")


def shown(found: MeasuredGain) -> Shown:
    """A row for each call, and the mean speed-ups; figures are maps of the gains for each P."""
    checks = [check.summary for check in found.checks]
    title = f"{found.target}, {found.library}: means ± half-widths; gains in brackets are within them"
    rows = [
        asdict(row)
        | {f"{way}_speedup": row.speedup(way) for way in (RULES, LIBCOLLWISE)}
        | {f"{way}_significant": row.significant(way) for way in (RULES, LIBCOLLWISE)}
        for row in found.rows
    ]
    parts: list[Table | str] = [Table(title, _COLUMNS, [*map(cells, found.rows)]), *_summary(found), *checks]
    counts = dict.fromkeys(row.procs for row in found.rows)
    figures = {f"gain-{procs}": partial(_figure, found, procs) for procs in counts}
    return Shown(parts, rows, {"checks": checks}, figures)


def _figure(found: MeasuredGain, procs: int) -> Figure:
    from collwise.studies.figures.gain import gain_figure

    rows = [row for row in found.rows if row.procs == procs]
    return gain_figure(rows, f"Gain over Open MPI's default, {found.target}, P = {procs}")


def cells(row: GainRow) -> tuple[str, ...]:
    """The cells of one call; a gain in brackets lies within the confidence intervals of the two times."""
    segment = f", {format_size(row.choice.segment_bytes)}" if row.choice.segment_bytes else ""
    return (
        row.collective,
        str(row.procs),
        format_size(row.message_bytes),
        row.choice.algorithm + segment,
        *map(_time, (row.default, row.rules, row.libcollwise)),
        *(_gain(row, way) for way in (RULES, LIBCOLLWISE)),
    )


def _time(time: MeanTime | None) -> str:
    if time is None:
        return "-"
    return f"{format_seconds(time.seconds)} ± {time.half_width_seconds / time.seconds:.0%}"


def _gain(row: GainRow, way: str) -> str:
    if getattr(row, way) is None:
        return "not by rules"
    text = f"x {row.speedup(way):.2f}"
    other = f" by {row.instead.label}" if way == RULES and row.instead is not None else ""
    return (text if row.significant(way) else f"({text})") + other


def _summary(found: MeasuredGain) -> list[str]:
    """The mean speed-up of each way, the numbers of calls that became significantly faster or slower, and remarks."""
    ways = []
    for way in (RULES, LIBCOLLWISE):
        if rows := [row for row in found.rows if getattr(row, way) is not None]:
            sure = [row.speedup(way) > 1 for row in rows if row.significant(way)]
            mean = geometric_mean(row.speedup(way) for row in rows)
            ways.append((way, len(rows), mean, sum(sure), len(sure) - sum(sure)))
    return said("gain", ways=ways, notes=Counter(row.note for row in found.rows if row.note))
