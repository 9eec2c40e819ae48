"""The costs of messages on a platform, as tables for the schedule engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from collwise.platforms import HeterogeneousPlatform, HostPlatform, Platform, Ports
from collwise.platforms.description import (
    COPY_SECONDS_PER_BYTE,
    LEAST_FLAG_SECONDS,
    PACKET_BYTES,
    Calibration,
    FactorRow,
    OverheadRow,
)
from collwise.platforms.hosts import DerivedPlatform, ReorderedPlatform
from collwise.platforms.smpi import CROSS_TRAFFIC, ENVELOPE_BYTES
from collwise.platforms.topology import routes_among, routes_over_backbone
from collwise.platforms.xml_clusters import description_of
from collwise.simulator.schedule.tables import ACKNOWLEDGED, DEFERRED, EAGER, RENDEZVOUS, Doubles, NetworkTables

# The part of a node's memory rate that a byte through its ports takes. That rate counts copied bytes, each of which is
# moved three times (read, and its target's line read and written); a network interface moves it once.
_MEMORY_SHARE_OF_PORTS = 1 / 3
_FAST_MEMORY = 4  # memory that is so many times as fast as both ports of a node is not shared with them
_QUEUED_PACKETS = 2  # Linux allows at least this many packets of a connection in a node's own queue (TCP small queues)


def network_tables(
    platform: HostPlatform,
    procs: int,
    processes_per_node: int,
    sizes: npt.NDArray[np.uint64],
    like_smpi: bool = False,
) -> NetworkTables:
    """The tables for messages of `sizes` among `procs` processes.

    If the platform describes its ports, these determine the times of messages between nodes. Otherwise ports and links
    have their nominal rates, and SMPI's calibration gives the latencies and the rate of a single flow. In either case
    the calibration gives the overheads; empty messages have the overheads in its first row.

    `like_smpi` applies SMPI's rules where they differ, for comparisons with SMPI. Every message then has an envelope,
    and eager messages leave when their receives are posted. The sender of a rendezvous message waits until the message
    has arrived, not only for the handshake. Empty messages have no overheads, and receivers of synchronous messages of
    eager size have none either.
    """
    positions = platform.positions(procs, processes_per_node)
    used = list(dict.fromkeys(positions))
    number_of = {position: number for number, position in enumerate(used)}
    order, described = _described(platform)
    nodes = [order[position] for position in used]
    calibration = described.calibration
    classes, class_of = _classes_of(described, nodes)
    m = sizes.astype(np.float64)
    sent = m + ENVELOPE_BYTES if like_smpi else m
    eager = m < calibration.eager_limit_bytes
    at_once = np.where(m < (calibration.acknowledged_from_bytes or np.inf), EAGER, ACKNOWLEDGED)
    # A schedule that has only empty messages is a barrier, whose messages have a byte in SMPI.
    free = (m == 0) & (m.max(initial=0) > 0) & like_smpi
    charged = eager & ~free
    latency_factor = _factors(calibration.latency_factor, m)
    # The extra latency of large messages is their handshake, which the sender takes part in.
    before = _factors(calibration.latency_factor, np.array([calibration.eager_limit_bytes - 1.0]))
    waiting = _factors(calibration.latency_factor, np.maximum(m, calibration.eager_limit_bytes))
    handshake_factor = np.zeros(len(m)) if like_smpi else waiting - np.minimum(waiting, before)
    own_factor = latency_factor - np.where(eager, 0.0, handshake_factor)
    bandwidth_factor = _factors(calibration.bandwidth_factor, m)
    latency, rate = _paths(described, classes)
    loopback_rate = described.loopback_bytes_per_second * bandwidth_factor
    alike = np.ones((len(classes), 1))
    rates = np.array([kind.rate for kind in classes])
    tables = NetworkTables(
        node_of=np.array([number_of[position] for position in positions]),
        class_of=class_of,
        send_seconds=np.array([_overheads(kind.send, m) for kind in classes]) * charged,
        start_seconds=np.array([_overheads(kind.start, m) for kind in classes]) * ~free,
        receive_seconds=np.array([_overheads(kind.receive, m) for kind in classes]) * charged,
        reduce_seconds=m * calibration.reduce_seconds_per_byte,
        copy_seconds=m * (calibration.copy_seconds_per_byte or 0.0),
        allocate_seconds=np.where(
            m < calibration.kept_memory_bytes, 0.0, m * (calibration.allocate_seconds_per_byte or 0)
        ),
        move_seconds=m * (calibration.copy_seconds_per_byte or COPY_SECONDS_PER_BYTE),
        protocol=np.where(eager, DEFERRED if like_smpi else at_once, RENDEZVOUS),
        handshake_seconds=latency[:, :, None] * handshake_factor,
        answer_seconds=latency[:, :, None] * np.maximum(own_factor, handshake_factor / 2),
        latency_seconds=latency[:, :, None] * own_factor,
        transfer_seconds=sent / (rate[:, :, None] * bandwidth_factor),
        gap_seconds=np.zeros((len(classes), len(classes), len(m))),
        receive_gap_seconds=alike * np.zeros(len(m)),
        local_latency_seconds=alike * described.loopback_latency_seconds * latency_factor,
        local_transfer_seconds=alike * (sent / loopback_rate),
        flag_seconds=_flag_seconds(described, classes),
        out_rate=rates,
        in_rate=rates,
        burst_bytes=np.zeros(len(classes)),
        load_bytes=sent / bandwidth_factor,
        senders_wait_for_arrival=like_smpi,
        acknowledgement_share=CROSS_TRAFFIC if calibration.crosstraffic else 0.0,
    )
    if isinstance(described, Platform):
        if _sockets(described) != (None, None):
            sockets = [socket for _, socket in platform.places(procs, processes_per_node)]
            tables = _with_sockets(tables, described, sockets, latency_factor)
        tables = _with_topology(tables, described, nodes, own_factor, handshake_factor)
        if described.ports is not None and not like_smpi:
            tables = _with_ports(tables, described.ports, m, classes)
    return tables if like_smpi else _with_ports_at_memory(tables)


def places_of(platform: HostPlatform, procs: int, processes_per_node: int) -> dict[str, npt.NDArray[np.int64]]:
    """The numbers of each rank's node, switch and group of switches, with keys 'nodes', 'switches' and 'groups'.

    Groups are pods of a fat tree or groups of a dragonfly. Keys that do not apply to the platform are left out.
    """
    order, described = _described(platform)
    nodes = np.array([order[position] for position in platform.positions(procs, processes_per_node)], np.int64)
    topology, found = described.topology if isinstance(described, Platform) else None, {"nodes": nodes}
    if topology is not None:
        found["switches"] = nodes // topology.nodes_per_switch
        if topology.group_switches is not None:
            found["groups"] = found["switches"] // topology.group_switches
    return found


def _with_sockets(
    tables: NetworkTables, described: Platform, sockets: Sequence[int], latency_factor: Doubles
) -> NetworkTables:
    """Adds the times between sockets of a node to the tables; the platform describes the rate, the latency, or both."""
    rate, latency = _sockets(described)
    local = tables.local_latency_seconds
    longer = 1.0 if rate is None else max(1.0, described.loopback_bytes_per_second / rate)
    return replace(
        tables,
        socket_of=np.array(sockets),
        cross_latency_seconds=local if latency is None else np.ones((len(local), 1)) * latency * latency_factor,
        cross_transfer_seconds=tables.local_transfer_seconds * longer,
        cross_rate=rate or 0.0,
    )


def _with_topology(
    tables: NetworkTables, described: Platform, nodes: Sequence[int], own: Doubles, handshake: Doubles
) -> NetworkTables:
    """Adds the memory rate and the routes between switches to the tables; `own` and `handshake` are latency factors."""
    tables = replace(tables, memory_rate=described.memory_bytes_per_second or 0.0)
    if described.topology is not None:
        at = [described.topology.switch_of(node) for node in nodes]
        switches = tuple(sorted(set(at)))
        routes = routes_among(described.topology, described.nodes, described.node_bytes_per_second, switches)
    elif described.backbone_is_shared and described.backbone_bytes_per_second is not None:
        at, switches = [*nodes], tuple(sorted(set(nodes)))
        # Acknowledgements pass the same link.
        rate = described.backbone_bytes_per_second / (1 + tables.acknowledgement_share)
        routes = routes_over_backbone(len(switches), rate)
    else:
        return tables
    return replace(
        tables,
        switch_of=np.searchsorted(switches, at),
        **vars(routes),
        latency_factor=own,
        handshake_factor=handshake,
        answer_factor=np.maximum(own, handshake / 2),
    )


def unknown_to_smpi(platform: HostPlatform) -> dict[str, str]:
    """The parameters that only this engine uses, as details of a configuration."""
    described = _described(platform)[1]
    if not isinstance(described, Platform):
        return {"ports": "None", "sockets": "(None, None)"}
    flag = described.flag_latency_seconds
    found = {"ports": str(described.ports), "sockets": str(_sockets(described))}
    return found if flag is None else found | {"flag_latency_seconds": str(flag)}


def _sockets(described: Platform) -> tuple[float | None, float | None]:
    """The rate and the latency between sockets, each None if the platform does not describe it."""
    return described.between_sockets_bytes_per_second, described.between_sockets_latency_seconds


def load_of(m: Doubles, header_bytes: float) -> Doubles:
    """The payload whose full packets keep a port busy as long as a message of m bytes does."""
    packets = np.maximum(np.ceil(m / PACKET_BYTES), 1)
    return (m + packets * header_bytes) * PACKET_BYTES / (PACKET_BYTES + header_bytes)


def _with_ports(tables: NetworkTables, ports: Ports, m: Doubles, classes: Sequence[_NodeClass]) -> NetworkTables:
    load = load_of(m, ports.header_bytes)
    rates = np.array([ports.bytes_per_second * kind.rate_factor for kind in classes])
    one, all_pairs = np.ones((len(rates), 1)), np.ones((len(rates), len(rates), len(m)))
    if ports.loopback_bytes_per_second > 0:
        tables = replace(
            tables,
            local_latency_seconds=one * np.full(len(m), ports.loopback_latency_seconds),
            local_transfer_seconds=one * (m / ports.loopback_bytes_per_second),
            without_local_overheads=True,
        )
    return replace(
        tables,
        latency_seconds=all_pairs * ports.latency_seconds,
        handshake_seconds=all_pairs * ports.handshake_seconds,
        # A handshake consists of two messages that the MPI library sends itself.
        answer_seconds=all_pairs * max(ports.latency_seconds, ports.handshake_seconds / 2),
        transfer_seconds=load / np.minimum.outer(rates, rates)[:, :, None],
        out_rate=rates,
        in_rate=rates,
        burst_bytes=np.full(len(rates), ports.burst_bytes),
        load_bytes=load,
        acknowledgement_share=ports.acknowledgement_share,
        latency_factor=np.ones(len(m)),
        answer_factor=np.ones(len(m)),
        send_buffer_bytes=ports.send_buffer_bytes,
        queue_bytes=_QUEUED_PACKETS * PACKET_BYTES if ports.header_bytes > 0 else 0.0,
        buffers=ports.buffers,
    )


def _with_ports_at_memory(tables: NetworkTables) -> NetworkTables:
    """The tables in which ports take a part of their node's memory, unless it is unlimited or fast."""
    ports = np.add(tables.out_rate, tables.in_rate)  # type: ignore[arg-type]
    shares = 0 < tables.memory_rate < _FAST_MEMORY * ports.max()
    return replace(tables, memory_share_of_ports=_MEMORY_SHARE_OF_PORTS) if shares else tables


@dataclass(frozen=True)
class _NodeClass:
    """A class of equal nodes: overheads, the rate of links in bytes/s, and the factor by which a fault changed it."""

    send: Sequence[OverheadRow]
    start: Sequence[OverheadRow]
    receive: Sequence[OverheadRow]
    rate: float
    rate_factor: float = 1.0


def _described(platform: HostPlatform) -> tuple[Sequence[int], Platform | HeterogeneousPlatform]:
    """The positions of the platform's hosts in the description, and the description."""
    if isinstance(platform, DerivedPlatform) and not isinstance(platform, ReorderedPlatform):
        platform = platform.base
    order: Sequence[int] = range(len(platform.hosts))
    if isinstance(platform, ReorderedPlatform):
        order, platform = platform.order, platform.base
    return order, description_of(platform)


def _classes_of(
    platform: Platform | HeterogeneousPlatform, nodes: Sequence[int]
) -> tuple[list[_NodeClass], npt.NDArray[np.intp]]:
    """The classes of the nodes that are used, and the class of each. Faults of unused nodes change nothing."""
    calibration: Calibration = platform.calibration
    if isinstance(platform, Platform):
        number_of: dict[tuple[float, float], int] = {}
        class_of = [number_of.setdefault(platform.factors_of_nodes[node], len(number_of)) for node in nodes]
        classes = []
        for of_overheads, of_rate in number_of:
            own = calibration.with_overheads_times(of_overheads)
            classes.append(_NodeClass(own.os, own.ois, own.or_, platform.node_bytes_per_second * of_rate, of_rate))
        return classes, np.array(class_of)
    limit = calibration.eager_limit_bytes
    classes = [
        _NodeClass(kind.send, kind.non_blocking_send(limit), kind.receive, kind.link_bytes_per_second)
        for kind in platform.node_types
    ]
    return classes, np.repeat(np.arange(len(classes)), [kind.nodes for kind in platform.node_types])[nodes]


def _flag_seconds(platform: Platform | HeterogeneousPlatform, classes: Sequence[_NodeClass]) -> Doubles:
    """The latency of a flag on nodes of each class: by default that of the shortest message within the node."""
    known = platform.flag_latency_seconds if isinstance(platform, Platform) else None
    if known is not None:
        return np.full(len(classes), known)
    latency = platform.loopback_latency_seconds * platform.calibration.latency_factor[0][1]
    ports = platform.ports if isinstance(platform, Platform) else None
    if ports is not None and ports.loopback_bytes_per_second > 0:
        return np.full(len(classes), max(ports.loopback_latency_seconds, LEAST_FLAG_SECONDS))
    found = [latency + kind.start[0][1] + kind.receive[0][1] for kind in classes]
    return np.maximum(found, LEAST_FLAG_SECONDS)


def _paths(platform: Platform | HeterogeneousPlatform, classes: Sequence[_NodeClass]) -> tuple[Doubles, Doubles]:
    """The latency in seconds, and the highest rate of a flow in bytes per second, for each pair of classes."""
    if isinstance(platform, Platform):
        own = np.array([kind.rate for kind in classes])
        between = np.minimum.outer(own, own)
        limit = platform.backbone_bytes_per_second or np.inf
        return np.full(between.shape, platform.route[0]), np.minimum(between, limit)
    latencies, rates = np.zeros((len(classes), len(classes))), np.ones((len(classes), len(classes)))
    for i, node_type in enumerate(platform.node_types):
        for j, other in enumerate(platform.node_types):
            if node_type is not other or node_type.nodes > 1:
                latencies[i, j], rates[i, j] = platform.route(node_type, other)
    return latencies, rates


def _rows(rows: Sequence[FactorRow] | Sequence[OverheadRow], m: Doubles) -> Doubles:
    """The rows that apply to each size, shape (values of a row, sizes)."""
    table = np.array(rows, dtype=np.float64)
    return table[np.searchsorted(table[:, 0], m, side="right") - 1].T


def _factors(rows: Sequence[FactorRow], m: Doubles) -> Doubles:
    return _rows(rows, m)[1]


def _overheads(rows: Sequence[OverheadRow], m: Doubles) -> Doubles:
    _, fixed, per_byte = _rows(rows, m)
    return fixed + per_byte * m
