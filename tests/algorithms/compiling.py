"""C programs of the tests, linked with our algorithms."""

from __future__ import annotations

import subprocess
from pathlib import Path

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
    options = ["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{SOURCES / 'algorithms'}"]
    # Simulated programs are shared libraries, in which SimGrid's own MPI_Send would come first.
    command = [str(chosen.build.compiler), *options, str(source), *libraries, "-Wl,-Bsymbolic-functions", *link_options]
    done = subprocess.run([*command, "-o", str(target)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return target
