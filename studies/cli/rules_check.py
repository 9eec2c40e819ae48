"""Shows that the installed Open MPI or MPICH accepts a file of rules and runs what it says."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from collwise.common.units import format_size

if TYPE_CHECKING:
    from collwise.validation.selection.decision_table import DecisionTable

# Few enough processes for one machine, and the most that it can still hold where rules begin with more of them; one
# short and one long message, or one where counting messages takes long.
_PROCS = 8
_MOST_PROCS = 64
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
        yield "no rule applies to 8 processes or fewer: nothing was checked", False
    for checked in check_selection(file, calls):
        yield checked.summary, checked.matches


def check_all(rules: Path, tables: Sequence[DecisionTable]) -> Iterator[tuple[str, bool]]:
    """Checks a short and a long message for each table: a line on what ran, and whether the rules ask for it.

    A table whose rules begin with more processes than this machine can hold, or with longer messages than these, is not
    checked, which is no success.

    The calls start at once and run beside what the caller does before it takes the lines. Taking one raises UsageError
    or CollwiseError when Open MPI is missing or does not run.
    """
    from concurrent.futures import ThreadPoolExecutor

    from collwise.validation.openmpi.rules_check import check_rules

    calls, unchecked = [], []
    for table in tables:
        procs = max(_PROCS, min(table.rules))
        sizes = _SIZES.get(table.collective, _OTHER_SIZES)
        first = min((start for start, _ in table.row(procs)), default=None)
        if procs > _MOST_PROCS:
            unchecked.append(f"{table.collective}: no rule applies to {_MOST_PROCS} processes: nothing was checked")
        elif first is None or first > max(sizes):
            at_most = f"{procs} processes and {format_size(max(sizes))} or less"
            unchecked.append(f"{table.collective}: no rule applies to {at_most}: nothing was checked")
        else:
            calls += [(rules, table.collective, procs, size) for size in sizes if size >= first]
    pool = ThreadPoolExecutor(_CHECKS_AT_ONCE)
    checks = [pool.submit(check_rules, *call) for call in calls]
    pool.shutdown(wait=False)
    return itertools.chain(
        ((one.result().summary, one.result().matches) for one in checks), ((line, False) for line in unchecked)
    )
