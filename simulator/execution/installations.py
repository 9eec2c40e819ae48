"""Installed MPI implementations that run our C programs: SimGrid's SMPI (several versions), Open MPI, MPICH."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from collwise.common.errors import UsageError, check_name
from collwise.common.folders import builds_folder, cache_folder, is_clone
from collwise.simulator.execution.builds import Build

MPI_LIBRARIES = ("openmpi", "mpich")
_LARGE_PROCS = 1024


@dataclass(frozen=True)
class Installation:
    """An installed MPI implementation: `library` is smpi, openmpi or mpich; `launcher` its smpirun or mpirun."""

    library: str
    version: str
    launcher: Path
    build_directory: Path

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
    """The folder of a build. Its name is `name` in a clone; elsewhere the name includes the version."""
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
    return Installation("smpi", version, Path(found), _build_directory("smpi-system", version))


def _built_smpi() -> dict[str, Installation]:
    built = {}
    for marker in sorted(cache_folder().glob("simgrid-*/.complete")):
        version = marker.parent.name.removeprefix("simgrid-")
        launcher = marker.parent / "bin" / "smpirun"
        built[version] = Installation("smpi", version, launcher, builds_folder() / f"smpi-{version}")
    return built


def smpi_installation(version: str | None = None, procs: int = 1) -> Installation:
    """The SimGrid to use: `version` if it is given, otherwise the system's or the newest one built.

    The system's SimGrid is preferred for fewer than 1024 processes, a built one for 1024 or more, since SimGrid before
    4.0 searches one list of all messages in flight.
    """
    system, built = _system_smpi(), _built_smpi()
    known = ({system.version: system} if system is not None else {}) | built
    if not known:
        raise UsageError(
            "smpirun not found on PATH; install SimGrid (apt-get install libsimgrid-dev) "
            "or build one (collwise setup install --simgrid 4.1)"
        )
    if version is not None:
        if version not in known:
            raise UsageError(
                f"SimGrid {version} is not installed; valid: {', '.join(sorted(known))} "
                f"(build it: collwise setup install --simgrid {version})"
            )
        chosen = known[version]
    elif system is not None and (procs < _LARGE_PROCS or not built):
        chosen = system
    else:
        chosen = known[max(built, key=lambda text: tuple(map(int, text.split("."))))]
    return chosen


def mpi_installation(library: str) -> Installation:
    """The installed Open MPI or MPICH. Raises UsageError for any other library, or if the mpirun is missing."""
    check_name("MPI library", library, MPI_LIBRARIES)
    launcher = shutil.which(f"mpirun.{library}")
    if launcher is None:
        package = "openmpi-bin" if library == "openmpi" else library
        raise UsageError(f"mpirun.{library} not found on PATH; install it (apt-get install {package})")
    pattern = r"\((?:Open MPI|OpenRTE)\) (\S+)" if library == "openmpi" else r"Version:\s+(\S+)"
    version = _version([launcher, "--version"], pattern)
    return Installation(library, version, Path(launcher), _build_directory(library, version))


def find_installation(library: str, version: str | None = None, procs: int = 1) -> Installation:
    """The installation of 'smpi' (SimGrid `version`, for this many processes), 'openmpi' or 'mpich'."""
    return smpi_installation(version, procs) if library == "smpi" else mpi_installation(library)


@cache
def file_digest(path: Path) -> str:
    """SHA-256 of a file, hex. A program that was rebuilt differently thus counts as another program."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
