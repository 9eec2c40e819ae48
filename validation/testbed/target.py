"""A test bed as an execution target: Open MPI over TCP, with a network namespace, host name and TMPDIR per node."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from collwise.common.errors import UsageError
from collwise.simulator.execution.installations import Installation, engine
from collwise.simulator.execution.processes import ProgramRun, run_command
from collwise.simulator.execution.targets import (
    TCP_EAGER_LIMIT_BYTES,
    ExecutionTarget,
    LaunchRequest,
    environment_options,
)
from collwise.validation.testbed.bed import Bed, busy
from collwise.validation.testbed.namespaces import end_processes
from collwise.validation.testbed.reachability import unreachable_nodes

AGENT = Path(__file__).with_name("agent")
"""What mpirun calls in place of ssh."""

_NETWORK = "10.77.0.0/16"
_MCA = {
    # Between nodes TCP; processes of one node share memory, as on real hosts.
    "btl": "tcp,vader,self",
    "pml": "ob1",
    "btl_tcp_if_include": _NETWORK,
    "oob_tcp_if_include": _NETWORK,
    # Nodes do not know that they share their cores.
    "mpi_yield_when_idle": "1",
}

_TRANSPORTS: Mapping[str, Mapping[str, str]] = {
    "steady": {
        # By default the receiver's permission for a large message queues behind its own data in the one connection
        # between two processes: an exchange then goes one way after the other, or not, as it happens.
        "btl_tcp_flags": "1",
        # By default Linux lets the buffer grow with use: what was sent before decides how many sends overlap.
        "btl_tcp_sndbuf": "16384",
    },
    "default": {},
}
"""By Shape.transport: Open MPI's parameters. 1 stands for sends only, without puts."""


class TestBed(ExecutionTarget):
    """A test bed that is up; `ranks_per_node` processes on each node, by blocks; None: as its shape has.

    One run at a time. Raises UsageError when Open MPI is missing.
    """

    __test__ = False

    def __init__(self, bed: Bed, ranks_per_node: int | None = None) -> None:
        self.bed, self._ranks_per_node = bed, ranks_per_node or bed.shape.ranks_per_node
        self.engine: Installation = engine("openmpi")
        self.name = f"testbed-{bed.shape.title}"
        self.eager_limit_bytes = TCP_EAGER_LIMIT_BYTES
        self.usual_procs = bed.shape.nodes * self._ranks_per_node
        self.facts: Mapping[str, str] = {
            **bed.facts,
            "transport": "TCP" if self._ranks_per_node == 1 else "TCP, shared memory within a node",
            "ranks_per_node": str(self._ranks_per_node),
            **_TRANSPORTS[bed.shape.transport],
        }

    def processes_per_node(self, procs: int) -> int:
        """As asked for. Raises UsageError when the nodes do not suffice."""
        most = self.bed.shape.nodes * self._ranks_per_node
        if procs > most:
            raise UsageError(f"{procs} processes; the test bed '{self.bed.name}' has room for {most}")
        return self._ranks_per_node

    def launch(self, request: LaunchRequest) -> ProgramRun:
        """As of any ExecutionTarget. Raises UsageError when something else runs on the bed."""
        bed = self.bed
        nodes = range(1, -(-request.procs // self.processes_per_node(request.procs)) + 1)
        words = [*environment_options(self.engine, request.environment), *request.launcher_args]
        words += [str(self.engine.program(request.program)), *request.args]
        with busy(bed):
            # Of a run that was killed.
            self._end()
            if silent := unreachable_nodes(bed, nodes):
                return ProgramRun(returncode=1, reason=_silence(bed, silent), version=self.engine.version)
            try:
                run = run_command(
                    [str(AGENT), bed.name, "n1", shlex.join([*self._mpirun(nodes, request.procs), *words])],
                    timeout_seconds=request.timeout_seconds,
                    on_line=request.on_line,
                    environment={"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"},
                    end_others=self._end,
                )
            finally:
                self._end()
            if run.returncode != 0 and (silent := unreachable_nodes(bed, nodes)):
                run.reason = _silence(bed, silent)
            elif run.returncode is None:
                run.reason = f"not done within {request.timeout_seconds:g} s"
        run.version = self.engine.version
        return run

    def _mpirun(self, nodes: range, procs: int) -> list[str]:
        bed, host_file = self.bed, self.bed.directory / "hosts"
        host_file.write_text("".join(f"n{node} slots={self._ranks_per_node}\n" for node in nodes))
        # Open MPI cuts the agent at every blank, and our own path may have some.
        agent = self.bed.directory / "agent"
        agent.unlink(missing_ok=True)
        agent.symlink_to(AGENT)
        options = {**_MCA, **_TRANSPORTS[bed.shape.transport], "plm_rsh_agent": f"{agent} {bed.name}"}
        words = [str(self.engine.launcher), "--hostfile", str(host_file), "-np", str(procs), "--bind-to", "none"]
        return words + [word for name, value in options.items() for word in ("--mca", name, value)]

    def _end(self) -> None:
        end_processes(self.bed.namespaces, self.bed.mark)


def _silence(bed: Bed, nodes: Sequence[int]) -> str:
    listed = ", ".join(f"n{node} ({bed.address(node)})" for node in nodes)
    return f"test bed '{bed.name}': no answer from {listed}"
