"""Platform XML for SimGrid, generated from descriptions.

A homogeneous cluster at one switch is a <cluster>, as in Grid'5000's own files. With a topology, faults, or a memory
that the processes of a node share, it becomes a graph of hosts and routers, since SimGrid's own clusters have one rate
and one latency for all links, and loopbacks that are never shared. A heterogeneous cluster has a route for every two
hosts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import combinations, combinations_with_replacement
from typing import TYPE_CHECKING

from collwise.platforms.smpi import CROSS_TRAFFIC, overhead_list
from collwise.platforms.topology import Torus, vertices

if TYPE_CHECKING:
    from collwise.platforms.description import Calibration, HeterogeneousPlatform, NodeType, OverheadRow, Platform

_HEAD = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">"""

# The rate of a link that limits nothing, bytes per second.
_NO_LIMIT = 1e15

# Reductions, copies, and collectives by socket read these properties of their host (operation.c, charges.h and
# worlds/simulated/host.c in algorithms/).
REDUCE, COPY = "collwise/reduce-seconds-per-byte", "collwise/copy-seconds-per-byte"
ALLOCATE, KEPT = "collwise/allocate-seconds-per-byte", "collwise/kept-memory-bytes"
ACKNOWLEDGED = "collwise/acknowledged-from-bytes"
SOCKETS = "collwise/sockets"

# Characters of an attribute's value that have to be escaped.
_SPECIAL = re.compile(r"[&<>\"\n\r\t]")


def platform_xml(platform: Platform) -> str:
    """XML of a homogeneous cluster for SimGrid 3.32 to 4.1. It has only what simulated times depend on."""
    if platform.topology is None and platform.memory_bytes_per_second is None and not platform.heterogeneous:
        return _document(platform.site, platform.smpi_options(), _cluster_lines(platform))
    return _document(platform.site, platform.smpi_options(), _graph_lines(platform), "DijkstraCache")


def _graph_lines(platform: Platform) -> list[str]:
    """The hosts, routers and links of a zone; a torus has a router for each dimension of each switch."""
    hosts, topology, rate = platform.hosts, platform.topology, platform.node_bytes_per_second
    cables = topology.cables(len(hosts), rate) if topology else []
    switches = topology.switches(len(hosts)) if topology else 1
    levels = len(topology.dimensions) if isinstance(topology, Torus) else 1
    routers = [
        _router(platform, vertex, level) for vertex in range(vertices(cables, switches)) for level in range(levels)
    ]
    lines: list[str] = []
    properties = _properties(platform)
    for host, (of_overheads, of_rate) in zip(hosts, platform.factors_of_nodes, strict=True):
        own, different = platform.calibration, {}
        if of_overheads != 1:
            own = own.with_overheads_times(of_overheads)
            different = _overheads(own.os, own.or_, own.ois)
        lines += _host_lines(host, platform, properties | different)
        lines.append(_link(f"{host}_link", rate * of_rate, platform.link_latency_seconds, "SPLITDUPLEX"))
        if platform.memory_bytes_per_second is not None:
            # Within a node, acknowledgements use the same memory as messages, and SimGrid charges the memory for both.
            share = 1 + CROSS_TRAFFIC if platform.calibration.crosstraffic else 1
            lines.append(_link(f"{host}_memory", platform.memory_bytes_per_second * share, 0.0, "SHARED"))
    lines += [_tag("router", id=router) for router in routers]
    lines.append(_link("loopback", platform.loopback_bytes_per_second, platform.loopback_latency_seconds, "FATPIPE"))
    backbone_rate = platform.backbone_bytes_per_second
    if backbone_rate is not None:
        sharing = _backbone_policy(platform)
        lines.append(_link("backbone", backbone_rate, platform.backbone_latency_seconds, sharing))
    if levels > 1:
        lines.append(_link("turn", _NO_LIMIT, 0.0, "FATPIPE"))
    for number, cable in enumerate(cables):
        lines.append(_link(f"cable_{number}", cable.bytes_per_second, cable.latency_seconds, "SPLITDUPLEX"))
    # The order of routes decides which of two equally short paths SimGrid takes.
    for vertex in range(switches if levels > 1 else 0):
        for level in range(levels - 1):
            pair = _router(platform, vertex, level), _router(platform, vertex, level + 1)
            lines += _route(*pair, [("turn", "")], symmetrical=False)
    for number, cable in enumerate(cables):
        level = topology.dimension_of(number) if isinstance(topology, Torus) else 0
        pair = _router(platform, cable.one, level), _router(platform, cable.other, level)
        lines += _route(*pair, [(f"cable_{number}", "UP")])
    backbone = [("backbone", "")] if backbone_rate is not None else []
    memory = [] if platform.memory_bytes_per_second is None else ["memory"]
    for number, host in enumerate(hosts):
        switch = topology.switch_of(number) if topology else 0
        lines += _route(host, _router(platform, switch, 0), [(f"{host}_link", "UP")], symmetrical=False)
        down = [*backbone, (f"{host}_link", "DOWN")]
        lines += _route(_router(platform, switch, levels - 1), host, down, symmetrical=False)
        lines += _route(host, host, [("loopback", ""), *((f"{host}_{name}", "") for name in memory)], symmetrical=False)
    return lines


def _router(platform: Platform, vertex: int, level: int) -> str:
    return f"{platform.host_prefix}router-{vertex}-{level}{platform.host_suffix}"


def _route(name: str, other: str, links: Sequence[tuple[str, str]], symmetrical: bool = True) -> list[str]:
    """A route over links, each with its direction if it is a split-duplex link, otherwise with ''."""
    ways = {} if symmetrical else {"symmetrical": "NO"}
    head = _tag("route", src=name, dst=other, **ways).replace("/>", ">")
    parts = [_tag("link_ctn", id=link, **({"direction": way} if way else {})) for link, way in links]
    return [head, *(f"  {part}" for part in parts), "</route>"]


def heterogeneous_xml(platform: HeterogeneousPlatform) -> str:
    """XML of a heterogeneous cluster, with the same meaning for SimGrid 3.32 to 4.1."""
    hosts, kinds = platform.hosts, platform.types_of_hosts
    lines: list[str] = []
    for host, kind in zip(hosts, kinds, strict=True):
        properties = _overheads(kind.send, kind.receive, kind.non_blocking_send(platform.calibration.eager_limit_bytes))
        lines += _host_lines(host, kind, properties | _local_work(platform.calibration))
        lines.append(_link(f"{host}_link", kind.link_bytes_per_second, kind.link_latency_seconds, "SPLITDUPLEX"))
    lines.append(_link("loopback", platform.loopback_bytes_per_second, platform.loopback_latency_seconds, "FATPIPE"))
    for node_type, other in combinations_with_replacement(platform.node_types, 2):
        if node_type is not other or node_type.nodes > 1:
            wire = platform.wire(node_type, other)
            lines.append(
                _link(_wire_id(platform, node_type, other), wire.bytes_per_second, wire.latency_seconds, "FATPIPE")
            )
    for host in hosts:
        lines += _route(host, host, [("loopback", "")], symmetrical=False)
    for (one_host, node_type), (other_host, other) in combinations(zip(hosts, kinds, strict=True), 2):
        between = (_wire_id(platform, node_type, other), "")
        lines += _route(one_host, other_host, [(f"{one_host}_link", "UP"), between, (f"{other_host}_link", "DOWN")])
    return _document(platform.site, platform.smpi_options(), lines)


def _document(site: str, options: dict[str, str], lines: list[str], routing: str = "Full") -> str:
    written = [_HEAD, '  <config id="smpi">']
    written += [f"    {_tag('prop', id=name, value=value)}" for name, value in options.items()]
    written += ["  </config>", f'  <zone id={_quoted(site)} routing="{routing}">']
    written += [f"    {line}" for line in lines]
    written += ["  </zone>", "</platform>"]
    return "\n".join(written) + "\n"


def _host_lines(host: str, kind: Platform | NodeType, properties: Mapping[str, str]) -> list[str]:
    tag = _tag("host", id=host, speed=f"{kind.core_flops!r}f", core=str(kind.cores_per_node))
    return _property_lines(tag, properties, "host")


def _overheads(
    send: Sequence[OverheadRow], receive: Sequence[OverheadRow], start: Sequence[OverheadRow]
) -> dict[str, str]:
    """The overheads of a host as properties, which replace SMPI's options."""
    return {"smpi/os": overhead_list(send), "smpi/or": overhead_list(receive), "smpi/ois": overhead_list(start)}


def _property_lines(tag: str, properties: Mapping[str, str], name: str) -> list[str]:
    inner = [f"  {_tag('prop', id=key, value=value)}" for key, value in properties.items()]
    return [tag.replace("/>", ">"), *inner, f"</{name}>"]


def _link(name: str, bytes_per_second: float, latency_seconds: float, sharing: str) -> str:
    bandwidth, latency = f"{bytes_per_second!r}Bps", f"{latency_seconds!r}s"
    return _tag("link", id=name, bandwidth=bandwidth, latency=latency, sharing_policy=sharing)


def _wire_id(platform: HeterogeneousPlatform, node_type: NodeType, other: NodeType) -> str:
    # Numbers instead of names, so that renaming a node type does not change the digest.
    first, second = sorted((platform.node_types.index(node_type), platform.node_types.index(other)))
    return f"wire_{first + 1}_{second + 1}"


def _cluster_lines(platform: Platform) -> list[str]:
    attributes = {
        "id": platform.name,
        "prefix": platform.host_prefix,
        "suffix": platform.host_suffix,
        "radical": f"{platform.first_host}-{platform.first_host + platform.nodes - 1}",
        "speed": f"{platform.core_flops!r}f",
        "core": str(platform.cores_per_node),
        "bw": f"{platform.node_bytes_per_second!r}Bps",
        "lat": f"{platform.link_latency_seconds!r}s",
        "sharing_policy": "SPLITDUPLEX",
        "loopback_bw": f"{platform.loopback_bytes_per_second!r}Bps",
        "loopback_lat": f"{platform.loopback_latency_seconds!r}s",
        "router_id": f"{platform.host_prefix}router{platform.host_suffix}",
    }
    if platform.backbone_bytes_per_second is not None:
        attributes["bb_bw"] = f"{platform.backbone_bytes_per_second!r}Bps"
        attributes["bb_lat"] = f"{platform.backbone_latency_seconds!r}s"
        attributes["bb_sharing_policy"] = _backbone_policy(platform)
    # A property of a <cluster> applies to each of its hosts.
    return _property_lines(_tag("cluster", **attributes), _properties(platform), "cluster")


def _backbone_policy(platform: Platform) -> str:
    """The backbone's policy: all flows of the cluster compete for it, or a switch forwards them independently."""
    return "SHARED" if platform.backbone_is_shared else "FATPIPE"


def _properties(platform: Platform) -> dict[str, str]:
    sockets = {SOCKETS: str(platform.sockets_per_node)} if platform.sockets_per_node > 1 else {}
    return {**_local_work(platform.calibration), **sockets}


def _local_work(calibration: Calibration) -> dict[str, str]:
    found = {REDUCE: repr(calibration.reduce_seconds_per_byte)}
    if calibration.copy_seconds_per_byte is not None:
        found[COPY] = repr(calibration.copy_seconds_per_byte)
    if calibration.allocate_seconds_per_byte is not None:
        found[ALLOCATE] = repr(calibration.allocate_seconds_per_byte)
        found[KEPT] = str(calibration.kept_memory_bytes)
    if calibration.acknowledged_from_bytes is not None:
        found[ACKNOWLEDGED] = str(calibration.acknowledged_from_bytes)
    return found


def _tag(tag: str, **attributes: str) -> str:
    return f"<{tag} {' '.join(f'{name}={_quoted(value)}' for name, value in attributes.items())}/>"


def _quoted(value: str) -> str:
    if _SPECIAL.search(value) is None:
        return f'"{value}"'
    # quoteattr takes several times as long, and imports Python's HTTP client, which most commands do not need.
    from xml.sax.saxutils import quoteattr

    return quoteattr(value)
