"""The local machine as an execution target, and runs of our programs under any MPI implementation on it."""

from __future__ import annotations

import os
import platform as machine
from collections.abc import Mapping, Sequence
from typing import Any

from collwise.common.errors import warn
from collwise.common.units import counted
from collwise.platforms import HostPlatform
from collwise.simulator.execution.installations import find_installation
from collwise.simulator.execution.launchers import mpirun_command
from collwise.simulator.execution.processes import ProgramRun
from collwise.simulator.execution.smpirun import run_smpi
from collwise.simulator.execution.targets import EAGER_LIMITS, ExecutionTarget, LaunchRequest

LOCAL_PROCS = 4
"""Usual number of processes. This machine takes any number, but all of them share its cores."""

# With more processes per core, times mostly show waiting for a core.
_MAX_PROCESSES_PER_CORE = 4


class LocalMachine(ExecutionTarget):
    """An ExecutionTarget that runs all processes on this machine, through shared memory."""

    def __init__(self, library: str) -> None:
        self.installation = find_installation(library)
        self.name = machine.node()
        self.eager_limit_bytes = EAGER_LIMITS[library]
        self.usual_procs = LOCAL_PROCS
        self.facts: Mapping[str, str] = {"hosts": machine.node(), "transport": "shared memory"}

    def processes_per_node(self, procs: int) -> int:
        """All processes are on this one node."""
        return procs

    def launch(self, request: LaunchRequest) -> ProgramRun:
        """Runs the program on this machine, with a warning when more processes than cores are asked for."""
        warn_if_crowded(request.procs, 1)
        return self._launch(request)

    def _launch(self, request: LaunchRequest) -> ProgramRun:
        command = mpirun_command(
            self.installation, request.procs, environment=request.environment, launcher_args=request.launcher_args
        )
        return self.execute(request, command)


def warn_if_crowded(procs: int, per_core: int = _MAX_PROCESSES_PER_CORE) -> None:
    """Warns if more than `per_core` processes per core are to run here; by default, if they would mostly wait."""
    cores = len(os.sched_getaffinity(0))
    if procs > per_core * cores:
        what = "mostly show" if procs > _MAX_PROCESSES_PER_CORE * cores else "include"
        warn(f"{procs} processes share {counted(cores, 'core')} of this machine; their times {what} waiting for a core")


def run_program(
    library: str,
    program: str,
    procs: int,
    args: Sequence[str] = (),
    *,
    platform: HostPlatform | None = None,
    simgrid: str | None = None,
    **others: Any,
) -> ProgramRun:
    """Runs one of our programs under 'smpi' (needs `platform`), 'openmpi' or 'mpich' on this machine.

    `others` are `timeout_seconds`, `on_line` and `launcher_args` of a LaunchRequest.
    """
    if library != "smpi":
        return LocalMachine(library)._launch(LaunchRequest(program, procs, args, **others))
    if platform is None:
        raise ValueError("running under SMPI needs a platform")
    return run_smpi(find_installation(library, simgrid, procs), platform, program, procs, args, **others)
