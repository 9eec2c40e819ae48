"""Guidelines of MPI libraries: violations, repairs, gains, and combinations faster than a decision table's choices."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

from collwise.common.units import format_seconds, format_size
from collwise.guideline_checks import Guidelines
from collwise.studies.present.shown import Shown, Table, drawing, said
from collwise.validation.guidelines.checks import GUIDELINES, KINDS, PATTERN, SPLIT, Comparison, RankTest
from collwise.validation.guidelines.own_algorithms import UNCHECKED, Combination, OwnChecked
from collwise.validation.guidelines.workflow import GuidelinesResult

COLUMNS = ("collective", "P", "m", "guideline", "default", "against", "its time", "ratio", "p", "afterwards")
SUMMARY_COLUMNS = (
    *("library", "place", "P", "calls", *(f"{kind} before" for kind in KINDS), *(f"{kind} after" for kind in KINDS)),
    *("repaired", "largest gain", "time of the check"),
)
LEFT_COLUMNS = (*COLUMNS[:-2], "reason")
# Where and when SimGrid raised an error: '[gros-1:0:(1) 0.5] ./src/a.cpp:48: [root/CRITICAL] '.
_SIMGRIDS_PREFIX = re.compile(r"\[[^]]*\] \S+:\d+: \[[^]]*\] ")


def shown(found: Guidelines) -> Shown:
    """The violations and the summary of each library, and a table of all libraries; figures for each library and P."""
    parts = [part for result in found.values() for part in _parts(result)]
    if len(found) > 1:
        parts.append(Table("All libraries", SUMMARY_COLUMNS, [*map(summary_row, found.values())], left=2))
    figures = {
        f"guidelines-{name}-{procs}": drawing("guidelines.guidelines_figure", result, procs)
        for name, result in found.items()
        for procs in result.plan.procs
    }
    rows = [record for result in found.values() for record in comparison_records(result)]
    return Shown(parts, rows, {"libraries": [*map(document, found.values())]}, figures, str(found.problem or ""))


def _parts(found: GuidelinesResult) -> Iterator[Table | str]:
    title = f"{found.library.title}, {found.library.place}: violations ({found.plan.criterion.description})"
    rows = violation_rows(found)
    yield Table(title, COLUMNS, rows, left=1, keys=4) if rows else f"{title}: none"
    if new := new_rows(found):
        yield Table("With the repairs: violations that were not found before", LEFT_COLUMNS, new, left=1, keys=4)
    yield from summary_lines(found)


def against(comparison: Comparison) -> str:
    """Names what a call is compared with, for example 'gather + bcast', 'm = 64 KiB' or '4 x 8 KiB'."""
    if comparison.kind == PATTERN:
        return GUIDELINES[comparison.guideline].label
    size = format_size(comparison.other_bytes)
    return f"{comparison.calls} x {size}" if comparison.kind == SPLIT else f"m = {size}"


def violation_rows(found: GuidelinesResult) -> list[tuple[str, ...]]:
    """A row of COLUMNS for each violation."""
    outcomes = {(item.violation.guideline, item.violation.call): item for item in found.outcomes()}
    rows = []
    for violation in found.before.violations:
        outcome, p_value = outcomes.get((violation.guideline, violation.call)), violation.p_value
        afterwards = "-" if outcome is None else outcome.reason or "repaired"
        rows.append((*comparison_row(violation), "-" if math.isnan(p_value) else f"{p_value:.2g}", afterwards))
    return rows


def new_rows(found: GuidelinesResult) -> list[tuple[str, ...]]:
    """A row of LEFT_COLUMNS for each violation of the repaired library that the first check did not find."""
    return [(*comparison_row(violation.violation), violation.reason) for violation in found.new_violations()]


def comparison_row(comparison: Comparison) -> tuple[str, ...]:
    """The cells of a comparison under all of COLUMNS except 'p' and 'afterwards'."""
    return (
        comparison.call.collective,
        str(comparison.call.procs),
        format_size(comparison.call.message_bytes),
        comparison.guideline,
        format_seconds(comparison.time.seconds),
        against(comparison),
        format_seconds(comparison.other.seconds),
        f"{comparison.ratio:.2f}",
    )


def summary_row(found: GuidelinesResult) -> tuple[str, ...]:
    """A library's row under SUMMARY_COLUMNS."""
    before, checked = found.before.counts(), found.before.checked()
    after = found.tuned.checked.counts() if found.tuned is not None else None
    outcomes = found.outcomes()
    greatest = found.greatest_gain()
    gain = "-"
    if greatest is not None:
        call, by = greatest
        gain = f"x {by:.2f}: {call.collective}, {format_size(call.message_bytes)}"
    return (
        found.library.title,
        found.library.place,
        ", ".join(map(str, found.plan.procs)),
        str(len(found.own)),
        *(f"{before[kind]} of {checked[kind]}" for kind in KINDS),
        *("-" if after is None else str(after[kind]) for kind in KINDS),
        f"{sum(outcome.repaired for outcome in outcomes)} of {len(found.before.violations)}",
        gain,
        f"{found.seconds + (found.tuned.seconds if found.tuned is not None else 0.0):.0f} s",
    )


def summary_lines(found: GuidelinesResult) -> list[str]:
    """Sentences on violations before and after repair, largest gain, unused mock-ups, failed calls, and time."""
    before, checked = found.before.counts(), found.before.checked()
    after, outcomes = found.tuned.checked.counts() if found.tuned is not None else {}, found.outcomes()
    unused: dict[str, list[str]] = {}
    for (name, _), reason in found.unused.items():
        unused.setdefault(name, []).append(reason)
    causes: dict[str, dict[str, list[str]]] = {}
    for what, error in found.failed.items():
        name, _, procs = what.rpartition(", P = ")
        causes.setdefault(_SIMGRIDS_PREFIX.sub("", error), {}).setdefault(name, []).append(procs)
    criterion, comparisons = found.plan.criterion, found.before.comparisons
    # `needed` is the number of launches that the test needs to find a single violation among `most` comparisons.
    most = max(sum(comparison.kind == kind for comparison in comparisons) for kind in KINDS)
    needed = criterion.min_launches(most) if isinstance(criterion, RankTest) and comparisons else 0
    return said(
        "guidelines",
        found=found,
        before=", ".join(f"{kind} {before[kind]} of {checked[kind]}" for kind in KINDS if checked[kind]),
        after=", ".join(f"{kind} {after[kind]}" for kind in KINDS if checked[kind]) if after else "",
        outcomes=outcomes,
        repaired=sum(outcome.repaired for outcome in outcomes),
        greatest=found.greatest_gain(),
        launches=max((len(launches.medians) for launches in found.own.values()), default=0),
        most=most,
        needed=needed,
        unused=unused,
        causes=causes,
    )


def comparison_records(found: GuidelinesResult) -> list[dict[str, Any]]:
    """Every comparison as plain data, before and after repair."""
    phases = {"before": found.before, **({"after": found.tuned.checked} if found.tuned is not None else {})}
    return [
        {
            "library": found.library.title,
            "place": found.library.place,
            "phase": phase,
            "kind": comparison.kind,
            **plain(comparison),
            **plain_times(comparison),
            "p_value": comparison.p_value,
            "violated": comparison.violated,
        }
        for phase, checked in phases.items()
        for comparison in checked.comparisons
    ]


def plain(comparison: Comparison) -> dict[str, Any]:
    """The guideline and the call of a comparison."""
    return {"guideline": comparison.guideline, **vars(comparison.call)}


def plain_times(comparison: Comparison) -> dict[str, Any]:
    """The times of both sides of a comparison."""
    return {
        "seconds": comparison.time.seconds,
        "against": against(comparison),
        "against_seconds": comparison.other.seconds,
    }


def document(found: GuidelinesResult) -> dict[str, Any]:
    """A library's result as plain data, without its comparisons."""
    greatest = found.greatest_gain()
    return {
        "library": found.library.title,
        "place": found.library.place,
        "criterion": found.plan.criterion.description,
        "violations_before": found.before.counts(),
        "violations_after": None if found.tuned is None else found.tuned.checked.counts(),
        "largest_gain": None if greatest is None else {**vars(greatest[0]), "gain": greatest[1]},
        "check_seconds": found.seconds,
        "repair_seconds": None if found.tuned is None else found.tuned.seconds,
        "repairs": [
            {**vars(call), "guideline": guideline.name, "gain": found.gain(call)}
            for call, guideline in found.repairs.items()
        ],
        "outcomes": [
            {**plain(outcome.violation), "repaired": outcome.repaired, "reason": outcome.reason}
            for outcome in found.outcomes()
        ],
        "new_violations": [
            {**plain(violation.violation), "reason": violation.reason} for violation in found.new_violations()
        ],
        "unused": [
            {"guideline": name, **vars(call), "reason": reason} for (name, call), reason in found.unused.items()
        ],
        "failed": found.failed,
        "rules": "" if found.tuned is None else found.tuned.rules,
    }


COMBINATION_COLUMNS = (
    *("collective", "P", "m", "the table's choice", "time"),
    *("guideline", "combination", "its time", "ratio"),
)


def combinations(found: OwnChecked) -> Shown:
    """The combinations, and violations of monotony and split-robustness."""
    others = [violation for violation in found.checked.violations if violation.kind != PATTERN]
    parts: list[Table | str] = []
    if found.combinations:
        title = "Combinations that are faster than the table's choice"
        parts.append(Table(title, COMBINATION_COLUMNS, [*map(combination_row, found.combinations)], left=1, keys=3))
    if others:
        cells = [*map(comparison_row, others)]
        parts.append(Table("Monotony and split-robustness", COLUMNS[:-2], cells, left=1, keys=4))
    facts = {
        "broken": found.checked.counts(),
        "checked": found.checked.checked(),
        "others": [{**plain(other), **plain_times(other)} for other in others],
        "parts_from": dict(found.parts_from),
    }
    return Shown([*parts, *combination_lines(found)], [*map(_combination_record, found.combinations)], facts)


def _combination_record(combination: Combination) -> dict[str, Any]:
    return {
        **vars(combination.call),
        "choice": vars(combination.chosen),
        "seconds": combination.seconds,
        "guideline": combination.guideline.name,
        "parts": [
            {"collective": name, "message_bytes": size, "choice": None if choice is None else vars(choice)}
            for name, size, choice in combination.parts
        ],
        "parts_seconds": combination.parts_seconds,
    }


def combination_row(combination: Combination) -> tuple[str, ...]:
    """The row of a combination under COMBINATION_COLUMNS."""
    return (
        combination.call.collective,
        str(combination.call.procs),
        format_size(combination.call.message_bytes),
        combination.chosen.label,
        format_seconds(combination.seconds),
        combination.guideline.name,
        " + ".join(_part(*part) for part in combination.parts),
        format_seconds(combination.parts_seconds),
        f"{combination.seconds / combination.parts_seconds:.2f}",
    )


def _part(collective: str, message_bytes: int, choice: Any) -> str:
    return collective if choice is None else f"{collective} of {format_size(message_bytes)} ({choice.label})"


def combination_lines(found: OwnChecked) -> list[str]:
    """Sentences about the guidelines of a decision table."""
    before, checked = found.checked.counts(), found.checked.checked()
    asked = {call.collective for call in found.chosen}
    return said(
        "combinations",
        broken=", ".join(f"{kind} {before[kind]} of {checked[kind]}" for kind in KINDS if checked[kind]),
        fastest=[name for name, source in found.parts_from.items() if source != "the table"],
        unchecked={name: reason for name, reason in UNCHECKED.items() if GUIDELINES[name].collective in asked},
    )
