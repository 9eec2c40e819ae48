"""Decisions of an untuned library: a table of its decisions, and whether the installed one decides the same."""

from __future__ import annotations

from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import note
from collwise.common.units import counted, format_size
from collwise.decisions import UntunedDecisions
from collwise.studies.present.shown import Shown, Table
from collwise.validation.times.choice import Choice


def shown(found: UntunedDecisions) -> Shown:
    """A row where a decision changes with the size, and where the installed library decides otherwise."""
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
    """The choice with its parameters: 'linear_sync max_requests=15'; '-' for none."""
    if choice is None:
        return "-"
    algorithm = Catalogue.load().algorithm(collective, choice.algorithm)
    named = algorithm.named_parameters(choice.segment_bytes, choice.parameter)
    return " ".join([choice.algorithm, *(f"{name}={value}" for name, value in named.items() if name != "first_bytes")])


def _checked(found: UntunedDecisions) -> str:
    """The problem of an installed library that decides otherwise; notes say where, or that it decides the same."""
    if found.checks is None:
        return ""
    wrong = [one for one in found.checks if not one.agrees]
    for one in wrong:
        collective, count, size = one.point
        note(f"{collective}, P = {count}, {format_size(size)}: {one.found}, not {one.expected}")
    number, asked = len(found.checks), len(found.decisions)
    if wrong:
        return f"the installed library decides otherwise for {counted(len(wrong), 'call')} of {number}"
    others = f"; {counted(asked - number, 'call')} could not be asked" if number < asked else ""
    note(f"the installed library decides the same for {counted(number, 'call')}{others}")
    return ""
