"""Profiles: the time of a program in collectives, and what other algorithms would save."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from collwise.common.program import program_name
from collwise.common.units import format_seconds, format_size
from collwise.programs import ProfileResult
from collwise.studies.present.shown import Shown, Table, cut, problem_of, said

_MAX_ROWS = 40


def shown(found: ProfileResult) -> Shown:
    """A row for each collective, communicator and size; those with most time come first."""
    rows, expected, run = found.rows(), found.savings, found.profile
    title = f"Collectives of {run.processes} processes by time"
    left_out = list(expected.left_out) if expected else []
    facts = {
        "processes": run.processes,
        "seconds": run.seconds,
        "collective_seconds": run.collective_seconds,
        "run_seconds": list(run.run_seconds),
        "saving_seconds": found.saving_seconds,
        "saving_half_width_seconds": found.saving_half_width,
        "made_by": expected.made_by if expected else None,
        "left_out": left_out,
        **({"totals": found.totals()} if found.changed else {}),
    }
    if expected:
        title += f"; expected savings by {'' if expected.source == 'measured' else 'the times of '}{expected.made_by}"
    cells = [_columns(row, found) for row in rows]
    table = Table(title, [*cells[0]] if cells else ["collective"], [[*row.values()] for row in cells], left=2)
    parts = [
        *cut(table, _MAX_ROWS),
        *(f"no saving known: {line}" for line in left_out),
        *_summary(found),
    ]
    failed = dict.fromkeys(timing for one in (expected, found.changed) if one for timing in one.failed)
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
        "time": format_seconds(row["seconds"]),
    }
    if found.profile.run_seconds:
        fastest, slowest = map(format_seconds, (row["fastest_run_seconds"], row["slowest_run_seconds"]))
        columns["runs"] = f"{fastest} to {slowest}"
    columns["share"] = f"{100 * row['share']:.1f} %"
    if found.savings:
        columns |= {"default": row["default"], "tuned": row["tuned"], "would save": _saving(row)}
    if found.changed:
        columns |= {
            "default, changed": _times(row["default_changed_seconds"], row["default_seconds"]),
            "tuned, changed": row["tuned_changed"],
            "takes": _times(row["tuned_changed_seconds"], row["default_seconds"]),
        }
    if found.after:
        known = row["seconds_after"] == row["seconds_after"]
        columns |= {
            "ran after": row["ran_after"],
            "after": format_seconds(row["seconds_after"]) if known else "-",
            "saved": _signed(row["achieved_seconds"]) if known else "-",
        }
    return columns


def _saving(row: Mapping[str, Any]) -> str:
    if math.isnan(row["saving_seconds"]):
        return "-"
    saved = _with_width(row["saving_seconds"], row["saving_half_width_seconds"])
    return f"{saved} (x{row['default_seconds'] / row['tuned_seconds']:.2f})"


def _times(seconds: float, of: float) -> str:
    return "-" if math.isnan(seconds) else f"x{seconds / of:.2f}"


def _with_width(seconds: float, half_width: float) -> str:
    return format_seconds(seconds) + (f" +- {format_seconds(half_width)}" if half_width > 0 else "")


def _summary(found: ProfileResult) -> list[str]:
    saved: dict[bool, float] = {}
    for one in found.achieved:
        saving = one.saving_seconds * one.row.processes / found.profile.processes
        saved[one.changed] = saved.get(one.changed, 0.0) + saving
    totals = found.totals() if found.savings and found.changed else {}
    values = {"run": found.profile, "saved": saved, "totals": totals, "program": program_name()}
    return said("profile", found=found, signed=_signed, with_width=_with_width, **values)


def _signed(seconds: float) -> str:
    return ("-" if seconds < 0 else "") + format_seconds(abs(seconds))
