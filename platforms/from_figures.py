"""New descriptions from a few numbers, with an interconnect's calibration if an interconnect is named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from collwise.common.errors import UsageError, warn
from collwise.platforms.description import Calibration, Platform, Source
from collwise.platforms.description_file import TOPOLOGY, checked
from collwise.platforms.loader import interconnect
from collwise.platforms.smpi import charges_overheads
from collwise.platforms.topology import TOPOLOGIES, Topology

_GIVEN = "the figures given to: collwise platforms new"
_MAX_CPUS, _MAX_CORES = 64, 4096
_MEMORY_BYTES_PER_SECOND = 20e9
_MEMORY_SOURCE = "assumed: 20 GB/s for each CPU, as estimated for shaheen-ii"
# Ports of a switch, by data sheets: SB7800, QM8700 (each port split for HDR100), QM9700, and Omni-Path's 100 series.
_PORTS = {
    "infiniband-edr": 36,
    "infiniband-hdr": 40,
    "infiniband-hdr100": 80,
    "infiniband-hdr100-x2": 40,
    "infiniband-ndr200": 128,
    "infiniband-ndr": 64,
    "omni-path": 48,
}
_USUAL_PORTS = 48


@dataclass(frozen=True)
class Node:
    """The contents of a node: CPUs (sockets), cores, memory and the path between its processes; None for defaults."""

    cpus: int = 1
    cores: int | None = None
    memory_domains: int | None = None
    memory_bytes: int | None = None
    processes: int | None = None
    loopback_bytes_per_second: float | None = None
    loopback_latency_seconds: float | None = None
    between_sockets_bytes_per_second: float | None = None
    between_sockets_latency_seconds: float | None = None
    memory_bytes_per_second: float | None = None
    flag_latency_seconds: float | None = None


def new_platform(
    name: str,
    nodes: int,
    node: Node,
    link_bytes_per_second: float | None = None,
    latency_seconds: float | None = None,
    interconnect_name: str | None = None,
    topology: str = "one-switch",
    hop_latency_seconds: float | None = None,
    **figures: Any,
) -> Platform:
    """A description of a cluster of equal nodes.

    `latency_seconds` is the one-way latency between two nodes of a switch, without the overheads of processors. Link,
    latencies and calibration are those of the interconnect unless they are given. `figures` are the keys of the
    topology in a description.
    """
    _check_node(node)
    picked = interconnect(interconnect_name) if interconnect_name else None
    if picked is not None:
        link_bytes_per_second = link_bytes_per_second or picked.link_bytes_per_second
        latency_seconds = picked.route[0] if latency_seconds is None else latency_seconds
        if hop_latency_seconds is None and topology != "one-switch" and picked.topology is not None:
            hop_latency_seconds = picked.topology.hop_latency_seconds
    if link_bytes_per_second is None or latency_seconds is None:
        raise UsageError("give --gbits and --latency-us, or --interconnect NAME, which sets both")
    sources = _sources(picked)
    if topology == "fat-tree" and figures.get("nodes_per_switch") is None:
        ports = _PORTS.get(interconnect_name or "", _USUAL_PORTS)
        figures["nodes_per_switch"] = number = min(nodes, ports // 2)
        sources += (Source("nodes_per_switch", f"assumed: half of the {ports} ports of a switch"),)
        warn(
            f"{number} nodes at a switch are assumed, half of its {ports} ports; --topology "
            "fat-tree:nodes_per_switch=N changes that"
        )
    memory = node.memory_bytes_per_second
    if memory is None and max(node.cores or node.cpus, node.processes or 1) > 1:
        memory = _MEMORY_BYTES_PER_SECOND * node.cpus
        sources += (Source("memory_bytes_per_second", _MEMORY_SOURCE),)
        warn(
            f"the messages within a node are assumed to share {memory / 1e9:g} GB/s of its memory, 20 for each CPU, as "
            "estimated for shaheen-ii; to set another rate, give 'collwise tune' or 'collwise platforms new' "
            "--memory-gbytes N, about half of what a copy over all cores (STREAM) reaches"
        )
    loopback = (picked.loopback_bytes_per_second, picked.loopback_latency_seconds) if picked else (5e9, 5e-7)
    loopback_latency = node.loopback_latency_seconds
    made = Platform(
        name=name,
        title=name,
        site="site",
        nodes=nodes,
        host_prefix=f"{name}-",
        host_suffix="",
        cpus_per_node=node.cpus,
        cores_per_node=node.cores or node.cpus,
        memory_domains_per_node=node.memory_domains,
        memory_bytes_per_node=node.memory_bytes,
        processes_per_node=node.processes,
        core_flops=1e9,
        link_bytes_per_second=link_bytes_per_second,
        link_latency_seconds=float(f"{latency_seconds / 2:.6g}"),
        loopback_bytes_per_second=node.loopback_bytes_per_second or loopback[0],
        loopback_latency_seconds=loopback[1] if loopback_latency is None else loopback_latency,
        memory_bytes_per_second=memory,
        between_sockets_bytes_per_second=node.between_sockets_bytes_per_second,
        between_sockets_latency_seconds=node.between_sockets_latency_seconds,
        flag_latency_seconds=node.flag_latency_seconds,
        topology=_topology(topology, nodes, hop_latency_seconds, figures),
        calibration=picked.calibration if picked else Calibration(note="none: nominal bandwidth, no overheads"),
        sources=sources,
    )
    return checked(made)


def _check_node(node: Node) -> None:
    """Raises UsageError, naming the option, for numbers that do not fit together."""
    cores = node.cores or node.cpus
    for option, number, most, of in (
        ("--cpus", node.cpus, _MAX_CPUS, "CPUs (sockets) of a node"),
        ("--cores", cores, _MAX_CORES, "cores of a node"),
        ("--cpus", node.cpus, cores, "--cores"),
        ("memory_domains", node.memory_domains, cores, "--cores"),
        ("--ppn", node.processes, node.cores or _MAX_CORES, "--cores" if node.cores else "processes of a node"),
    ):
        if number is not None and number > most:
            raise UsageError(f"{option} {number} is more than the {of} (valid: 1 to {most})")
    if cores % node.cpus:
        more = cores + node.cpus - cores % node.cpus
        raise UsageError(
            f"--cores {cores} is not a multiple of --cpus {node.cpus}; each CPU must have the same number of cores, as "
            f"with --cores {more}"
        )
    for option, value in (
        ("--between-sockets-gbytes", node.between_sockets_bytes_per_second),
        ("--between-sockets-latency-us", node.between_sockets_latency_seconds),
    ):
        if value is not None and node.cpus == 1:
            raise UsageError(f"{option} is for nodes of several sockets; give --cpus 2 or more")


def with_overheads(platform: Platform, interconnect_name: str) -> Platform:
    """The platform with an interconnect's overheads, and with these subtracted from the latency of short messages.

    So a single short message takes as long as before, and only processors with many messages are slower. Long messages
    have neither `os` nor `or` in SMPI.
    """
    picked, own = interconnect(interconnect_name), platform.calibration
    if charges_overheads(platform.smpi_options()):
        raise UsageError(f"platform '{platform.name}' already has overheads; name a platform without any")
    taken, before = picked.calibration, platform.route[0]
    both = taken.os[0][1] + taken.or_[0][1]
    limit = own.eager_limit_bytes
    starts = sorted({start for start, _ in own.latency_factor} | {limit})
    factors = {start: [factor for low, factor in own.latency_factor if low <= start][-1] for start in starts}
    least = before * min(factor for start, factor in factors.items() if start < max(limit, 1))
    if least <= both:
        raise UsageError(
            f"those of {interconnect_name} are {both * 1e6:g} us, not below the latency of platform "
            f"'{platform.name}' ({least * 1e6:g} us)"
        )
    after = before - both / factors[0]
    rows = [(start, (before * factor - (both if start < limit else 0)) / after) for start, factor in factors.items()]
    what = f"os, or, ois: those of {interconnect_name}, whose file has their sources; subtracted from the latency"
    return replace(
        platform,
        link_latency_seconds=platform.link_latency_seconds - (before - after) / 2,
        calibration=replace(
            own,
            latency_factor=tuple(rows),
            os=taken.os,
            or_=taken.or_,
            ois=taken.ois,
            note=f"{own.note}; overheads of {interconnect_name}, taken off the latency of short messages",
        ),
        sources=(*platform.sources, Source(what, f"collwise platforms show --change overheads={interconnect_name}")),
    )


def _topology(kind: str, nodes: int, hop_latency_seconds: float | None, figures: Mapping[str, Any]) -> Topology | None:
    keys = TOPOLOGY[kind]
    given = {key: value for key, value in figures.items() if value is not None}
    if hop_latency_seconds is not None:
        given["hop_latency_seconds"] = hop_latency_seconds
    for key in given:
        if key not in keys:
            fitting = ", ".join(name for name, others in TOPOLOGY.items() if key in others)
            raise UsageError(f"{_figure(key)} is not for --topology {kind}, but for {fitting}")
    if missing := [_figure(key) for key, value in keys.items() if value.required and key not in given]:
        raise UsageError(f"--topology {kind} needs {', '.join(missing)}")
    if given.get("nodes_per_switch", 0) > nodes:
        raise UsageError(
            f"nodes_per_switch={given['nodes_per_switch']} exceeds the number of nodes (valid: 1 to {nodes})"
        )
    if "pod_oversubscription" in given and "switches_per_pod" not in given:
        raise UsageError("pod_oversubscription is for a fat tree with switches_per_pod")
    return TOPOLOGIES[kind](**{"nodes_per_switch": 1} | given) if kind in TOPOLOGIES else None


def _figure(key: str) -> str:
    """The name of a key as --topology takes it."""
    return key.replace("_bytes_per_second", "_gbits").replace("_seconds", "_us")


def _sources(picked: Platform | None) -> tuple[Source, ...]:
    if picked is None:
        return Source("nodes, link and CPUs", _GIVEN), Source("loopback and core_flops", "assumed")
    own = [source for source in picked.sources if not source.what.startswith("nodes,")]
    given = Source("nodes and CPUs, and what differs from the interconnect", _GIVEN)
    return given, Source(f"interconnect {picked.name}: {picked.title}", "collwise platforms new --interconnect"), *own
