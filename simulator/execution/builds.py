"""Builds of our C programs: one for each MPI installation, and one without MPI, which has the schedule engine.

In a clone `./collwise` makes them. A package that was installed from a wheel makes each in the user's cache, when
something of it is first needed.
"""

from __future__ import annotations

import contextlib
import fcntl
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from collwise.common import folders
from collwise.common.errors import CollwiseError, UsageError, note
from collwise.common.files import write_text
from collwise.simulator.execution.packages import require_packages
from collwise.simulator.execution.processes import run_command

_COMPLETE = ".complete"


@dataclass(frozen=True)
class Build:
    """A build of our C programs for an MPI library: 'smpi', 'openmpi', 'mpich', 'none'. `label` says what it is for."""

    folder: Path
    mpi: str
    compiler: Path
    label: str

    def file(self, name: str) -> Path:
        """A program or library of the build, which is made first if it is missing and this is no clone.

        Raises UsageError if system packages are missing, CollwiseError if the build fails or, in a clone, is missing.
        """
        if not folders.is_clone():
            _ensure(self)
        path = self.folder / name
        if not path.exists():
            raise CollwiseError(f"{path} is not built; run 'collwise setup' to build it")
        return path

    def make(self) -> None:
        """Configures the build if that was not done, and builds what has changed. Raises CollwiseError on failure."""
        if not (self.folder / "build.ninja").exists():
            configure = ["cmake", "-S", str(folders.SOURCES), "-B", str(self.folder), "-G", "Ninja"]
            configure += [f"-DCOLLWISE_MPI={self.mpi}", f"-DCMAKE_C_COMPILER={self.compiler}"]
            configure += [f"-DPython3_EXECUTABLE={sys.executable}"]
            # CMake's checks need the variable; a program that is built with it would not run in the simulator.
            self._run(configure, {"SMPI_PRETEND_CC": "1"})
        self._run(["cmake", "--build", str(self.folder)], {})

    def _run(self, command: list[str], variables: dict[str, str]) -> None:
        try:
            done = run_command(command, environment=variables)
        except OSError as problem:
            raise UsageError(f"building programs for {self.label} needs {command[0]}: {problem.strerror}") from None
        if done.returncode != 0:
            lines = [*done.output_lines, *done.error_text.splitlines()] or ["no message"]
            log = self.folder / "build.log"
            write_text(log, "\n".join([*lines, ""]))
            first = next((line for line in lines if "error" in line.lower()), lines[-1])
            raise CollwiseError(f"building programs for {self.label} failed: {first}; all messages: {log}")


@cache
def _ensure(build: Build) -> None:
    """Makes the build, unless it is there. One without its mark, which is written last, counts as none."""
    mark = build.folder / _COMPLETE
    if mark.exists():
        return
    # A SimGrid that 'collwise setup' built has its own compiler.
    has_all = build.mpi == "none" or (build.mpi == "smpi" and build.compiler.exists())
    require_packages(("build",) if has_all else ("build", build.mpi))
    with locked(build.folder, "another collwise that is building C programs"):
        # Another process may have made it meanwhile.
        if mark.exists():
            return
        note(f"building the C programs for {build.label}, once, in {build.folder}; this takes a minute or two")
        shutil.rmtree(build.folder, ignore_errors=True)
        build.folder.mkdir()
        build.make()
        mark.touch()


@contextlib.contextmanager
def locked(folder: Path, other: str) -> Iterator[None]:
    """Holds the lock of a build; says that it waits for `other`. Raises UsageError if nothing can be written there."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock = (folder.parent / f"{folder.name}.lock").open("w")
    except OSError as problem:
        raise UsageError(
            f"cannot write into {folder.parent}, where C programs are built: {problem.strerror}; "
            "name another folder for caches: XDG_CACHE_HOME"
        ) from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            note(f"waiting for {other}")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
