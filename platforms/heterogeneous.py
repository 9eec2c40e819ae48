"""Clusters whose nodes differ: types of nodes, and a wire between every two of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations_with_replacement
from typing import Any

from collwise.platforms.description import Calibration, OverheadRow, Source
from collwise.platforms.hosts import HostPlatform, numbered_hosts
from collwise.platforms.xml import heterogeneous_xml


@dataclass(frozen=True)
class NodeType:
    """`nodes` equal nodes: their processors, the processor's time in a send and in a receive, and their links.

    Overheads are a base (seconds) and a share of each byte; all flows of a node share its link, either way by itself.
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
        """The sending overhead as rows of a list."""
        return ((0, self.send_base_seconds, self.send_seconds_per_byte),)

    @property
    def receive(self) -> tuple[OverheadRow, ...]:
        """The receiving overhead as rows of a list."""
        return ((0, self.receive_base_seconds, self.receive_seconds_per_byte),)

    def non_blocking_send(self, eager_limit_bytes: int) -> tuple[OverheadRow, ...]:
        """Like a blocking one: SMPI charges that below the eager limit only."""
        free = (eager_limit_bytes, 0.0, 0.0)
        return (*self.send, free) if eager_limit_bytes > 0 else (free,)


@dataclass(frozen=True)
class Wire:
    """What lies between the links of two nodes, of one type each, either way.

    It limits each flow by itself. `one` and `other` name the types, and are the same for nodes of one type.
    """

    one: str
    other: str
    latency_seconds: float
    bytes_per_second: float


@dataclass(frozen=True)
class HeterogeneousPlatform(HostPlatform):
    """A cluster behind one switch whose nodes are of several types; hosts come in the order of `node_types`.

    A message from i to j passes i's link, the wire of their types and j's link. `wires` has one for every two types,
    and one for each type of more than one node. The calibration's os, or and ois are the types', not its own.
    `published` holds the figures from the literature that the description uses; its keys carry the units.
    """

    name: str
    title: str
    site: str
    host_prefix: str
    host_suffix: str
    loopback_bytes_per_second: float
    loopback_latency_seconds: float
    node_types: tuple[NodeType, ...]
    wires: tuple[Wire, ...]
    first_host: int = 1
    processes_per_node: int | None = None
    calibration: Calibration = field(default_factory=Calibration)
    published: Mapping[str, Any] = field(default_factory=dict, hash=False)
    sources: tuple[Source, ...] = ()

    @property
    def nodes(self) -> int:
        """Nodes of all types."""
        return sum(kind.nodes for kind in self.node_types)

    @property
    def hosts(self) -> tuple[str, ...]:
        """Host names, first to last, type by type."""
        return numbered_hosts(self.host_prefix, self.first_host, self.nodes, self.host_suffix)

    @cached_property
    def types_of_hosts(self) -> tuple[NodeType, ...]:
        """The type of each host."""
        return tuple(kind for kind in self.node_types for _ in range(kind.nodes))

    @property
    def heterogeneous(self) -> bool:
        """True."""
        return True

    @property
    def reduce_seconds_per_byte(self) -> float:
        """The calibration's."""
        return self.calibration.reduce_seconds_per_byte

    @property
    def default_processes_per_node(self) -> int:
        """As described, else one for each CPU of the nodes with the fewest."""
        return self.processes_per_node or min(kind.cpus_per_node for kind in self.node_types)

    def wire(self, one: NodeType, other: NodeType) -> Wire:
        """The wire between nodes of two types, in any order. Raises KeyError where there is none."""
        return self._wires[frozenset((one.name, other.name))]

    @cached_property
    def _wires(self) -> dict[frozenset[str], Wire]:
        return {frozenset((wire.one, wire.other)): wire for wire in self.wires}

    def smpi_options(self) -> dict[str, str]:
        """The calibration as SimGrid options. Overheads: the slowest type's; hosts have their own as properties."""
        send = max(kind.send for kind in self.node_types)
        receive = max(kind.receive for kind in self.node_types)
        return replace(self.calibration, os=send, or_=receive, ois=send).smpi_options()

    def xml_text(self) -> str:
        """The platform XML written from this description."""
        return heterogeneous_xml(self)


def needed_wires(node_types: Mapping[str, int]) -> list[tuple[str, str]]:
    """The pairs of types, given the nodes of each, that have nodes to connect."""
    pairs = combinations_with_replacement(node_types, 2)
    return [(one, other) for one, other in pairs if one != other or node_types[one] > 1]
