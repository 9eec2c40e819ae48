"""MPICH's tests of collectives, without libcollwise.so and with it: what fails that did not fail before.

    .venv/bin/python benchmarks/mpich_tests.py [--library NAMES] [--collective NAMES] [--algorithms CHOICES]
        [--tests NAMES] [--counted] [--limit SECONDS] [--max-procs N] [--simgrid VERSION] [--show N] [-o FILE]

The tests are in the source package of SimGrid, which PyPI has. They are downloaded to the user's cache and built there,
once for each library. Each test of a collective runs with MPI's own algorithm, and then once for each choice of ours:
an algorithm, with each `within`, and in segments of 1000 bytes if it has any. CHOICES are written as in
COLLWISE_ALGORITHMS, with ';' between them ("tasks_chain,within=1;chain"). With --counted libcollwise counts its calls:
the table then says how many calls ran the choice and why others did not, but calls that repeat the last one do not take
their short path.

Exit code 0 if each test that passes by itself passes with all choices, 1 if not. --show limits the failures of each
choice that are listed; -o writes all of them as JSON, with the last lines of what the tests printed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from collwise.algorithms.catalogue import Algorithm, Catalogue
from collwise.algorithms.catalogue_check import MAX_COUNTS
from collwise.common.errors import CollwiseError, UsageError, check_name
from collwise.common.folders import cache_folder
from collwise.platforms import load
from collwise.simulator.execution.installations import Installation, find_installation, locked
from collwise.simulator.execution.interposed import LIBRARIES, LIBRARY, LibraryOptions, preloadable
from collwise.simulator.execution.launchers import mpirun_command
from collwise.simulator.execution.processes import ProgramRun, run_command
from collwise.simulator.execution.profiles import read_profile
from collwise.simulator.execution.simgrid_build import download_source
from collwise.simulator.execution.smpirun import SMPI_OPTIONS, smpi_files, smpirun_command, smpirun_environment
from collwise.studies.reports.markdown import markdown_table

SOURCE_VERSION = "4.1"
TESTS = Path("teshsuite/smpi/mpich3-test")
# Tests whose program is made of the file of another name.
FILES = {"reduce_mpich": "reduce", "bcast_full": "bcast"}
COMMON = ("mtest", "mtest_datatype", "mtest_datatype_gen", "dtypes")
HEADER = Path(__file__).with_suffix(".h")
YIELDING = Path(__file__).resolve().parents[1] / "tests" / "yielding.c"
PLATFORM, PER_NODE = "dahu", 3
# Open MPI 4.1's sums by vector instructions saturate where those of 8-bit integers overflow, and 'allred 100' fails.
OPENMPI_PARAMETERS = {"op": "^avx"}
SEGMENT_BYTES = 1000
PASSED = re.compile(r"^\s*(No Errors|Test Passed)\s*$", re.I)
LINES_KEPT = 12


@dataclass(frozen=True)
class MpichTest:
    """A line of MPICH's list of tests."""

    name: str
    procs: int
    args: tuple[str, ...]

    @property
    def title(self) -> str:
        return " ".join([self.name, *self.args, f"({self.procs})"])


@dataclass
class Outcome:
    """How a choice did on the tests of its collective; that of MPI's own algorithm has an empty choice."""

    library: str
    collective: str
    choice: str
    tests: int = 0
    calls: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    failures: dict[str, str] = field(default_factory=dict)
    output: dict[str, list[str]] = field(default_factory=dict)


def unpacked_tests() -> Path:
    """The folder of the tests in the user's cache; it is made from SimGrid's source package if it is missing."""
    folder = cache_folder() / f"mpich-tests-{SOURCE_VERSION}"
    with locked(folder, "another download of MPICH's tests"):
        if not (folder / "coll" / "testlist").exists():
            with tempfile.TemporaryDirectory(dir=cache_folder()) as temporary:
                work = Path(temporary, "simgrid")
                download_source(SOURCE_VERSION, work, cache_folder() / f"{folder.name}.log")
                (work / "source" / TESTS).rename(folder)
    return folder


def listed_tests(folder: Path) -> list[MpichTest]:
    """The tests that MPICH's list names, without those that it has commented out."""
    found = []
    for line in (folder / "coll" / "testlist").read_text(encoding="utf-8").splitlines():
        name, *rest = line.split("#")[0].split() or [""]
        if name:
            args = tuple(word.removeprefix("arg=") for word in rest[1:] if word.startswith("arg="))
            found.append(MpichTest(name, int(rest[0]), args))
    return found


def source_of(folder: Path, test: MpichTest) -> Path:
    return folder / "coll" / f"{FILES.get(test.name, test.name)}.c"


def tests_of(collective: str, folder: Path, tests: Sequence[MpichTest]) -> list[MpichTest]:
    """Those tests whose own file calls the collective."""
    call = re.compile(rf"\b(MPI|MTest)_{collective.capitalize()}\s*\(")
    text = {test.name: source_of(folder, test).read_text(encoding="utf-8", errors="replace") for test in tests}
    return [test for test in tests if call.search(text[test.name])]


def choices_of(algorithm: Algorithm, library: str) -> list[str]:
    """The algorithm with each form of communication within nodes, in segments that only long messages have more of."""
    within = [""]
    if algorithm.count_parameter == "within" and library != "smpi":  # whose processes share no windows
        within += [f",within={form}" for form in range(1, MAX_COUNTS["within"] + 1)]
    segments = f",segment_bytes={SEGMENT_BYTES}" if algorithm.pipelined else ""
    return [f"{algorithm.name}{form}{segments}" for form in within]


class Runner:
    """Builds the tests for a library and runs them."""

    def __init__(self, mpi: Installation, tests: Path, scratch: Path, limit_seconds: float) -> None:
        self.mpi, self.tests, self.scratch, self.limit_seconds = mpi, tests, scratch, limit_seconds
        self.programs = tests / f"build-{mpi.library}-{mpi.version}"
        self.programs.mkdir(exist_ok=True)
        self.preloaded = preloadable(mpi.program(LIBRARY), scratch)
        self.others: list[str] = []
        if mpi.library == "mpich":
            self.others.append(str(self._built("libyielding.so", ["-shared", "-fPIC", str(YIELDING), "-ldl"])))
        self.common = [str(self._built(f"{name}.o", ["-c", str(tests / "util" / f"{name}.c")])) for name in COMMON]

    def _built(self, name: str, words: Sequence[str]) -> Path:
        path = self.programs / name
        if not path.exists() or path.stat().st_mtime < HEADER.stat().st_mtime:
            made = path.with_suffix(".new")
            options = ["-w", "-O1", f"-I{self.tests / 'include'}", "-include", str(HEADER), "-o", str(made)]
            command = [str(self.mpi.build.compiler), *words, *options]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise CollwiseError(f"MPICH's {name} cannot be built for {self.mpi.label}: {done.stderr[:300]}")
            made.rename(path)
        return path

    def program(self, test: MpichTest) -> Path:
        """The built program of a test."""
        return self._built(test.name, [str(source_of(self.tests, test)), *self.common, "-lm"])

    @contextlib.contextmanager
    def _command(self, test: MpichTest, settings: dict[str, str]) -> Iterator[tuple[list[str], dict[str, str]]]:
        """The command of a test, with libcollwise if there are settings for it, and its environment."""
        program = self.program(test)
        if self.mpi.library == "smpi":
            # SimGrid loads programs in a way of its own, unless libcollwise is there: jemalloc needs that.
            quick = smpirun_environment(self.mpi) if settings else {}
            wrapper = f"env LD_PRELOAD={':'.join([self.preloaded, *quick.values()])}" if settings else ""
            options = {name: value for name, value in SMPI_OPTIONS.items() if name != "smpi/wtime"}
            with smpi_files(load(PLATFORM), test.procs, PER_NODE) as files:
                words = smpirun_command(
                    self.mpi, files, test.procs, program, privatize=True, wrapper=wrapper, options=options
                )
                yield [*words, *test.args], settings | quick
        else:
            libraries = [*([self.preloaded] if settings else []), *self.others]
            preload = {"LD_PRELOAD": ":".join(libraries)} if libraries else {}
            mpirun = mpirun_command(self.mpi, test.procs, environment=settings | preload, parameters=OPENMPI_PARAMETERS)
            yield [*mpirun.words, str(program), *test.args], dict(mpirun.environment)

    def run(self, test: MpichTest, settings: dict[str, str]) -> ProgramRun:
        """One run; its processes have ended when this returns."""
        with self._command(test, settings) as (words, environment):
            return run_command(words, timeout_seconds=self.limit_seconds, environment=environment)

    def add(self, outcome: Outcome, test: MpichTest, counted: bool) -> None:
        """Runs a test with the outcome's choice and adds how it went."""
        settings, report = {}, self.scratch / "report.json"
        if outcome.choice:
            settings = {"COLLWISE_ALGORITHMS": f"{outcome.collective}={outcome.choice}"}
            settings |= {"COLLWISE_REPORT": str(report)} if counted else {}
        report.unlink(missing_ok=True)
        done = self.run(test, settings)
        outcome.tests += 1
        if failure := failure_of(done):
            outcome.failures[test.title] = failure
            outcome.output[test.title] = [*done.output_lines, *done.telling_lines][-LINES_KEPT:]
        if report.exists():
            for row in read_profile(report).rows:
                if row.collective == outcome.collective:
                    outcome.calls += row.calls if row.algorithm else 0
                    outcome.reasons += Counter({} if row.algorithm else {row.mpis_own: row.calls})

    def check_loaded(self, test: MpichTest) -> None:
        """Raises CollwiseError unless a test runs with libcollwise."""
        marker = self.scratch / "marker"
        self.run(test, {"COLLWISE_ALGORITHMS": "bcast=binomial", "COLLWISE_LOAD_MARKER": str(marker)})
        if not marker.exists():
            raise CollwiseError(f"{test.title} under {self.mpi.label} did not load libcollwise")


def failure_of(run: ProgramRun) -> str:
    """What is wrong with the run of a test, in few words; empty if it passed."""
    if run.returncode is None:
        return "does not end"
    if run.returncode == 0 and any(PASSED.match(line) for line in run.output_lines):
        return ""
    found = next((line.strip() for line in run.output_lines if re.search(r"[Ff]ound \d+ errors", line)), "")
    return found or run.problem


def asked_choices(options: argparse.Namespace, collective: str, library: str) -> list[str]:
    """The choices of a collective: those that were asked for, or all that run on the library."""
    known = Catalogue.load().collective(collective).algorithms
    if options.algorithms == "all":
        every = [one for one in known.values() if library != "smpi" or not one.real_mpi_only]
        return [choice for one in every for choice in choices_of(one, library)]
    return [choice.strip() for choice in options.algorithms.split(";") if choice.split(",")[0].strip() in known]


def outcomes(options: argparse.Namespace, library: str, folder: Path) -> Iterator[Outcome]:
    """The outcomes of all choices under a library, after each collective's that of MPI's own algorithm."""
    tests = [test for test in listed_tests(folder) if options.tests is None or test.name in options.tests]
    tests = [MpichTest(test.name, min(test.procs, options.max_procs), test.args) for test in tests]
    with tempfile.TemporaryDirectory(prefix="collwise-") as scratch:
        runner = Runner(find_installation(library, options.simgrid), folder, Path(scratch), options.limit)
        runner.check_loaded(tests[0])
        plain: dict[MpichTest, Outcome] = {}
        for collective in options.collective:
            own = Outcome(library, collective, "")
            its_tests = list(dict.fromkeys(tests_of(collective, folder, tests)))
            for test in its_tests:
                if test not in plain:
                    plain[test] = Outcome(library, "", "")
                    runner.add(plain[test], test, options.counted)
                own.tests += 1
                own.failures |= plain[test].failures
                own.output |= plain[test].output
            yield own
            for choice in asked_choices(options, collective, library):
                outcome = Outcome(library, collective, choice)
                for test in its_tests:
                    runner.add(outcome, test, options.counted)
                yield outcome


def new_failures(outcome: Outcome, own: Outcome) -> dict[str, str]:
    """The failures of a choice on tests that pass without us."""
    return {title: text for title, text in outcome.failures.items() if title not in own.failures}


def row_of(outcome: Outcome, own: Outcome, options: argparse.Namespace) -> list[str]:
    """A row of the table."""
    failures = outcome.failures if outcome is own else new_failures(outcome, own)
    shown = [f"{title}: {text[:80]}" for title, text in list(failures.items())[: options.show]]
    more = [f"{len(failures) - options.show} more"] if len(failures) > options.show else []
    reasons = ", ".join(f"{calls} {reason}" for reason, calls in outcome.reasons.most_common(3))
    counts = [str(outcome.calls), reasons] if options.counted else []
    return [outcome.collective, outcome.choice or "MPI's own", str(outcome.tests), *counts, "; ".join([*shown, *more])]


def parsed(words: Sequence[str] | None = None) -> argparse.Namespace:
    """The options. Exits with 2 for wrong ones."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", default="openmpi,mpich,smpi", help="some of openmpi, mpich and smpi")
    parser.add_argument("--collective", default="all", help="names, or all")
    parser.add_argument("--algorithms", default="all", metavar="CHOICES", help="choices with ';' between them, or all")
    parser.add_argument("--tests", type=lambda text: text.split(","), metavar="NAMES", help="only these tests")
    parser.add_argument("--counted", action="store_true", help="let libcollwise count its calls")
    parser.add_argument("--limit", type=float, default=120.0, metavar="SECONDS", help="of each test")
    parser.add_argument("--max-procs", type=int, default=64, metavar="N", help="tests of more processes run on N")
    parser.add_argument("--simgrid", metavar="VERSION", help="the SimGrid that smpi is; by default the system's")
    parser.add_argument("--show", type=int, default=5, metavar="N", help="failures of each choice that are listed")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="all failures, as JSON")
    options = parser.parse_args(words)
    known = Catalogue.load().collectives
    try:
        options.library = options.library.split(",")
        options.collective = list(known) if options.collective == "all" else options.collective.split(",")
        for library in options.library:
            check_name("library", library, LIBRARIES)
        for name in options.collective:
            check_name("collective", name, list(known))
        check_choices(options)
    except UsageError as problem:
        parser.error(str(problem))
    return options


def check_choices(options: argparse.Namespace) -> None:
    """Raises UsageError for a choice that none of the collectives has, or that libcollwise would reject."""
    choices = [choice.strip() for choice in options.algorithms.split(";")] if options.algorithms != "all" else []
    names = [name for collective in options.collective for name in Catalogue.load().collective(collective).algorithms]
    for choice in choices:
        check_name("algorithm", choice.split(",")[0], list(dict.fromkeys(names)))
    for collective in options.collective:
        for choice in asked_choices(options, collective, "openmpi"):
            LibraryOptions(algorithms=f"{collective}={choice}").check()


def main() -> int:
    options = parsed()
    cache_folder().mkdir(parents=True, exist_ok=True)
    found: list[Outcome] = []
    failed = 0
    try:
        folder = unpacked_tests()
        names = [test.name for test in listed_tests(folder)]
        for name in options.tests or ():
            check_name("test", name, list(dict.fromkeys(names)))
        for library in options.library:
            print(f"\n{find_installation(library, options.simgrid).label}\n")
            rows, own = [], Outcome(library, "", "")
            for outcome in outcomes(options, library, folder):
                own = own if outcome.choice else outcome
                found.append(outcome)
                failed += len(new_failures(outcome, own)) if outcome.choice else 0
                rows.append(row_of(outcome, own, options))
                print(" | ".join(rows[-1]), file=sys.stderr, flush=True)
            counts = ["calls of ours", "MPI's own"] if options.counted else []
            print(markdown_table(["collective", "algorithm", "tests", *counts, "failures"], rows))
    except UsageError as problem:
        print(problem, file=sys.stderr)
        return 2
    except CollwiseError as problem:
        print(problem, file=sys.stderr)
        return 1
    finally:
        if options.output is not None:
            options.output.write_text(json.dumps([vars(one) for one in found], indent=1), encoding="utf-8")
    print(f"\n{failed} failures that do not occur without libcollwise")
    return 0 if failed == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
