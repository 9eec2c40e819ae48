"""Descriptions made from platform XML files of one or several clusters, such as Grid'5000's, or of hosts and links.

Names and defaults are those of SimGrid 3.32. Parallel links over which SimGrid spreads messages are one link here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from collwise.common.errors import UsageError, warn
from collwise.platforms.description import Calibration, HeterogeneousPlatform, Platform
from collwise.platforms.hosts import HostPlatform, parse_radical
from collwise.platforms.smpi import CROSS_TRAFFIC, factor_rows, overhead_rows
from collwise.platforms.topology import Dragonfly, FatTree, Torus
from collwise.platforms.xml import ACKNOWLEDGED, ALLOCATE, COPY, KEPT, REDUCE, SOCKETS
from collwise.platforms.xml_file import XmlPlatform, bytes_per_second, flops, seconds
from collwise.platforms.xml_routes import (
    LOOPBACK,
    Leg,
    Route,
    between_hosts,
    joined,
    of_hosts,
    route_between,
    routes_of,
)

_LATENCY_FACTORS = (
    "65472:11.6436;15424:3.48845;9376:2.59299;5776:2.18796;3484:1.88101;1426:1.61075;732:1.9503;257:1.95341;0:2.01467"
)
_RATE_FACTORS = (
    "65472:0.940694;15424:0.697866;9376:0.58729;5776:1.08739;3484:0.77493;1426:0.608902;732:0.341987;257:0.338112;"
    "0:0.812084"
)
_NO_OVERHEAD = "0:0:0"
_NO_LIMIT = ("SPLITDUPLEX", "FATPIPE")
_NEEDED = {"cluster": ("speed", "bw", "lat"), "host": ("speed",)}
_UNKNOWN = ("limiter_link", "sharing_policy")
_OTHERS = ("peer", "cabinet", "host_link", "bypassRoute", "bypassZoneRoute", "bypassASroute")
_OWN = ("id", "prefix", "suffix", "radical", "router_id", "speed", "pstate", "coordinates")


def description_of(platform: HostPlatform) -> Platform | HeterogeneousPlatform:
    """The description of a platform without a placement: the platform itself, or a description of its XML."""
    if isinstance(platform, Platform | HeterogeneousPlatform):
        return platform
    assert isinstance(platform, XmlPlatform)
    return _description(platform)


@lru_cache(maxsize=8)
def _description(platform: XmlPlatform) -> Platform:
    root, fail = ElementTree.fromstring(platform.text), partial(_refusal, platform)
    if other := next((element.tag for kind in _OTHERS for element in root.iter(kind)), None):
        raise fail(f"it has <{other}> elements; expected <cluster> elements, or <host> elements with routes")
    zones = [
        element for element in root.iter() if element.find("cluster") is not None or element.find("host") is not None
    ]
    if len(zones) != 1 or (zones[0].find("cluster") is not None and zones[0].find("host") is not None):
        raise fail("its hosts are in several zones, or in a zone with clusters; expected one zone of hosts or clusters")
    (zone,) = zones
    elements = zone.findall("cluster") or zone.findall("host")
    given, properties = elements[0].attrib, _properties(elements[0])
    for element in elements[1:]:
        if _kind(element) != _kind(elements[0]) or _properties(element) != properties:
            raise fail(
                f"<{element.tag}> '{element.get('id')}' differs from '{given['id']}' in its attributes; expected equal "
                "nodes"
            )
    needed = _NEEDED[elements[0].tag]
    if absent := next((name for name in needed if name not in given), None):
        raise fail(f"its <{elements[0].tag}> lacks {absent}; it needs {', '.join(needed)}")
    if REDUCE not in properties:
        warn(f"platform '{platform.name}' does not say what reductions cost, so they take no time ({REDUCE})")
    make = _of_hosts if elements[0].tag == "host" else _of_clusters
    sockets = int(properties.get(SOCKETS, 1))
    numbered: dict[str, Any] = {"host_prefix": f"{platform.name}-", "host_suffix": "", "first_host": 0}
    return Platform(
        name=platform.name,
        title=platform.title,
        site=zone.get("id", platform.name),
        nodes=len(platform.hosts),
        cpus_per_node=sockets,
        cores_per_node=max(sockets, int(given.get("core", 1))),
        processes_per_node=platform.default_processes_per_node,
        core_flops=flops(given["speed"].split(",")[0]),
        calibration=_calibration(platform, properties),
        **(numbered | make(platform, zone, elements)),
    )


def _properties(element: Element) -> dict[str, str]:
    return {item.attrib["id"]: item.attrib["value"] for item in element.findall("prop")}


def _kind(element: Element) -> dict[str, str]:
    """The attributes in which clusters, or hosts, have to agree."""
    return {name: value for name, value in element.attrib.items() if name not in _OWN}


def _of_hosts(platform: XmlPlatform, zone: Element, elements: Sequence[Element]) -> dict[str, Any]:
    """The fields of a description that give the network of single hosts."""
    hosts, fail = platform.hosts, partial(_refusal, platform)
    if len(hosts) < 2:
        raise fail("it has only one host; at least two are needed")
    own = {ends[0]: legs for ends, legs in routes_of(zone, fail).items() if ends[0] == ends[1]}
    within = [own.get(host, (Leg("", "", *LOOPBACK, "FATPIPE"),)) for host in hosts]
    alike, memories = {tuple(leg[2:] for leg in legs) for legs in within}, {legs[1].link for legs in within if legs[1:]}
    if len(alike) > 1 or len(memories) not in (0, len(hosts)):
        raise fail("the hosts' routes to themselves differ, or share a link; expected equal ones")
    loopback, *memory = within[0]
    if loopback.policy != "FATPIPE" or [(item.policy, item.latency) for item in memory] not in ([], [("SHARED", 0.0)]):
        raise fail(
            f"the route of a host to itself is over link '{loopback.link}'; expected a FATPIPE link, and optionally a "
            "SHARED link without latency for the host's memory"
        )
    made = of_hosts(hosts, between_hosts(zone, hosts, fail), fail)
    if memory:
        share = 1 + CROSS_TRAFFIC if _calibration(platform, {}).crosstraffic else 1
        made["memory_bytes_per_second"] = memory[0].rate / share
    return made | {"loopback_bytes_per_second": loopback.rate, "loopback_latency_seconds": loopback.latency}


def _router(given: Mapping[str, str]) -> str:
    return given.get("router_id", f"{given['prefix']}{given['id']}_router{given['suffix']}")


def _of_clusters(platform: XmlPlatform, zone: Element, elements: Sequence[Element]) -> dict[str, Any]:
    """The fields of a description that give several clusters' network, or one cluster's network and host names."""
    given, fail = elements[0].attrib, partial(_refusal, platform)
    if unknown := next((name for name in _UNKNOWN if given.get(name, "SPLITDUPLEX") != "SPLITDUPLEX"), None):
        raise fail(f"its <cluster> has {unknown}={given[unknown]!r} (valid: none, or SPLITDUPLEX)")
    rate, latency = bytes_per_second(given["bw"]), seconds(given["lat"])
    kind = given.get("topology", "FLAT").upper()
    shape = _SHAPES.get(kind)
    if shape is None or (len(elements) > 1 and kind != "FLAT"):
        raise fail(f"its topology is {kind} (valid: {', '.join(_SHAPES)}; if there are several clusters, FLAT)")
    sizes = [len(parse_radical(element.attrib["radical"])) for element in elements]
    # Flows between clusters pass the backbone in both directions.
    backbone = _backbone(given, rate * max(sizes) * min(2, len(elements)))
    if backbone.get("backbone_is_shared") and (len(elements) > 1 or kind != "FLAT"):
        raise fail(
            f"all flows of a cluster share its backbone of {given['bb_bw']}; expected a single FLAT cluster, "
            f"bb_sharing_policy={' or '.join(_NO_LIMIT)}, or a backbone as fast as all nodes together"
        )
    loopback = _loopback(given, rate, latency, backbone)
    found = {"loopback_bytes_per_second": loopback[0], "loopback_latency_seconds": loopback[1]}
    if len(elements) > 1:
        near: Route = ()
        if backbone:
            flow, within = backbone["backbone_bytes_per_second"], backbone["backbone_latency_seconds"]
            near = (Leg("backbone", "", flow, within, "FATPIPE"),)
        names, routes = [element.attrib["id"] for element in elements], routes_of(zone, fail)
        routers = {element.attrib["id"]: _router(element.attrib) for element in elements}
        for way in zone.findall("zoneRoute"):
            for end in ("src", "dst"):
                if way.get(f"gw_{end}") != routers.get(way.attrib[end], way.get(f"gw_{end}")):
                    gateway = way.get(f"gw_{end}")
                    raise fail(
                        f"the route of cluster '{way.get(end)}' uses gateway '{gateway}'; expected the cluster's router"
                    )

        def between(one: int, other: int) -> Route:
            return (*near, *route_between(routes, names[one], names[other], fail), *near)

        made = joined(names, range(len(names)), sizes, between, (rate, latency), near, fail)
        return found | made
    prefix, suffix = given["prefix"], given["suffix"]
    try:
        made = backbone | shape(given.get("topo_parameters", ""), rate, latency)
        first = int(platform.hosts[0].removeprefix(prefix).removesuffix(suffix))
    except (ValueError, ZeroDivisionError):
        raise fail(f"topo_parameters={given.get('topo_parameters')!r} are malformed") from None
    return found | made | {"host_prefix": prefix, "host_suffix": suffix, "first_host": first}


def _refusal(platform: XmlPlatform, why: str) -> UsageError:
    return UsageError(
        f"platform '{platform.name}' is platform XML that has no description: {why}; use 'simulate --engine smpi'"
    )


def _backbone(given: Mapping[str, str], most: float) -> dict[str, Any]:
    """The backbone of a cluster. It is shared if its policy says so and it is slower than `most`."""
    if "bb_bw" not in given:
        return {}
    rate = bytes_per_second(given["bb_bw"])
    found = {"backbone_bytes_per_second": rate, "backbone_latency_seconds": seconds(given.get("bb_lat", "0"))}
    is_shared = given.get("bb_sharing_policy", "SHARED") not in _NO_LIMIT and rate < most
    return found | ({"backbone_is_shared": True} if is_shared else {})


def _loopback(
    given: Mapping[str, str], rate: float, latency: float, backbone: Mapping[str, float]
) -> tuple[float, float]:
    """The rate and latency within a node; without a loopback, messages leave the node and come back."""
    if {"loopback_bw", "loopback_lat"} <= given.keys():
        return bytes_per_second(given["loopback_bw"]), seconds(given["loopback_lat"])
    way = 2 * latency + backbone.get("backbone_latency_seconds", 0.0)
    return min(rate, backbone.get("backbone_bytes_per_second", rate)), way


def _calibration(platform: XmlPlatform, properties: Mapping[str, str]) -> Calibration:
    """The options of SMPI as a calibration; properties of hosts override the options."""
    given = {**platform.smpi_options(), **properties}
    return Calibration(
        latency_factor=factor_rows(given.get("smpi/lat-factor", _LATENCY_FACTORS)),
        bandwidth_factor=factor_rows(given.get("smpi/bw-factor", _RATE_FACTORS)),
        os=overhead_rows(given.get("smpi/os", _NO_OVERHEAD)),
        or_=overhead_rows(given.get("smpi/or", _NO_OVERHEAD)),
        ois=overhead_rows(given.get("smpi/ois", _NO_OVERHEAD)),
        eager_limit_bytes=platform.eager_limit_bytes,
        acknowledged_from_bytes=int(given[ACKNOWLEDGED]) if ACKNOWLEDGED in given else None,
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


def _fat_tree(text: str, rate: float, latency: float) -> dict[str, Any]:
    """Reads SimGrid's 'LEVELS;children;parents;links', by level from the nodes up."""
    levels, *lists = text.split(";")
    down, up, links = ([int(name) for name in part.split(",")] for part in lists)
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
    """Reads SimGrid's 'groups,links;chassis,links;routers,links;nodes'."""
    *levels, nodes = text.split(";")
    (groups, blue), (chassis, black), (routers, green) = ([int(name) for name in level.split(",")] for level in levels)
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
    """Reads SimGrid's 'X,Y,Z', where every node has its own switch, and no link except the switch's cables."""
    dimensions = tuple(int(name) for name in text.split(","))
    shape = Torus(1, latency, dimensions=dimensions, cable_bytes_per_second=rate)
    return _link(2 * len(dimensions) * rate, 0.0) | {"topology": shape}


_SHAPES: Mapping[str, Callable[[str, float, float], dict[str, Any]]] = {
    "FLAT": lambda _, rate, latency: _link(rate, latency),
    "FAT_TREE": _fat_tree,
    "DRAGONFLY": _dragonfly,
    "TORUS": _torus,
}
"""Functions that make a cluster's link and topology from parameters, rate and latency, by SimGrid's topology name."""
