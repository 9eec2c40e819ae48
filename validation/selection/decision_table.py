"""Decision tables: which algorithm to run for each process count and from which message size; and their JSON form."""

from __future__ import annotations

import bisect
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from collwise.common.errors import UsageError
from collwise.validation.selection.choice import Choice

Row = tuple[tuple[int, Choice], ...]
"""The decisions for one process count: from how many message bytes on, and the choice; ascending."""

_FORMAT = "collwise decisions 3"
_MAKE_ONE = "make one with: collwise select -o FILE"


@dataclass(frozen=True)
class DecisionTable:
    """The choices to run: for each process count, ascending, its row. `made_by` is a model or what simulated.

    A point between two entries takes the lower one, in P and in m. Nothing is decided below the first entries and where
    a row is empty.
    """

    collective: str
    platform: str
    processes_per_node: int
    made_by: str
    rules: Mapping[int, Row]

    @cached_property
    def _starts(self) -> list[int]:
        return sorted(self.rules)

    def row(self, procs: int) -> Row:
        """The row in force for P; empty below the first one."""
        position = bisect.bisect_right(self._starts, procs)
        return self.rules[self._starts[position - 1]] if position else ()

    def choose(self, procs: int, message_bytes: int) -> Choice:
        """The choice for a point. Raises UsageError where nothing is decided."""
        if procs < min(self.rules):
            raise UsageError(f"the decision table starts at P = {min(self.rules)}, not {procs}")
        below = [choice for start, choice in self.row(procs) if start <= message_bytes]
        if not below:
            raise UsageError(f"the decision table has no entry for {message_bytes} bytes")
        return below[-1]


def check_one_choice(table: DecisionTable, procs: int, whose: str) -> None:
    """Raises UsageError if the row of a process count depends on the message size, from 0 on."""
    row = table.rules[procs]
    if len(row) > 1 or (row and row[0][0] > 0):
        name = table.collective
        raise UsageError(
            f"{whose} cannot choose for {name} by message size, which P = {procs} needs; make the table with "
            f"'collwise select --one-choice' or leave {name} out"
        )


def decisions_document(tables: Sequence[DecisionTable]) -> list[dict[str, Any]]:
    """Tables as plain data, which `decisions_from` reads."""
    return [
        {
            "format": _FORMAT,
            "collective": table.collective,
            "platform": table.platform,
            "processes_per_node": table.processes_per_node,
            "made_by": table.made_by,
            "rules": {
                str(p): [{"from_bytes": start, **vars(choice)} for start, choice in row]
                for p, row in table.rules.items()
            },
        }
        for table in tables
    ]


def decisions_from(path: Path) -> list[DecisionTable]:
    """Reads a file that `collwise select -o` wrote: its tables. Raises UsageError naming it."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(document, list) or any(entry.get("format") != _FORMAT for entry in document):
            raise UsageError(f"{path}: not a decision table of this version; {_MAKE_ONE}")
        return [_table(entry) for entry in document]
    except OSError as problem:
        raise UsageError(f"cannot read {path}: {problem.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise UsageError(f"{path}: not a decision table ({problem}); {_MAKE_ONE}") from None


def _table(entry: Mapping[str, Any]) -> DecisionTable:
    rules = {
        int(p): tuple(
            (
                step["from_bytes"],
                Choice(*(step[name] for name in ("algorithm", "segment_bytes", "fanout", "limit_bytes"))),
            )
            for step in row
        )
        for p, row in entry["rules"].items()
    }
    if not rules:
        raise ValueError("no process counts")
    return DecisionTable(
        entry["collective"], entry["platform"], int(entry["processes_per_node"]), entry["made_by"], rules
    )
