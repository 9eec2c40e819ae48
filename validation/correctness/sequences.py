"""Verifies algorithms on real data by random sequences of calls, both linked to a program and in libcollwise.

A seed determines one sequence: its calls, the number of processes, and whether the algorithms are linked to the program
or run in libcollwise in place of MPI's functions. The program `verify` makes the calls and checks what each process
gets. Its processes note their calls in a file, the board, which shows the call of each process after a hang or a crash.
"""

from __future__ import annotations

import os
import struct
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from collwise.common.errors import CollwiseError
from collwise.platforms import load
from collwise.simulator.execution.installations import Installation, find_installation
from collwise.simulator.execution.interposed import LIBRARY, preloadable
from collwise.simulator.execution.launchers import run_program
from collwise.simulator.execution.processes import ProgramRun
from collwise.simulator.execution.profiles import read_profile
from collwise.validation.correctness.verification import PLATFORM, VerificationResult, failed, only_options

SECONDS = 20.0
"""The seconds that sequences run under each library, unless a user says otherwise."""
MAX_SEED = 2**32 - 1

# Numbers of processes, which are used in turn. Waiting processes poll, so more real processes than cores are slow, most
# of all under MPICH.
_PROCS = {"smpi": (4, 7, 2, 8, 3, 13, 5), "openmpi": (4, 7, 3, 5, 2, 8, 6), "mpich": (4, 3, 2)}
_CALLS = 1000
_TIME_LIMIT_SECONDS = 300.0
# libcollwise sees the nodes that MPI sees.
_PROCESSES_PER_NODE = 2
# An entry of the board (verify_entry in simulator/programs/verify/verify.h).
_ENTRY = struct.Struct("<5q484s500s")


class _State(IntEnum):
    RUNNING, FINISHED, FAILED, STUCK = range(4)


@dataclass(frozen=True)
class _Process:
    """The notes of a process on the board: the last call that it has entered, numbers of calls, and its state."""

    entered: int
    calls: int
    skipped: int
    by_ours: int
    state: _State
    call: str
    complaint: str


@dataclass(frozen=True)
class _Sequence:
    """The sequence of a seed under a library; `options` are further options of the program."""

    installation: Installation
    seed: int
    options: tuple[str, ...]

    def __str__(self) -> str:
        return f"the sequence of seed {self.seed}, {self.way}, on {self.procs} processes"

    @property
    def is_interposed(self) -> bool:
        return self.seed % 2 == 1

    @property
    def way(self) -> str:
        return "libcollwise" if self.is_interposed else "linked"

    @property
    def procs(self) -> int:
        choice = _PROCS[self.installation.library]
        return choice[self.seed // 2 % len(choice)]

    def run(self, simgrid: str | None) -> _Outcome:
        with tempfile.TemporaryDirectory(prefix="collwise-") as name:
            args = ["--seed", str(self.seed), "--calls", str(_CALLS), "--directory", name, *self.options]
            is_simulated = self.installation.library == "smpi"
            environment = {}
            if self.is_interposed:
                args.append("--interposed")
                preloaded = preloadable(self.installation.program(LIBRARY), Path(name))
                others = "" if is_simulated else os.environ.get("LD_PRELOAD", "")
                environment["LD_PRELOAD"] = f"{preloaded}:{others}" if others else preloaded
            simulation = {"processes_per_node": _PROCESSES_PER_NODE} if is_simulated else {}
            run = run_program(
                self.installation.library, "verify", self.procs, args,
                platform=load(PLATFORM) if is_simulated else None, simgrid=simgrid,
                environment=environment, timeout_seconds=_TIME_LIMIT_SECONDS, **simulation,
            )  # fmt: skip
            processes = _read_board(Path(name, "board"))
            return _Outcome(self, processes, _problem(run, processes, Path(name, "report.json")))


@dataclass(frozen=True)
class _Outcome:
    """The notes of the processes, and the problem, which is empty if nothing was wrong."""

    sequence: _Sequence
    processes: Sequence[_Process]
    problem: str


def verify_sequences(
    library: str,
    seed: int,
    seconds: float = 0.0,
    collective: str | None = None,
    algorithm: str | None = None,
    on_progress: Callable[[str], object] = lambda line: None,
    *,
    smpi_version: str | None = None,
) -> list[VerificationResult]:
    """Runs the sequences of `seed` and of the next seeds until `seconds` have passed, but at least one sequence.

    `collective` and `algorithm` restrict the calls. There is one result for algorithms linked to the program, and one
    for algorithms in libcollwise. In both results the collective is 'sequences', and cases are calls. The first failure
    ends the run; its text names the seed, the failed call, what was wrong, and the command that repeats the sequence. A
    missing library is a failure.
    """
    only = only_options(collective, algorithm)
    try:
        installation = find_installation(library, smpi_version)
    except CollwiseError as error:
        return [failed(library, "", (), error)]
    versions = ["--simgrid", smpi_version] if smpi_version else []
    again = " ".join(["collwise check algorithms --library", library, *only, *versions])
    made: list[_Outcome] = []
    end = time.monotonic() + seconds
    while not made or (not made[-1].problem and time.monotonic() < end):
        sequence = _Sequence(installation, (seed + len(made)) % (MAX_SEED + 1), tuple(only))
        on_progress(f"{installation.label}: {sequence}")
        made.append(sequence.run(smpi_version))
    by_way: dict[str, list[_Outcome]] = {}
    for outcome in made:
        by_way.setdefault(outcome.sequence.way, []).append(outcome)
    return [_result(way, outcomes, again) for way, outcomes in by_way.items()]


def _result(way: str, outcomes: Sequence[_Outcome], again: str) -> VerificationResult:
    last = outcomes[-1].sequence
    processes = [process for each in outcomes for process in each.processes]
    calls, skipped = sum(process.calls for process in processes), sum(process.skipped for process in processes)
    problem = outcomes[-1].problem
    failure = f"{last}: {problem}; again: {again} --seed {last.seed}" if problem else None
    procs = tuple(sorted({each.sequence.procs for each in outcomes}))
    made_by = last.installation
    found = (calls, skipped, int(bool(problem)), failure)
    return VerificationResult(made_by.library, made_by.version, "sequences", way, *found, procs)


def _read_board(path: Path) -> list[_Process]:
    """The notes of each process; empty if the program ended before it made the board."""
    found = []
    board = path.read_bytes() if path.exists() else b""
    for entered, calls, skipped, by_ours, state, *texts in _ENTRY.iter_unpack(board):
        call, complaint = (text.split(b"\0")[0].decode(errors="replace") for text in texts)
        found.append(_Process(entered, calls, skipped, by_ours, _State(state), call, complaint))
    return found


def _problem(run: ProgramRun, processes: Sequence[_Process], report: Path) -> str:
    """The problem of a sequence; empty if nothing was wrong."""
    if failed := [process for process in processes if process.state == _State.FAILED]:
        first = min(failed, key=lambda process: process.entered)
        return f"{first.call}: {first.complaint}"
    if any(process.state == _State.STUCK for process in processes):
        return f"no progress ({_where(processes)})"
    if run.returncode != 0 or any(process.state != _State.FINISHED for process in processes):
        return f"{run.problem} ({_where(processes)})"
    if warnings := [line for line in run.error_text.splitlines() if line.startswith("collwise: warning")]:
        return warnings[0]
    if report.exists():
        counted = sum(row.calls for row in read_profile(report).rows if row.algorithm)
        expected = sum(process.by_ours for process in processes)
        if counted != expected:
            return f"libcollwise reports {counted} calls by our algorithms, but its rules choose them for {expected}"
    return ""


def _where(processes: Sequence[_Process]) -> str:
    """The call that each process is in."""
    ranks: dict[str, list[str]] = {}
    for rank, process in enumerate(processes):
        ranks.setdefault(process.call, []).append(str(rank))
    return "; ".join(f"rank {', '.join(those)} in {call}" for call, those in ranks.items()) or "at the start"
