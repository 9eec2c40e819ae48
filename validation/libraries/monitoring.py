"""Counts the messages between processes in a run of one of our programs, by Open MPI's monitoring."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from collwise.simulator.execution.local_machine import run_program
from collwise.simulator.execution.mpirun import parameter_options
from collwise.simulator.execution.processes import ProgramRun
from collwise.validation.libraries.openmpi_file import OTHER_COMPONENTS

Traffic = Mapping[tuple[int, int], tuple[int, int]]
"""Messages and bytes by (source, destination)."""

# Many processes on few cores take long to start, longer still if other programs run.
_TIME_LIMIT_SECONDS = 60.0
_TIME_LIMIT_SECONDS_PER_PROCESS = 4.0
_SENT = re.compile(r"^([EI])\s+(\d+)\s+(\d+)\s+(\d+) bytes\s+(\d+) msgs sent")


@dataclass(frozen=True)
class Monitored:
    """A run, the number of processes that `counted` their messages, and the messages of the program and collectives."""

    run: ProgramRun
    counted: int
    by_program: Traffic
    by_collectives: Traffic


def monitored(program: str, procs: int, args: Sequence[str], settings: Mapping[str, str]) -> Monitored:
    """Runs a program under the installed Open MPI with these settings. Raises UsageError when there is none."""
    with tempfile.TemporaryDirectory(prefix="collwise-") as directory:
        monitoring = {
            "coll": OTHER_COMPONENTS,
            "pml_monitoring_enable": "2",  # the messages of collectives, apart from those of the program
            "pml_monitoring_enable_output": "3",
            "pml_monitoring_filename": f"{directory}/sent",
        }
        words = parameter_options({**settings, **monitoring})
        limit = _TIME_LIMIT_SECONDS + _TIME_LIMIT_SECONDS_PER_PROCESS * procs
        run = run_program("openmpi", program, procs, args, timeout_seconds=limit, launcher_args=words)
        profiles = [path.read_text(encoding="utf-8") for path in Path(directory).glob("sent.*.prof")]
    sent: dict[str, dict[tuple[int, int], tuple[int, int]]] = {"E": {}, "I": {}}
    for line in "\n".join(profiles).splitlines():
        if match := _SENT.match(line):
            source, target, size, messages = map(int, match.groups()[1:])
            sent[match[1]][source, target] = (messages, size)
    return Monitored(run, len(profiles), sent["E"], sent["I"])


def forcing(collective: str, algorithm: int, **parameters: int) -> dict[str, str]:
    """Open MPI's options that force the algorithm of this id, with `segmentsize` and the like."""
    option = f"coll_tuned_{collective}_algorithm"
    settings = {"coll_tuned_use_dynamic_rules": "1", option: str(algorithm)}
    return settings | {f"{option}_{name}": str(value) for name, value in parameters.items()}
