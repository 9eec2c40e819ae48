"""Results of searches, within a budget and among configurations of hierarchical collectives, and times of tasks."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from collwise.common.program import program_name
from collwise.common.units import format_seconds, format_size
from collwise.hierarchy import TaskSearches, TaskStudies
from collwise.studies.present.shown import Shown, Table, drawing, problem_of, said
from collwise.studies.reports.markdown import percent
from collwise.validation.adaptive.search import Searched
from collwise.validation.hierarchy.space import EXHAUSTIVE, Input, by_input, input_of, label, outputs
from collwise.validation.hierarchy.tuning import Found, SearchScore, Tuning
from collwise.validation.times.grid import choice_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLUMNS = ("collective", "P", "m", "algorithm", "median", "+-", "repetitions", "measured", "expected loss")


def searched(found: Searched) -> Shown:
    """The choice at every point, the measurements for it, and the command that decides by the measured times."""
    facts, made = search_document(found), found.configuration
    names = list(dict.fromkeys(point.collective for point in found.points))
    title = f"{', '.join(names)}, {made.maker}, {made.platform}: measured choices"
    query = f"platform={made.platform},source=measured,configuration={made.key[:12]}"
    how = f"choose by these times: {program_name()} select store:{query}"
    table = Table(title, _COLUMNS, point_rows(found), left=1, keys=3)
    return Shown([table, *summary_lines(found), how], facts.pop("points"), facts, problem=problem_of(found.failed))


def point_rows(found: Searched) -> list[tuple[object, ...]]:
    """A row for every point, with its choice and the expected loss of that choice."""
    rows: list[tuple[object, ...]] = []
    for point in found.points:
        start = (point.collective, point.procs, format_size(point.message_bytes))
        measured, timing = f"{point.measured} of {point.candidates}", point.timing
        if timing is None:
            rows.append((*start, "-", "-", "-", 0, measured, "-"))
            continue
        width = f"{timing.half_width_seconds / timing.seconds * 100:.1f} %"
        choice, seconds = choice_of(timing.case).label, format_seconds(timing.seconds)
        rows.append((*start, choice, seconds, width, timing.repetitions, measured, f"{point.loss * 100:.2f} %"))
    return rows


def summary_lines(found: Searched) -> list[str]:
    """Sentences on what was measured, the machine time in relation to the full grid, and the expected loss."""
    decided = [point for point in found.points if point.timing is not None]
    worst = max(decided, key=lambda point_found: point_found.loss, default=None)
    return said("search", found=found, worst=worst, missing=len(found.points) - len(decided))


def search_document(found: Searched) -> dict[str, Any]:
    """The whole result as plain dictionaries and lists."""
    points = []
    for point in found.points:
        record = {name: value for name, value in asdict(point).items() if name != "timing"}
        if point.timing is not None:
            kept = ("seconds", "half_width_seconds", "repetitions")
            record |= asdict(choice_of(point.timing.case)) | {name: getattr(point.timing, name) for name in kept}
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


_OUTPUTS = ("fs", "imod", "smod", "ibalg", "iralg", "ibs", "irs")
_SCORES = ("search", "benchmarks", "machine time", "of exhaustive", "error", "best found", "slowdown", "worst", "at")


def tasks(found: TaskSearches) -> Shown:
    """The choices of the last search for each collective, and the scores of all searches."""
    parts = [*map(_choices, found.values()), *(part for item in found.values() for part in _scores(item))]
    figures = {"search-costs": drawing("hierarchy.search_costs", found)}
    for name, tuning in found.items():
        figures |= _figures(name, tuning)
    return Shown(parts, list(map(_record, found.values())), figures=figures)


def _made(tuning: Tuning, found: Found) -> list[dict[str, Any]]:
    """The choices of a search for each n, p and m, with their parameters and times."""
    return [
        vars(one) | outputs(tuning.space.collective, best) | vars(best) | {"seconds": found.by_input[one][best]}
        for one, best in found.best.items()
    ]


def _choices(tuning: Tuning) -> Table:
    rows = []
    for made in _made(tuning, tuning.last):
        sizes = {name: format_size(made[name]) for name in ("fs", "ibs", "irs") if made[name] is not None}
        cells = [sizes.get(name, made[name] or "-") for name in _OUTPUTS]
        place = (made["nodes"], made["processes_per_node"], format_size(made["message_bytes"]))
        rows.append((*place, *cells, format_seconds(made["seconds"])))
    title = f"{tuning.space.collective} on {tuning.platform}, {tuning.maker}, search {tuning.last.search}"
    return Table(title, ("n", "p", "m", *_OUTPUTS, "time"), rows, 0, keys=3)


def _scores(tuning: Tuning) -> list[Table | str]:
    rows = [
        (
            score.search,
            score.benchmarks,
            format_seconds(score.machine_seconds),
            percent(score.cost, digits=2),
            *_judged(score),
        )
        for score in tuning.scores
    ]
    title = f"{tuning.space.collective}: the cost of each search, and the slowdown of its choices"
    seconds = format_seconds(tuning.exhaustive_seconds)
    estimate = f"The exhaustive search was not made; its machine time is estimated as {seconds}."
    return [Table(title, _SCORES, rows, 1), *([estimate] if tuning.is_estimate else [])]


def _judged(score: SearchScore) -> tuple[str, ...]:
    if score.worst_at is None:
        return ("-",) * 5
    at = f"{_place(score.worst_at)}, {format_size(score.worst_at.message_bytes)}" if score.worst > 0 else "-"
    best = f"{score.best_found} of {score.inputs}"
    error, mean, worst = (percent(share, digits=2) for share in (score.median_error, score.mean, score.worst))
    return (error, best, mean, worst, at)


def _place(one: Input) -> str:
    return f"{one.nodes} nodes x {one.processes_per_node}"


def _record(tuning: Tuning) -> dict[str, Any]:
    known = tuning.found.items()
    return {
        "collective": tuning.space.collective,
        "exhaustive_machine_seconds": tuning.exhaustive_seconds,
        "exhaustive_is_estimate": tuning.is_estimate,
        "searches": [asdict(score) for score in tuning.scores],
        "decisions": {name: _made(tuning, found) for name, found in known},
        "configurations": [
            vars(one) | vars(choice_of(case)) | {"seconds": {name: found.seconds[case] for name, found in known}}
            for one, cases in by_input(tuning.last.seconds).items()
            for case in cases
        ],
    }


def _figures(name: str, tuning: Tuning) -> dict[str, Callable[[], Figure]]:
    """Figures that compare the choices and the times by tasks with the exhaustive search, if that was made."""
    if EXHAUSTIVE not in tuning.found:
        return {}
    last = tuning.space.inputs[-1]
    where = f"{_place(last)}, {tuning.platform}, {tuning.maker}"
    drawn = {f"search-{name}": drawing("hierarchy.search_quality", tuning, last.place, f"{name}, {where}")}
    if "tasks" in tuning.found:
        title = f"{name} of {format_size(last.message_bytes)}, {where}"
        drawn[f"tasks-{name}"] = drawing("hierarchy.model_by_configuration", tuning, last, title)
    return drawn


_SHOWN_LEADER = 2
"""The node whose leader's trend is shown."""


def studies(found: TaskStudies) -> Shown:
    """The parts of tasks on the slowest leader, and the times of all tasks on one leader, of each configuration."""
    first = found[0]
    leader = min(_SHOWN_LEADER, len(first.times.seconds) - 1)
    names = [label(choice_of(study.case)) for study in found]
    title = f"{first.case.collective}, {first.case.nodes} nodes x {first.case.processes_per_node}"
    rows = [
        (
            name,
            *(format_seconds(float(seconds.max())) for seconds in study.probes.values()),
            format_seconds(float(study.stable_seconds.max())),
            f"{study.overlap:.0%}",
        )
        for name, study in zip(names, found, strict=True)
    ]
    trend = [
        (task, *(format_seconds(float(study.times.seconds[leader, at])) for study in found))
        for at, task in enumerate(first.times.names)
    ]
    starts = [study.stable_from(leader) for study in found]
    trend.append(("stable from", *("-" if start is None else str(start) for start in starts)))
    heads = ["configuration", *first.probes, "stabilised", "overlap"]
    parts = [
        Table(f"{title}: parts of tasks, slowest leader", heads, rows),
        Table(f"tasks one after another on leader {leader}", ["task", *names], trend),
    ]
    records = [
        {
            **vars(choice_of(study.case)),
            **vars(input_of(study.case)),
            "tasks": study.times.names,
            "seconds": study.times.seconds.tolist(),
            "stabilised_seconds": study.stable_seconds.tolist(),
            "alone_and_at_once": {name: seconds.tolist() for name, seconds in study.probes.items()},
            "overlap": study.overlap,
        }
        for study in found
    ]
    figures = {
        "trend": drawing("hierarchy.task_trend", found, leader, title),
        "overlap": drawing("hierarchy.task_overlap", found, title),
    }
    return Shown(parts, records, figures=figures)
