"""Execution targets, on which programs run with a real MPI library: this machine, hosts, batch jobs and test beds."""

from __future__ import annotations

import contextlib
import copy
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from collwise.simulator.execution.installations import Installation
from collwise.simulator.execution.processes import LauncherCommand, ProgramRun, run_command

EAGER_LIMITS = {"openmpi": 4096, "mpich": 8192}
"""The eager limit, bytes, within a machine: Open MPI's btl_vader_eager_limit, and about the limit of MPICH's UCX."""

TCP_EAGER_LIMIT_BYTES = 65536  # eager limit of Open MPI's TCP transport, btl_tcp_eager_limit, which includes the header


@dataclass(frozen=True)
class LaunchRequest:
    """A request to run one of our programs, or the program at a path, on a target."""

    program: str
    procs: int
    args: Sequence[str] = ()
    timeout_seconds: float | None = None
    on_line: Callable[[str], None] | None = None
    environment: Mapping[str, str] = field(default_factory=dict)  # reaches every process
    launcher_args: Sequence[str] = ()  # further words for the launcher


class ExecutionTarget(ABC):
    """The place where programs run on a real MPI library."""

    name: str  # the name of the platform in results
    installation: Installation
    eager_limit_bytes: int  # messages of at least this size use rendezvous
    usual_procs: int  # the default number of processes of an estimation: as many as fit on the target
    facts: Mapping[str, str]  # recorded with times, in addition to the installation: hosts, transport, mapping
    _environment: Mapping[str, str] = MappingProxyType({})
    _launcher_args: Sequence[str] = ()

    @abstractmethod
    def processes_per_node(self, procs: int) -> int:
        """Processes per node, n, in a run with `procs` processes; rank r is on node r // n."""

    @contextlib.contextmanager
    def shared_directory(self) -> Iterator[Path]:
        """A new directory for files that all processes can read; it is removed at the end of the block."""
        with tempfile.TemporaryDirectory(prefix="collwise-") as directory:
            yield Path(directory)

    @abstractmethod
    def launch(self, request: LaunchRequest) -> ProgramRun:
        """Runs the program; none of its processes is left when this returns."""

    def execute(self, request: LaunchRequest, command: LauncherCommand, **options: Any) -> ProgramRun:
        """Runs the request's program by a launcher; `options` are those of `run_command`."""
        return run_command(
            [*command.words, str(self.installation.program(request.program)), *request.args],
            timeout_seconds=request.timeout_seconds,
            on_line=request.on_line,
            environment=command.environment,
            **options,
        )

    def run(self, program: str, procs: int, args: Sequence[str] = (), **others: Any) -> ProgramRun:
        """Launches a LaunchRequest with these values, and with the variables and words of `modified`."""
        request = LaunchRequest(program, procs, args, **others)
        environment = {**self._environment, **request.environment}
        words = [*self._launcher_args, *request.launcher_args]
        return self.launch(replace(request, environment=environment, launcher_args=words))

    def modified(
        self, facts: Mapping[str, str], environment: Mapping[str, str] | None = None, launcher_args: Sequence[str] = ()
    ) -> ExecutionTarget:
        """The target with more variables and launcher options in each `run`, and with facts that describe these."""
        changed = copy.copy(self)
        changed.facts = {**self.facts, **facts}
        changed._environment = {**self._environment, **(environment or {})}
        changed._launcher_args = [*self._launcher_args, *launcher_args]
        return changed
