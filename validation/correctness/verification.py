"""Verifies every algorithm on real data, under every MPI library, against the definition of its collective.

This module runs the program `verify` (simulator/programs/verify) and turns its lines into results. An algorithm that
hangs or crashes the run is one failed result, and the run resumes with the next algorithm.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import CollwiseError
from collwise.platforms import load
from collwise.simulator.execution.installations import find_installation
from collwise.simulator.execution.launchers import run_program
from collwise.simulator.execution.processes import ProgramRun
from collwise.simulator.execution.targets import ExecutionTarget
from collwise.simulator.sweeps.context import SMPI_SELECTED

# Communicator sizes. Waiting processes poll, so more real processes than cores are slow, most of all under MPICH.
PROCS = {
    "smpi": (*range(1, 18), 24, 32, 33, 48, 64),
    "openmpi": tuple(range(1, 9)),
    "mpich": tuple(range(1, 9)),
}
QUICK_PROCS = {"smpi": (1, 2, 3, 5, 8, 13), "openmpi": (1, 2, 3, 4, 5), "mpich": (1, 2, 3)}
TIME_LIMIT_SECONDS = 3600.0
QUICK_TIME_LIMIT_SECONDS = 300.0

PLATFORM = "gros"
"""The simulated platform. Any platform with enough nodes serves, since times do not matter here."""


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
        """True if there were cases and all were right.

        For tests of communicators and for sequences, skipped cases are enough, since an engine may lack what such a
        test needs, and an algorithm may apply to no call of a sequence.
        """
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

    `collective` and `algorithm` restrict what is verified. `on_progress` gets one line of text whenever the program
    turns to another algorithm or process count. An engine that is missing or breaks is a failed result. If mock-ups
    call SMPI's own collectives, `selector` names the selector by which these choose their algorithms.
    """
    options = [*only_options(collective, algorithm), *(["--quick"] if quick else [])]
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
    options = ["--by-node", "--quick", *only_options(collective, algorithm)]
    procs = (target.usual_procs,)

    def run(args: list[str], on_line: Callable[[str], None]) -> ProgramRun:
        return target.run("verify", max(procs), args, timeout_seconds=QUICK_TIME_LIMIT_SECONDS, on_line=on_line)

    return _verify(target.installation.library, target.installation.version, procs, options, run, on_progress)


def only_options(collective: str | None, algorithm: str | None) -> list[str]:
    """The program's options that restrict what is verified."""
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
        return [failed(library, "", procs, error)]
    platform = load(PLATFORM) if library == "smpi" else None
    limit = QUICK_TIME_LIMIT_SECONDS if quick else TIME_LIMIT_SECONDS

    def run(args: list[str], on_line: Callable[[str], None]) -> ProgramRun:
        return run_program(
            library, "verify", max(procs), args, platform=platform, simgrid=simgrid, launcher_args=launcher_args,
            timeout_seconds=limit, on_line=on_line,
        )  # fmt: skip

    return _verify(library, version, procs, options, run, on_progress)


def failed(library: str, version: str, procs: tuple[int, ...], error: CollwiseError) -> VerificationResult:
    """The result of a run that an error ended."""
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
            return [*results, failed(library, version, procs, error)]
        results += [result(record) for record in records if "cases" in record]
        if any("finished" in record for record in records):
            return results
        culprit = records[-1] if records and "started" in records[-1] else {}
        problem = f"{culprit['started']}: {ended.problem}" if culprit else ended.problem
        results.append(result(culprit, failures=1, first_failure=problem))
        # Each test of isolation runs all algorithms, so an algorithm that breaks one of these tests breaks them all.
        if culprit.get("collective") in (None, "isolation"):
            return results
