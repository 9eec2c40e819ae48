"""Runs programs under libcollwise as a user would, and reads its report."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from collwise.algorithms.catalogue import Algorithm
from collwise.common.folders import SOURCES
from collwise.common.grouping import grouped
from collwise.simulator.execution.installations import Installation, find_installation
from collwise.simulator.execution.interposed import preloadable
from collwise.simulator.execution.launchers import mpirun_command
from tests.command_line import forked
from tests.needs import need

# Both have SimGrid's two ways of loading programs in them: 3.32 looks past what is preloaded unless told otherwise.
ENGINES = ["openmpi", "mpich", "smpi", "smpi-4.1"]
COMPILERS = {"openmpi": "mpicc.openmpi", "mpich": "mpicc.mpich", "smpi": "smpicc"}


@cache
def installation_of(name: str) -> Installation:
    need(name)
    library, _, version = name.partition("-")
    found = find_installation(library, version or None)
    found.build.make()
    return found


def one_for_each_collective(algorithms: Sequence[Algorithm], pick: int) -> list[Algorithm]:
    """One of each collective's algorithms, such that going on with `pick` gets at all of them."""
    return [known[pick % len(known)] for known in grouped(algorithms, lambda one: one.collective).values()]


def linked(name: str, source: Path, target: Path, *link_options: str) -> Path:
    """The program as a user links it with libcollwise behind MPI."""
    chosen = installation_of(name)
    library = chosen.program("libcollwise.so")
    compiler = COMPILERS[name] if name in COMPILERS else str(chosen.launcher.with_name("smpicc"))
    command = [compiler, "-std=gnu11", f"-I{SOURCES / 'algorithms'}", str(source), *link_options]
    link = ["-Wl,--no-as-needed", str(library), f"-Wl,-rpath,{library.parent}", "-o", str(target)]
    done = subprocess.run([*command, *link], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return target


def arguments_of(name: str) -> list[str]:
    library, _, version = name.partition("-")
    arguments = ["--library", library]
    if library == "smpi":
        arguments += ["--platform", "gros", *(["--simgrid", version] if version else [])]
    return arguments


def run(name: str, procs: int, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    installation_of(name)
    where = [*arguments_of(name), "--procs", str(procs)]
    return forked("program", "run", *where, *arguments, environment=os.environ | environment)


def launched(
    name: str, procs: int, command: Sequence[str], variables: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """The command's run by a real MPI's own launcher, with these variables in its processes."""
    mpirun = mpirun_command(installation_of(name), procs, environment=variables)
    environment = os.environ | mpirun.environment
    return subprocess.run([*mpirun.words, *command], capture_output=True, text=True, env=environment, timeout=300)


def uncounted(name: str, procs: int, program: Path, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """The program's run under libcollwise without a report; the folder may get a link to the library."""
    preloaded = [preloadable(installation_of(name).program("libcollwise.so"), folder)]
    preloaded += filter(None, [os.environ.get("LD_PRELOAD")])
    return launched(name, procs, [str(program)], {"LD_PRELOAD": ":".join(preloaded), **variables})


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
