"""A test bed as an execution target: Open MPI over TCP, with a network namespace, host name and TMPDIR per node.

While programs run there, TCP and the switch count dropped packets, retransmitted segments, and time-outs.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from operator import add, sub
from typing import Any

from collwise.common.errors import CollwiseError, UsageError
from collwise.common.units import counted
from collwise.simulator.execution.installations import find_installation
from collwise.simulator.execution.launchers import RemoteHosts, agent_link, mpirun_command
from collwise.simulator.execution.processes import LauncherCommand, ProgramRun, run_command
from collwise.simulator.execution.targets import TCP_EAGER_LIMIT_BYTES, ExecutionTarget, LaunchRequest
from collwise.validation.testbed.bed import Bed, busy, names
from collwise.validation.testbed.namespaces import AGENT, command
from collwise.validation.testbed.shape import TRANSPORT_PARAMETERS
from collwise.validation.testbed.slurm import jobs

_WAIT_SECONDS = 1.0
# A program that prints which of the given addresses do not answer. Nothing listens on the port that it tries, so a node
# that can be reached refuses the connection, and an unreachable node does not answer.
_CONNECTING = """
import errno, select, socket, sys, time
poller, waiting, silent = select.poll(), {}, set(sys.argv[2:])
for address in sys.argv[2:]:
    one = socket.socket()
    one.setblocking(False)
    if one.connect_ex((address, 9)) == errno.EINPROGRESS:
        waiting[one.fileno()] = one, address
        poller.register(one, select.POLLOUT)
deadline = time.monotonic() + float(sys.argv[1])
while silent and waiting and (left := deadline - time.monotonic()) > 0:
    for number, _ in poller.poll(left * 1000):
        one, address = waiting.pop(number)
        poller.unregister(one)
        if one.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) in (0, errno.ECONNREFUSED):
            silent.remove(address)
print(*silent)
"""


class TestBed(ExecutionTarget):
    """A test bed that is up. Ranks are placed by blocks of `ranks_per_node` on each node (default: the shape's number).

    The bed runs one program at a time. Raises UsageError if Open MPI is missing.
    """

    __test__ = False

    def __init__(self, bed: Bed, ranks_per_node: int | None = None) -> None:
        self.bed, self._per_node = bed, ranks_per_node or bed.shape.ranks_per_node
        self.installation = find_installation("openmpi")
        self.name = f"testbed-{bed.shape.title}"
        self.eager_limit_bytes = TCP_EAGER_LIMIT_BYTES
        self.usual_procs = bed.shape.nodes * self._per_node
        self.facts: Mapping[str, str] = {
            **bed.facts,
            "transport": "TCP" if self._per_node == 1 else "TCP, shared memory within a node",
            "ranks_per_node": str(self._per_node),
            **TRANSPORT_PARAMETERS[bed.shape.transport],
        }

    def processes_per_node(self, procs: int) -> int:
        """The number of processes on each node. Raises UsageError if there are too few nodes."""
        if procs > self.usual_procs:
            raise UsageError(f"{procs} processes; the test bed '{self.bed.name}' has room for {self.usual_procs}")
        return self._per_node

    def launch(self, request: LaunchRequest) -> ProgramRun:
        """Runs the program from the first node. Raises UsageError when something else runs on the bed."""
        bed = self.bed
        nodes = range(1, -(-request.procs // self.processes_per_node(request.procs)) + 1)
        with busy(bed):
            if bed.slurm and (waiting := jobs(bed)):
                many = counted(len(waiting), "job")
                raise UsageError(f"the test bed '{bed.name}' has {many} of Slurm; wait for them")
            # A run that was killed may have left processes behind.
            bed.end_processes()
            if silent := _unreachable_nodes(bed, nodes):
                return ProgramRun(returncode=1, reason=_no_answer(bed, silent))
            launcher = self._mpirun(request, nodes)
            program = [str(self.installation.program(request.program)), *request.args]
            with bed.ended_after():
                run = run_command(
                    [str(AGENT), bed.name, "n1", shlex.join([*launcher.words, *program])],
                    timeout_seconds=request.timeout_seconds,
                    on_line=request.on_line,
                    environment={**launcher.environment, **bed.mark},
                    end_others=bed.end_processes,
                )
            if run.returncode != 0 and (silent := _unreachable_nodes(bed, nodes)):
                run.reason = _no_answer(bed, silent)
            elif run.returncode is None:
                run.reason = f"not done within {request.timeout_seconds:g} s"
        return run

    def _mpirun(self, request: LaunchRequest, nodes: range) -> LauncherCommand:
        agent = agent_link(AGENT, self.bed.directory)
        slots = {f"n{node}": self._per_node for node in nodes}
        return mpirun_command(
            self.installation,
            request.procs,
            hosts=RemoteHosts(slots, self.bed.directory / "hosts", f"{agent} {self.bed.name}"),
            environment=request.environment,
            parameters=self.bed.shape.openmpi_parameters,
            launcher_args=request.launcher_args,
        )


def _no_answer(bed: Bed, nodes: Sequence[int]) -> str:
    listed = ", ".join(f"n{node} ({bed.address(node)})" for node in nodes)
    return f"test bed '{bed.name}': no answer from {listed}"


def _unreachable_nodes(bed: Bed, nodes: Iterable[int]) -> list[int]:
    """The nodes that do not answer the first one within a second; only the first if its own link is down."""
    others = {bed.address(node): node for node in nodes if node != 1}
    words = ["ip", "netns", "exec", bed.namespace("n1"), sys.executable, "-I", "-S", "-c", _CONNECTING]
    if bed.name not in names():
        raise CollwiseError(f"test bed '{bed.name}' was taken down")
    silent = [others[address] for address in command(*words, str(_WAIT_SECONDS), *others).split()]
    return [1] if len(silent) == len(others) > 1 else sorted(silent)


# The kernel's names of the counters of TCP, by ours.
_KERNEL_NAMES = {"sent_again": "TcpRetransSegs", "timeouts": "TcpExtTCPTimeouts", "loss_probes": "TcpExtTCPLossProbes"}


@dataclass(frozen=True)
class TcpCounts:
    """Sums over all nodes: retransmitted segments, retransmission time-outs, loss probes; packets dropped by ports."""

    sent_again: int = 0
    timeouts: int = 0
    loss_probes: int = 0
    drops: int = 0

    def __add__(self, other: TcpCounts) -> TcpCounts:
        return TcpCounts(*map(add, astuple(self), astuple(other)))

    def __sub__(self, other: TcpCounts) -> TcpCounts:
        return TcpCounts(*map(sub, astuple(self), astuple(other)))


def tcp_counts(bed: Bed) -> TcpCounts:
    """The counts since the test bed was made. Raises CollwiseError when a counter cannot be read."""
    total = TcpCounts()
    for node in bed.nodes:
        kernel = command("ip", "netns", "exec", bed.namespace(f"n{node}"), "nstat", "--json", "-az")
        total += node_counts(json.loads(kernel))
    return total + switch_counts(json.loads(command("tc", "-n", bed.namespace("switch"), "-s", "-j", "qdisc", "show")))


def node_counts(document: Mapping[str, Any]) -> TcpCounts:
    """The counts of one node, from the output of `nstat --json -az` there."""
    kernel = document["kernel"]
    return TcpCounts(**{ours: int(kernel.get(theirs, 0)) for ours, theirs in _KERNEL_NAMES.items()})


def switch_counts(queues: list[Mapping[str, Any]]) -> TcpCounts:
    """The counts of the switch, from the output of `tc -s -j qdisc show` there."""
    return TcpCounts(drops=sum(int(queue.get("drops", 0)) for queue in queues))
