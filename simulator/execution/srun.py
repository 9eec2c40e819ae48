"""srun within an allocation of SLURM."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from collwise.common.errors import UsageError
from collwise.simulator.execution.cluster import TCP_PARAMETERS, ClusterTarget, LaunchOptions
from collwise.simulator.execution.host_lists import Slots, expand_node_list, expand_task_counts
from collwise.simulator.execution.mpirun import parameter_variables
from collwise.simulator.execution.processes import LauncherCommand
from collwise.simulator.execution.targets import LaunchRequest

PMI: Mapping[str, str] = {"openmpi": "pmix", "mpich": "pmi2"}
"""The value of srun's --mpi for each MPI library."""

FENCES: Mapping[str, str] = {"SLURM_PMIX_FENCE": "tree"}
"""The algorithm of all of PMIx's fences under Slurm.

By default a barrier uses a different one than an exchange of data, and may overtake it: then some processes leave
MPI_Init and send messages while others are still in it, where Open MPI crashes on them.
"""


def slots_of_job(environment: Mapping[str, str]) -> Slots:
    """The nodes of the job that SLURM's variables describe, each with its tasks: one unless SLURM says otherwise."""
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
    """The nodes of the SLURM job that this runs in."""

    launcher = "srun"

    def __init__(self, options: LaunchOptions) -> None:
        slots = slots_of_job(os.environ)
        if shutil.which("srun") is None:
            raise UsageError("--launcher srun: srun not found on PATH")
        super().__init__(slots, options)
        if cluster := os.environ.get("SLURM_CLUSTER_NAME"):
            self.facts = {**self.facts, "cluster": cluster}

    def launcher_command(self, request: LaunchRequest, host_file: Path) -> LauncherCommand:
        """srun, which knows the hosts and exports its own environment to the processes."""
        per_node, environment = self.processes_per_node(request.procs), dict(request.environment)
        # srun itself must not load a library that is meant for the processes.
        preload = environment.pop("LD_PRELOAD", None)
        words = srun_words(request.procs, per_node, PMI[self.options.library])
        words.append("--export=ALL" + ("" if preload is None else f",LD_PRELOAD={preload}"))
        if self.options.transport == "tcp":
            environment = parameter_variables(TCP_PARAMETERS) | environment
        environment = {name: os.environ.get(name, value) for name, value in FENCES.items()} | environment
        return LauncherCommand([*words, *self.options.extra_args, *request.launcher_args], environment)
