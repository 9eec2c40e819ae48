"""Shows that the installed Open MPI accepts a rules file and runs what it says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from collwise.validation.openmpi.rules_check import check_rules
from collwise.validation.selection.decision_table import DecisionTable

# Few enough processes for one machine; one short and one long message.
_PROCS = 8
_SIZES = {"bcast": (16384, 262144), "gather": (16384, 131072), "barrier": (0,)}
_OTHER_SIZES = (1024, 65536)


def check_all(rules: Path, tables: Sequence[DecisionTable]) -> Iterator[tuple[str, bool]]:
    """For each table a short and a long message: a line that says what ran, and whether the rules ask for it.

    Raises UsageError or CollwiseError when Open MPI is missing or does not run.
    """
    for table in tables:
        for size in _SIZES.get(table.collective, _OTHER_SIZES):
            checked = check_rules(rules, table.collective, _PROCS, size)
            yield checked.summary, checked.matches
