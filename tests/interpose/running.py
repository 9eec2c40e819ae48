"""Runs programs under libcollwise as a user would, and reads its report."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import cache

from collwise.simulator.execution.installations import Installation, find_installation
from tests.needs import need

# Both have SimGrid's two ways of loading programs in them: 3.32 looks past what is preloaded unless told otherwise.
ENGINES = ["openmpi", "mpich", "smpi", "smpi-4.1"]
COMPILERS = {"openmpi": "mpicc.openmpi", "mpich": "mpicc.mpich", "smpi": "smpicc"}


@cache
def installation_of(name: str) -> Installation:
    need(name)
    library, _, version = name.partition("-")
    found = find_installation(library, version or None)
    build = subprocess.run(["cmake", "--build", str(found.build_directory)], capture_output=True, text=True)
    assert build.returncode == 0, build.stdout + build.stderr
    return found


def arguments_of(name: str) -> list[str]:
    library, _, version = name.partition("-")
    arguments = ["--library", library]
    if library == "smpi":
        arguments += ["--platform", "gros", *(["--simgrid", version] if version else [])]
    return arguments


def run(name: str, procs: int, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    installation_of(name)
    command = [sys.executable, "-P", "-m", "collwise.studies", "run", *arguments_of(name), "--procs", str(procs)]
    variables = os.environ | environment
    return subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=900, env=variables)


def counts_of(report: str) -> dict[tuple[str, str], int]:
    """Calls by collective and what ran, over all sizes and parameters."""
    assert "collwise: collectives of this run" in report, report
    found: dict[tuple[str, str], int] = {}
    for line in report.splitlines():
        row = re.fullmatch(r"([a-z_]+) +\d+  (\S.*?) {2,}(-|\d+(?: to \d+)?) +(\d+) +\d+\.\d+  .+", line)
        if row is not None:
            key = row.group(1), re.sub(r" \w+=\d+", "", row.group(2))
            found[key] = found.get(key, 0) + int(row.group(4))
    return found
