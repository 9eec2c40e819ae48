"""Decisions with the time that choices lose, exported rules, results of `tune`, and decisions of untuned libraries."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from collwise import arguments
from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import note
from collwise.common.program import program_name
from collwise.common.units import counted, format_seconds, format_size
from collwise.decisions import Decisions, ExportedRules, UntunedDecisions
from collwise.studies.present.shown import MAX_ROWS, Shown, Table, problem_of, said
from collwise.studies.reports.sureness import sure_facts, sure_sentences
from collwise.tuning import Tuned
from collwise.validation.compare.deciders import Rules
from collwise.validation.compare.scores import compare
from collwise.validation.libraries.baselines import BASELINES
from collwise.validation.libraries.formats import FORMATS, how_to_use
from collwise.validation.libraries.sayable import for_consumer, is_faster_than_own, summary_over_untuned, with_untuned
from collwise.validation.libraries.variables import ucc_summary
from collwise.validation.select.consumers import OPENMPI, openmpi_consumer, openmpi_version
from collwise.validation.select.decisions import (
    DecisionTable,
    decisions_document,
    loss_of,
    spans,
    undecided_points,
)
from collwise.validation.times.allocations import over_allocations
from collwise.validation.times.choice import LIBRARY_DECIDES, Choice

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def shown(decisions: Decisions) -> Shown:
    """A table of the rules of each collective, and sentences on the time that the rules lose."""
    rules = [_as_rules(table, decisions) for table in decisions.tables]
    parts = [part for pair in zip(decisions.tables, rules, strict=True) for part in _parts(*pair, decisions)]
    if decisions.robust:
        parts.append("choices are those that lose least in the worst case (--robust), not those with the least time")
    parts += sure_sentences(rules)
    return Shown(
        parts,
        rule_rows(decisions.tables),
        {
            "tables": decisions_document(decisions.tables),
            "robust": decisions.robust,
            "sure": sure_facts(rules),
        },
        {
            f"{table.platform}-{table.collective}": partial(_figure, table)
            for table in decisions.tables
            if table.times is not None and min(table.times.message_bytes) > 0
        },
        problem=problem_of(decisions.failed),
    )


def _figure(table: DecisionTable) -> Figure:
    """Maps of the best choices by the times, and of the decisions."""
    from collwise.studies.figures.maps import decision_figure

    assert table.times is not None
    title = f"{table.collective} on {table.platform}"
    return decision_figure(compare(over_allocations(table.times), Rules([table], "decisions")), title)


def rule_rows(tables: Sequence[DecisionTable]) -> list[dict[str, Any]]:
    """A row for each rule of decision tables, as --json has it."""
    return [
        {"collective": table.collective, "procs": p, "from_bytes": start, **vars(choice)}
        for table in tables
        for p, row in table.rules.items()
        for start, choice in row
    ]


def _as_rules(table: DecisionTable, decisions: Decisions) -> DecisionTable:
    """The table as rules for the Open MPI version that `select` decided for; unchanged for other consumers."""
    version = openmpi_version(decisions.consumer or "")
    if version is None or not any(table.rules.values()):
        return table
    ((said,), _) = for_consumer([table], f"{OPENMPI}-{version}")
    return said


def _parts(table: DecisionTable, rules: DecisionTable, decisions: Decisions) -> Iterator[Table | str]:
    timed = with_untuned(table, BASELINES.get(decisions.consumer or ""))
    rows: list[tuple[object, ...]] = []
    for p, row in table.rules.items():
        if p not in table.decided_procs:
            continue  # a choice that runs on every P follows one that does not
        for start, end, choice in spans(row):
            segment = format_size(choice.segment_bytes) if choice.segment_bytes else "-"
            star = " *" if table.rests_on_gaps(p, start, end) else ""
            times = _time(timed, p, start, choice)
            rows.append((p, format_size(start), choice.algorithm + star, segment, *times))
        if not row:
            rows.append((p, "-", "nothing decided", "-", "-", "-"))
    title = f"{table.collective} on {table.platform} by {table.made_by}"
    columns = ["from P", "from m", "algorithm", "segment", "time there", "untuned takes"]
    yield Table(title, columns, rows[:MAX_ROWS], left=0, keys=2)
    version = openmpi_version(decisions.consumer or "") if any(table.rules.values()) else None
    undecided, points = undecided_points(table)
    yield from said(
        "decisions",
        table=table,
        count=len(rows),
        shown=MAX_ROWS,
        tolerance=decisions.tolerance,
        version=version,
        loss=loss_of(rules),
        over_untuned=summary_over_untuned(rules, f"{OPENMPI}-{version}") if version else "",
        undecided=undecided,
        points=points,
        own=_own(table),
        program=program_name(),
        filled=table.times is not None and any(str(row[2]).endswith(" *") for row in rows),
    )


def _time(table: DecisionTable, procs: int, start: int, choice: Choice) -> tuple[str, str]:
    """The time of a row's choice at the row's first size, and the untuned library's time divided by it."""
    known = table.seconds_at(procs, start)
    own, seconds = known.get(LIBRARY_DECIDES), known.get(choice)
    gain = "-" if own is None or not seconds else f"x {own / seconds:.2f}"
    return "-" if seconds is None else format_seconds(seconds), gain


def _own(decisions: DecisionTable) -> dict[str, int] | None:
    """The points where the choice beats MPI's own collective, and all points with both; None without such times."""
    known = decisions.times
    if known is None or LIBRARY_DECIDES not in known.grid.timed:
        return None
    chosen = {point: decisions.choice_at(*point) for point in known.grid.points}
    own = {point: known.seconds_of(LIBRARY_DECIDES, *point) for point in chosen}
    both = {point: item for point, item in chosen.items() if item and not math.isnan(own[point])}
    return {
        "faster": sum(is_faster_than_own(known, choice, *point) for point, choice in both.items()),
        "points": len(both),
    }


def rules(found: ExportedRules) -> Shown:
    """The command that uses the file, sentences on the rules, and what the installed library ran."""
    checked = [matches for _, matches in found.checks if matches is not None]
    wrong = len(checked) - sum(checked)
    problem = f"{wrong} of {counted(len(checked), 'call')} did not run as the rules say" if wrong else ""
    if found.checks and not checked:
        problem = "none of the rules could be checked on this machine"
    parts = [found.text.rstrip()] if found.path is None else [*_lines(found, found.path)]
    checks = [line for line, _ in found.checks]
    facts = {"format_name": found.format_name, "version": found.version, "text": found.text, "checks": checks}
    return Shown([*parts, *checks], rule_rows(found.tables), facts, problem=problem)


def _lines(rules: ExportedRules, path: Path) -> Iterator[str]:
    known = FORMATS[rules.format_name]
    collectives = (
        f" for {arguments.several([*dict.fromkeys(item.collective for item in rules.tables)])}" if rules.tables else ""
    )
    is_openmpi = rules.format_name == OPENMPI
    yield f"{path}: {f'rules for Open MPI {rules.version}' if is_openmpi else known.title + collectives}; use them with"
    yield f"  {how_to_use(rules.format_name, path)}"
    if known.consumer.startswith(OPENMPI):
        yield (
            "On InfiniBand untuned Open MPI may run hcoll, with which these rules were not compared; "
            "measure hcoll, too (docs/exports.md)"
        )
    for table in rules.tables:
        # Rules for Open MPI leave process counts within wide steps to the library, as a warning says.
        if not (known.consumer.startswith(OPENMPI) and table.wide_steps()):
            yield table.between_procs
        if table.between is not None:
            yield f"{table.collective}, between the sizes slower than the best choice by {table.between}"
    if is_openmpi:
        said, _ = for_consumer(rules.tables, openmpi_consumer(rules.version))
        yield from filter(None, (summary_over_untuned(item, openmpi_consumer(rules.version)) for item in said))
    if rules.format_name == "ucc":
        yield ucc_summary(rules.tables, rules.text)


def tuned(tuned: Tuned) -> Shown:
    """A row for each collective, sentences on the gain, and the files."""
    from collwise.studies.reports import tuning as report

    parts: list[Table | str] = [*report.one_point(tuned)]
    if not parts:
        parts = [
            *report.assumptions(tuned),
            report.gain_table(tuned),
            *report.sentences(tuned),
            *report.checked_tables(tuned),
        ]
    path = tuned.rules.path
    if path is not None:
        parts += [
            f"take {path}{report.han_caveat(tuned)}; use it with",
            f"  {how_to_use(tuned.rules.format_name, path)}",
        ]
        parts.append(f"everything else, such as how to measure the gain: {tuned.file('.html')}")
    facts = {
        "rules": None if path is None else str(path),
        "baseline": None if tuned.baseline is None else tuned.baseline.name,
        "checked": report.CHECKED,
        "robust": tuned.decisions.robust,
        "sure": sure_facts(tuned.said, report.gains_of(tuned), tuned.unsettled),
    }
    figures = {"gains": partial(report.gain_figure, tuned)}
    return Shown(parts, [*report.points(tuned)], facts, figures, problem_of(tuned.decisions.failed))


def untuned(found: UntunedDecisions) -> Shown:
    """A row for each size at which a decision changes, and whether the installed library decides the same."""
    if found.baseline.nodes:
        note(found.baseline.nodes)
    rows: list[tuple[object, ...]] = []
    before: tuple[object, ...] = ()
    for (collective, count, size), decision in found.decisions.items():
        now = (collective, count, decision.algorithm, _described(collective, decision.choice))
        if now != before:
            rows.append((collective, count, format_size(size), *now[2:]))
        before = now
    columns = ["collective", "P", "from m", "algorithm", "in the catalogue"]
    records = [
        {
            "baseline": found.baseline.name,
            "collective": collective,
            "procs": count,
            "message_bytes": size,
            "algorithm": decision.algorithm,
            "choice": None if decision.choice is None else vars(decision.choice),
        }
        for (collective, count, size), decision in found.decisions.items()
    ]
    return Shown(
        [Table(f"{found.baseline.title}, untuned", columns, rows, 1, keys=3)], records, problem=_checked(found)
    )


def _described(collective: str, choice: Choice | None) -> str:
    """The choice with its parameters: 'linear_sync max_requests=15'; '-' if there is no choice."""
    if choice is None:
        return "-"
    algorithm = Catalogue.load().algorithm(collective, choice.algorithm)
    named = algorithm.named_parameters(choice.segment_bytes, choice.parameter)
    return " ".join([choice.algorithm, *(f"{name}={value}" for name, value in named.items() if name != "first_bytes")])


def _checked(found: UntunedDecisions) -> str:
    """The problem if the installed library decides otherwise, else empty; notes list the calls."""
    if found.checks is None:
        return ""
    wrong = [check for check in found.checks if not check.agrees]
    for decision in wrong:
        collective, count, size = decision.point
        note(f"{collective}, P = {count}, {format_size(size)}: {decision.found}, not {decision.expected}")
    number, asked = len(found.checks), len(found.decisions)
    if wrong:
        return f"the installed library decides otherwise for {counted(len(wrong), 'call')} of {number}"
    others = f"; {counted(asked - number, 'call')} could not be checked" if number < asked else ""
    note(f"the installed library decides the same for {counted(number, 'call')}{others}")
    return ""
