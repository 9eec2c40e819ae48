"""mpirun on named hosts: Open MPI's, or Hydra, which is MPICH's."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path

from collwise.common.errors import UsageError
from collwise.simulator.execution.cluster import ClusterTarget, Start, Wishes
from collwise.simulator.execution.host_lists import Slots
from collwise.simulator.execution.processes import NO_BATCH_JOB
from collwise.simulator.execution.targets import environment_options

# A host that asks for a password, or keeps silent, is out of reach.
_SSH_OPTIONS = "-o BatchMode=yes -o ConnectTimeout=10"
TCP_OPTIONS = ("--mca", "pml", "ob1", "--mca", "btl", "tcp,self")


class Mpirun(ClusterTarget):
    """mpirun on named hosts; `remote_shell` is a command, as a shell reads it, that reaches hosts instead of ssh.

    Raises as ClusterTarget does, and UsageError when the remote shell is not there.
    """

    launcher = "mpirun"

    def __init__(self, slots: Slots, wishes: Wishes, remote_shell: str = "") -> None:
        self.remote_shell = remote_shell
        shell = shlex.split(remote_shell)[0] if remote_shell else "ssh"
        if set(slots) - {"localhost", "127.0.0.1"} and shutil.which(shell) is None:
            raise UsageError(f"'{shell}' not found on PATH: mpirun reaches hosts by it; another: --remote-shell")
        super().__init__(slots, wishes)

    def start(self, procs: int, host_file: Path, environment: Mapping[str, str]) -> Start:
        """As of any launcher."""
        words = [str(self.engine.launcher), "-np", str(procs)]
        if self.engine.library == "openmpi":
            words += self._openmpi(host_file)
        else:
            host_file.write_text("".join(f"{host}:{count}\n" for host, count in self.slots.items()), encoding="utf-8")
            words += ["-f", str(host_file), "-ppn", str(next(iter(self.slots.values())))]
            if self.remote_shell:
                words += ["-launcher", "ssh", "-launcher-exec", self.remote_shell]
        words += environment_options(self.engine, environment)
        return Start(words, {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", **NO_BATCH_JOB})

    def _openmpi(self, host_file: Path) -> list[str]:
        lines = (f"{host} slots={count}\n" for host, count in self.slots.items())
        host_file.write_text("".join(lines), encoding="utf-8")
        words = ["--hostfile", str(host_file), "--map-by", "slot"]
        if "--bind-to" not in self.wishes.extra_args:
            words += ["--bind-to", "none"]
        if self.remote_shell:
            words += ["--mca", "plm_rsh_agent", self.remote_shell]
        else:
            words += ["--mca", "plm_rsh_args", _SSH_OPTIONS]
        # A batch system's own way reaches the nodes of its job alone.
        words += ["--mca", "plm", "rsh"]
        return [*words, *(TCP_OPTIONS if self.wishes.transport == "tcp" else ())]
