"""Runs an unmodified MPI program with libcollwise.so in the place of its collectives, and sees to it that it is.

The library is preloaded: by mpirun into each process, by smpirun into the simulator. It leaves a sign of life; a run
that ends well without one did not use it, and fails.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import CollwiseError, UsageError, unknown_name
from collwise.platforms import HostPlatform
from collwise.simulator.execution.installations import Engine, engine
from collwise.simulator.execution.processes import (
    SMPI_OPTIONS,
    smpi_command,
    smpi_environment,
    smpi_files,
    warn_if_crowded,
)

LIBRARY = "libcollwise.so"
ENGINES = ("smpi", "openmpi", "mpich")
_OURS = ("latency",)  # programs of this project that a bare name may mean
# Reading the clock takes SimGrid's 10 ns here: programs that wait for it to go on would wait for ever.
_OPTIONS = {name: value for name, value in SMPI_OPTIONS.items() if name != "smpi/wtime"}
_GRACE_SECONDS = 10.0
# What a program needs that is built for each engine.
_BUILT_FOR = {"smpi": "libsimgrid.so", "openmpi": "libmpi.so.40", "mpich": "libmpich.so"}
_COLUMNS = "collective procs processes_per_node message_bytes algorithm [segment_bytes=N] [limit_bytes=N] [fanout=N]"

# The parameters that an algorithm may be given, and their least values.
_LEAST = {"segment_bytes": 0, "limit_bytes": 0, "fanout": 1}


@dataclass(frozen=True)
class Wishes:
    """What the library is told: a table, an algorithm per collective ('bcast=binomial;barrier=bruck'), a report."""

    table: Path | None = None
    algorithms: str = ""
    report: bool = False

    def check(self) -> None:
        """Raises UsageError for a table or a list that the library would refuse."""
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
        with _told(f"--table: {place}"):
            for name, word, least in zip(
                ("procs", "processes_per_node", "message_bytes"), words[1:4], (1, 1, 0), strict=True
            ):
                _check_number(name, word, least)
            _check_choice(words[0], words[4], words[5:])


def _check_entry(entry: str, place: str) -> None:
    collective, equals, choice = entry.partition("=")
    with _told(f"--algorithms: {place}"):
        if not equals:
            raise UsageError(f"'{entry.strip()}' is not COLLECTIVE=ALGORITHM")
        algorithm, *parameters = (word.strip() for word in choice.split(","))
        _check_choice(collective.strip(), algorithm, parameters)


@contextlib.contextmanager
def _told(place: str) -> Iterator[None]:
    try:
        yield
    except UsageError as problem:
        raise UsageError(f"{place}: {problem}") from None


def _check_choice(collective: str, algorithm: str, parameters: Sequence[str]) -> None:
    known = Catalogue.load().collective(collective).algorithms
    if algorithm not in ("default", *known):
        raise unknown_name(f"{collective} algorithm", algorithm, ("default", *known))
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name not in _LEAST:
            raise unknown_name("parameter", name, _LEAST)
        _check_number(name, value, _LEAST[name])


def _check_number(name: str, word: str, least: int) -> None:
    if not (word.isascii() and word.isdigit() and int(word) >= least):
        raise UsageError(f"{name} is '{word}'; it is a whole number from {least} on")


def find_program(name: str, chosen: Engine) -> Path:
    """A file of that name, one of our own programs, or one on the PATH. Raises UsageError."""
    if Path(name).is_file():
        return Path(name).absolute()
    if name in _OURS:
        return chosen.program(name)
    found = shutil.which(name)
    if found is None:
        raise UsageError(f"no program '{name}'; valid: a file, {', '.join(_OURS)}, or a program on the PATH")
    return Path(found)


def _check_program(program: Path, library: str) -> None:
    """Raises UsageError for a file that cannot be run, or a program that is plainly another engine's."""
    if not os.access(program, os.X_OK):
        raise UsageError(f"{program} is not an executable program (compile it, or chmod +x)")
    try:
        done = subprocess.run(["readelf", "-d", str(program)], capture_output=True, text=True, check=False)
    except OSError:
        return
    others = [other for other, needed in _BUILT_FOR.items() if other != library and f"[{needed}" in done.stdout]
    if others and f"[{_BUILT_FOR[library]}" not in done.stdout:
        raise UsageError(f"{program} is built for {others[0]}, not for {library}")


def run_interposed(
    library: str,
    program: str,
    args: Sequence[str] = (),
    *,
    procs: int,
    wishes: Wishes,
    platform: HostPlatform | None = None,
    processes_per_node: int = 1,
    engine_version: str | None = None,
    plain: bool = False,
) -> int:
    """Runs it with our standard streams and returns its exit code; `plain` leaves the library away.

    Raises UsageError when the engine, the program or the platform is missing, and CollwiseError when the program ends
    well without having called the library.
    """
    chosen = engine(library, engine_version, procs)
    binary = find_program(program, chosen)
    _check_program(binary, library)
    with tempfile.TemporaryDirectory(prefix="collwise-") as directory, contextlib.ExitStack() as files:
        preloaded = "" if plain else preloadable(chosen.program(LIBRARY), Path(directory))
        proof = Path(directory, "proof")
        told = {} if plain else wishes.environment | {"COLLWISE_PROOF": str(proof)}
        if library == "smpi":
            if platform is None:
                raise UsageError("running under SMPI needs --platform NAME|FILE (see 'collwise platforms list')")
            paths = files.enter_context(smpi_files(platform, procs, processes_per_node))
            # Programs loaded in SimGrid 3.32's own way would free with one allocator what another one gave, so
            # nothing else is preloaded unless our library is, which changes that way.
            quick = {} if plain else smpi_environment(chosen)
            wrapper = f"env LD_PRELOAD={_with_others(preloaded, quick.get('LD_PRELOAD', ''))}" if preloaded else ""
            command = smpi_command(
                chosen, *paths, procs, binary, args, privatize=True, wrapper=wrapper, options=_OPTIONS
            )
            code = _run(command, told | quick)
        else:
            warn_if_crowded(procs)
            others = os.environ.get("LD_PRELOAD", "")
            variables = told | ({"LD_PRELOAD": _with_others(preloaded, others)} if preloaded else {})
            code = _run(_mpirun(chosen, procs, variables, binary, args), told)
        if code == 0 and not plain and not proof.exists():
            raise CollwiseError(_not_called(chosen, binary))
    return code


def preloadable(path: Path, directory: Path) -> str:
    """The library's path, or that of a link to it in `directory`: LD_PRELOAD takes none with a blank or a colon."""
    if not set(str(path)) & set(" :"):
        return str(path)
    link = directory / path.name
    if set(str(link)) & set(" :"):
        raise UsageError(f"{link} cannot be preloaded: LD_PRELOAD takes no path with a blank or a colon; set TMPDIR")
    link.symlink_to(path)
    return str(link)


def _with_others(first: str, others: str) -> str:
    return ":".join([first, *([others] if others else [])])


def _mpirun(chosen: Engine, procs: int, variables: dict[str, str], program: Path, args: Sequence[str]) -> list[str]:
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


def _not_called(chosen: Engine, program: Path) -> str:
    advice = {
        "smpi": f"is it built by the smpicc of {chosen.label}?",
        "openmpi": "is MPI linked statically, is it another MPI's program, or in Fortran?",
        "mpich": "is MPI linked statically, or is it another MPI's program?",
    }
    return f"libcollwise was asked for, but {program} ended without calling it: {advice[chosen.library]}"


def _run(command: Sequence[str], environment: dict[str, str]) -> int:
    """Our own standard streams, a process group of its own that ends with us. 128 + the signal's number, as shells."""
    child = subprocess.Popen(command, start_new_session=True, env=os.environ | environment)
    try:
        code = child.wait()
    except KeyboardInterrupt:
        # mpirun has put the processes into groups of their own, and ends them if it is given the time.
        with contextlib.suppress(ProcessLookupError, PermissionError, subprocess.TimeoutExpired):
            os.killpg(child.pid, signal.SIGTERM)
            child.wait(_GRACE_SECONDS)
        code = 130
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    return code if code >= 0 else 128 - code
