"""Descriptions of platform XML files with one cluster, such as Grid'5000's.

SimGrid's attributes of <cluster> and its options have the names and defaults of SimGrid 3.32. What SimGrid spreads over
parallel links is one link here with the sum of their rates, as in all descriptions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any
from xml.etree import ElementTree

from collwise.common.errors import UsageError, warn
from collwise.platforms.description import Calibration, HeterogeneousPlatform, Platform
from collwise.platforms.hosts import HostPlatform
from collwise.platforms.smpi import factor_rows, overhead_rows
from collwise.platforms.topology import Dragonfly, FatTree, Torus
from collwise.platforms.xml import ALLOCATE, COPY, KEPT, REDUCE, SOCKETS
from collwise.platforms.xml_file import XmlPlatform, bytes_per_second, flops, seconds

_LATENCY_FACTORS = (
    "65472:11.6436;15424:3.48845;9376:2.59299;5776:2.18796;3484:1.88101;1426:1.61075;732:1.9503;257:1.95341;0:2.01467"
)
_RATE_FACTORS = (
    "65472:0.940694;15424:0.697866;9376:0.58729;5776:1.08739;3484:0.77493;1426:0.608902;732:0.341987;257:0.338112;"
    "0:0.812084"
)
_NO_OVERHEAD = "0:0:0"
_NO_LIMIT = ("SPLITDUPLEX", "FATPIPE")
_NEEDED = ("speed", "bw", "lat")
_UNKNOWN = ("limiter_link", "sharing_policy")
_HOSTS = ("host", "peer", "cabinet")


def description_of(platform: HostPlatform) -> Platform | HeterogeneousPlatform:
    """The description of a platform without a placement: itself, or what a platform XML says of its one cluster."""
    if isinstance(platform, Platform | HeterogeneousPlatform):
        return platform
    assert isinstance(platform, XmlPlatform)
    return _description(platform)


@lru_cache(maxsize=8)
def _description(platform: XmlPlatform) -> Platform:
    root = ElementTree.fromstring(platform.text)
    clusters = list(root.iter("cluster"))
    others = [kind for kind in _HOSTS if root.find(f".//{kind}") is not None]
    if len(clusters) != 1 or others:
        has = f"<{others[0]}> elements" if others else f"{len(clusters)} clusters"
        raise _refusal(platform, f"it has {has} (valid: one <cluster>)")
    (cluster,) = clusters
    given = cluster.attrib
    if unknown := next((name for name in _UNKNOWN if given.get(name, "SPLITDUPLEX") != "SPLITDUPLEX"), None):
        raise _refusal(platform, f"its <cluster> has {unknown}={given[unknown]!r} (valid: none, or SPLITDUPLEX)")
    if absent := next((name for name in _NEEDED if name not in given), None):
        raise _refusal(platform, f"its <cluster> lacks {absent} (valid: {', '.join(_NEEDED)} given)")
    rate, latency = bytes_per_second(given["bw"]), seconds(given["lat"])
    properties = {one.attrib["id"]: one.attrib["value"] for one in cluster.findall("prop")}
    kind = given.get("topology", "FLAT").upper()
    make = _SHAPES.get(kind)
    if make is None:
        raise _refusal(platform, f"its topology is {kind} (valid: {', '.join(_SHAPES)})")
    prefix, suffix, hosts = given["prefix"], given["suffix"], platform.hosts
    try:
        shape = make(given.get("topo_parameters", ""), rate, latency)
        first = int(hosts[0].removeprefix(prefix).removesuffix(suffix))
    except (ValueError, ZeroDivisionError):
        raise _refusal(platform, f"topo_parameters={given.get('topo_parameters')!r} are malformed") from None
    if REDUCE not in properties:
        warn(f"platform '{platform.name}' does not say what reductions cost: they take no time ({REDUCE})")
    backbone = _backbone(platform, given, rate * len(hosts))
    loopback = _loopback(given, rate, latency, backbone)
    sockets = int(properties.get(SOCKETS, 1))
    return Platform(
        name=platform.name,
        title=platform.title,
        site=next((zone.attrib["id"] for zone in root.iter("zone") if cluster in zone), platform.name),
        host_prefix=prefix,
        host_suffix=suffix,
        first_host=first,
        nodes=len(hosts),
        cpus_per_node=sockets,
        cores_per_node=max(sockets, int(given.get("core", 1))),
        processes_per_node=platform.default_processes_per_node,
        core_flops=flops(given["speed"].split(",")[0]),
        loopback_bytes_per_second=loopback[0],
        loopback_latency_seconds=loopback[1],
        calibration=_calibration(platform, properties),
        **(backbone | shape),
    )


def _refusal(platform: XmlPlatform, why: str) -> UsageError:
    return UsageError(f"platform '{platform.name}' is platform XML that has no description: {why}; SMPI simulates it")


def _backbone(platform: XmlPlatform, given: Mapping[str, str], most: float) -> dict[str, Any]:
    """The backbone of a cluster, which a description has only where it limits single flows, or nothing."""
    if "bb_bw" not in given:
        return {}
    rate = bytes_per_second(given["bb_bw"])
    if given.get("bb_sharing_policy", "SHARED") not in _NO_LIMIT and rate < most:
        raise _refusal(
            platform,
            f"all flows share the backbone of {given['bb_bw']} (valid: bb_sharing_policy={' or '.join(_NO_LIMIT)}, or "
            "a rate of all nodes together)",
        )
    return {"backbone_bytes_per_second": rate, "backbone_latency_seconds": seconds(given.get("bb_lat", "0"))}


def _loopback(
    given: Mapping[str, str], rate: float, latency: float, backbone: Mapping[str, float]
) -> tuple[float, float]:
    """The rate and latency within a node: without a loopback messages leave it, and come back."""
    if {"loopback_bw", "loopback_lat"} <= given.keys():
        return bytes_per_second(given["loopback_bw"]), seconds(given["loopback_lat"])
    way = 2 * latency + backbone.get("backbone_latency_seconds", 0.0)
    return min(rate, backbone.get("backbone_bytes_per_second", rate)), way


def _calibration(platform: XmlPlatform, properties: Mapping[str, str]) -> Calibration:
    """The options of SMPI as a calibration; properties of hosts come before them."""
    given = {**platform.smpi_options(), **properties}
    return Calibration(
        latency_factor=factor_rows(given.get("smpi/lat-factor", _LATENCY_FACTORS)),
        bandwidth_factor=factor_rows(given.get("smpi/bw-factor", _RATE_FACTORS)),
        os=overhead_rows(given.get("smpi/os", _NO_OVERHEAD)),
        or_=overhead_rows(given.get("smpi/or", _NO_OVERHEAD)),
        ois=overhead_rows(given.get("smpi/ois", _NO_OVERHEAD)),
        eager_limit_bytes=platform.eager_limit_bytes,
        crosstraffic=given.get("network/crosstraffic", "yes").lower() in ("yes", "on", "true", "1"),
        reduce_seconds_per_byte=float(given.get(REDUCE, 0)),
        copy_seconds_per_byte=float(given[COPY]) if COPY in given else None,
        allocate_seconds_per_byte=float(given[ALLOCATE]) if ALLOCATE in given else None,
        kept_memory_bytes=int(given.get(KEPT, Calibration.kept_memory_bytes)),
        tcp_window=float(given.get("network/TCP-gamma", 1)) > 0,
        note="platform XML" if "smpi/lat-factor" in given or "smpi/bw-factor" in given else "SimGrid's defaults",
    )


def _link(rate: float, latency: float) -> dict[str, Any]:
    return {"link_bytes_per_second": rate, "link_latency_seconds": latency}


def _flat(_: str, rate: float, latency: float) -> dict[str, Any]:
    return _link(rate, latency)


def _fat_tree(text: str, rate: float, latency: float) -> dict[str, Any]:
    """'LEVELS;children;parents;links' by level from the nodes up, as SimGrid has it."""
    levels, *lists = text.split(";")
    down, up, links = ([int(one) for one in part.split(",")] for part in lists)
    if not {int(levels)} == {len(down), len(up), len(links)} or len(down) > 3:
        raise ValueError(text)
    node_rate = up[0] * links[0] * rate
    if len(down) == 1:
        return _link(node_rate, latency)
    switch_rate = up[1] * links[1] * rate
    shape = FatTree(down[0], latency, oversubscription=down[0] * node_rate / switch_rate)
    if len(down) == 3:
        # A pod has as many switches of the second level as each of its leaf switches has parents.
        pod_rate = up[1] * up[2] * links[2] * rate
        shape = replace(shape, switches_per_pod=down[1], pod_oversubscription=down[1] * switch_rate / pod_rate)
    return _link(node_rate, latency) | {"topology": shape}


def _dragonfly(text: str, rate: float, latency: float) -> dict[str, Any]:
    """'groups,links;chassis,links;routers,links;nodes', as SimGrid has it."""
    *levels, nodes = text.split(";")
    (groups, blue), (chassis, black), (routers, green) = ([int(one) for one in level.split(",")] for level in levels)
    shape = Dragonfly(
        int(nodes),
        latency,
        groups=groups,
        switches_per_group=chassis * routers,
        local_bytes_per_second=((routers - 1) * green + (chassis - 1) * black) * rate,
        global_bytes_per_second=blue * rate,
    )
    return _link(rate, latency) | {"topology": shape}


def _torus(text: str, rate: float, latency: float) -> dict[str, Any]:
    """'X,Y,Z': every node is at a switch of its own, and has no link besides the cables."""
    dimensions = tuple(int(one) for one in text.split(","))
    shape = Torus(1, latency, dimensions=dimensions, cable_bytes_per_second=rate)
    return _link(2 * len(dimensions) * rate, 0.0) | {"topology": shape}


_SHAPES: Mapping[str, Callable[[str, float, float], dict[str, Any]]] = {
    "FLAT": _flat,
    "FAT_TREE": _fat_tree,
    "DRAGONFLY": _dragonfly,
    "TORUS": _torus,
}
"""A cluster's link and topology, made of its parameters, rate and latency, by SimGrid's names of topologies."""
