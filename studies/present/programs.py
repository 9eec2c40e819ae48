"""Results of running programs: applications under several choices, profiles with savings, and measured gains."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from statistics import geometric_mean
from typing import Any

from collwise.common.grouping import grouped
from collwise.common.program import program_name
from collwise.common.units import format_seconds, format_size
from collwise.programs import ApplicationTimes, ProfileResult
from collwise.simulator.timing import Timing
from collwise.studies.present.shown import Shown, Table, cut, drawing, problem_of, said
from collwise.validation.libraries.baselines import BASELINES
from collwise.validation.measurement.applications import ApplicationRow, application_of
from collwise.validation.measurement.gain import LIBCOLLWISE, RULES, GainRow, MeasuredGain

_OF_EXECUTIONS = ("P", "collectives", "time", "in collectives", "share, mean", "share, most", "speed-up", "algorithms")


def application(times: ApplicationTimes) -> Shown:
    """A row for each execution; the figure has the times, and the speed-ups if there are several P."""
    name = times.words[0]
    title = f"{name} on {times.platform.title}, simulated"
    failed = [row.error for row in times.rows if row.error]

    return Shown(
        [
            Table(title, _OF_EXECUTIONS, [*map(execution_cells, times.rows)], 0, keys=2),
            f"{' '.join(times.words)}; an operation is one of: {application_of(name).operation}",
        ],
        times.frame().to_dict("records"),
        figures={f"{times.platform.name}-{name}": drawing("programs.application_figure", times.frame(), title)},
        problem=f"{len(failed)} of {len(times.rows)} executions failed; first: {failed[0]}" if failed else "",
    )


def execution_cells(row: ApplicationRow) -> tuple[object, ...]:
    """The cells of an execution, under the columns _OF_EXECUTIONS."""
    if row.error:
        return (row.procs, row.collectives, "failed", *["-"] * 4, row.algorithms or "-")
    return (
        *(row.procs, row.collectives, format_seconds(row.seconds), format_seconds(row.mean_seconds)),
        *(f"{row.mean_share * 100:.2f} %", f"{row.max_share * 100:.2f} %", f"{row.speedup:.2f}"),
        row.algorithms or "-",
    )


_MAX_ROWS = 40


def profile(found: ProfileResult) -> Shown:
    """A row for each collective, communicator and size; rows with the most time come first."""
    rows, expected, run = found.rows(), found.savings, found.profile
    title = f"Collectives of {run.processes} processes by {'simulated ' if found.simulated else ''}time"
    left_out = list(expected.left_out) if expected else []
    defaults = [(one.default_is, one.row.processes_per_node) for one in expected.rows] if expected else []
    remarks = [
        baseline.otherwise(n) for baseline in BASELINES.values() for title, n in defaults if baseline.title == title
    ]
    facts = {
        "processes": run.processes,
        "seconds": run.seconds,
        "collective_seconds": run.collective_seconds,
        "run_seconds": list(run.run_seconds),
        "saving_seconds": found.saving_seconds,
        "saving_half_width_seconds": found.saving_half_width,
        "made_by": expected.made_by if expected else None,
        "left_out": left_out,
        **({"totals": found.totals()} if expected else {}),
    }
    if expected:
        title += f"; expected savings by {'' if expected.source == 'measured' else 'the times of '}{expected.made_by}"
    cells = [_columns(row, found) for row in rows]
    table = Table(title, [*cells[0]] if cells else ["collective"], [[*row.values()] for row in cells], left=2)
    parts = [
        *cut(table, _MAX_ROWS),
        *(f"no saving known: {line}" for line in left_out),
        *filter(None, dict.fromkeys(remarks)),
        *_profile_sentences(found),
    ]
    failed = dict.fromkeys(timing for item in (expected, found.changed) if item for timing in item.failed)
    return Shown(parts, rows, facts, problem=problem_of([*failed]))


def _columns(row: Mapping[str, Any], found: ProfileResult) -> dict[str, object]:
    """The cells of a row, by their columns."""
    columns = {
        "collective": row["collective"],
        "communicator": row["communicator"] or f"ranks {row['ranks']}",
        "P": row["processes"],
        "m": "-" if row["mean_bytes"] is None else format_size(round(row["mean_bytes"])),
        "ran": row["algorithm"] or "MPI's own",
        "calls": row["calls"],
    }
    if not found.simulated:
        columns["time"] = format_seconds(row["seconds"])
        if found.profile.run_seconds:
            fastest, slowest = map(format_seconds, (row["fastest_run_seconds"], row["slowest_run_seconds"]))
            columns["runs"] = f"{fastest} to {slowest}"
        columns["share"] = f"{100 * row['share']:.1f} %"
    if found.savings:
        columns |= {"default": row["default"], "takes": _all(row, "default"), "tuned": row["tuned"]}
        columns |= {"tuned takes": _all(row, "tuned"), "would save": _saving(row)}
    if found.changed:
        columns |= {
            "default, changed": _times(row["default_changed_seconds"], row["default_seconds"]),
            "tuned, changed": row["tuned_changed"],
            "takes, changed": _times(row["tuned_changed_seconds"], row["default_seconds"]),
        }
    if found.after:
        known = row["seconds_after"] == row["seconds_after"]
        columns |= {
            "ran after": row["ran_after"],
            "after": format_seconds(row["seconds_after"]) if known else "-",
            "saved": format_seconds(row["achieved_seconds"]) if known else "-",
        }
    return columns


def _all(row: Mapping[str, Any], which: str) -> str:
    seconds = row["calls"] * row[f"{which}_seconds"]
    return "-" if math.isnan(seconds) else format_seconds(seconds)


def _saving(row: Mapping[str, Any]) -> str:
    if math.isnan(row["saving_seconds"]):
        return "-"
    saved = _with_width(row["saving_seconds"], row["saving_half_width_seconds"])
    return f"{saved} (x{row['default_seconds'] / row['tuned_seconds']:.2f})"


def _times(seconds: float, of: float) -> str:
    return "-" if math.isnan(seconds) else f"x{seconds / of:.2f}"


def _with_width(seconds: float, half_width: float) -> str:
    return format_seconds(seconds) + (f" +- {format_seconds(half_width)}" if half_width > 0 else "")


def _profile_sentences(found: ProfileResult) -> list[str]:
    saved: dict[bool, float] = {}
    for achieved in found.achieved:
        saving = achieved.saving_seconds * achieved.row.processes / found.profile.processes
        saved[achieved.changed] = saved.get(achieved.changed, 0.0) + saving
    values = {"run": found.profile, "saved": saved, "totals": found.totals(), "program": program_name()}
    return said("profile", found=found, with_width=_with_width, **values)


_OF_GAINS = ("collective", "P", "m", "choice", "default", "rules", "libcollwise", "rules gain", "libcollwise gains")


def gain(found: MeasuredGain) -> Shown:
    """A row for each call, and the mean speed-ups; figures are maps of the gains for each P."""
    checks = [check.summary for check in found.checks]
    title = f"{found.target}, {found.library}: means ± half-widths; gains in brackets lie within the half-widths"
    rows = [
        asdict(row)
        | {f"{way}_speedup": row.speedup(way) for way in (RULES, LIBCOLLWISE)}
        | {f"{way}_significant": row.significant(way) for way in (RULES, LIBCOLLWISE)}
        for row in found.rows
    ]
    parts: list[Table | str] = [
        Table(title, _OF_GAINS, [*map(gain_cells, found.rows)]),
        *_gain_sentences(found),
        *checks,
    ]
    by_procs = grouped(found.rows, lambda row: row.procs)
    over = f"Gain over Open MPI's default, {found.target}, P ="
    figures = {f"gain-{p}": drawing("programs.gain_figure", some, f"{over} {p}") for p, some in by_procs.items()}
    return Shown(parts, rows, {"checks": checks}, figures)


def gain_cells(row: GainRow) -> tuple[str, ...]:
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


def _time(time: Timing | None) -> str:
    if time is None:
        return "-"
    return f"{format_seconds(time.seconds)} ± {time.half_width_seconds / time.seconds:.0%}"


def _gain(row: GainRow, way: str) -> str:
    if getattr(row, way) is None:
        return "not by rules"
    text = f"x {row.speedup(way):.2f}"
    other = f" by {row.instead.label}" if way == RULES and row.instead is not None else ""
    return (text if row.significant(way) else f"({text})") + other


def _gain_sentences(found: MeasuredGain) -> list[str]:
    """Sentences on mean speed-ups, on significantly faster or slower calls, and remarks on single calls."""
    ways = []
    for way in (RULES, LIBCOLLWISE):
        if rows := [row for row in found.rows if getattr(row, way) is not None]:
            sure = [row.speedup(way) > 1 for row in rows if row.significant(way)]
            mean = geometric_mean(row.speedup(way) for row in rows)
            ways.append((way, len(rows), mean, sum(sure), len(sure) - sum(sure)))
    return said("gain", ways=ways, notes=Counter(row.note for row in found.rows if row.note))
