"""Reads the routes of platform XML files as one switch or as a fat tree of two levels; refuses all other routes.

Attributes and defaults are those of SimGrid 3.32. Flows compete for SPLITDUPLEX links in each direction, for SHARED
links in both directions together, and never for FATPIPE links, which limit each flow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise, permutations
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element

from collwise.platforms.topology import FatTree
from collwise.platforms.xml_file import bytes_per_second, seconds

Fail = Callable[[str], Exception]
"""Makes the error that says why a file has no description."""

LOOPBACK = (10e9, 0.0)
"""The rate and latency within a host that has no route to itself, in SimGrid."""

_DIRECT, _SEARCHED = ("Full",), ("Floyd", "Dijkstra", "DijkstraCache")
_POLICIES = ("SHARED", "SPLITDUPLEX", "FATPIPE")
_LINK_KEYS = {"id", "bandwidth", "latency", "sharing_policy"}
_BACK = {"UP": "DOWN", "DOWN": "UP", "": ""}


class Leg(NamedTuple):
    """A link in one direction: its name, direction ('UP', 'DOWN' or ''), bytes per second, latency and policy."""

    link: str
    way: str
    rate: float
    latency: float
    policy: str

    def limits(self, together: float) -> bool:
        """True if flows may compete for the link when all hosts together send `together` bytes per second."""
        return self.policy != "FATPIPE" and self.rate < together * (2 if self.policy == "SHARED" else 1)


Route = tuple[Leg, ...]
Between = Callable[[int, int], Route]
"""Gives the route from one end to another, by their numbers."""


def routes_of(zone: Element, fail: Fail) -> dict[tuple[str, str], Route]:
    """The routes that a zone gives, including reverse routes, by source and destination."""
    links = {}
    for item in zone.findall("link"):
        policy = item.get("sharing_policy", "SHARED")
        if policy not in _POLICIES or not _LINK_KEYS.issuperset(item.keys()):
            valid = ", ".join(_POLICIES)
            raise fail(f"link '{item.get('id')}' is {policy}, or has a time-varying profile (valid: {valid})")
        links[item.attrib["id"]] = (
            bytes_per_second(item.attrib["bandwidth"]),
            seconds(item.get("latency", "0")),
            policy,
        )
    found: dict[tuple[str, str], Route] = {}
    for element in [*zone.findall("route"), *zone.findall("zoneRoute")]:
        source, target = element.attrib["src"], element.attrib["dst"]
        legs = []
        for item in element.findall("link_ctn"):
            name, way = item.attrib["id"], item.get("direction", "")
            if name not in links and name.endswith(("_UP", "_DOWN")):
                name, _, way = name.rpartition("_")
            if name not in links or (links[name][2] == "SPLITDUPLEX") != (way in ("UP", "DOWN")):
                raise fail(f"the route from '{source}' to '{target}' has link '{name}' in direction '{way}'")
            legs.append(Leg(name, way, *links[name]))
        found[source, target] = tuple(legs)
        if element.get("symmetrical", "YES").upper() in ("YES", "TRUE", "1") and source != target:
            found[target, source] = tuple(leg._replace(way=_BACK[leg.way]) for leg in reversed(legs))
    return found


def between_hosts(zone: Element, hosts: Sequence[str], fail: Fail) -> Between:
    """The routes between the hosts of a zone, as the zone gives them or along the tree of its routers."""
    given, routing = routes_of(zone, fail), zone.get("routing", "Full")
    if routing not in _DIRECT + _SEARCHED:
        raise fail(f"zone '{zone.get('id')}' has the routing {routing} (valid: {', '.join(_DIRECT + _SEARCHED)})")
    if routing in _DIRECT:
        return lambda one, other: route_between(given, hosts[one], hosts[other], fail)
    neighbours: dict[str, list[str]] = {}
    for source, target in given:
        if source != target:
            neighbours.setdefault(source, []).append(target)
    if sum(map(len, neighbours.values())) != 2 * (len(neighbours) - 1):
        raise fail(f"zone '{zone.get('id')}' has several routes between two hosts; expected routes that form a tree")
    parents: dict[str, str] = {}
    ordered = [hosts[0]]
    for vertex in ordered:
        for one in neighbours.get(vertex, ()):
            if one != parents.get(vertex):
                parents[one] = vertex
                ordered.append(one)
    if apart := [host for host in hosts if host not in ordered]:
        raise fail(f"there is no route from '{hosts[0]}' to '{apart[0]}'")

    def ancestors(vertex: str) -> list[str]:
        found = [vertex]
        while found[-1] in parents:
            found.append(parents[found[-1]])
        return found

    def along(one: int, other: int) -> Route:
        up, down = ancestors(hosts[one]), ancestors(hosts[other])
        meeting = next(vertex for vertex in up if vertex in down)
        path = up[: up.index(meeting) + 1] + down[: down.index(meeting)][::-1]
        return tuple(leg for pair in pairwise(path) for leg in route_between(given, *pair, fail))

    return along


def route_between(given: Mapping[tuple[str, str], Route], name: str, other: str, fail: Fail) -> Route:
    """The given route from one vertex to another."""
    if (name, other) not in given:
        raise fail(f"there is no route from '{name}' to '{other}'")
    return given[name, other]


def of_hosts(hosts: Sequence[str], between: Between, fail: Fail) -> dict[str, Any]:
    """The link, topology and backbone of hosts. Each host has its own link; the rest of a route joins these."""
    ups: dict[int, Leg] = {}
    downs: dict[int, Leg] = {}
    for i, j in permutations(range(len(hosts)), 2):
        route = between(i, j)
        where = f"the route from '{hosts[i]}' to '{hosts[j]}'"
        if len(route) < 2:
            raise fail(f"{where} does not pass a link of each host; expected one link of each host, and others between")
        for table, number, leg in ((ups, i, route[0]), (downs, j, route[-1])):
            if table.setdefault(number, leg) != leg:
                raise fail(f"{where} has link '{leg.link}' where the host's other routes have '{table[number].link}'")
    own = [*ups.values(), *downs.values()]
    for leg in own:
        if leg.policy == "FATPIPE" or own.count(leg) > 1:
            raise fail(
                f"link '{leg.link}' is {leg.policy}; expected a link for each host and direction, like SPLITDUPLEX "
                "links"
            )
        if (leg.rate, leg.latency) != (own[0].rate, own[0].latency):
            raise fail(f"links '{own[0].link}' and '{leg.link}' of hosts have different rates or latencies")
    together = own[0].rate * len(hosts)

    def inner(one: int, other: int) -> Route:
        return between(one, other)[1:-1]

    def is_near(one: int, other: int) -> bool:
        return not any(leg.limits(together) for leg in inner(one, other)) and _seconds(inner(one, other)) == least

    least = min(
        _seconds(inner(*pair))
        for pair in [*((0, other) for other in range(2, len(hosts))), *pairwise(range(len(hosts)))]
    )
    firsts = [0]
    for number in range(1, len(hosts)):
        if not is_near(firsts[-1], number):
            firsts.append(number)
    sizes = [end - start for start, end in zip(firsts, [*firsts[1:], len(hosts)], strict=True)]
    switch_of = [switch for switch, size in enumerate(sizes) for _ in range(size)]
    near = inner(0, 1) if sizes[0] > 1 else ()
    return joined(hosts, switch_of, sizes, inner, (own[0].rate, own[0].latency), near, fail)


def joined(
    ends: Sequence[str],
    switch_of: Sequence[int],
    sizes: Sequence[int],
    between: Between,
    link: tuple[float, float],
    near: Route,
    fail: Fail,
) -> dict[str, Any]:
    """The link, topology and backbone of a network of switches, which have `sizes` nodes.

    `ends` are the hosts, or clusters, and `switch_of` has the switch of each. `link` is the rate and latency of a
    node's own link, and `near` the rest of a route between two nodes of a switch.
    """
    rate, latency = link
    together, (flow, within) = rate * sum(sizes), _limit(near)
    ups: dict[int, Leg] = {}
    downs: dict[int, Leg] = {}
    far: tuple[Any, ...] = ()
    for i, j in permutations(range(len(ends)), 2):
        route, where = between(i, j), f"the route from '{ends[i]}' to '{ends[j]}'"
        taken = [leg for leg in route if leg.limits(together)]
        one, other = switch_of[i], switch_of[j]
        if one == other:
            if taken or _limit(route) != (flow, within):
                raise fail(
                    f"{where} differs from others at its router; expected equal hosts, numbered in a row at each router"
                )
            continue
        found = (_limit(route), [leg.rate for leg in taken])
        far = far or found
        if found != far or len(taken) > 2:
            raise fail(
                f"{where} differs from others, or passes more than two links that flows share; expected two levels"
            )
        for table, switch, leg in ((ups, one, taken[:1]), (downs, other, taken[-1:])):
            if leg and table.setdefault(switch, leg[0]) != leg[0]:
                raise fail(
                    f"{where} has link '{leg[0].link}' where the switch's other routes have '{table[switch].link}'"
                )
    legs = [*ups.values(), *downs.values()] if far and len(far[1]) == 2 else list(ups.values())
    if shared := next((leg for leg in legs if legs.count(leg) > 1), None):
        raise fail(
            f"link '{shared.link}' is shared by several routes or by both directions; expected SPLITDUPLEX links, "
            "one for each"
        )
    if not far:
        backbone = {"backbone_bytes_per_second": min(flow, rate), "backbone_latency_seconds": within} if near else {}
        return {"link_bytes_per_second": rate, "link_latency_seconds": latency} | backbone
    (limit, beyond), rates = far
    if min(flow, limit) < rate or len(set(rates)) > 1:
        raise fail(
            "routes between switches limit a flow to another rate than routes within a switch; expected the rate of "
            "the hosts' links on both"
        )
    if any(size != sizes[0] for size in sizes[:-1]) or sizes[-1] > sizes[0]:
        raise fail(
            f"switches have {', '.join(map(str, sizes))} hosts; all switches but the last must have the same number "
            "of hosts, and the last may have fewer"
        )
    hop = (beyond - within) / 2
    over = max(1.0, sizes[0] * rate / rates[0]) if rates else 1.0
    return {
        "link_bytes_per_second": rate,
        "link_latency_seconds": latency + within / 2,
        "topology": FatTree(sizes[0], hop, oversubscription=over),
    }


def _seconds(route: Route) -> float:
    return round(sum(leg.latency for leg in route), 12)


def _limit(route: Route) -> tuple[float, float]:
    """The rate that FATPIPE links leave to a flow, and the latency of the route."""
    return min([leg.rate for leg in route if leg.policy == "FATPIPE"], default=float("inf")), _seconds(route)
