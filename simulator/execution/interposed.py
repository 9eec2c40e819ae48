"""Runs an unmodified MPI program with libcollwise.so in place of MPI's collectives, and verifies that it is loaded.

The library is preloaded: by mpirun into each process, by smpirun into the simulator. At MPI_Init it writes a load
marker. A run that succeeds without one did not use the library, and is reported as an error.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from collwise.algorithms.catalogue import COUNT_PARAMETERS, Catalogue
from collwise.common.errors import CollwiseError, UsageError, unknown_name
from collwise.platforms import HostPlatform
from collwise.simulator.execution.installations import Installation, engine
from collwise.simulator.execution.processes import (
    SMPI_OPTIONS,
    smpi_command,
    smpi_environment,
    smpi_files,
    warn_if_crowded,
)

LIBRARY = "libcollwise.so"
ENGINES = ("smpi", "openmpi", "mpich")
_OURS = ("latency",)  # programs of this project that can be given by their bare name
# SimGrid's default of 10 ns a clock reading stays: programs that poll the clock would otherwise never end.
_OPTIONS = {name: value for name, value in SMPI_OPTIONS.items() if name != "smpi/wtime"}
_GRACE_SECONDS = 10.0
# The shared library that programs built for an engine depend on.
_BUILT_FOR = {"smpi": "libsimgrid.so", "openmpi": "libmpi.so.40", "mpich": "libmpich.so"}
_COLUMNS = "collective procs processes_per_node message_bytes algorithm [PARAMETER=N]..."


@dataclass(frozen=True)
class LibraryOptions:
    """The library's options: a table, an algorithm per collective ('bcast=binomial;barrier=bruck'), a report."""

    table: Path | None = None
    algorithms: str = ""
    report: bool = False

    def check(self) -> None:
        """Raises UsageError for a table or a list of algorithms that the library would reject."""
        if self.table is not None:
            _check_table(self.table)
        for number, entry in enumerate(self.algorithms.split(";"), start=1):
            if entry.strip():
                _check_entry(entry, f"entry {number}")

    @property
    def environment(self) -> dict[str, str]:
        """The variables that the library reads."""
        variables = {
            "COLLWISE_TABLE": str(self.table) if self.table is not None else "",
            "COLLWISE_ALGORITHMS": self.algorithms,
            "COLLWISE_REPORT": "1" if self.report else "",
        }
        return {name: value for name, value in variables.items() if value}


def _check_table(path: Path) -> None:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else "not a text file"
        raise UsageError(f"--table: {path}: {reason}") from None
    for number, line in enumerate(lines, start=1):
        words = line.split("#")[0].split()
        if not words:
            continue
        place = f"{path}:{number}"
        if len(words) < 5:
            raise UsageError(f"--table: {place}: {len(words)} of 5 columns; a rule is: {_COLUMNS}")
        with _located(f"--table: {place}"):
            for name, word, least in zip(
                ("procs", "processes_per_node", "message_bytes"), words[1:4], (1, 1, 0), strict=True
            ):
                _check_number(name, word, least)
            _check_choice(words[0], words[4], words[5:])


def _check_entry(entry: str, place: str) -> None:
    collective, equals, choice = entry.partition("=")
    with _located(f"--algorithms: {place}"):
        if not equals:
            raise UsageError(f"'{entry.strip()}' is not COLLECTIVE=ALGORITHM")
        algorithm, *parameters = (word.strip() for word in choice.split(","))
        _check_choice(collective.strip(), algorithm, parameters)


@contextlib.contextmanager
def _located(place: str) -> Iterator[None]:
    try:
        yield
    except UsageError as problem:
        raise UsageError(f"{place}: {problem}") from None


def _check_choice(collective: str, algorithm: str, parameters: Sequence[str]) -> None:
    known = Catalogue.load().collective(collective).algorithms
    if algorithm not in ("default", *known):
        raise unknown_name(f"{collective} algorithm", algorithm, ("default", *known))
    valid = known[algorithm].parameters if algorithm in known else ()
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name not in valid:
            raise UsageError(f"{algorithm} has no parameter '{name}'; valid: {', '.join(valid) or 'none'}")
        _check_number(name, value, int(name in COUNT_PARAMETERS))


def _check_number(name: str, word: str, least: int) -> None:
    if not (word.isascii() and word.isdigit() and int(word) >= least):
        raise UsageError(f"{name} is '{word}'; it is a whole number from {least} on")


def find_program(name: str, chosen: Installation) -> Path:
    """The file of that name, our own program, or the program on the PATH. Raises UsageError if there is none."""
    if Path(name).is_file():
        return Path(name).absolute()
    if name in _OURS:
        return chosen.program(name)
    found = shutil.which(name)
    if found is None:
        raise UsageError(f"no program '{name}'; valid: a file, {', '.join(_OURS)}, or a program on the PATH")
    return Path(found)


def _check_program(program: Path, library: str) -> None:
    """Raises UsageError for a file that cannot be executed, or that was not built for the engine."""
    if not os.access(program, os.X_OK):
        raise UsageError(f"{program} is not an executable program (compile it, or chmod +x)")
    command = ["readelf", "--file-header", "--dynamic", "--wide", str(program)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | {"LC_ALL": "C"})
    except OSError:  # without readelf the program itself must show it
        return
    others = [other for other, needed in _BUILT_FOR.items() if other != library and f"[{needed}" in done.stdout]
    if others and f"[{_BUILT_FOR[library]}" not in done.stdout:
        raise UsageError(f"{program} is built for {others[0]}, not for {library}")
    if library == "smpi" and not _is_shared_object(done.stdout):
        raise UsageError(f"{program} was not built by smpicc: SMPI cannot run interpreters, scripts or other programs")


def _is_shared_object(description: str) -> bool:
    """Whether readelf describes a shared object, which is what smpicc makes: the simulator loads each process's copy.

    Its dependencies do not tell: linkers leave SimGrid's library out where a program's own library is what calls MPI.
    """
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
    engine_version: str | None = None,
    plain: bool = False,
) -> int:
    """Runs the program with our standard streams and returns its exit code; `plain` runs it without the library.

    Raises UsageError when the engine, the program or the platform is missing or unsuitable, and CollwiseError when the
    program succeeds without having called the library.
    """
    chosen = engine(library, engine_version, procs)
    binary = find_program(program, chosen)
    _check_program(binary, library)
    with tempfile.TemporaryDirectory(prefix="collwise-") as directory, contextlib.ExitStack() as files:
        preloaded = "" if plain else preloadable(chosen.program(LIBRARY), Path(directory))
        marker = Path(directory, "load_marker")
        settings = {} if plain else options.environment | {"COLLWISE_LOAD_MARKER": str(marker)}
        if library == "smpi":
            if platform is None:
                raise UsageError("running under SMPI needs --platform NAME|FILE (see 'collwise platforms list')")
            paths = files.enter_context(smpi_files(platform, procs, processes_per_node))
            # A program that SimGrid 3.32 loads in its own way mixes two allocators if another one is preloaded. Our
            # library changes how programs are loaded, so other libraries are preloaded only together with it.
            quick = {} if plain else smpi_environment(chosen)
            wrapper = f"env LD_PRELOAD={_with_others(preloaded, quick.get('LD_PRELOAD', ''))}" if preloaded else ""
            command = smpi_command(
                chosen, *paths, procs, binary, args, privatize=True, wrapper=wrapper, options=_OPTIONS
            )
            code = _run(command, settings | quick)
        else:
            warn_if_crowded(procs)
            others = os.environ.get("LD_PRELOAD", "")
            variables = settings | ({"LD_PRELOAD": _with_others(preloaded, others)} if preloaded else {})
            code = _run(_mpirun(chosen, procs, variables, binary, args), settings)
        if code == 0 and not plain and not marker.exists():
            raise CollwiseError(_not_called(chosen, binary))
    return code


def preloadable(path: Path, directory: Path) -> str:
    """The library's path, or that of a link in `directory` if it has a blank or a colon, at which LD_PRELOAD splits."""
    if not set(str(path)) & set(" :"):
        return str(path)
    link = directory / path.name
    if set(str(link)) & set(" :"):
        raise UsageError(f"{link} cannot be preloaded: LD_PRELOAD takes no path with a blank or a colon; set TMPDIR")
    link.symlink_to(path)
    return str(link)


def _with_others(first: str, others: str) -> str:
    return ":".join([first, *([others] if others else [])])


def _mpirun(
    chosen: Installation, procs: int, variables: dict[str, str], program: Path, args: Sequence[str]
) -> list[str]:
    command = [str(chosen.launcher)]
    if chosen.library == "openmpi":
        command += ["--oversubscribe", "--bind-to", "none"]
        if os.geteuid() == 0:
            command.append("--allow-run-as-root")
        for name, value in variables.items():
            command += ["-x", f"{name}={value}"]
    else:
        for name, value in variables.items():
            command += ["-genv", name, value]
    return [*command, "-np", str(procs), str(program), *args]


def _not_called(chosen: Installation, program: Path) -> str:
    advice = {
        "smpi": f"is it built by the smpicc of {chosen.label}?",
        "openmpi": "is MPI linked statically, is it another MPI's program, or in Fortran?",
        "mpich": "is MPI linked statically, or is it another MPI's program?",
    }
    return f"libcollwise was asked for, but {program} ended without calling it: {advice[chosen.library]}"


def _run(command: Sequence[str], environment: dict[str, str]) -> int:
    """Runs the command in a process group that ends with this process. Returns its exit code, or 128 + the signal."""
    child = subprocess.Popen(command, start_new_session=True, env=os.environ | environment)
    try:
        code = child.wait()
    except KeyboardInterrupt:
        # mpirun's processes are in other process groups; mpirun ends them if it is given time.
        with contextlib.suppress(ProcessLookupError, PermissionError, subprocess.TimeoutExpired):
            os.killpg(child.pid, signal.SIGTERM)
            child.wait(_GRACE_SECONDS)
        code = 130
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    return code if code >= 0 else 128 - code
