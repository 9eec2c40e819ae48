"""Shows that the installed Open MPI accepts a rules file and runs what it says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from collwise.validation.openmpi.rules_check import check_rules
from collwise.validation.selection.decision_table import DecisionTable

# Few enough processes for one machine; one short and one long message.
_PROCS = 8
_SIZES = {"bcast": (16384, 262144), "gather": (16384, 131072), "barrier": (0,)}
_OTHER_SIZES = (1024, 65536)


def wrong_rules(rules: Path, tables: Sequence[DecisionTable], indent: str = "") -> int:
    """Prints for each table what ran for a short and a long message; returns how often the rules ask for another thing.

    Raises UsageError or CollwiseError when Open MPI is missing or does not run.
    """
    wrong = 0
    for table in tables:
        for size in _SIZES.get(table.collective, _OTHER_SIZES):
            checked = check_rules(rules, table.collective, _PROCS, size)
            click.echo(indent + checked.summary)
            wrong += not checked.matches
    return wrong
