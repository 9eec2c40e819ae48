"""Combinations of collectives that are faster than the choices of decisions, and other guidelines that these break."""

from __future__ import annotations

from typing import Any

from collwise.common.units import format_seconds, format_size
from collwise.studies.present.guidelines import COLUMNS, comparison_row, plain, plain_times
from collwise.studies.present.shown import Shown, Table, said
from collwise.validation.guidelines.checks import KINDS, PATTERN
from collwise.validation.guidelines.guideline import GUIDELINES
from collwise.validation.guidelines.own_algorithms import UNCHECKED, Combination, OwnChecked

COMBINATION_COLUMNS = (
    *("collective", "P", "m", "the table's choice", "time"),
    *("guideline", "combination", "its time", "ratio"),
)


def shown(found: OwnChecked) -> Shown:
    """The combinations, and violations of monotony and split-robustness."""
    others = [one for one in found.checked.violations if one.kind != PATTERN]
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
        "others": [{**plain(one), **plain_times(one)} for one in others],
        "parts_from": dict(found.parts_from),
    }
    return Shown([*parts, *summary_lines(found)], [*map(_record, found.combinations)], facts)


def _record(one: Combination) -> dict[str, Any]:
    return {
        **vars(one.call),
        "choice": vars(one.chosen),
        "seconds": one.seconds,
        "guideline": one.guideline.name,
        "parts": [
            {"collective": name, "message_bytes": size, "choice": None if choice is None else vars(choice)}
            for name, size, choice in one.parts
        ],
        "parts_seconds": one.parts_seconds,
    }


def combination_row(one: Combination) -> tuple[str, ...]:
    """The row of COMBINATION_COLUMNS."""
    return (
        one.call.collective,
        str(one.call.procs),
        format_size(one.call.message_bytes),
        one.chosen.label,
        format_seconds(one.seconds),
        one.guideline.name,
        " + ".join(_part(*part) for part in one.parts),
        format_seconds(one.parts_seconds),
        f"{one.seconds / one.parts_seconds:.2f}",
    )


def _part(collective: str, message_bytes: int, choice: Any) -> str:
    return collective if choice is None else f"{collective} of {format_size(message_bytes)} ({choice.label})"


def summary_lines(found: OwnChecked) -> list[str]:
    """Sentences about the guidelines of a decision table."""
    before, checked = found.checked.counts(), found.checked.checked()
    asked = {call.collective for call in found.chosen}
    return said(
        "combinations",
        broken=", ".join(f"{kind} {before[kind]} of {checked[kind]}" for kind in KINDS if checked[kind]),
        fastest=[name for name, source in found.parts_from.items() if source != "the table"],
        unchecked={name: reason for name, reason in UNCHECKED.items() if GUIDELINES[name].collective in asked},
    )
