"""Descriptions of heterogeneous clusters: node types, and the wires between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations_with_replacement

from collwise.platforms.description import Description, OverheadRow
from collwise.platforms.hosts import numbered_hosts
from collwise.platforms.xml import heterogeneous_xml


@dataclass(frozen=True)
class NodeType:
    """A type of `nodes` equal nodes: their processors, their send and receive overheads, and their links.

    An overhead is a base time plus a time per byte. All flows of a node in one direction share its link.
    """

    name: str
    nodes: int
    cpus_per_node: int
    cores_per_node: int
    core_flops: float
    send_base_seconds: float
    send_seconds_per_byte: float
    receive_base_seconds: float
    receive_seconds_per_byte: float
    link_bytes_per_second: float
    link_latency_seconds: float

    @property
    def send(self) -> tuple[OverheadRow, ...]:
        """The send overhead as rows of a calibration."""
        return ((0, self.send_base_seconds, self.send_seconds_per_byte),)

    @property
    def receive(self) -> tuple[OverheadRow, ...]:
        """The receive overhead as rows of a calibration."""
        return ((0, self.receive_base_seconds, self.receive_seconds_per_byte),)

    def non_blocking_send(self, eager_limit_bytes: int) -> tuple[OverheadRow, ...]:
        """The overhead of a non-blocking send: that of a blocking one, which SMPI charges to eager messages only."""
        free = (eager_limit_bytes, 0.0, 0.0)
        return (*self.send, free) if eager_limit_bytes > 0 else (free,)


@dataclass(frozen=True)
class Wire:
    """Connection between the links of any two nodes of the types `one` and `other`, in both directions.

    It limits each flow separately. `one` and `other` are equal for nodes of the same type.
    """

    one: str
    other: str
    latency_seconds: float
    bytes_per_second: float


@dataclass(frozen=True, repr=False, kw_only=True)
class HeterogeneousPlatform(Description):
    """A cluster with nodes of several types; hosts follow the order of `node_types`.

    A message from i to j passes through i's link, the wire between their types and j's link. `wires` has one wire for
    every two types, and one for each type of more than one node. The node types define the overheads; `os`, `or_` and
    `ois` of the calibration are unused.
    """

    node_types: tuple[NodeType, ...]
    wires: tuple[Wire, ...]

    @property
    def nodes(self) -> int:
        """Number of nodes of all types."""
        return sum(kind.nodes for kind in self.node_types)

    @property
    def hosts(self) -> tuple[str, ...]:
        """Host names from first to last, grouped by type."""
        return numbered_hosts(self.host_prefix, self.first_host, self.nodes, self.host_suffix)

    @cached_property
    def types_of_hosts(self) -> tuple[NodeType, ...]:
        """The type of each host."""
        return tuple(kind for kind in self.node_types for _ in range(kind.nodes))

    @property
    def heterogeneous(self) -> bool:
        """Always true."""
        return True

    @property
    def default_processes_per_node(self) -> int:
        """The described number of processes per node, or the smallest number of CPUs of any node."""
        return self.processes_per_node or min(kind.cpus_per_node for kind in self.node_types)

    def wire(self, one: NodeType, other: NodeType) -> Wire:
        """The wire between nodes of two types, in any order. Raises KeyError where there is none."""
        return self._wires[frozenset((one.name, other.name))]

    def route(self, one: NodeType, other: NodeType) -> tuple[float, float]:
        """Latency, seconds, and bandwidth, bytes per second, between nodes of two types."""
        wire = self.wire(one, other)
        latency = one.link_latency_seconds + wire.latency_seconds + other.link_latency_seconds
        return latency, min(wire.bytes_per_second, one.link_bytes_per_second, other.link_bytes_per_second)

    @cached_property
    def _wires(self) -> dict[frozenset[str], Wire]:
        return {frozenset((wire.one, wire.other)): wire for wire in self.wires}

    def smpi_options(self) -> dict[str, str]:
        """The calibration as SimGrid options, with the slowest type's overheads. Properties of hosts override these."""
        send = max(kind.send for kind in self.node_types)
        receive = max(kind.receive for kind in self.node_types)
        return replace(self.calibration, os=send, or_=receive, ois=send).smpi_options()

    def xml_text(self) -> str:
        """The platform XML generated from this description."""
        return heterogeneous_xml(self)


def needed_wires(node_types: Mapping[str, int]) -> list[tuple[str, str]]:
    """The pairs of types between which a wire is needed, given the number of nodes of each type."""
    pairs = combinations_with_replacement(node_types, 2)
    return [(one, other) for one, other in pairs if one != other or node_types[one] > 1]
