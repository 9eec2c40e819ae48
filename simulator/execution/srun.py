"""srun within an allocation of SLURM."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from collwise.common.errors import UsageError
from collwise.simulator.execution.cluster import ClusterTarget, Start, Wishes
from collwise.simulator.execution.host_lists import Slots, expand_node_list, repeated_tasks

_PMI = {"openmpi": "pmix", "mpich": "pmi2"}
_PRELOAD = "LD_PRELOAD"
_TCP_VARIABLES = {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "tcp,self"}


def slots_of_job(environment: Mapping[str, str]) -> Slots:
    """The nodes of the job that SLURM's variables describe, with the tasks that each takes, one unless SLURM says.

    Raises UsageError outside of an allocation.
    """
    listed = environment.get("SLURM_JOB_NODELIST") or environment.get("SLURM_NODELIST")
    if not listed:
        raise UsageError("--launcher srun: SLURM_JOB_NODELIST is not set; run within an allocation (salloc, sbatch)")
    nodes = expand_node_list(listed)
    tasks = repeated_tasks(environment.get("SLURM_TASKS_PER_NODE", "1"))
    tasks += [tasks[-1]] * (len(nodes) - len(tasks))
    return dict(zip(nodes, tasks, strict=False))


class Srun(ClusterTarget):
    """The nodes of the SLURM job that this runs in. `pmi` is srun's --mpi; the library's usual one if empty.

    Raises as ClusterTarget does, and UsageError outside of an allocation or without srun.
    """

    launcher = "srun"

    def __init__(self, wishes: Wishes, pmi: str = "") -> None:
        slots = slots_of_job(os.environ)
        if shutil.which("srun") is None:
            raise UsageError("--launcher srun: srun not found on PATH")
        self.pmi = pmi or _PMI[wishes.library]
        super().__init__(slots, wishes)

    def start(self, procs: int, host_file: Path, environment: Mapping[str, str]) -> Start:
        """As of any launcher. SLURM knows the hosts; variables reach the processes through srun's own."""
        per_node = next(iter(self.slots.values()))
        words = ["srun", f"--mpi={self.pmi}", f"--ntasks={procs}", f"--nodes={-(-procs // per_node)}"]
        words += [f"--ntasks-per-node={per_node}", "--distribution=block", "--kill-on-bad-exit=1"]
        # srun itself must not load what is for the processes.
        own = {name: value for name, value in environment.items() if name != _PRELOAD}
        words.append("--export=ALL" + (f",{_PRELOAD}={environment[_PRELOAD]}" if _PRELOAD in environment else ""))
        transport = _TCP_VARIABLES if self.wishes.transport == "tcp" else {}
        return Start(words, {**transport, **own})
