"""A test bed as a Place: Open MPI over TCP; a node is a network namespace with a host name and TMPDIR of its own."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from collwise.common.errors import UsageError
from collwise.simulator.engines import Engine, engine
from collwise.simulator.launch import ProgramRun, run_command
from collwise.simulator.places import TCP_EAGER_LIMIT_BYTES, variable_options
from collwise.validation.testbed.bed import Bed

AGENT = Path(__file__).with_name("agent")
"""What mpirun calls in place of ssh."""

_MCA = {
    "btl": "tcp,self",
    "pml": "ob1",
    # Nodes do not know that they share two cores.
    "mpi_yield_when_idle": "1",
}


class TestBed:
    """A Place on a test bed that is up; `ranks_per_node` processes on each node, by blocks."""

    __test__ = False

    def __init__(self, bed: Bed, ranks_per_node: int = 1) -> None:
        self.bed, self._ranks_per_node = bed, ranks_per_node
        self.engine: Engine = engine("openmpi")
        shape = bed.shape
        self.name = f"testbed-{shape.nodes}x{shape.bits_per_second / 1e6:g}M"
        self.eager_limit_bytes = TCP_EAGER_LIMIT_BYTES
        self.usual_procs = shape.nodes * ranks_per_node
        self.facts: Mapping[str, str] = {
            "transport": "TCP",
            "ranks_per_node": str(ranks_per_node),
            "bits_per_second": str(shape.bits_per_second),
            "buffer_bytes": str(shape.buffer_bytes),
            "burst_bytes": str(shape.burst_bytes),
        }

    def processes_per_node(self, procs: int) -> int:
        """As asked for. Raises UsageError when the nodes do not suffice."""
        most = self.bed.shape.nodes * self._ranks_per_node
        if procs > most:
            raise UsageError(f"{procs} processes; the test bed '{self.bed.name}' has room for {most}")
        return self._ranks_per_node

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
        """As of any Place."""
        per_node = self.processes_per_node(procs)
        host_file = self.bed.directory / "hosts"
        nodes = -(-procs // per_node)
        host_file.write_text("".join(f"{self.bed.address(node)} slots={per_node}\n" for node in range(1, nodes + 1)))
        options = _MCA | {
            "plm_rsh_agent": shlex.join([str(AGENT), self.bed.name]),
            "btl_tcp_if_include": "10.77.0.0/16",
            "oob_tcp_if_include": "10.77.0.0/16",
        }
        command = [str(AGENT), self.bed.name, self.bed.address(1), str(self.engine.launcher)]
        command += ["--hostfile", str(host_file), "-np", str(procs), "--bind-to", "none"]
        command += [word for name, value in options.items() for word in ("--mca", name, value)]
        command += [*variable_options(self.engine, environment or {}), *launcher_args]
        command += [str(self.engine.program(program)), *args]
        run = run_command(
            [*command[:3], shlex.join(command[3:])],
            timeout_seconds=timeout_seconds,
            on_line=on_line,
            environment={"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"},
        )
        run.version = self.engine.version
        return run
