"""Slurm on a test bed. Each node has a slurmd, and the switch a login node with munged and slurmctld."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import shlex
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

from collwise.common.errors import CollwiseError, UsageError
from collwise.common.files import write_text
from collwise.simulator.execution.launchers import FENCES, parameter_variables, srun_words
from collwise.simulator.execution.processes import ProgramRun, run_command
from collwise.validation.testbed.namespaces import AGENT, command, found_command

if TYPE_CHECKING:
    from collwise.validation.testbed.bed import Bed

LOGIN = "login"
"""The host on which jobs are submitted."""

_LOGIN_ADDRESS = "10.77.255.1"
_COMMANDS = ("munged", "slurmctld", "slurmd", "sinfo", "squeue", "srun", "sbatch")
_READY_SECONDS = 60.0
_POLL_SECONDS = 0.1
# Time for srun to end its tasks, after it was asked to end.
_GRACE_SECONDS = 5.0
_MAX_LETTERS = 31  # Slurm cuts names of clusters
_CONFIGURATION = Path(__file__).with_name("slurm.conf")
# Control groups are not used, since they belong to the whole machine.
_CONTROL_GROUPS = "CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n"


@dataclass(frozen=True)
class Job:
    """A job that waits or runs. `nodes` are the job's nodes, or in brackets the reason why it waits."""

    id: str
    name: str
    state: str
    nodes: str


def obstacle() -> str:
    """The reason why no Slurm can be started here; empty if one can."""
    for name in _COMMANDS:
        if found_command(name) is None:
            packages = "slurmctld, slurmd, slurm-client and munge"
            return f"a test bed with Slurm needs the command '{name}' (packages {packages})"
    return ""


def start(bed: Bed) -> None:
    """Starts all daemons and waits until every node is idle. Raises CollwiseError when that fails."""
    folder = _folder(bed)
    folder.mkdir(mode=0o700)
    (folder / "state").mkdir()
    (bed.directory / LOGIN).mkdir()
    with (bed.directory / "etc-hosts").open("a", encoding="utf-8") as hosts:
        hosts.write(f"{_LOGIN_ADDRESS} {LOGIN}\n")
    configuration = Template(_CONFIGURATION.read_text(encoding="utf-8")).substitute(
        cluster=_cluster_name(bed),
        address=_LOGIN_ADDRESS,
        folder=folder,
        directory=bed.directory,
        nodes=bed.shape.nodes,
        ranks=bed.shape.ranks_per_node,
    )
    write_text(folder / "slurm.conf", configuration)
    write_text(folder / "cgroup.conf", _CONTROL_GROUPS)
    settings = {**parameter_variables(bed.shape.openmpi_parameters), **FENCES}
    lines = [f"export {name}=${{{name}-{shlex.quote(value)}}}" for name, value in settings.items()]
    write_text(bed.directory / "environment", "\n".join([f"export SLURM_CONF={folder}/slurm.conf", *lines, ""]))
    key = os.open(folder / "munge.key", os.O_WRONLY | os.O_CREAT, 0o600)
    with os.fdopen(key, "wb") as file:
        file.write(secrets.token_bytes(128))
    command("ip", "-n", bed.namespace("switch"), "addr", "add", f"{_LOGIN_ADDRESS}/16", "dev", "br1")
    options = {"key-file": "key", "socket": "socket", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
    own = [f"--{option}={folder}/munge.{end}" for option, end in options.items()]
    command(*_on(bed, LOGIN, "munged", "--force", *own))
    command(*_on(bed, LOGIN, "slurmctld"))
    for node in bed.nodes:
        command(*_on(bed, f"n{node}", "slurmd", "-N", f"n{node}"))
    _wait(bed, lambda states: len(states) == bed.shape.nodes and set(states.values()) == {"idle"})


def start_node(bed: Bed, node: int) -> None:
    """Starts the slurmd of a node that was off, and waits until Slurm uses it. Raises as `start` does."""
    name = f"n{node}"
    command(*_on(bed, name, "slurmd", "-N", name))
    _wait(bed, lambda states: states[name] in ("idle", "allocated", "completing", "mixed"))


def on_login(bed: Bed, words: Sequence[str]) -> list[str]:
    """The command line that runs a command on the login node."""
    return _on(bed, LOGIN, *words)


def node_states(bed: Bed) -> dict[str, str]:
    """The state of each node, with '*' if it does not answer. Raises CollwiseError when Slurm does not answer."""
    listed = command(*on_login(bed, ["sinfo", "--noheader", "--Node", "--format=%N %T"])).split()
    return dict(zip(listed[::2], listed[1::2], strict=True))


def jobs(bed: Bed) -> list[Job]:
    """The jobs that wait or run. Raises CollwiseError when Slurm does not answer."""
    lines = command(*on_login(bed, ["squeue", "--noheader", "--format=%i|%j|%T|%N%r"])).splitlines()
    return [Job(*line.split("|")) for line in lines]


def run(bed: Bed, procs: int, words: Sequence[str], **options: Any) -> ProgramRun:
    """Runs an Open MPI program by srun once its nodes are free. `options` are options of `run_command`."""
    room = bed.shape.nodes * bed.shape.ranks_per_node
    if procs > room:
        raise UsageError(f"{procs} processes; the test bed '{bed.name}' has room for {room}")
    command = [*srun_words(procs, bed.shape.ranks_per_node), *words]
    return run_command(on_login(bed, command), grace_seconds=_GRACE_SECONDS, **options)


def _on(bed: Bed, host: str, *words: str) -> list[str]:
    """The command line that runs a command on a host. Daemons that the command starts run until the bed is removed."""
    return ["env", "COLLWISE_TESTBED=", str(AGENT), bed.name, host, shlex.join(words)]


def _wait(bed: Bed, ready: Callable[[dict[str, str]], bool]) -> None:
    deadline = time.monotonic() + _READY_SECONDS
    while time.monotonic() < deadline:
        with contextlib.suppress(CollwiseError):
            if ready(node_states(bed)):
                return
        time.sleep(_POLL_SECONDS)
    complaints = [line for log in sorted(_folder(bed).glob("*.log")) for line in _errors(log)]
    last = complaints[-1] if complaints else "see its logs"
    raise CollwiseError(f"test bed '{bed.name}': Slurm is not ready after {_READY_SECONDS:g} s: {last}")


def _errors(log: Path) -> list[str]:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return [f"{log.stem}: {line}" for line in lines if "error" in line or "fatal" in line]


def _folder(bed: Bed) -> Path:
    return bed.directory / "slurm"


def _cluster_name(bed: Bed) -> str:
    """A cluster name that differs between shapes and settings, so that their times are not mixed."""
    title = bed.shape.title.lower().replace(".", "_")
    digest = hashlib.sha256(json.dumps(dict(bed.facts), sort_keys=True).encode()).hexdigest()
    return f"testbed-{title}"[:_MAX_LETTERS] + f"-{digest[:8]}"
