"""Results of a search within a budget: choices, savings, expected losses."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from collwise.common.program import program_name
from collwise.common.units import format_seconds, format_size
from collwise.studies.present.shown import Shown, Table, problem_of, said
from collwise.validation.adaptive.search import Searched
from collwise.validation.times.grid import choice_of

_COLUMNS = ("collective", "P", "m", "algorithm", "median", "+-", "repetitions", "measured", "expected loss")


def shown(found: Searched) -> Shown:
    """The choice of every point, what was measured for it, and how to choose by it."""
    facts, made = document(found), found.configuration
    names = list(dict.fromkeys(one.collective for one in found.points))
    title = f"{', '.join(names)}, {made.maker}, {made.platform}: measured choices"
    query = f"platform={made.platform},source=measured,configuration={made.key[:12]}"
    how = f"choose by them: {program_name()} select store:{query}"
    table = Table(title, _COLUMNS, point_rows(found), left=1, keys=3)
    return Shown([table, *summary_lines(found), how], facts.pop("points"), facts, problem=problem_of(found.failed))


def point_rows(found: Searched) -> list[tuple[object, ...]]:
    """A row for every point: its choice, and what that is expected to lose."""
    rows: list[tuple[object, ...]] = []
    for one in found.points:
        start = (one.collective, one.procs, format_size(one.message_bytes))
        measured, timing = f"{one.measured} of {one.candidates}", one.timing
        if timing is None:
            rows.append((*start, "-", "-", "-", 0, measured, "-"))
            continue
        width = f"{timing.half_width_seconds / timing.seconds * 100:.1f} %"
        choice, seconds = choice_of(timing.case).label, format_seconds(timing.seconds)
        rows.append((*start, choice, seconds, width, timing.repetitions, measured, f"{one.loss * 100:.2f} %"))
    return rows


def summary_lines(found: Searched) -> list[str]:
    """The lines on what was measured, saved and may have been lost."""
    decided = [one for one in found.points if one.timing is not None]
    worst = max(decided, key=lambda one: one.loss, default=None)
    return said("search", found=found, worst=worst, missing=len(found.points) - len(decided))


def document(found: Searched) -> dict[str, Any]:
    """The whole result as plain dictionaries and lists."""
    points = []
    for one in found.points:
        record = {name: value for name, value in asdict(one).items() if name != "timing"}
        if one.timing is not None:
            kept = ("seconds", "half_width_seconds", "repetitions")
            record |= asdict(choice_of(one.timing.case)) | {name: getattr(one.timing, name) for name in kept}
        else:
            record["loss"] = None
        points.append(record)
    return {
        "configuration": found.configuration.key,
        "stopped": found.stopped,
        "cases": found.cases,
        "measured": len(found.timings),
        **asdict(found.spent),
        "full_seconds": found.full_seconds,
        "mean_loss": None if math.isnan(found.mean_loss) else found.mean_loss,
        "points": points,
    }
