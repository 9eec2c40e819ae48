"""Execution targets by launcher: this machine, named hosts and OAR reservations (mpirun), SLURM jobs (srun)."""

from __future__ import annotations

import os
import platform as machine
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from collwise.common.errors import UsageError, warn
from collwise.common.units import counted
from collwise.platforms import HostPlatform
from collwise.simulator.execution.cluster import (
    TCP_PARAMETERS,
    ClusterTarget,
    LaunchOptions,
    Slots,
    expand_node_list,
    expand_task_counts,
    read_host_file,
)
from collwise.simulator.execution.installations import Installation, find_installation
from collwise.simulator.execution.processes import LauncherCommand, ProgramRun
from collwise.simulator.execution.smpirun import run_smpi
from collwise.simulator.execution.targets import EAGER_LIMITS, ExecutionTarget, LaunchRequest

# A host that asks for a password, or does not answer, is out of reach.
_SSH_OPTIONS = "-o BatchMode=yes -o ConnectTimeout=10"
# Within a batch job, mpirun would otherwise know only the nodes of the job, and use all of them.
_ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_ras": "^slurm,tm,lsf,gridengine",
}


@dataclass(frozen=True)
class RemoteHosts:
    """The hosts of a run and the number of processes on each, which are written to `file`."""

    slots: Slots
    file: Path
    remote_shell: str = ""  # the command that reaches the hosts, its words quoted as for a shell; by default ssh


def mpirun_command(
    installation: Installation,
    procs: int,
    *,
    hosts: RemoteHosts | None = None,
    environment: Mapping[str, str] | None = None,
    parameters: Mapping[str, str] | None = None,
    launcher_args: Sequence[str] = (),
) -> LauncherCommand:
    """Returns Open MPI's or MPICH's mpirun command, for this machine or, by blocks, for `hosts`; writes their file.

    Open MPI's mpirun also starts programs of an MPICH that was built for PMIx. `environment` reaches every process;
    `parameters` are MCA parameters of Open MPI.
    """
    words = [str(installation.launcher), "-np", str(procs)]
    if installation.pmi == "pmix":
        if "--bind-to" not in launcher_args:
            words += ["--bind-to", "none"]
        words += _openmpi_hosts(hosts) if hosts is not None else ["--oversubscribe"]
        words += parameter_options(parameters or {})
        words += [word for name, value in (environment or {}).items() for word in ("-x", f"{name}={value}")]
    else:
        words += _mpich_hosts(hosts) if hosts is not None else []
        words += [word for name, value in (environment or {}).items() for word in ("-genv", name, value)]
    return LauncherCommand([*words, *launcher_args], _ENVIRONMENT)


def agent_link(agent: Path, folder: Path) -> Path:
    """A link in `folder` to one of our remote shells. Open MPI would split the command at blanks in a path."""
    link = folder / "agent"
    link.unlink(missing_ok=True)
    link.symlink_to(agent)
    return link


def parameter_options(parameters: Mapping[str, str]) -> list[str]:
    """The options of Open MPI's mpirun that set its parameters."""
    return [word for name, value in parameters.items() for word in ("--mca", name, value)]


def parameter_variables(parameters: Mapping[str, str]) -> dict[str, str]:
    """The environment variables that set Open MPI's parameters, whatever starts the processes."""
    return {f"OMPI_MCA_{name}": value for name, value in parameters.items()}


def _openmpi_hosts(hosts: RemoteHosts) -> list[str]:
    lines = (f"{host} slots={count}\n" for host, count in hosts.slots.items())
    hosts.file.write_text("".join(lines), encoding="utf-8")
    reached = {"plm_rsh_agent": hosts.remote_shell} if hosts.remote_shell else {"plm_rsh_args": _SSH_OPTIONS}
    # A batch system's own launcher would reach only the nodes of its job.
    return ["--hostfile", str(hosts.file), "--map-by", "slot", *parameter_options({**reached, "plm": "rsh"})]


def _mpich_hosts(hosts: RemoteHosts) -> list[str]:
    hosts.file.write_text("".join(f"{host}:{count}\n" for host, count in hosts.slots.items()), encoding="utf-8")
    reached = ["-launcher", "ssh", "-launcher-exec", hosts.remote_shell] if hosts.remote_shell else []
    return ["-f", str(hosts.file), "-ppn", str(next(iter(hosts.slots.values()))), *reached]


class Mpirun(ClusterTarget):
    """mpirun on named hosts; `remote_shell` is the command, quoted as for a shell, that replaces ssh."""

    launcher = "mpirun"

    def __init__(self, slots: Slots, options: LaunchOptions, remote_shell: str = "") -> None:
        self.remote_shell = remote_shell
        shell = shlex.split(remote_shell)[0] if remote_shell else "ssh"
        if set(slots) - {"localhost", "127.0.0.1"} and shutil.which(shell) is None:
            raise UsageError(
                f"'{shell}' not found on PATH: mpirun needs it to reach hosts; name another one with --remote-shell"
            )
        super().__init__(slots, options)

    def launcher_command(self, request: LaunchRequest, host_file: Path) -> LauncherCommand:
        """mpirun over the host file."""
        return mpirun_command(
            self.installation,
            request.procs,
            hosts=RemoteHosts(self.slots, host_file, self.remote_shell),
            environment=request.environment,
            parameters=TCP_PARAMETERS if self.options.transport == "tcp" else {},
            launcher_args=[*self.options.extra_args, *request.launcher_args],
        )


def slots_of_reservation(environment: Mapping[str, str]) -> Slots:
    """The hosts of OAR's node file, which has a line per core."""
    file = environment.get("OAR_NODEFILE") or environment.get("OAR_NODE_FILE")
    if not file:
        raise UsageError("--launcher oar: OAR_NODEFILE is not set; run within a reservation (oarsub)")
    return read_host_file(Path(file))


class Oar(Mpirun):
    """The hosts of the OAR reservation in which collwise runs, as on Grid'5000; oarsh replaces ssh."""

    launcher = "oar"

    def __init__(self, options: LaunchOptions, remote_shell: str = "") -> None:
        super().__init__(slots_of_reservation(os.environ), options, remote_shell or "oarsh")


PMI: Mapping[str, str] = {"openmpi": "pmix", "mpich": "pmi2"}
"""The usual value of srun's --mpi for each MPI library, for scripts that run elsewhere."""
FENCES: Mapping[str, str] = {"SLURM_PMIX_FENCE": "tree"}
"""The variable that sets one algorithm for all of PMIx's fences under Slurm.

By default a barrier uses a different algorithm than an exchange of data, and may overtake the exchange. Some processes
then leave MPI_Init and send messages to others that are still in it, and Open MPI crashes there.
"""


def slots_of_job(environment: Mapping[str, str]) -> Slots:
    """The nodes of the job that SLURM's variables describe, each with its number of tasks, by default 1."""
    listed = environment.get("SLURM_JOB_NODELIST") or environment.get("SLURM_NODELIST")
    if not listed:
        raise UsageError("--launcher srun: SLURM_JOB_NODELIST is not set; run within an allocation (salloc, sbatch)")
    nodes = expand_node_list(listed)
    tasks = expand_task_counts(environment.get("SLURM_TASKS_PER_NODE", "1"))
    tasks += [tasks[-1]] * (len(nodes) - len(tasks))
    return dict(zip(nodes, tasks, strict=False))


def srun_words(procs: int, per_node: int, pmi: str = PMI["openmpi"]) -> list[str]:
    """The srun command that starts processes by blocks of `per_node`, on as many nodes as needed."""
    words = ["srun", f"--mpi={pmi}", f"--ntasks={procs}", f"--nodes={-(-procs // per_node)}"]
    return [*words, f"--ntasks-per-node={per_node}", "--distribution=block", "--kill-on-bad-exit=1"]


class Srun(ClusterTarget):
    """The nodes of the SLURM job in which collwise runs."""

    launcher = "srun"

    def __init__(self, options: LaunchOptions) -> None:
        slots = slots_of_job(os.environ)
        if shutil.which("srun") is None:
            raise UsageError("--launcher srun: srun not found on PATH")
        super().__init__(slots, options)
        if cluster := os.environ.get("SLURM_CLUSTER_NAME"):
            self.facts = {**self.facts, "cluster": cluster}

    def launcher_command(self, request: LaunchRequest, host_file: Path) -> LauncherCommand:
        """The srun command; srun knows the hosts, and exports its own environment to the processes."""
        per_node, environment = self.processes_per_node(request.procs), dict(request.environment)
        # srun itself must not load a library that is meant for the processes.
        preload = environment.pop("LD_PRELOAD", None)
        words = srun_words(request.procs, per_node, self.installation.pmi)
        words.append("--export=ALL" + ("" if preload is None else f",LD_PRELOAD={preload}"))
        if self.options.transport == "tcp":
            environment = parameter_variables(TCP_PARAMETERS) | environment
        environment = {name: os.environ.get(name, value) for name, value in FENCES.items()} | environment
        return LauncherCommand([*words, *self.options.extra_args, *request.launcher_args], environment)


LOCAL_PROCS = 4  # Usual number of processes. This machine takes any number, but all of them share its cores.
# Times of more processes per core mostly show waiting for a core.
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
        """Runs the program, with a warning when more processes than cores are asked for."""
        warn_if_crowded(request.procs, 1)
        return self._launch(request)

    def _launch(self, request: LaunchRequest) -> ProgramRun:
        command = mpirun_command(
            self.installation, request.procs, environment=request.environment, launcher_args=request.launcher_args
        )
        return self.execute(request, command)


def warn_if_crowded(procs: int, per_core: int = _MAX_PROCESSES_PER_CORE) -> None:
    """Warns if more than `per_core` processes per core are to run here."""
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
