"""Makes execution targets, on which times are measured, from the options that name them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from collwise.common.errors import UsageError
from collwise.simulator.execution.cluster import REACH_SECONDS, TRANSPORTS, LaunchOptions, read_hosts, split_arguments
from collwise.simulator.execution.installations import MPI_LIBRARIES
from collwise.simulator.execution.targets import ExecutionTarget

# Options that apply to a target which another option names.
_DETAILS = ("ppn", "remote_shell", "transport", "eager_limit", "mpirun_args", "any_nodes")
TARGET_OPTIONS = "--library, --hosts, --launcher or --testbed"
"""The options that name a target, for messages."""


@dataclass(frozen=True)
class TargetOptions:
    """Options that name an execution target and say how programs start there; None or empty if not given."""

    library: str | None = None
    hosts: str | None = None
    launcher: str | None = None
    ppn: int | None = None
    testbed: str | None = None
    remote_shell: str = ""
    transport: str | None = None
    eager_limit: int | None = None
    mpirun_args: str = ""
    host_timeout: float = REACH_SECONDS
    any_nodes: bool = False

    @property
    def named(self) -> bool:
        """True if any option names a target."""
        return any(item is not None for item in (self.library, self.hosts, self.launcher, self.testbed))


TargetLike: TypeAlias = "str | TargetOptions | ExecutionTarget"
"""'openmpi' or 'mpich' on this machine, options that name a target, or the target itself."""


def target_from(where: TargetLike) -> ExecutionTarget:
    """The named target, by default this machine. Making a target contacts its hosts.

    Raises UsageError for options that exclude one another and CollwiseError when hosts do not answer.
    """
    from collwise.simulator.execution.launchers import LocalMachine, Mpirun, Oar, Srun

    if isinstance(where, ExecutionTarget):
        return where
    if isinstance(where, str):
        return LocalMachine(where)
    named = [option for option, given in (("--hosts", where.hosts), ("--testbed", where.testbed)) if given is not None]
    batch = where.launcher in ("srun", "oar")
    if len(named) > 1 or (named and batch):
        both = [*named, *([f"--launcher {where.launcher}"] if batch else [])]
        raise UsageError(f"{' and '.join(both)}: each names a target; give one")
    if where.testbed is not None:
        from collwise.validation.testbed.bed import running
        from collwise.validation.testbed.target import TestBed

        refuse_details(where, ("remote_shell", "transport", "eager_limit", "mpirun_args", "any_nodes"), "hosts")
        if where.library not in (None, "openmpi"):
            raise UsageError(f"--library {where.library}: a test bed runs Open MPI")
        return TestBed(running(where.testbed), where.ppn)
    if where.hosts is None and not batch:
        if where.launcher == "mpirun":
            raise UsageError("--launcher mpirun needs --hosts FILE|A,B,...")
        refuse_details(where, _DETAILS, "targets other than this machine")
        return LocalMachine(where.library or MPI_LIBRARIES[0])
    options = LaunchOptions(
        where.library or MPI_LIBRARIES[0],
        where.ppn or 0,
        where.transport or TRANSPORTS[0],
        split_arguments(where.mpirun_args, "--mpirun-args"),
        where.eager_limit or 0,
        where.host_timeout,
        where.any_nodes,
    )
    if where.launcher == "srun":
        refuse_details(where, ("remote_shell",), "mpirun")
        return Srun(options)
    if where.launcher == "oar":
        return Oar(options, where.remote_shell)
    assert where.hosts is not None
    return Mpirun(read_hosts(where.hosts), options, where.remote_shell)


def refuse_target_details(where: TargetOptions) -> None:
    """Raises UsageError for details of a target if no target is named; for commands without a default target."""
    if not where.named:
        refuse_details(where, _DETAILS, "targets")


def refuse_details(where: TargetOptions, names: tuple[str, ...], what: str) -> None:
    """Raises UsageError if one of these details is given, since they apply only to `what`."""
    for name in names:
        if getattr(where, name):
            raise UsageError(f"--{name.replace('_', '-')} is for {what} (--hosts, --launcher srun or oar)")
