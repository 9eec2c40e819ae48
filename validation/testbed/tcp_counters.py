"""Counters of TCP and of the switch of a test bed: dropped packets, retransmitted segments, and time-outs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from operator import add, sub
from typing import Any

from collwise.validation.testbed.bed import Bed
from collwise.validation.testbed.namespaces import command

# The kernel's names of the counters by ours.
_KERNEL_NAMES = {
    "sent_again": "TcpRetransSegs",
    "timeouts": "TcpExtTCPTimeouts",
    "loss_probes": "TcpExtTCPLossProbes",
}


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
    """The counts since the test bed was made; the difference of two readings counts the events in between.

    Raises CollwiseError when a counter cannot be read.
    """
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
