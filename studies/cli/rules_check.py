"""Shows that the installed Open MPI or MPICH accepts a file of rules and runs what it says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collwise.validation.selection.decision_table import DecisionTable

# Few enough processes for one machine; one short and one long message, or one where counting messages takes long.
_PROCS = 8
_CHECKS_AT_ONCE = 2
_SIZES = {
    "bcast": (16384, 262144),
    "gather": (16384, 131072),
    "allreduce": (65536,),
    "alltoall": (65536,),
    "barrier": (0,),
}
_OTHER_SIZES = (1024, 65536)


def check_mpich(file: Path, tables: Sequence[DecisionTable]) -> Iterator[tuple[str, bool]]:
    """Checks calls for each table, if possible such that MPICH by itself would run otherwise; as `check_all` does."""
    from collwise.validation.exports.mpich_check import check_selection, telling_calls

    calls = telling_calls(file.read_text(encoding="utf-8"), tables)
    if not calls:
        yield "no table has rules for 8 processes or fewer: nothing to check on this machine", True
    for checked in check_selection(file, calls):
        yield checked.summary, checked.matches


def check_all(rules: Path, tables: Sequence[DecisionTable]) -> Iterator[tuple[str, bool]]:
    """Checks a short and a long message for each table: a line on what ran, and whether the rules ask for it.

    The calls start at once and run beside what the caller does before it takes the lines. Taking one raises UsageError
    or CollwiseError when Open MPI is missing or does not run.
    """
    from concurrent.futures import ThreadPoolExecutor

    from collwise.validation.openmpi.rules_check import check_rules

    names = [table.collective for table in tables]
    calls = [(rules, name, _PROCS, size) for name in names for size in _SIZES.get(name, _OTHER_SIZES)]
    pool = ThreadPoolExecutor(_CHECKS_AT_ONCE)
    checks = pool.map(check_rules, *zip(*calls, strict=True))
    pool.shutdown(wait=False)
    return ((checked.summary, checked.matches) for checked in checks)
