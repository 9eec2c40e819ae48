"""Platform XML for SimGrid, generated from descriptions.

A homogeneous cluster has the shape of Grid'5000's own files: a site zone with a <cluster> of real host names. A
heterogeneous cluster is a zone of hosts with a route for every two of them.
"""

from __future__ import annotations

from itertools import combinations, combinations_with_replacement
from typing import TYPE_CHECKING

from collwise.platforms.smpi import overhead_list

if TYPE_CHECKING:
    from collwise.platforms.description import HeterogeneousPlatform, NodeType, Platform

_HEAD = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">"""

# Reductions read this property of their host (algorithms/operation.c).
_REDUCE = "collwise/reduce-seconds-per-byte"


def platform_xml(platform: Platform) -> str:
    """XML of a homogeneous cluster, with the same meaning for SimGrid 3.32 to 4.1.

    It contains only what simulated times depend on, so that a new title or source does not change the digest.
    """
    return _document(platform.site, platform.smpi_options(), _cluster_lines(platform))


def heterogeneous_xml(platform: HeterogeneousPlatform) -> str:
    """XML of a heterogeneous cluster, with the same meaning for SimGrid 3.32 to 4.1."""
    hosts, kinds = platform.hosts, platform.types_of_hosts
    lines: list[str] = []
    for host, kind in zip(hosts, kinds, strict=True):
        lines += _host_lines(platform, host, kind)
        lines.append(_link(f"{host}_link", kind.link_bytes_per_second, kind.link_latency_seconds, "SPLITDUPLEX"))
    lines.append(_link("loopback", platform.loopback_bytes_per_second, platform.loopback_latency_seconds, "FATPIPE"))
    for one, other in combinations_with_replacement(platform.node_types, 2):
        if one is not other or one.nodes > 1:
            wire = platform.wire(one, other)
            lines.append(_link(_wire_id(platform, one, other), wire.bytes_per_second, wire.latency_seconds, "FATPIPE"))
    for host in hosts:
        lines.append(f'<route src={_quoted(host)} dst={_quoted(host)} symmetrical="NO">')
        lines += [f"  {_tag('link_ctn', id='loopback')}", "</route>"]
    for (one_host, one), (other_host, other) in combinations(zip(hosts, kinds, strict=True), 2):
        lines.append(f"<route src={_quoted(one_host)} dst={_quoted(other_host)}>")
        lines.append(f"  {_tag('link_ctn', id=f'{one_host}_link', direction='UP')}")
        lines.append(f"  {_tag('link_ctn', id=_wire_id(platform, one, other))}")
        lines += [f"  {_tag('link_ctn', id=f'{other_host}_link', direction='DOWN')}", "</route>"]
    return _document(platform.site, platform.smpi_options(), lines)


def _document(site: str, options: dict[str, str], lines: list[str]) -> str:
    written = [_HEAD, '  <config id="smpi">']
    written += [f"    {_tag('prop', id=name, value=value)}" for name, value in options.items()]
    written += ["  </config>", f'  <zone id={_quoted(site)} routing="Full">']
    written += [f"    {line}" for line in lines]
    written += ["  </zone>", "</platform>"]
    return "\n".join(written) + "\n"


def _host_lines(platform: HeterogeneousPlatform, host: str, kind: NodeType) -> list[str]:
    calibration = platform.calibration
    properties = {
        "smpi/os": overhead_list(kind.send),
        "smpi/or": overhead_list(kind.receive),
        "smpi/ois": overhead_list(kind.non_blocking_send(calibration.eager_limit_bytes)),
        _REDUCE: repr(calibration.reduce_seconds_per_byte),
    }
    head = _tag("host", id=host, speed=f"{kind.core_flops!r}f", core=str(kind.cores_per_node)).replace("/>", ">")
    return [head, *(f"  {_tag('prop', id=name, value=value)}" for name, value in properties.items()), "</host>"]


def _link(name: str, bytes_per_second: float, latency_seconds: float, sharing: str) -> str:
    bandwidth, latency = f"{bytes_per_second!r}Bps", f"{latency_seconds!r}s"
    return _tag("link", id=name, bandwidth=bandwidth, latency=latency, sharing_policy=sharing)


def _wire_id(platform: HeterogeneousPlatform, one: NodeType, other: NodeType) -> str:
    # Numbers instead of names, so that renaming a node type does not change the digest.
    first, second = sorted((platform.node_types.index(one), platform.node_types.index(other)))
    return f"wire_{first + 1}_{second + 1}"


def _cluster_lines(platform: Platform) -> list[str]:
    attributes = {
        "id": platform.name,
        "prefix": platform.host_prefix,
        "suffix": platform.host_suffix,
        "radical": f"{platform.first_host}-{platform.first_host + platform.nodes - 1}",
        "speed": f"{platform.core_flops!r}f",
        "core": str(platform.cores_per_node),
        "bw": f"{platform.link_bytes_per_second * platform.links_per_node!r}Bps",
        "lat": f"{platform.link_latency_seconds!r}s",
        "sharing_policy": "SPLITDUPLEX",
        "loopback_bw": f"{platform.loopback_bytes_per_second!r}Bps",
        "loopback_lat": f"{platform.loopback_latency_seconds!r}s",
        "router_id": f"{platform.host_prefix}router{platform.host_suffix}",
    }
    if platform.backbone_bytes_per_second is not None:
        attributes["bb_bw"] = f"{platform.backbone_bytes_per_second!r}Bps"
        attributes["bb_lat"] = f"{platform.backbone_latency_seconds!r}s"
        # A shared backbone would make all flows of the cluster compete; a switch forwards them independently.
        attributes["bb_sharing_policy"] = "FATPIPE"
    # A property of a <cluster> applies to each of its hosts.
    prop = _tag("prop", id=_REDUCE, value=repr(platform.calibration.reduce_seconds_per_byte))
    return [_tag("cluster", **attributes).replace("/>", ">"), f"  {prop}", "</cluster>"]


def _tag(tag: str, **attributes: str) -> str:
    return f"<{tag} {' '.join(f'{name}={_quoted(value)}' for name, value in attributes.items())}/>"


def _quoted(value: str) -> str:
    """An attribute's value, in quotes."""
    # It brings Python's HTTP client along, which no command needs that only reads a description.
    from xml.sax.saxutils import quoteattr

    return quoteattr(value)
