"""Verifies every algorithm on real data, under every MPI library, against the definition of its collective.

The program `verify` (simulator/programs/verify) makes the calls and checks what each process gets. An algorithm that
hangs or crashes a run is one failed result, and the run resumes with the next algorithm.

Random sequences of calls verify algorithms both linked to the program and in libcollwise. A seed determines one
sequence. The processes note their calls in a file, the board, which shows every process's call after a hang or a crash.
"""

from __future__ import annotations

import json
import os
import struct
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import CollwiseError
from collwise.common.grouping import grouped
from collwise.platforms import load
from collwise.simulator.execution.installations import Installation, find_installation
from collwise.simulator.execution.interposed import LIBRARY, preloadable
from collwise.simulator.execution.launchers import run_program
from collwise.simulator.execution.processes import ProgramRun
from collwise.simulator.execution.profiles import read_profile
from collwise.simulator.execution.targets import ExecutionTarget
from collwise.simulator.sweeps.context import SMPI_SELECTED

# Communicator sizes. Waiting processes poll, so more real processes than cores are slow, most of all under MPICH.
PROCS = {"smpi": (*range(1, 18), 24, 32, 33, 48, 64), "openmpi": tuple(range(1, 9)), "mpich": tuple(range(1, 9))}
QUICK_PROCS = {"smpi": (1, 2, 3, 5, 8, 13), "openmpi": (1, 2, 3, 4, 5), "mpich": (1, 2, 3)}
TIME_LIMIT_SECONDS = 3600.0
QUICK_TIME_LIMIT_SECONDS = 300.0

# Any platform with enough nodes serves: times do not matter here.
_PLATFORM = "gros"


@dataclass(frozen=True)
class VerificationResult:
    """One algorithm under one MPI library. `failures` counts failed cases; a run that breaks off is one failure.

    `skipped` counts further cases, to which the algorithm does not apply. For tests of communicators, the collective is
    'isolation'. If an engine does not run at all, collective and algorithm are empty.
    """

    engine: str
    version: str
    collective: str
    algorithm: str
    cases: int
    skipped: int
    failures: int
    first_failure: str | None
    procs: tuple[int, ...]

    @property
    def name(self) -> str:
        """Installation, collective and algorithm."""
        return " ".join(word for word in (self.engine, self.collective, self.algorithm) if word)

    @property
    def ok(self) -> bool:
        """True if no case failed, and some case ran; communicators and sequences may also have only skipped cases."""
        not_offered = self.collective in ("isolation", "sequences") and self.skipped > 0
        return self.failures == 0 and (self.cases > 0 or not_offered)


def verify(
    engines: Sequence[str],
    collective: str | None = None,
    algorithm: str | None = None,
    quick: bool = False,
    on_progress: Callable[[str], object] = lambda line: None,
    *,
    smpi_version: str | None = None,
    selector: str | None = None,
) -> list[VerificationResult]:
    """Verifies algorithms under `engines` (of 'smpi', 'openmpi' and 'mpich'), with one result per algorithm.

    `collective` and `algorithm` restrict what is verified. `on_progress` gets a line when the program turns to another
    algorithm or process count. An engine that is missing or breaks is a failed result. `selector` names SMPI's selector
    by which the collectives in mock-ups choose their algorithms.
    """
    options = [*_only(collective, algorithm), *(["--quick"] if quick else [])]
    selected: list[str] = []
    if selector is not None:
        entries = [item for item in Catalogue.load().algorithms(collective) if algorithm in (None, item.name)]
        called = SMPI_SELECTED.intersection(name for entry in entries for name in entry.calls)
        selected = [f"--cfg=smpi/{name}:{selector}" for name in sorted(called)]
    results = []
    for library in engines:
        only_smpi = (smpi_version, selected) if library == "smpi" else (None, [])
        results += _verify_under(library, options, quick, on_progress, *only_smpi)
    return results


def verify_hierarchical(
    target: ExecutionTarget,
    collective: str | None = None,
    algorithm: str | None = None,
    on_progress: Callable[[str], object] = lambda line: None,
) -> list[VerificationResult]:
    """Verifies every hierarchical algorithm on a target, with as many processes as the target has room for.

    Each algorithm runs on the nodes as they are, on nodes with unequal numbers of processes, with cyclic placement, and
    with one process on each node.
    """
    options = ["--by-node", "--quick", *_only(collective, algorithm)]
    procs = (target.usual_procs,)

    def run(args: list[str], on_line: Callable[[str], None]) -> ProgramRun:
        return target.run("verify", max(procs), args, timeout_seconds=QUICK_TIME_LIMIT_SECONDS, on_line=on_line)

    return _verify(target.installation.library, target.installation.version, procs, options, run, on_progress)


def _only(collective: str | None, algorithm: str | None) -> list[str]:
    given = {"--collective": collective, "--algorithm": algorithm}
    return [word for option, name in given.items() if name for word in (option, name)]


Run = Callable[[list[str], Callable[[str], None]], ProgramRun]
"""Runs the program with some arguments, and passes each line of output on."""


def _verify_under(
    library: str,
    options: Sequence[str],
    quick: bool,
    on_progress: Callable[[str], object],
    simgrid: str | None,
    launcher_args: Sequence[str],
) -> list[VerificationResult]:
    procs = (QUICK_PROCS if quick else PROCS)[library]
    try:
        version = find_installation(library, simgrid).version
    except CollwiseError as error:
        return [_failed(library, "", procs, error)]
    platform = load(_PLATFORM) if library == "smpi" else None
    limit = QUICK_TIME_LIMIT_SECONDS if quick else TIME_LIMIT_SECONDS

    def run(args: list[str], on_line: Callable[[str], None]) -> ProgramRun:
        return run_program(
            library, "verify", max(procs), args, platform=platform, simgrid=simgrid, launcher_args=launcher_args,
            timeout_seconds=limit, on_line=on_line,
        )  # fmt: skip

    return _verify(library, version, procs, options, run, on_progress)


def _failed(library: str, version: str, procs: tuple[int, ...], error: CollwiseError) -> VerificationResult:
    return VerificationResult(library, version, "", "", 0, 0, 1, " ".join(str(error).split()), procs)


def _verify(
    library: str,
    version: str,
    procs: tuple[int, ...],
    options: Sequence[str],
    run: Run,
    on_progress: Callable[[str], object],
) -> list[VerificationResult]:
    """The results of all algorithms; if an algorithm ends the program, the program runs again from the next one on."""
    records: list[dict[str, Any]] = []

    def follow(line: str) -> None:
        try:
            record = json.loads(line)
        except ValueError:
            return
        if isinstance(record, dict) and {"cases", "started", "finished"} & set(record):
            records.append(record)
            if "started" in record:
                call = f"{record['collective']} {record['algorithm']}, {record['started']}"
                on_progress(f"{library} {version}: {call}")

    def result(record: dict[str, Any], **more: Any) -> VerificationResult:
        names = ("collective", "algorithm", "cases", "skipped", "failures", "first_failure")
        missing = dict(zip(names, ("", "", 0, 0, 0, None), strict=True))
        found = {name: value for name, value in record.items() if name in missing}
        return VerificationResult(library, version, procs=procs, **{**missing, **found, **more})

    results: list[VerificationResult] = []
    while True:
        records.clear()
        try:
            ended = run(["--procs", ",".join(map(str, procs)), "--skip", str(len(results)), *options], follow)
        except CollwiseError as error:
            return [*results, _failed(library, version, procs, error)]
        results += [result(record) for record in records if "cases" in record]
        if any("finished" in record for record in records):
            return results
        culprit = records[-1] if records and "started" in records[-1] else {}
        problem = f"{culprit['started']}: {ended.problem}" if culprit else ended.problem
        results.append(result(culprit, failures=1, first_failure=problem))
        # Each test of isolation runs all algorithms, so an algorithm that breaks one of these tests breaks them all.
        if culprit.get("collective") in (None, "isolation"):
            return results


SECONDS = 20.0
"""The seconds that sequences run under each library, unless a user says otherwise."""
MAX_SEED = 2**32 - 1
_PROCS_IN_TURN = {"smpi": (4, 7, 2, 8, 3, 13, 5), "openmpi": (4, 7, 3, 5, 2, 8, 6), "mpich": (4, 3, 2)}
_CALLS, _PROCESSES_PER_NODE = 1000, 2
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
        choice = _PROCS_IN_TURN[self.installation.library]
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
                platform=load(_PLATFORM) if is_simulated else None, simgrid=simgrid,
                environment=environment, timeout_seconds=QUICK_TIME_LIMIT_SECONDS, **simulation,
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
    for algorithms in libcollwise; the collective is 'sequences', and cases are calls. The first failure ends the run;
    its text has the command that repeats the sequence. A missing library is a failure.
    """
    only = _only(collective, algorithm)
    try:
        installation = find_installation(library, smpi_version)
    except CollwiseError as error:
        return [_failed(library, "", (), error)]
    versions = ["--simgrid", smpi_version] if smpi_version else []
    again = " ".join(["collwise check algorithms --library", library, *only, *versions])
    made: list[_Outcome] = []
    end = time.monotonic() + seconds
    while not made or (not made[-1].problem and time.monotonic() < end):
        sequence = _Sequence(installation, (seed + len(made)) % (MAX_SEED + 1), tuple(only))
        on_progress(f"{installation.label}: {sequence}")
        made.append(sequence.run(smpi_version))
    by_way = grouped(made, lambda outcome: outcome.sequence.way)
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
    ranks = grouped(range(len(processes)), lambda rank: processes[rank].call)
    return "; ".join(f"rank {', '.join(map(str, those))} in {call}" for call, those in ranks.items()) or "at the start"
