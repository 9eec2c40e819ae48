"""The runner for applications in SMPI: whole programs with modelled computation, under one choice of collectives.

Each execution makes two rows, which differ in `experiment`: the whole time, and the time within collectives.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from collwise.common.errors import CollwiseError
from collwise.platforms import HostPlatform
from collwise.simulator.execution.installations import Installation, file_digest, smpi_installation
from collwise.simulator.execution.interposed import following_rules
from collwise.simulator.execution.smpirun import SMPI_OPTIONS, run_smpi
from collwise.simulator.sweeps.runner import Keep, Runner
from collwise.simulator.sweeps.smpi_runner import simulated_configuration
from collwise.simulator.timing import Case, Configuration, Timing

APPLICATION = "application"
"""The experiment that times the whole application, until its slowest process is done."""
IN_COLLECTIVES = "application_collectives"
"""The experiment that times collectives: their total, as a mean over processes; `greatest_seconds` is the maximum."""

_FOLDED_LIBRARY = "libcollwise_folded.so"
# Data is folded into one block; larger blocks need fewer mappings, and the kernel allows some 65 thousand of them.
_FOLDING = {"smpi/shared-malloc-blocksize": str(2**26)}


@dataclass(frozen=True)
class CollectivesInUse:
    """The rules of libcollwise for an application's collectives, if any, and SMPI's selector for other calls."""

    name: str
    selector: str = "ompi"
    rules: str = ""


@dataclass(frozen=True)
class ProgramCall:
    """A collective that an application calls, with the message bytes and the number of these calls."""

    collective: str
    message_bytes: int
    calls: int


class ApplicationRunner(Runner):
    """Executes one application, always with the same arguments and one run at a time, for `application_cases`."""

    def __init__(
        self,
        platform: HostPlatform,
        application: str,
        arguments: Sequence[str],
        collectives: CollectivesInUse,
        procs: int = 1,
        simgrid: str | None = None,
    ) -> None:
        """`procs`: the largest process count to be asked for; for 1024 or more a newer SimGrid is preferred."""
        self.platform = platform
        self.installation: Installation = smpi_installation(simgrid, procs)
        self._application, self._arguments, self._collectives = application, tuple(arguments), collectives
        self._stop = threading.Event()

    @property
    def configuration(self) -> Configuration:
        """The configuration that the times depend on besides the case."""
        rules = self._collectives.rules
        library = file_digest(self.installation.program(_FOLDED_LIBRARY)) if rules else ""
        return simulated_configuration(
            self.platform,
            self.installation,
            self._application,
            options=json.dumps(SMPI_OPTIONS | _FOLDING, sort_keys=True),
            arguments=" ".join(self._arguments),
            selector=self._collectives.selector,
            rules=hashlib.sha256(rules.encode()).hexdigest(),
            library_digest=library,
        )

    def weight(self, case: Case) -> float:
        """The number of processes, since the number of messages is not known beforehand."""
        return float(case.procs)

    def make(self, cases: Sequence[Case], keep: Keep) -> None:
        """Runs the application once per process count."""
        for procs, per_node in dict.fromkeys((case.procs, case.processes_per_node) for case in cases):
            total, within = application_cases(self._application, self._collectives.name, procs, per_node)
            try:
                [record] = self._run(procs, per_node, self._arguments)
            except CollwiseError as problem:
                if problem.exit_code != CollwiseError.exit_code:
                    raise
                keep(Timing(total, float("nan"), error=str(problem)))
                keep(Timing(within, float("nan"), error=str(problem)))
                continue
            mean, most = float(record["collective_seconds_mean"]), float(record["collective_seconds_max"])
            keep(Timing(total, float(record["seconds"])))
            keep(Timing(within, mean, greatest_seconds=most))

    def calls(self, procs: int, processes_per_node: int) -> list[ProgramCall]:
        """The collectives that the application calls with its arguments. Raises CollwiseError when it does not run."""
        records = self._run(procs, processes_per_node, (*self._arguments, "--calls", "1"))
        return [ProgramCall(**record) for record in records]

    def _run(self, procs: int, per_node: int, arguments: Sequence[str]) -> list[dict[str, Any]]:
        """The records that an execution prints, at least one. Raises CollwiseError when it fails."""
        options = {**_FOLDING, "smpi/coll-selector": self._collectives.selector}
        self.processes_started += 1
        with tempfile.TemporaryDirectory(prefix="collwise-") as directory:
            environment, marker = dict[str, str](), Path(directory, "load_marker")
            if rules := self._collectives.rules:
                environment = following_rules(rules, self.installation.program(_FOLDED_LIBRARY), Path(directory))
                environment["COLLWISE_LOAD_MARKER"] = str(marker)
            run = run_smpi(
                self.installation,
                self.platform,
                self._application,
                procs,
                arguments,
                processes_per_node=per_node,
                launcher_args=[f"--cfg={option}:{value}" for option, value in options.items()],
                environment=environment,
                stop=self._stop,
            )
            loaded = not rules or marker.exists()
        records = [json.loads(line) for line in run.output_lines if line.startswith("{")]
        if run.returncode != 0 or not records:
            raise CollwiseError(f"{self.installation.label}: {run.problem}")
        if not loaded:
            raise CollwiseError(f"{self._application} in {self.installation.label} ended without calling libcollwise")
        return records


def application_cases(application: str, name: str, procs: int, processes_per_node: int) -> tuple[Case, Case]:
    """The cases of an execution with the collectives `name`: the whole time, and the time within collectives."""
    total = Case(application, name, procs, 0, processes_per_node=processes_per_node, experiment=APPLICATION)
    return total, replace(total, experiment=IN_COLLECTIVES)
