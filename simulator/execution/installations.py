"""Installed MPI implementations (SMPI, Open MPI, MPICH), and the builds of our C programs for each of them.

A program is built when it is first needed, and again when its sources or the compiler have changed.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from collwise.common import folders
from collwise.common.errors import CollwiseError, UsageError, check_name, note
from collwise.common.files import write_text
from collwise.common.folders import builds_folder, cache_folder, is_clone
from collwise.simulator.execution.packages import missing_packages, require_packages
from collwise.simulator.execution.processes import run_command

_CLEAR_LINE = "\r\x1b[K"
ALL = "all"  # the name that stands for every program and library of a build
_CONFIGURED = ".configured"
_NINJA_LINE = re.compile(r"\[(\d+)/(\d+)\]")


@dataclass(frozen=True)
class Build:
    """A build of our C programs for an MPI library: 'smpi', 'openmpi', 'mpich', 'none'. `label` is for messages."""

    folder: Path
    mpi: str
    compiler: Path
    label: str

    def file(self, name: str) -> Path:
        """A program or library of the build, which is made if it is missing or its sources have changed.

        Raises UsageError if system packages are missing, CollwiseError if the compiler fails.
        """
        _ensure(self, name)
        return self.folder / name

    def make(self, name: str = ALL) -> None:
        """Makes a program or library, by default all of them; what is up to date stays. Raises as `file` does."""
        require_packages(self._groups())
        with locked(self.folder, "another collwise that is building C programs"):
            # Another process may have made it meanwhile.
            if self._is_current(name):
                return
            made_from = self._made_from()
            what = "the C programs" if name == ALL else name
            with step(f"building {what} for {self.label}") as show:
                self._configure()
                self._run(["cmake", "--build", str(self.folder), "--target", name], {}, show)
            # Written last, so that a build that was interrupted, or whose sources changed meanwhile, does not count.
            self._stamp(name).write_text(made_from, encoding="utf-8")

    def _groups(self) -> tuple[str, ...]:
        """The groups of system packages that building needs."""
        # A SimGrid that 'collwise setup' built has its own compiler.
        has_library = self.mpi == "none" or (self.mpi == "smpi" and self.compiler.exists())
        return ("build",) if has_library else ("build", self.mpi)

    def _stamp(self, name: str) -> Path:
        return self.folder / f".made-{name}"

    def _is_current(self, name: str) -> bool:
        """True if the file was made from the present sources by the present compiler."""
        made_from = self._made_from()
        stamps = filter(Path.is_file, map(self._stamp, (name, ALL)))
        is_there = name == ALL or (self.folder / name).exists()
        return is_there and any(stamp.read_text(encoding="utf-8") == made_from for stamp in stamps)

    def _toolchain(self) -> str:
        """The folder of the sources, and the compilers with the times of their installation."""
        found = [shutil.which(str(compiler)) for compiler in ("gcc", self.compiler)]
        times = (f"{compiler} {Path(compiler).stat().st_mtime_ns}" if compiler else "none" for compiler in found)
        return "\n".join([str(folders.SOURCES), *times])

    def _made_from(self) -> str:
        """SHA-256, hex, of the toolchain and of the names, sizes and times of the C sources."""
        states = ((path, path.stat()) for path in folders.c_sources(folders.SOURCES))
        listed = (f"{path} {state.st_size} {state.st_mtime_ns}" for path, state in states)
        return hashlib.sha256("\n".join([self._toolchain(), *listed]).encode()).hexdigest()

    def _configure(self) -> None:
        """Runs CMake, unless it already ran for this toolchain and this Python."""
        mark = self.folder / _CONFIGURED
        configured = mark.read_text(encoding="utf-8") if mark.is_file() else ""
        wanted = f"{sys.executable}\n{self._toolchain()}"
        if configured == wanted:
            return
        # CMake's cache keeps the compiler and the sources that CMake first saw.
        if (self.folder / "CMakeCache.txt").exists() and configured.partition("\n")[2] != self._toolchain():
            shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(exist_ok=True)
        command = ["cmake", "-S", str(folders.SOURCES), "-B", str(self.folder), "-G", "Ninja"]
        command += ["-DCMAKE_BUILD_TYPE=Release", f"-DCOLLWISE_MPI={self.mpi}", f"-DCMAKE_C_COMPILER={self.compiler}"]
        command += [f"-DPython3_EXECUTABLE={sys.executable}"]
        # CMake's checks need SMPI_PRETEND_CC; programs that are built with it would not run in the simulator.
        self._run(command, {"SMPI_PRETEND_CC": "1"}, lambda how_far: None)
        mark.write_text(wanted, encoding="utf-8")

    def _run(self, command: list[str], variables: dict[str, str], show: Callable[[str], None]) -> None:
        def follow(line: str) -> None:
            if found := _NINJA_LINE.match(line):
                show("{} of {} steps".format(*found.groups()))

        try:
            done = run_command(command, environment=variables, on_line=follow)
        except OSError as problem:
            raise UsageError(f"building programs for {self.label} needs {command[0]}: {problem.strerror}") from None
        if done.returncode != 0:
            lines = [*done.output_lines, *done.error_text.splitlines()] or ["no message"]
            log = self.folder / "build.log"
            write_text(log, "\n".join([*lines, ""]))
            first = next((line for line in lines if "error" in line.lower()), lines[-1])
            raise CollwiseError(f"building programs for {self.label} failed: {first}; all messages: {log}")


@cache
def _ensure(build: Build, name: str) -> None:
    """Makes a file of the build, unless it is current, or exists and cannot be rebuilt since packages are missing."""
    if build._is_current(name) or ((build.folder / name).exists() and missing_packages(build._groups())):
        return
    build.make(name)


@contextlib.contextmanager
def locked(folder: Path, other: str) -> Iterator[None]:
    """Holds the lock of a build; waits, with a note that names `other`, if another process holds it."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock = (folder.parent / f"{folder.name}.lock").open("w")
    except OSError as problem:
        raise UsageError(
            f"cannot write into {folder.parent}, where C programs are built: {problem.strerror}; "
            "set XDG_CACHE_HOME to another folder"
        ) from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            note(f"waiting for {other}")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def step(what: str) -> Iterator[Callable[[str], None]]:
    """Prints what is being done and how long it took; yields a function that shows progress on terminals."""
    started = time.monotonic()
    is_terminal = sys.stderr.isatty()

    def say(ending: str, end: str = "\n") -> None:
        print(f"{_CLEAR_LINE if is_terminal else ''}collwise: {what}{ending}", end=end, file=sys.stderr, flush=True)

    def elapsed() -> str:
        return f"{time.monotonic() - started:.0f} s"

    def show(how_far: str) -> None:
        if is_terminal:
            say(f": {how_far}, {elapsed()}", end="")

    say("", end="" if is_terminal else "\n")
    try:
        yield show
    except BaseException:
        if is_terminal:
            print(file=sys.stderr)
        raise
    say(f": done in {elapsed()}")


MPI_LIBRARIES = ("openmpi", "mpich")
_LARGE_PROCS = 1024


@dataclass(frozen=True)
class Installation:
    """An installed MPI implementation: `library` is smpi, openmpi or mpich; `launcher` starts its programs.

    `pmi` is the interface by which real processes find each other: pmi2 or pmix, as srun's option --mpi names them;
    empty for smpi.
    """

    library: str
    version: str
    launcher: Path
    build_directory: Path
    pmi: str

    @property
    def label(self) -> str:
        """The name and version that results carry: 'SimGrid 3.32', 'Open MPI 4.1.4', 'MPICH 4.0.2'."""
        return f"{ {'smpi': 'SimGrid', 'openmpi': 'Open MPI', 'mpich': 'MPICH'}[self.library] } {self.version}"

    @property
    def build(self) -> Build:
        """The build of our C programs for this installation."""
        wrapper = "smpicc" if self.library == "smpi" else f"mpicc.{self.library}"
        compiler = self.launcher.with_name(wrapper)
        # A launcher that wraps the real one has no compiler next to it.
        if not compiler.exists():
            compiler = Path(shutil.which(wrapper) or compiler)
        return Build(self.build_directory, self.library, compiler, self.label)

    def program(self, name: str) -> Path:
        """The built program or library. Raises CollwiseError and UsageError as `Build.file` does."""
        # A path such as /bin/sh is no program of ours.
        return Path(name) if Path(name).is_absolute() else self.build.file(name)


def _build_directory(name: str, version: str) -> Path:
    """The folder of a build, whose name outside of a clone includes the version."""
    return builds_folder() / (name if is_clone() else f"{name}-{version}")


def _version(command: list[str], pattern: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise UsageError(f"{command[0]} does not run: {problem}") from None
    match = re.search(pattern, done.stdout + done.stderr)
    if match is None:
        raise UsageError(f"{command[0]} does not print its version: {(done.stdout + done.stderr).strip()[:200]}")
    return match.group(1)


def _system_smpi() -> Installation | None:
    found = shutil.which("smpirun")
    if found is None:
        return None
    version = _version([found, "-version"], r"SimGrid version (\d+\.\d+)")
    return Installation("smpi", version, Path(found), _build_directory("smpi-system", version), "")


def _built_smpi() -> dict[str, Installation]:
    built = {}
    for marker in sorted(cache_folder().glob("simgrid-*/.complete")):
        version = marker.parent.name.removeprefix("simgrid-")
        launcher = marker.parent / "bin" / "smpirun"
        built[version] = Installation("smpi", version, launcher, builds_folder() / f"smpi-{version}", "")
    return built


def smpi_installation(version: str | None = None, procs: int = 1) -> Installation:
    """The SimGrid to use: `version` if it is given, otherwise the system's or the newest that collwise built.

    The latter is preferred for 1024 processes or more, since SimGrid before 4.0 searches one list of all messages.
    """
    system, built = _system_smpi(), _built_smpi()
    known = ({system.version: system} if system is not None else {}) | built
    if not known:
        raise UsageError(
            "smpirun not found on PATH; install SimGrid (apt-get install libsimgrid-dev) "
            "or build one (collwise setup install --simgrid 4.1)"
        )
    if version is None and system is not None and (procs < _LARGE_PROCS or not built):
        return system
    chosen = max(built, key=lambda text: tuple(map(int, text.split(".")))) if version is None else version
    if chosen not in known:
        raise UsageError(
            f"SimGrid {version} is not installed; valid: {', '.join(sorted(known))} "
            f"(build it: collwise setup install --simgrid {version})"
        )
    return known[chosen]


def mpi_installation(library: str) -> Installation:
    """The installed Open MPI or MPICH."""
    check_name("MPI library", library, MPI_LIBRARIES)
    launcher = shutil.which(f"mpirun.{library}")
    if launcher is None:
        package = "openmpi-bin" if library == "openmpi" else library
        raise UsageError(f"mpirun.{library} not found on PATH; install it (apt-get install {package})")
    pattern = r"\((?:Open MPI|OpenRTE)\) (\S+)" if library == "openmpi" else r"Version:\s+(\S+)"
    version = _version([launcher, "--version"], pattern)
    pmi = "pmix" if library == "openmpi" or _needs_pmix(launcher) else "pmi2"
    if library == "mpich" and pmi == "pmix" and (launcher := shutil.which("mpirun.openmpi")) is None:
        raise UsageError(
            f"processes of this MPICH {version} find each other by PMIx, which its own mpirun does not offer; "
            "install Open MPI's mpirun, which does (apt-get install openmpi-bin)"
        )
    return Installation(library, version, Path(launcher), _build_directory(library, version), pmi)


@cache
def _needs_pmix(mpirun: str) -> bool:
    """True if the MPICH to which the mpirun belongs was built for PMIx, as that of Ubuntu 24.04."""
    program = Path(mpirun).with_name("mpichversion")
    if not program.exists():
        return False
    return "--with-pmix" in subprocess.run([program], capture_output=True, text=True, timeout=60, check=False).stdout


def find_installation(library: str, version: str | None = None, procs: int = 1) -> Installation:
    """The installation of 'smpi' (SimGrid `version`, for this many processes), 'openmpi' or 'mpich'."""
    return smpi_installation(version, procs) if library == "smpi" else mpi_installation(library)


@cache
def file_digest(path: Path) -> str:
    """The SHA-256 of a file, hex."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
