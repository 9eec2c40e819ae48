"""Descriptions of clusters, homogeneous or not: nodes, links and the calibration of the simulated MPI library."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations_with_replacement
from typing import Any

from collwise.platforms.hosts import HostPlatform, numbered_hosts
from collwise.platforms.smpi import factor_list, overhead_list
from collwise.platforms.topology import Topology
from collwise.platforms.xml import heterogeneous_xml, platform_xml

FactorRow = tuple[int, float]
"""(from_bytes, factor): applies to messages of at least from_bytes."""

OverheadRow = tuple[int, float, float]
"""(from_bytes, base_seconds, seconds_per_byte): applies to messages of at least from_bytes."""

_NO_FACTOR: tuple[FactorRow, ...] = ((0, 1.0),)
_NO_OVERHEAD: tuple[OverheadRow, ...] = ((0, 0.0, 0.0),)


@dataclass(frozen=True)
class Source:
    """The origin of numbers: `what` names the numbers, and `where` their source."""

    what: str
    where: str


@dataclass(frozen=True)
class Calibration:
    """SMPI parameters that describe how the MPI library and the network deviate from latency + bytes / bandwidth.

    Rows start at 0 and ascend; `from_bytes` counts the message's own bytes. `latency_factor` and `bandwidth_factor`
    multiply the latency and the bandwidth of every route, including a node's loopback. `os`, `or_` and `ois` are the
    processor's overheads of a blocking send, a receive and a non-blocking send: SMPI charges `os` and `or_` below the
    rendezvous threshold only, `ois` at every size, and nothing for empty messages. Messages of `eager_limit_bytes` or
    more use the rendezvous protocol. Senders of shorter ones of `acknowledged_from_bytes` or more to another node wait
    until that node has acknowledged all of them, except under SMPI. With `crosstraffic`, a flow uses 5 % of its rate in
    the opposite direction.
    `copy_seconds_per_byte` is for copies in an algorithm's own buffers. Such buffers of `kept_memory_bytes` or more get
    new memory in each call, and mapping it takes `allocate_seconds_per_byte`. None stands for no time. With
    `tcp_window`, SimGrid's default, a flow transfers at most one TCP window per round trip.
    """

    latency_factor: tuple[FactorRow, ...] = _NO_FACTOR
    bandwidth_factor: tuple[FactorRow, ...] = _NO_FACTOR
    os: tuple[OverheadRow, ...] = _NO_OVERHEAD
    or_: tuple[OverheadRow, ...] = _NO_OVERHEAD
    ois: tuple[OverheadRow, ...] = _NO_OVERHEAD
    eager_limit_bytes: int = 65536
    acknowledged_from_bytes: int | None = None
    crosstraffic: bool = True
    reduce_seconds_per_byte: float = 0.0
    copy_seconds_per_byte: float | None = None
    allocate_seconds_per_byte: float | None = None
    kept_memory_bytes: int = 33554432
    tcp_window: bool = True
    note: str = ""
    sources: tuple[Source, ...] = ()

    def with_overheads_times(self, factor: float) -> Calibration:
        """The calibration with all overheads of the processor multiplied."""
        rows: dict[str, Any] = {
            name: tuple((start, base * factor, per_byte * factor) for start, base, per_byte in getattr(self, name))
            for name in ("os", "or_", "ois")
        }
        return replace(self, **rows)

    def smpi_options(self) -> dict[str, str]:
        """The same parameters as SimGrid options, with names that SimGrid 3.32 to 4.1 understand."""
        options = {
            "smpi/lat-factor": factor_list(self.latency_factor),
            "smpi/bw-factor": factor_list(self.bandwidth_factor),
            "smpi/os": overhead_list(self.os),
            "smpi/or": overhead_list(self.or_),
            "smpi/ois": overhead_list(self.ois),
            "smpi/send-is-detached-thresh": str(self.eager_limit_bytes),
            "network/crosstraffic": "yes" if self.crosstraffic else "no",
        }
        return options if self.tcp_window else options | {"network/TCP-gamma": "0"}


COPY_SECONDS_PER_BYTE = 1e-10
"""The default time to copy a byte: one byte read and one byte written, at 20 GB/s."""

LEAST_FLAG_SECONDS = 1e-7
"""The minimum latency of a flag in shared memory if it is unknown: the time to read another core's cache line."""

PACKET_BYTES = 1448
"""The bytes of a message in a full packet of TCP over Ethernet, with time stamps."""


@dataclass(frozen=True)
class Buffers:
    """Finite buffers of a switch's ports, in bytes without headers, and the TCP that retransmits what the buffers drop.

    Connections begin with `initial_window_packets`, and have at most the send buffer of `Ports` in flight. If fewer
    than three packets arrive after a lost one, the lost packet is sent again when nothing was acknowledged for
    `retransmission_seconds` plus a round trip. The defaults are Linux's least time-out, Ethernet's packets with time
    stamps, and the window of RFC 6928.
    """

    buffer_bytes: int
    retransmission_seconds: float = 0.2
    packet_bytes: int = PACKET_BYTES
    initial_window_packets: int = 10


@dataclass(frozen=True)
class Ports:
    """The parameters of the nodes' ports, which only the schedule engine uses; SMPI has no such parameters.

    In each direction, a port passes `bytes_per_second` in full packets (PACKET_BYTES of a message and `header_bytes`
    more) and, like a token bucket, `burst_bytes` at once after a pause. A message takes `latency_seconds` in addition
    to the port's time and the overheads of the calibration. A message that waits for its receiver takes
    `handshake_seconds` more before it leaves, and its sender continues when only `send_buffer_bytes` of the message are
    left. Acknowledgements take `acknowledgement_share` of a flow's rate in the opposite direction. The loopback's
    latency includes overheads; if its rate is 0, SMPI's parameters apply. Without `buffers` the switch never loses
    packets.
    """

    bytes_per_second: float
    latency_seconds: float
    handshake_seconds: float = 0.0
    burst_bytes: float = 0.0
    header_bytes: float = 0.0
    acknowledgement_share: float = 0.0
    send_buffer_bytes: float = 0.0
    loopback_latency_seconds: float = 0.0
    loopback_bytes_per_second: float = 0.0
    buffers: Buffers | None = None


@dataclass(frozen=True, repr=False, kw_only=True)
class Description(HostPlatform):
    """The fields that the descriptions of homogeneous and heterogeneous clusters share.

    Processes on one node communicate through a loopback. `processes_per_node` is the default number; None means one per
    CPU. `published` holds figures from the literature; its keys name the units.
    """

    name: str
    title: str
    site: str
    host_prefix: str
    host_suffix: str
    loopback_bytes_per_second: float
    loopback_latency_seconds: float
    first_host: int = 1
    processes_per_node: int | None = None
    calibration: Calibration = Calibration()
    published: Mapping[str, Any] = field(default_factory=dict, hash=False)
    sources: tuple[Source, ...] = ()

    @property
    def reduce_seconds_per_byte(self) -> float:
        """Time to combine one byte in a reduction (gamma), from the calibration."""
        return self.calibration.reduce_seconds_per_byte


@dataclass(frozen=True)
class NodeFault:
    """Factors by which a node's overheads, and the rate of its link and port, differ from those of other nodes."""

    node: int
    overhead_factor: float = 1.0
    rate_factor: float = 1.0

    @property
    def factors(self) -> tuple[float, float]:
        """Both factors; (1, 1) if the node is like the others."""
        return self.overhead_factor, self.rate_factor


@dataclass(frozen=True, repr=False, kw_only=True)
class Platform(Description):
    """A homogeneous cluster, whose nodes are equal except for `node_faults`.

    The `links_per_node` links of a node act as one link of their summed bandwidth. A switch with
    `backbone_bytes_per_second` limits each flow (if `backbone_is_shared`, all flows together) and adds
    `backbone_latency_seconds`. Without `ports` the schedule engine uses the parameters of SMPI. Without `topology` all
    nodes are at one switch.

    A node's CPUs are its sockets; without `memory_domains_per_node` each has one memory domain. Each message within a
    node has at most the loopback's rate, all together at most `memory_bytes_per_second`. Messages from one socket to
    others share `between_sockets_bytes_per_second`, with a latency of `between_sockets_latency_seconds` (None: as
    within a socket). A flag that a process sets in shared memory is seen by others after `flag_latency_seconds` (None:
    what the shortest message within a node takes). SMPI ignores the last three of these parameters. No rate means no
    limit. `memory_bytes_per_node` only limits the messages that the processes of a node can hold.
    """

    nodes: int
    cpus_per_node: int
    cores_per_node: int
    core_flops: float
    link_bytes_per_second: float
    link_latency_seconds: float
    links_per_node: int = 1
    backbone_bytes_per_second: float | None = None
    backbone_latency_seconds: float = 0.0
    backbone_is_shared: bool = False
    ports: Ports | None = None
    memory_domains_per_node: int | None = None
    memory_bytes_per_node: int | None = None
    memory_bytes_per_second: float | None = None
    between_sockets_bytes_per_second: float | None = None
    between_sockets_latency_seconds: float | None = None
    flag_latency_seconds: float | None = None
    topology: Topology | None = None
    node_faults: tuple[NodeFault, ...] = ()

    @property
    def assumed_memory_bytes_per_second(self) -> float | None:
        """The rate of a node's memory, if its source says that it is assumed."""
        sources = (item.where for item in self.sources if item.what == "memory_bytes_per_second")
        return self.memory_bytes_per_second if any(where.startswith("assumed") for where in sources) else None

    @property
    def heterogeneous(self) -> bool:
        """True if a node differs from the others."""
        return any(fault.factors != (1.0, 1.0) for fault in self.node_faults)

    @cached_property
    def factors_of_nodes(self) -> tuple[tuple[float, float], ...]:
        """The factors of each node's overheads and of its rate."""
        known = {fault.node: fault.factors for fault in self.node_faults}
        return tuple(known.get(node, (1.0, 1.0)) for node in range(self.nodes))

    @property
    def hosts(self) -> tuple[str, ...]:
        """Host names, first to last, for example grisou-1.nancy.grid5000.fr."""
        return numbered_hosts(self.host_prefix, self.first_host, self.nodes, self.host_suffix)

    @property
    def known_cores_per_node(self) -> int | None:
        """The cores of a node. None if each CPU has one core, which is the default."""
        return self.cores_per_node if self.cores_per_node > self.cpus_per_node else None

    @property
    def default_processes_per_node(self) -> int:
        """The described number of processes per node, or one per CPU."""
        return self.processes_per_node or self.cpus_per_node

    @property
    def sockets_per_node(self) -> int:
        """The CPUs of a node."""
        return self.cpus_per_node

    @property
    def route(self) -> tuple[float, float]:
        """Latency, seconds, and bandwidth, bytes per second, between two nodes of one switch."""
        latency = 2 * self.link_latency_seconds + self.backbone_latency_seconds
        return latency, min(self.node_bytes_per_second, self.backbone_bytes_per_second or self.node_bytes_per_second)

    @property
    def node_bytes_per_second(self) -> float:
        """The rate of all links of a node, which its processes share."""
        return self.link_bytes_per_second * self.links_per_node

    @property
    def longest_latency_seconds(self) -> float:
        """The latency between the two nodes that are farthest apart."""
        longest = self.topology.longest_seconds(self.nodes, self.node_bytes_per_second) if self.topology else 0.0
        return self.route[0] + longest

    def smpi_options(self) -> dict[str, str]:
        """The calibration as SimGrid options, with names that SimGrid 3.32 to 4.1 understand."""
        return self.calibration.smpi_options()

    def xml_text(self) -> str:
        """The platform XML generated from this description."""
        return platform_xml(self)


@dataclass(frozen=True)
class NodeType:
    """A type of `nodes` equal nodes, each with one link; overheads are a base time plus a time per byte."""

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
        """The overhead of a non-blocking send: a blocking send's overhead for eager messages, 0 for larger ones."""
        free = (eager_limit_bytes, 0.0, 0.0)
        return (*self.send, free) if eager_limit_bytes > 0 else (free,)


@dataclass(frozen=True)
class Wire:
    """The connection between nodes of types `one` and `other`, in both directions; it limits each flow separately."""

    one: str
    other: str
    latency_seconds: float
    bytes_per_second: float


@dataclass(frozen=True, repr=False, kw_only=True)
class HeterogeneousPlatform(Description):
    """A cluster with nodes of several types; hosts follow the order of `node_types`.

    A message passes its sender's link, the wire between the types, and its receiver's link. There is a wire for every
    two types, and for each type of several nodes. Node types have the overheads; those of the calibration are unused.
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

    def wire(self, node_type: NodeType, other: NodeType) -> Wire:
        """The wire between nodes of two types, in any order. Raises KeyError if there is none."""
        return self._wires[frozenset((node_type.name, other.name))]

    def route(self, node_type: NodeType, other: NodeType) -> tuple[float, float]:
        """Latency, seconds, and bandwidth, bytes per second, between nodes of two types."""
        wire = self.wire(node_type, other)
        latency = node_type.link_latency_seconds + wire.latency_seconds + other.link_latency_seconds
        return latency, min(wire.bytes_per_second, node_type.link_bytes_per_second, other.link_bytes_per_second)

    @cached_property
    def _wires(self) -> dict[frozenset[str], Wire]:
        return {frozenset((wire.one, wire.other)): wire for wire in self.wires}

    def smpi_options(self) -> dict[str, str]:
        """The calibration as SimGrid options, with the slowest type's overheads. Host properties override them."""
        send = max(kind.send for kind in self.node_types)
        receive = max(kind.receive for kind in self.node_types)
        return replace(self.calibration, os=send, or_=receive, ois=send).smpi_options()

    def xml_text(self) -> str:
        """The platform XML generated from this description."""
        return heterogeneous_xml(self)


def needed_wires(node_types: Mapping[str, int]) -> list[tuple[str, str]]:
    """The pairs of types between which a wire is needed, given the number of nodes of each type."""
    pairs = combinations_with_replacement(node_types, 2)
    return [(name, other) for name, other in pairs if name != other or node_types[name] > 1]
