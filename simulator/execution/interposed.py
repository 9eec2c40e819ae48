"""Runs an unmodified MPI program with libcollwise.so in place of MPI's collectives, and verifies that it is loaded.

At MPI_Init the library writes a load marker. A run that succeeds without writing one is reported as an error.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from collwise.algorithms.catalogue import Catalogue
from collwise.algorithms.catalogue_check import MAX_COUNTS, MIN_COUNTS
from collwise.common.errors import CollwiseError, UsageError, check_name, located, note
from collwise.common.files import read_text
from collwise.common.units import counted
from collwise.platforms import HostPlatform
from collwise.simulator.execution.installations import Installation, find_installation
from collwise.simulator.execution.launchers import mpirun_command, warn_if_crowded
from collwise.simulator.execution.processes import run_attached
from collwise.simulator.execution.profiles import read_profile
from collwise.simulator.execution.smpirun import SMPI_OPTIONS, smpi_files, smpirun_command, smpirun_environment

LIBRARY = "libcollwise.so"
LIBRARIES = ("smpi", "openmpi", "mpich")
# Programs of this project that can be given by their bare name.
_OUR_PROGRAMS = ("latency", "asp", "matmul", "training")
# SimGrid's default of 10 ns for each reading of the clock stays, since otherwise programs that poll it would never end.
_OPTIONS = {name: value for name, value in SMPI_OPTIONS.items() if name != "smpi/wtime"}
_GRACE_SECONDS = 10.0
# Prefixes of the names of shared libraries that programs for each MPI implementation depend on. Fortran programs may
# depend on the libraries of the Fortran interface alone.
_BUILT_FOR = {
    "smpi": ("libsimgrid.so",),
    "openmpi": ("libmpi.so.40", "libmpi_mpifh.so", "libmpi_usempi"),
    "mpich": ("libmpich.so", "libmpichfort.so"),
}
_COLUMNS = "collective procs processes_per_node message_bytes algorithm [PARAMETER=N]..."


@dataclass(frozen=True)
class LibraryOptions:
    """Options of libcollwise: a table, an algorithm per collective, a report."""

    table: Path | None = None
    algorithms: str = ""  # such as 'bcast=binomial;barrier=bruck'
    report: str = ""  # '1' for stderr, otherwise the file that gets the report

    def check(self) -> None:
        """Raises UsageError for a table or a list of algorithms that the library would reject."""
        if self.table is not None:
            _check_table(self.table)
        for number, entry in enumerate(self.algorithms.split(";"), start=1):
            if entry.strip():
                with located(f"--algorithms: entry {number}"):
                    collective, equals, choice = _our_entry(entry).partition("=")
                    if not equals:
                        raise UsageError(f"'{entry.strip()}' is not COLLECTIVE=ALGORITHM")
                    algorithm, *parameters = (word.strip() for word in choice.split(","))
                    _check_choice(collective, algorithm, parameters)

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables that the library reads."""
        variables = {
            "COLLWISE_TABLE": str(self.table) if self.table is not None else "",
            "COLLWISE_ALGORITHMS": ";".join(map(_our_entry, self.algorithms.split(";"))),
            "COLLWISE_REPORT": self.report,
        }
        return {name: value for name, value in variables.items() if value}


def _our_entry(entry: str) -> str:
    """An entry such as 'MPI_Bcast=binomial' with our name of the collective."""
    collective, equals, choice = entry.partition("=")
    return Catalogue.load().our_name(collective.strip()) + equals + choice


def _check_table(path: Path) -> None:
    with located("--table"):
        if path.suffix == ".gz":
            raise UsageError(f"{path} is compressed, which libcollwise does not read; unpack it")
        rules = _rules_in(path)
    for number, words in rules.items():
        with located(f"--table: {path}:{number}"):
            if len(words) < 5:
                how = "; rules for Open MPI are no table, 'collwise export --format collwise' makes one"
                theirs = how if words[0].isdecimal() else ""
                raise UsageError(f"{len(words)} of 5 columns; a rule is: {_COLUMNS}{theirs}")
            _check_number("procs", words[1], 1)
            _check_number("processes_per_node", words[2], 1)
            _check_number("message_bytes", words[3], 0)
            _check_choice(words[0], words[4], words[5:])


def _rules_in(path: Path) -> dict[int, list[str]]:
    """The words of each rule of a table, by the number of its line."""
    lines = read_text(path).splitlines()
    return {number: words for number, line in enumerate(lines, 1) if (words := line.split("#")[0].split())}


def _check_choice(collective: str, algorithm: str, parameters: Sequence[str]) -> None:
    known = Catalogue.load().collective(collective).algorithms
    check_name(f"{collective} algorithm", algorithm, ("default", *known))
    valid = known[algorithm].parameters if algorithm in known else ()
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name not in valid:
            raise UsageError(f"{algorithm} has no parameter '{name}'; valid: {', '.join(valid) or 'none'}")
        _check_number(name, value, MIN_COUNTS.get(name, 0), MAX_COUNTS.get(name))


def _check_number(name: str, word: str, least: int, most: int | None = None) -> None:
    if not (word.isascii() and word.isdigit() and least <= int(word) <= (int(word) if most is None else most)):
        valid = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise UsageError(f"{name} is '{word}'; it must be a whole number {valid}")


def find_program(name: str, mpi: Installation) -> Path:
    """The file of that name, our own program, or the program on the PATH."""
    if Path(name).is_file():
        return Path(name).absolute()
    if name in _OUR_PROGRAMS:
        return mpi.program(name)
    found = shutil.which(name)
    if found is None:
        raise UsageError(f"no program '{name}'; valid: a file, {', '.join(_OUR_PROGRAMS)}, or a program on the PATH")
    return Path(found)


def check_program(program: Path, library: str) -> None:
    """Raises UsageError for a file that cannot be executed, or that was not built for the library."""
    if not os.access(program, os.X_OK):
        raise UsageError(f"{program} is not an executable program (compile it, or chmod +x)")
    command = ["readelf", "--file-header", "--dynamic", "--wide", str(program)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | {"LC_ALL": "C"})
    except OSError:  # without readelf the run itself shows what is wrong
        return
    built_for = [of for of, names in _BUILT_FOR.items() if any(f"[{name}" in done.stdout for name in names)]
    if built_for and library not in built_for:
        raise UsageError(f"{program} is built for {built_for[0]}, not for {library}")
    if library == "smpi" and not _is_shared_object(done.stdout):
        raise UsageError(f"{program} was not built by smpicc: SMPI cannot run interpreters, scripts or other programs")


def _is_shared_object(description: str) -> bool:
    """True if readelf describes a shared object, which smpicc makes and the simulator loads for each process."""
    # Dependencies prove nothing: linkers omit SimGrid's library if only a library of the program calls MPI.
    is_executable = re.search(r"\(FLAGS_1\).*\bPIE\b", description) is not None
    return re.search(r"Type: +DYN\b", description) is not None and not is_executable


def run_interposed(
    library: str,
    program: str,
    args: Sequence[str] = (),
    *,
    procs: int,
    options: LibraryOptions,
    platform: HostPlatform | None = None,
    processes_per_node: int = 1,
    simgrid: str | None = None,
    plain: bool = False,
) -> int:
    """Runs the program with our standard streams and returns its exit code; `plain` runs it without libcollwise.

    If no report is requested and no call used a rule of the table, a note says so; under SMPI, the note appears only if
    no rule can apply. Raises UsageError when the MPI library, the program or the platform is missing or unsuitable, and
    CollwiseError when the program succeeds without having called libcollwise.
    """
    mpi = find_installation(library, simgrid, procs)
    binary = find_program(program, mpi)
    check_program(binary, library)
    with tempfile.TemporaryDirectory(prefix="collwise-") as directory, contextlib.ExitStack() as files:
        preloaded = "" if plain else preloadable(mpi.program(LIBRARY), Path(directory))
        marker, counted_calls = Path(directory, "load_marker"), Path(directory, "calls.json")
        watched = options.table if not plain and not options.report else None
        if watched is not None and library != "smpi":  # under SMPI, reading the clock would take simulated time
            options = replace(options, report=str(counted_calls))
        settings = {} if plain else options.environment | {"COLLWISE_LOAD_MARKER": str(marker)}
        if library == "smpi":
            if platform is None:
                raise UsageError("running under SMPI needs --platform NAME|FILE (see 'collwise platforms show')")
            # SimGrid 3.32 loads some programs in a way that mixes two allocators if jemalloc is preloaded. libcollwise
            # changes how programs are loaded, so jemalloc is preloaded only together with libcollwise.
            quick = {} if plain else smpirun_environment(mpi)
            wrapper = f"env LD_PRELOAD={_joined(preloaded, quick.get('LD_PRELOAD', ''))}" if preloaded else ""
            paths = files.enter_context(smpi_files(platform, procs, processes_per_node))
            words = smpirun_command(mpi, paths, procs, binary, privatize=True, wrapper=wrapper, options=_OPTIONS)
            environment = settings | quick
        else:
            warn_if_crowded(procs)
            others = os.environ.get("LD_PRELOAD", "")
            variables = settings | ({"LD_PRELOAD": _joined(preloaded, others)} if preloaded else {})
            mpirun = mpirun_command(mpi, procs, environment=variables)
            words, environment = [*mpirun.words, str(binary)], {**mpirun.environment, **settings}
        if not plain and options.table is not None and (line := row_taken_for(options.table, procs)):
            note(line)
        what = f"the simulation of {program} with {procs} processes" if library == "smpi" else ""
        code = run_attached([*words, *args], environment, _GRACE_SECONDS, what=what)
        if code == 0 and not plain and not marker.exists():
            built = f"was the program built by the smpicc of {mpi.label}?"
            linked = "is MPI linked statically, or was the program built for another MPI?"
            raise CollwiseError(
                f"libcollwise was asked for, but {binary} ended without calling it: "
                f"{built if library == 'smpi' else linked}"
            )
        if watched is not None and code == 0:
            per_node = processes_per_node if library == "smpi" else procs
            if why := no_rule_for(watched, procs, per_node) or _unused(counted_calls):
                note(f"no call of the program used a rule of {watched}: {why}")
    return code


def decided_line(collective: str, procs: Sequence[int]) -> str:
    """The line of a table that says for which process counts the rules of a collective were decided."""
    return f"# decided: {collective} {' '.join(map(str, procs))}"


def row_taken_for(table: Path, procs: int) -> str:
    """A line that says which rows for other process counts a run uses; empty if it uses none."""
    decided: dict[str, set[int]] = {}
    lines = re.findall(r"^# decided: (\w+) ([0-9][0-9 ]*)$", table.read_text(encoding="utf-8"), re.M)
    for collective, counts in lines:
        decided.setdefault(collective, set()).update(map(int, counts.split()))
    taken: dict[int, list[str]] = {}
    for collective, known in decided.items():
        if procs not in known and min(known) < procs:
            taken.setdefault(max(count for count in known if count < procs), []).append(collective)
    if not taken:
        return ""
    rows = "; ".join(f"{', '.join(names)}: P = {count}" for count, names in taken.items())
    return f"{table} was not decided for P = {procs}, so that calls on all processes use rows for another P ({rows})"


def no_rule_for(table: Path, procs: int, processes_per_node: int) -> str:
    """The reason why no rule of a table can apply to a run; empty if a rule may apply."""
    rules = [words for words in _rules_in(table).values() if len(words) >= 5]
    if not rules:
        return "the table has no rules"
    if all(words[4] == "default" for words in rules):
        return "all its rules say default"
    here = [words for words in rules if int(words[1]) <= procs]
    if not here:
        least = min(int(words[1]) for words in rules)
        return f"its rules begin at {least} processes, and the run has {procs}"
    per_node = min(int(words[2]) for words in here)
    most = min(processes_per_node, procs)
    if per_node > most:
        return f"its rules for up to {procs} processes are for {per_node} and more per node, and the run has {most}"
    return ""


def _unused(report: Path) -> str:
    """The reason why no call used a rule, from the run's report; empty if a call did, or there is no report."""
    if not report.exists():
        return ""
    rows, reasons = read_profile(report).rows, Counter[str]()
    if any(row.algorithm for row in rows):
        return ""
    for row in rows:
        reasons[row.mpis_own] += row.calls
    return "; ".join(f"{counted(calls, 'call')}: {why}" for why, calls in reasons.most_common()) or "it made no calls"


def following_rules(rules: str, library: Path, folder: Path) -> dict[str, str]:
    """The variables that preload libcollwise and let it follow `rules`, a table that is written into `folder`."""
    table = folder / "rules"
    table.write_text(rules, encoding="utf-8")
    return {"LD_PRELOAD": preloadable(library, folder), **LibraryOptions(table).environment}


def preloadable(path: Path, directory: Path) -> str:
    """The library's path if LD_PRELOAD accepts it, otherwise a link in `directory`, without blanks or colons."""
    if not set(str(path)) & set(" :"):
        return str(path)
    link = directory / path.name
    if set(str(link)) & set(" :"):
        raise UsageError(f"{link} cannot be preloaded: LD_PRELOAD cannot have paths with blanks or colons; set TMPDIR")
    link.symlink_to(path)
    return str(link)


def _joined(first: str, others: str) -> str:
    return f"{first}:{others}" if others else first
