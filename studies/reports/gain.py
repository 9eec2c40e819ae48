"""The measured gain of other algorithms in a table: for the terminal, for reports and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from statistics import geometric_mean
from typing import Any

from collwise.common.units import format_seconds, format_size
from collwise.studies.reports.markdown import markdown_table
from collwise.validation.measurement.gain import LIBCOLLWISE, RULES, GainRow, MeanTime, MeasuredGain

COLUMNS = ("collective", "P", "m", "choice", "default", "rules", "libcollwise", "rules gain", "libcollwise gains")


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


def summary_lines(found: MeasuredGain) -> Iterator[str]:
    """The mean speed-up of each way, the numbers of calls that became significantly faster or slower, and remarks."""
    for way in (RULES, LIBCOLLWISE):
        rows = [row for row in found.rows if getattr(row, way) is not None]
        if rows:
            sure = [row for row in rows if row.significant(way)]
            faster = sum(row.speedup(way) > 1 for row in sure)
            yield (
                f"{way}: x {geometric_mean(row.speedup(way) for row in rows):.2f} on average over {len(rows)} calls; "
                f"faster beyond the intervals {faster}, slower {len(sure) - faster}"
            )
    for note in dict.fromkeys(row.note for row in found.rows if row.note):
        calls = sum(row.note == note for row in found.rows)
        yield f"{note} ({calls} calls)"


def check_lines(found: MeasuredGain) -> list[str]:
    """The findings of the checks of the rules, a line each."""
    return [check.summary for check in found.checks]


def gains_markdown(found: MeasuredGain) -> str:
    """The table and the summary for a report."""
    points = "".join(f"- {line}\n" for line in (*summary_lines(found), *check_lines(found)))
    return f"{markdown_table(COLUMNS, map(cells, found.rows))}\n{points}"


def records(rows: Sequence[GainRow]) -> list[dict[str, Any]]:
    """The rows as plain data, with speed-ups."""
    return [
        asdict(row) | {f"{way}_speedup": row.speedup(way) for way in (RULES, LIBCOLLWISE)}
        | {f"{way}_significant": row.significant(way) for way in (RULES, LIBCOLLWISE)}
        for row in rows
    ]  # fmt: skip
