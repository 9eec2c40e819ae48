"""Sections of the report of `check three-way` for nodes with several processes: kinds of algorithms, and tasks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from collwise.common.units import format_seconds, format_size
from collwise.studies.figures import hierarchy as draw
from collwise.studies.present.shown import Table
from collwise.studies.reports.markdown import Texts, percent
from collwise.studies.reports.sections import Picture, Section
from collwise.validation.compare.scores import AllScores
from collwise.validation.hierarchy.cost_model import TaskStudy
from collwise.validation.hierarchy.space import label
from collwise.validation.three_way.pipeline import Validation
from collwise.validation.three_way.verdicts import (
    ALL,
    COMPONENTS,
    ENGINES,
    FLAT,
    HIERARCHICAL,
    SCHEDULED,
    choices_of_kind,
    component_table,
    errors_by,
    kind_of,
    ways_within,
    with_all,
)
from collwise.validation.times.grid import choice_of

TEXTS = Texts("validation.md.j2")
MEDIAN_ERROR_LIMIT, MEAN_COST_LIMIT = 0.08, 0.05
"""The promised limits of the median error, and of the mean cost of the choice between flat and hierarchical.

These limits are for nodes with several processes.
"""
_LEADER = 2
_MIN_PART = 0.1


def shared_node_sections(result: Validation) -> list[Section]:
    """The sections for nodes with several processes; none if each node has one process."""
    if not result.plan.main.by_node:
        return []
    main = result.main
    return [_verified(result), _kinds(main), _components(result), _ways(main), _tasks(result.tasks)]


def shared_node_document(result: Validation) -> dict[str, Any]:
    """The content of `shared_node_sections` as plain dictionaries and lists."""
    main = result.main
    return {
        "verified": [
            {"collective": item.collective, "algorithm": item.algorithm, "cases": item.cases, "failures": item.failures}
            for item in result.verified
        ],
        "choices_of_kind": {name: choices_of_kind(main, name).to_dict("records") for name in ENGINES},
        "components": component_table(main, result.components, SCHEDULED).to_dict("records"),
        "within": ways_within(main).to_dict("records"),
        "tasks": [
            {
                "collective": task.case.collective,
                "configuration": label(choice_of(task.case)),
                "seconds": task.times.seconds.tolist(),
                "overlap": task.overlap,
            }
            for task in result.tasks
        ],
    }


def _verified(result: Validation) -> Section:
    rows = [
        (name, len(mine), sum(item.cases for item in mine), sum(item.failures for item in mine))
        for name in dict.fromkeys(item.collective for item in result.verified)
        for mine in [[item for item in result.verified if item.collective == name]]
    ]
    wrong = [f"{item.name}: {item.first_failure}" for item in result.verified if not item.ok]
    bad = {(number, 3) for number, row in enumerate(rows) if row[3]}
    tables = [Table("", ("collective", "algorithms", "cases", "failures"), rows, 1, bad=bad)]
    return Section("Verification", [TEXTS.line("verified"), *wrong], tables)


def _kinds(scores: AllScores) -> Section:
    rows = scores.error_rows()
    rows = rows[rows.source.isin(ENGINES)].assign(kind=list(map(kind_of, rows.collective, rows.choice)))
    by_kind = errors_by(pd.concat([rows, rows.assign(kind=ALL)]), ["kind"])
    columns = ["source", "kind", "count", "median", "mean", "ninetieth"]
    errors = [(*row[:3], *map(percent, row[3:])) for row in by_kind[columns].itertuples(index=False, name=None)]
    chosen = [row for source in ENGINES for row in _choice_rows(source, choices_of_kind(scores, source))]
    tables = [
        Table("Errors by kind", ("source", "kind", "cases", "median error", "mean", "90 %"), errors, 2),
        Table(
            "The choice between the kinds",
            ("source", "collective", "points", HIERARCHICAL + " is faster", "right", "mean cost", "worst cost",
             "worst at", "beyond intervals"),
            chosen, 2,
        ),
    ]  # fmt: skip
    text = TEXTS.paragraphs("kinds", error=MEDIAN_ERROR_LIMIT, cost=MEAN_COST_LIMIT)
    return Section("Flat or hierarchical", text, tables)


def _choice_rows(source: str, found: pd.DataFrame) -> Iterator[tuple[object, ...]]:
    for name, mine in with_all(found).groupby("group", sort=False):
        worst = mine.loc[mine.slowdown.idxmax()]
        at = f"{worst.collective} {format_size(worst.message_bytes)}" if worst.slowdown > 0 else "-"
        yield (
            *(source, name, len(mine), (mine.best == HIERARCHICAL).sum(), (mine.chosen == mine.best).sum()),
            *(percent(float(mine.slowdown.mean())), percent(worst.slowdown), at, mine.certain.sum()),
        )


def _components(result: Validation) -> Section:
    table = component_table(result.main, result.components, SCHEDULED)
    times = (FLAT, HIERARCHICAL, "pick", *COMPONENTS)
    cells = [
        (
            row["collective"],
            format_size(row["message_bytes"]),
            *(format_seconds(row[name]) for name in times),
            row["pick algorithm"],
            *(f"{row[name] / row['pick']:.2f}" for name in COMPONENTS),
        )
        for row in table.to_dict("records")
    ]
    ratios = []
    for name in COMPONENTS:
        over = table[name] / table.pick
        texts = [f"{value:.2f}" for value in (over.median(), over.min(), over.max())]
        ratios.append((name, len(table), *texts, (table[name] < table.pick).sum()))
    heads = ("component", "points", "time over the pick's: median", "least", "greatest", "faster than the pick")
    tables = [
        Table("", heads, ratios, 1),
        Table(
            "",
            ("collective", "m", FLAT, HIERARCHICAL, "engine's pick", *COMPONENTS, "picked",
             *(f"{name} / pick" for name in COMPONENTS)),
            cells,
        ),
    ]  # fmt: skip
    return Section("Open MPI's components", TEXTS.paragraphs("components"), tables)


def _ways(scores: AllScores) -> Section:
    found = ways_within(scores)
    cells = [
        (collective, way, len(mine), *(f"{value:.2f}" for value in (mine.median(), mine.min(), mine.max())))
        for (collective, way), mine in found.groupby(["collective", "way"], sort=False).ratio
    ]
    heads = ("collective", "within nodes", "cases", "median ratio", "least", "greatest")
    title = "Shared memory and one-sided communication"
    return Section(title, TEXTS.paragraphs("ways"), [Table("", heads, cells, 2)])


def _tasks(studies: Sequence[TaskStudy]) -> Section:
    tables, pictures = [], []
    for name in dict.fromkeys(study.case.collective for study in studies):
        mine = [study for study in studies if study.case.collective == name]
        size = format_size(mine[0].case.segment_bytes)
        title = f"{name}, segments of {size}"
        heads = ("between nodes", *mine[0].probes, "stabilised", "stable from", "overlap")
        tables.append(Table(f"{title}, slowest leader", heads, [_task_row(study) for study in mine], 1))
        leader = min(_LEADER, len(mine[0].times.seconds) - 1)
        pictures += [
            Picture.of(f"overlap-{name}", draw.task_overlap(mine, title), f"Parts of tasks alone and at once, {title}"),
            Picture.of(f"trend-{name}", draw.task_trend(mine, leader, title), f"Successive tasks on a leader, {title}"),
        ]
    return Section("Tasks", TEXTS.paragraphs("tasks", least=_MIN_PART), tables, pictures)


def _task_row(study: TaskStudy) -> tuple[str, ...]:
    start = study.stable_from(min(_LEADER, len(study.times.seconds) - 1))
    parts = [float(seconds.max()) for seconds in study.probes.values()][:2]
    return (
        study.case.algorithm.removeprefix("tasks_"),
        *(format_seconds(float(seconds.max())) for seconds in study.probes.values()),
        format_seconds(float(study.stable_seconds.max())),
        "-" if start is None else str(start),
        f"{study.overlap:.0%}" if min(parts) >= _MIN_PART * max(parts) else "-",
    )
