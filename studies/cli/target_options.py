"""Options that name an execution target, and the ExecutionTarget that they make."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from collwise.common.errors import UsageError, note
from collwise.common.units import counted
from collwise.simulator.execution.cluster import REACH_SECONDS, TRANSPORTS, LaunchOptions, split_arguments
from collwise.simulator.execution.host_lists import read_hosts
from collwise.simulator.execution.installations import MPI_LIBRARIES
from collwise.simulator.execution.targets import ExecutionTarget
from collwise.studies.cli.declare import flag, group, option
from collwise.studies.cli.types import NEW_SCRIPT, SIZE, FiniteRange, NamedChoice

if TYPE_CHECKING:
    from collwise.simulator.sweeps.method import Method
    from collwise.simulator.timing import Case

# Options that apply to a target which another option names.
_DETAILS = ("ppn", "remote_shell", "transport", "eager_limit", "mpirun_args", "any_nodes")
TARGET_OPTIONS = "--library, --hosts, --launcher or --testbed"
"""The options that name a target, for messages."""


@dataclass(frozen=True)
class TargetOptions:
    """The values of the options of `target_options`; None or empty where they were not given."""

    library: str | None = None
    hosts: str | None = None
    launcher: str | None = None
    ppn: int | None = None
    testbed: str | None = None
    remote_shell: str = ""
    transport: str | None = None
    eager_limit: int | None = None
    mpirun_args: str = ""
    reach: float = REACH_SECONDS
    any_nodes: bool = False

    @property
    def named(self) -> bool:
        """Whether any option names a target."""
        return any(one is not None for one in (self.library, self.hosts, self.launcher, self.testbed))


_OPTIONS: dict[str, Any] = {
    "library": option(NamedChoice("MPI library", MPI_LIBRARIES)),
    "hosts": option(),
    "launcher": option(NamedChoice("launcher", ("mpirun", "srun", "oar"))),
    "testbed": option(is_flag=False, flag_value="bed"),
    "ppn": option(click.IntRange(1), key="ppn of a target"),
    "remote_shell": option(default=""),
    "transport": option(NamedChoice("transport", TRANSPORTS)),
    "eager_limit": option(SIZE),
    "mpirun_args": option(default=""),
    "reach": option(FiniteRange(1), REACH_SECONDS),
    "any_nodes": flag(),
}


def _without(*names: str) -> Any:
    return group(TargetOptions, **{name: one for name, one in _OPTIONS.items() if name not in names})


def target(*without: str) -> Any:
    """The options that name a target, without some, as the ExecutionTarget."""
    names = {name: one for name, one in _OPTIONS.items() if name not in without}
    return group(lambda **given: target_from(TargetOptions(**given)), **names)


TARGET = _without()
"""The options that name a target, as TargetOptions for `target_from`."""
TARGET_WITHOUT_PPN = _without("ppn")
"""The same for commands whose own --ppn takes several values."""
TARGET_BESIDE_TESTBEDS = _without("testbed", "transport", "ppn")
"""The same for a command whose own options describe test beds."""
SCRIPT = option(NEW_SCRIPT)


def target_from(where: TargetOptions) -> ExecutionTarget:
    """The target that the options name: by default this machine. Hosts are reached when it is made.

    Raises UsageError for options that exclude one another and CollwiseError when hosts do not answer.
    """
    from collwise.simulator.execution.local_machine import LocalMachine
    from collwise.simulator.execution.mpirun import Mpirun, Oar
    from collwise.simulator.execution.srun import Srun

    named = [option for option, given in (("--hosts", where.hosts), ("--testbed", where.testbed)) if given is not None]
    batch = where.launcher in ("srun", "oar")
    if len(named) > 1 or (named and batch):
        both = [*named, *([f"--launcher {where.launcher}"] if batch else [])]
        raise UsageError(f"{' and '.join(both)}: each names a target; give one")
    if where.testbed is not None:
        from collwise.validation.testbed.bed import running
        from collwise.validation.testbed.target import TestBed

        _refuse(where, ("remote_shell", "transport", "eager_limit", "mpirun_args", "any_nodes"), "hosts")
        if where.library not in (None, "openmpi"):
            raise UsageError(f"--library {where.library}: a test bed runs Open MPI")
        return TestBed(running(where.testbed), where.ppn)
    if where.hosts is None and not batch:
        if where.launcher == "mpirun":
            raise UsageError("--launcher mpirun needs --hosts FILE|A,B,...")
        _refuse(where, _DETAILS, "targets other than this machine")
        return LocalMachine(where.library or MPI_LIBRARIES[0])
    options = LaunchOptions(
        where.library or MPI_LIBRARIES[0],
        where.ppn or 0,
        where.transport or TRANSPORTS[0],
        split_arguments(where.mpirun_args, "--mpirun-args"),
        where.eager_limit or 0,
        where.reach,
        where.any_nodes,
    )
    if where.launcher == "srun":
        _refuse(where, ("remote_shell",), "mpirun")
        return Srun(options)
    if where.launcher == "oar":
        return Oar(options, where.remote_shell)
    assert where.hosts is not None
    return Mpirun(read_hosts(where.hosts), options, where.remote_shell)


def refuse_target_details(where: TargetOptions) -> None:
    """Raises UsageError for details of a target if no option names one, for commands without a usual target."""
    if not where.named:
        _refuse(where, _DETAILS, "targets")


def print_script(path: Path, cases: Sequence[Case], method: Method, where: TargetOptions) -> None:
    """Writes the script and prints how to run it. Raises UsageError for options that name a target."""
    from collwise.validation.measurement.scripts import batch_lines, launcher_words, write_script

    if where.named and where.launcher not in ("mpirun", "srun"):
        raise UsageError("--script: the variable LAUNCHER says where it runs; valid here: --launcher mpirun or srun")
    _refuse(where, ("remote_shell", "transport", "eager_limit", "any_nodes"), "targets")
    procs = max(case.procs for case in cases)
    launcher, per_node = where.launcher or "mpirun", where.ppn or 0
    started = launcher_words(launcher, where.library or MPI_LIBRARIES[0], procs, per_node)
    words = " ".join([*started, *split_arguments(where.mpirun_args, "--mpirun-args")])
    batch = batch_lines(launcher, procs, per_node)
    file = write_script(path, cases, method, launcher=words, batch=batch)
    name = shlex.quote(file.name)
    run_by = f"sbatch {name}, or within a job bash {name}" if batch else f"bash {name}"
    click.echo(f"{file}: {counted(len(cases), 'case')}; run it there by: {run_by}")
    if launcher == "srun" and not per_node:
        note("without --ppn the job says how many processes a node gets: salloc --exclusive --ntasks-per-node N")


def _refuse(where: TargetOptions, names: tuple[str, ...], what: str) -> None:
    for name in names:
        if getattr(where, name):
            raise UsageError(f"--{name.replace('_', '-')} is for {what} (--hosts, --launcher srun or oar)")
