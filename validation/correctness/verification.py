"""Verifies every algorithm on real data, under every MPI library, against the definition of its collective.

This module runs the program `verify` (simulator/programs/verify) and turns its lines into results. An algorithm that
hangs or crashes the run is one failed result, and the run resumes after it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from collwise.common.errors import CollwiseError
from collwise.platforms import load
from collwise.simulator.execution.installations import find_installation
from collwise.simulator.execution.local_machine import run_program
from collwise.simulator.execution.processes import ProgramRun

# Communicator sizes. Polling makes more real processes than cores slow, MPICH's most of all.
PROCS = {
    "smpi": (*range(1, 18), 24, 32, 33, 48, 64),
    "openmpi": tuple(range(1, 9)),
    "mpich": tuple(range(1, 9)),
}
QUICK_PROCS = {"smpi": (1, 2, 3, 5, 8, 13), "openmpi": (1, 2, 3, 4, 5), "mpich": (1, 2, 3)}
TIME_LIMIT_SECONDS = 3600.0
QUICK_TIME_LIMIT_SECONDS = 300.0

# Any platform with enough nodes serves: times do not matter here.
_PLATFORM = "gros"


@dataclass(frozen=True)
class VerificationResult:
    """One algorithm under one MPI library. `failures` counts failed cases; a run that breaks off counts as one.

    `skipped` counts further cases, to which the algorithm does not apply. The tests of communicators have the
    collective 'isolation'; where an engine does not run at all, collective and algorithm are empty.
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
        """Whether there were cases and all were right. An engine may lack what a test of communicators needs."""
        not_offered = self.collective == "isolation" and self.skipped > 0
        return self.failures == 0 and (self.cases > 0 or not_offered)


@dataclass
class _Output:
    """The output of the program in one run."""

    reports: list[dict] = field(default_factory=list)
    last_started: dict | None = None
    finished: bool = False

    def read(self, line: str) -> dict:
        """Reads one line and returns its record, {} if it is none of the program's records."""
        try:
            record = json.loads(line)
        except ValueError:
            return {}
        if not isinstance(record, dict):
            return {}
        if "cases" in record:
            self.reports.append(record)
            self.last_started = None
        elif "started" in record:
            self.last_started = record
        elif "finished" in record:
            self.finished = True
        return record


def verify(
    engines: Sequence[str],
    collective: str | None = None,
    algorithm: str | None = None,
    quick: bool = False,
    on_progress: Callable[[str], None] | None = None,
    *,
    smpi_version: str | None = None,
) -> list[VerificationResult]:
    """Runs the verification under 'smpi', 'openmpi' and 'mpich', whichever are in `engines`.

    `collective` and `algorithm` narrow it down. `on_progress` gets one line of text whenever the program turns to
    another algorithm or process count.
    """
    results = []
    for library in engines:
        task = _Verification(library, collective, algorithm, quick, on_progress, smpi_version)
        results += task.results()
    return results


@dataclass
class _Verification:
    """The verification under one engine."""

    library: str
    collective: str | None
    algorithm: str | None
    quick: bool
    on_progress: Callable[[str], None] | None
    smpi_version: str | None
    version: str = ""

    @property
    def procs(self) -> tuple[int, ...]:
        return (QUICK_PROCS if self.quick else PROCS)[self.library]

    def results(self) -> list[VerificationResult]:
        """One result an algorithm. Does not raise when the engine is missing or breaks: that is a failed result."""
        results: list[VerificationResult] = []
        while True:
            output = _Output()
            try:
                self.version = find_installation(self.library, self.smpi_version).version
                run = self._run(output, skip=len(results))
            except CollwiseError as error:
                return [*results, self._broken({}, " ".join(str(error).split()))]
            results += [self._result(record) for record in output.reports]
            if output.finished:
                return results
            culprit = output.last_started or {}
            results.append(self._broken(culprit, _describe_end(culprit, run)))
            # The tests of isolation run all algorithms: one that breaks a run would break each of them.
            if culprit.get("collective") in (None, "isolation"):
                return results

    def _run(self, output: _Output, skip: int) -> ProgramRun:
        arguments = ["--procs", ",".join(map(str, self.procs)), "--skip", str(skip)]
        if self.collective:
            arguments += ["--collective", self.collective]
        if self.algorithm:
            arguments += ["--algorithm", self.algorithm]
        if self.quick:
            arguments.append("--quick")

        def follow(line: str) -> None:
            record = output.read(line)
            if self.on_progress is not None and "started" in record:
                call = f"{record['collective']} {record['algorithm']}, {record['started']}"
                self.on_progress(f"{self.library} {self.version}: {call}")

        return run_program(
            self.library,
            "verify",
            max(self.procs),
            arguments,
            platform=load(_PLATFORM) if self.library == "smpi" else None,
            simgrid=self.smpi_version if self.library == "smpi" else None,
            timeout_seconds=QUICK_TIME_LIMIT_SECONDS if self.quick else TIME_LIMIT_SECONDS,
            on_line=follow,
        )

    def _result(self, record: dict) -> VerificationResult:
        return VerificationResult(
            engine=self.library,
            version=self.version,
            collective=record.get("collective", ""),
            algorithm=record.get("algorithm", ""),
            cases=record.get("cases", 0),
            skipped=record.get("skipped", 0),
            failures=record.get("failures", 0),
            first_failure=record.get("first_failure"),
            procs=self.procs,
        )

    def _broken(self, culprit: dict, message: str) -> VerificationResult:
        return self._result({**culprit, "cases": 0, "failures": 1, "first_failure": message})


def _describe_end(culprit: dict, run: ProgramRun) -> str:
    return f"{culprit['started']}: {run.problem}" if culprit else run.problem
