"""Builds of our C programs: one for each MPI installation, and one without MPI, which has the schedule engine.

A program or library is built when it is first needed, and again when its sources or the compiler have changed. Builds
are in build/ of a clone, or in the user's cache if collwise was installed from a wheel.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from collwise.common import folders
from collwise.common.errors import CollwiseError, UsageError, note
from collwise.common.files import write_text
from collwise.simulator.execution.packages import missing_packages, require_packages
from collwise.simulator.execution.processes import run_command

_CLEAR_LINE = "\r\x1b[K"
ALL = "all"
"""The name that stands for every program and library of a build."""
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
        """A program or library of the build, which is made first if it is missing or its sources have changed.

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
        # CMake's checks need the variable; a program that is built with it would not run in the simulator.
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
    """Holds the lock of a build. If another process holds it, prints a note that names `other`, and waits.

    Raises UsageError if the lock cannot be written.
    """
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
    """Prints on stderr what is being done, and at the end how many seconds it took.

    It yields a function that shows the progress and the seconds so far, on terminals only.
    """
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
