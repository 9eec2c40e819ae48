"""Checks that the installed MPICH follows a selection file, by the messages that it sends in one call.

The program `call` makes the call, and the library count_messages counts what its processes send through UCX. The counts
are compared with the counts of a call in which MPICH's control variable forces the algorithm that the file names.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from collwise.common.errors import CollwiseError, UsageError
from collwise.common.files import read_text
from collwise.common.units import format_size
from collwise.simulator.execution.installations import find_installation
from collwise.simulator.execution.interposed import preloadable
from collwise.simulator.execution.launchers import run_program
from collwise.validation.libraries import mpich_file
from collwise.validation.libraries.mpich_untuned import own_tables, selected
from collwise.validation.select.decisions import DecisionTable

Sent = tuple[tuple[tuple[int, int], ...], ...]
"""The messages that each process sent: their sizes, ascending, and the number of each."""

_TIME_LIMIT_SECONDS = 120.0
# Few enough processes for one machine, but enough to distinguish most algorithms, which two processes do not.
_MIN_PROCS, _MAX_PROCS = 3, 8
_MAX_BYTES = 2**20
_THROUGH_UCX = {"MPIR_CVAR_NOLOCAL": "1"}


@dataclass(frozen=True)
class SelectionCheck:
    """One call under a selection file: the algorithm that the file names, and the messages that were sent.

    `expected` are the messages when MPICH's control variable forces the algorithm, `without` those of untuned MPICH.
    """

    collective: str
    procs: int
    message_bytes: int
    mpich: str
    algorithm: str
    observed: Sent
    expected: Sent
    without: Sent

    @property
    def matches(self) -> bool:
        """True if MPICH ran the algorithm that the file names."""
        return self.observed == self.expected

    @property
    def changes_something(self) -> bool:
        """True if MPICH does something else without the file."""
        return self.observed != self.without

    @property
    def summary(self) -> str:
        """The result in one line."""
        call = f"{self.collective} of {format_size(self.message_bytes)} on {self.procs} processes"
        if not self.matches:
            return f"{self.mpich} did not follow the file: {call} did not run {self.algorithm}"
        control = "without it: another algorithm" if self.changes_something else "as it would without it"
        return f"{self.mpich} accepted the file and ran {self.algorithm} for {call} ({control})"


def check_selection(path: Path, calls: Sequence[tuple[str, int, int]]) -> Iterator[SelectionCheck]:
    """Makes calls (collective, P, message bytes) with the installed MPICH, with and without the selection file.

    Raises UsageError if MPICH is missing or does not send through UCX, or if the file cannot be read, and CollwiseError
    if a call fails.
    """
    label = find_installation("mpich").label
    text = read_text(path)
    for collective, procs, size in calls:
        said = mpich_file.lookup(text, collective, procs, size)
        algorithm = said.split("_intra_")[-1].split("_allcomm_")[-1]
        forced = {f"MPIR_CVAR_{collective.upper()}_INTRA_ALGORITHM": algorithm}
        yield SelectionCheck(
            collective,
            procs,
            size,
            label,
            algorithm,
            sent(collective, procs, size, {mpich_file.FILE_VARIABLE: str(path.resolve())}),
            sent(collective, procs, size, forced),
            sent(collective, procs, size, {}),
        )


def sent(collective: str, procs: int, message_bytes: int, settings: Mapping[str, str]) -> Sent:
    """The messages of one call by the installed MPICH with these variables. Raises the errors of `check_selection`."""
    counter = find_installation("mpich").program("libcount_messages.so")
    if not counter.exists():
        raise UsageError("the programs for MPICH were built without the counter of messages; build them again")
    with tempfile.TemporaryDirectory(prefix="collwise-") as directory:
        environment = {
            **_THROUGH_UCX,
            **mpich_file.ENVIRONMENT,
            **settings,
            "LD_PRELOAD": preloadable(counter, Path(directory)),
            "COLLWISE_COUNTS": f"{directory}/sent",
        }
        run = run_program(
            "mpich",
            "call",
            procs,
            [collective, str(message_bytes)],
            timeout_seconds=_TIME_LIMIT_SECONDS,
            environment=environment,
        )
        if run.returncode != 0:
            raise CollwiseError(f"{collective} of {message_bytes} bytes on {procs} processes failed: {run.problem}")
        files = [Path(directory, f"sent.{rank}") for rank in range(procs)]
        if not all(file.exists() for file in files):
            raise UsageError(f"{find_installation('mpich').label} did not load the counter of messages")
        found = tuple(_counts(file.read_text(encoding="utf-8")) for file in files)
    if not any(found):
        raise UsageError(f"{find_installation('mpich').label} sends no messages through UCX, where they are counted")
    return found


def _counts(text: str) -> tuple[tuple[int, int], ...]:
    pairs = [line.split() for line in text.splitlines()]
    return tuple(sorted((int(size), int(count)) for size, count in pairs))


def telling_calls(text: str, tables: Sequence[DecisionTable]) -> list[tuple[str, int, int]]:
    """Calls (collective, P, message bytes) that show whether MPICH follows a selection file made from the tables.

    The calls are on few processes, at sizes where a row of the table changes its choice. For each collective, up to two
    calls are chosen for which untuned MPICH would run another algorithm. If there is no such call, one call with the
    same algorithm is chosen.
    """
    found = []
    for table in tables:
        name = table.collective
        points = [
            (name, procs, max(start, 1))
            for procs in sorted({max(procs, _MIN_PROCS) for procs in table.rules if procs <= _MAX_PROCS})
            for start, _ in table.row(procs)
            if start <= _MAX_BYTES
        ]
        telling = [point for point in points if mpich_file.lookup(text, *point) != selected(own_tables(), *point)]
        found += telling[-2:] or points[-1:]
    return found
