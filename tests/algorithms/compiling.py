"""C programs of the tests, linked with our algorithms."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from collwise.common import folders
from collwise.common.folders import SOURCES
from collwise.simulator.execution.installations import find_installation
from tests.needs import need

COMPILERS = {"smpi": "smpicc", "openmpi": "mpicc.openmpi", "mpich": "mpicc.mpich"}


def compiled(library: str, source: Path, target: Path, *link_options: str) -> Path:
    """The program `target`, for one of COMPILERS; the test is skipped where that is missing."""
    need(library)
    chosen = find_installation(library)
    chosen.build.make()
    libraries = [str(chosen.build_directory / name) for name in ("libcollwise.a", "libcollwise_topology.a")]
    world = "simulated" if library == "smpi" else "real"
    headers = [f"-I{SOURCES / 'algorithms'}", f"-I{SOURCES / 'algorithms/worlds' / world}"]
    options = ["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", *headers]
    # Simulated programs are shared libraries, in which SimGrid's own MPI_Send would come first.
    command = [str(chosen.build.compiler), *options, str(source), *libraries, "-Wl,-Bsymbolic-functions", *link_options]
    done = subprocess.run([*command, "-o", str(target)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return target


def built_from(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """C programs are now those of the sources in a folder, as if it were a clone."""
    (folder / "pyproject.toml").touch()
    monkeypatch.setattr(folders, "SOURCES", folder)


def copied_sources(folder: Path) -> None:
    """Copies all that CMake builds the C programs from into a folder."""
    for part in ("CMakeLists.txt", "algorithms", "simulator/programs"):
        copy = shutil.copytree if (SOURCES / part).is_dir() else shutil.copy
        (folder / part).parent.mkdir(exist_ok=True)
        copy(SOURCES / part, folder / part)


def mistaken_sources(folder: Path, file: str, text: str, replacement: str) -> None:
    """The same with a mistake: the only place of a text in a file has another one."""
    copied_sources(folder)
    right = (folder / file).read_text(encoding="utf-8")
    assert right.count(text) == 1
    (folder / file).write_text(right.replace(text, replacement), encoding="utf-8")
