"""Where our programs run on a real MPI library: this machine; hosts, batch jobs and test beds are made like it."""

from __future__ import annotations

import contextlib
import platform as machine
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from collwise.common.errors import unknown_name
from collwise.simulator.execution.installations import MPI_LIBRARIES, Installation, engine
from collwise.simulator.execution.processes import ProgramRun, run_program, warn_if_crowded

EAGER_LIMITS = {"openmpi": 4096, "mpich": 8192}
"""Bytes, between processes of one machine: Open MPI's btl_vader_eager_limit; what MPICH's UCX comes to, about."""

LOCAL_PROCS = 4
"""Of this machine, which has room for any number, at some cost."""

TCP_EAGER_LIMIT_BYTES = 65536
"""Of Open MPI's TCP transport, btl_tcp_eager_limit, with the header in it."""


@dataclass(frozen=True)
class LaunchRequest:
    """What a place is to run: as of ExecutionTarget.run."""

    program: str
    procs: int
    args: Sequence[str] = ()
    timeout_seconds: float | None = None
    on_line: Callable[[str], None] | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    launcher_args: Sequence[str] = ()


class ExecutionTarget(ABC):
    """Where programs run on a real MPI library."""

    name: str
    """What results carry as their platform."""
    engine: Installation
    eager_limit_bytes: int
    """Nominal: messages of this size and more use rendezvous."""
    usual_procs: int
    """Processes of an estimation when nobody says otherwise: all that there is room for."""
    facts: Mapping[str, str]
    """What is recorded with times beside the engine: hosts, transport, mapping."""

    @abstractmethod
    def processes_per_node(self, procs: int) -> int:
        """Of a run with `procs` processes, by blocks: rank r on node r // this. Raises UsageError if it cannot be."""

    @contextlib.contextmanager
    def folder(self) -> Iterator[Path]:
        """A new directory for files that the processes read; it is removed at the end."""
        with tempfile.TemporaryDirectory(prefix="collwise-") as directory:
            yield Path(directory)

    @abstractmethod
    def launch(self, request: LaunchRequest) -> ProgramRun:
        """As `run`."""

    def run(
        self,
        program: str,
        procs: int,
        args: Sequence[str] = (),
        *,
        timeout_seconds: float | None = None,
        on_line: Callable[[str], None] | None = None,
        environment: Mapping[str, str] | None = None,
        launcher_args: Sequence[str] = (),
    ) -> ProgramRun:
        """Runs one of our built programs, or the file of that path; nothing of it is left when this returns.

        `environment` reaches every process; `launcher_args` go to mpirun or what stands for it.
        """
        return self.launch(
            LaunchRequest(program, procs, args, timeout_seconds, on_line, environment or {}, launcher_args)
        )


class LocalMachine(ExecutionTarget):
    """An ExecutionTarget: all processes on the machine at hand, through shared memory.

    Raises UsageError when the library, 'openmpi' or 'mpich', is unknown or missing.
    """

    def __init__(self, library: str) -> None:
        if library not in MPI_LIBRARIES:
            raise unknown_name("MPI library", library, MPI_LIBRARIES)
        self.engine: Installation = engine(library)
        self.name = machine.node()
        self.eager_limit_bytes = EAGER_LIMITS[library]
        self.usual_procs = LOCAL_PROCS
        self.facts: Mapping[str, str] = {"hosts": machine.node(), "transport": "shared memory"}

    def processes_per_node(self, procs: int) -> int:
        """All of them."""
        return procs

    def launch(self, request: LaunchRequest) -> ProgramRun:
        """Runs the program on this machine."""
        warn_if_crowded(request.procs)
        return run_program(
            self.engine.library,
            request.program,
            request.procs,
            request.args,
            timeout_seconds=request.timeout_seconds,
            on_line=request.on_line,
            extra_launcher_args=[*environment_options(self.engine, request.environment), *request.launcher_args],
        )


class ModifiedTarget(ExecutionTarget):
    """Another target with more environment variables and launcher options.

    `facts` distinguish its times from those of the base; `errors` is the standard error of the last run.
    """

    def __init__(
        self,
        base: ExecutionTarget,
        facts: Mapping[str, str],
        *,
        environment: Mapping[str, str] | None = None,
        launcher_args: Sequence[str] = (),
    ) -> None:
        self._base, self._environment, self._launcher_args = base, environment or {}, launcher_args
        self.name, self.engine, self.eager_limit_bytes = base.name, base.engine, base.eager_limit_bytes
        self.usual_procs = base.usual_procs
        self.facts: Mapping[str, str] = {**base.facts, **facts}
        self.errors = ""

    def processes_per_node(self, procs: int) -> int:
        """The base's."""
        return self._base.processes_per_node(procs)

    @contextlib.contextmanager
    def folder(self) -> Iterator[Path]:
        """The base's."""
        with self._base.folder() as made:
            yield made

    def launch(self, request: LaunchRequest) -> ProgramRun:
        """As of the base, with the additions."""
        run = self._base.launch(
            replace(
                request,
                environment={**self._environment, **request.environment},
                launcher_args=[*self._launcher_args, *request.launcher_args],
            )
        )
        self.errors = run.error_text
        return run


def environment_options(engine: Installation, environment: Mapping[str, str]) -> list[str]:
    """The options of an engine's mpirun that set environment variables for every process."""
    if engine.library == "openmpi":
        return [word for name, value in environment.items() for word in ("-x", f"{name}={value}")]
    return [word for name, value in environment.items() for word in ("-genv", name, value)]
