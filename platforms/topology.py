"""Topologies of networks: switches, the cables between them, and the route of a message from switch to switch.

Nodes fill the switches in order. Link 2 i leads from `one` to `other` of cable i, and link 2 i + 1 leads back. Routes
are fixed. Parallel cables count as one cable, with the sum of their rates, or less if routes collide.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import combinations
from typing import TYPE_CHECKING

from collwise.common.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


@dataclass(frozen=True)
class Cable:
    """A cable between two vertices: bytes per second in each direction, and the seconds that it adds to a route."""

    one: int
    other: int
    bytes_per_second: float
    latency_seconds: float


@dataclass(frozen=True)
class CableFault:
    """A factor for the rates of all cables at a switch, or of the cable between two switches."""

    switches: tuple[int, ...]
    rate_factor: float


ADAPTIVE, STATIC = "adaptive", "static"
ROUTINGS = (ADAPTIVE, STATIC)
"""The two routings: messages spread evenly over parallel cables, or each message uses only the cable of its route."""


def parse_topology(text: str) -> tuple[str, list[tuple[str, str]]]:
    """The kind and the parameters of a topology such as 'fat-tree:nodes_per_switch=16,oversubscription=2:1'.

    Commas and colons divide parameters. Raises UsageError for one without a value, and for one given twice.
    """
    kind, _, rest = text.partition(":")
    settings: list[tuple[str, str]] = []
    for part in filter(None, re.split(r"[:,\s]+(?=[A-Za-z]{2}|$)", rest)):
        name, equals, value = (word.strip() for word in part.partition("="))
        if not equals:
            raise UsageError(f"malformed '{part}'; write for example fat-tree:nodes_per_switch=16,oversubscription=4")
        if name in dict(settings):
            raise UsageError(f"{name} is given twice; give each parameter of a topology once")
        settings.append((name, value))
    return kind.strip(), settings


def share_in_use(flows: int, cables: int) -> float:
    """The expected share of parallel cables that this many flows use, each on a random cable."""
    return 1.0 - (1.0 - 1.0 / cables) ** flows


@dataclass(frozen=True)
class Topology(ABC):
    """A network of switches with `nodes_per_switch` nodes at each.

    A message takes `hop_latency_seconds` for each cable from switch to switch. The vertices are the switches, numbered
    from 0, followed by whatever else cables end at. `cable_faults` do not change routes. With static `routing`,
    parallel cables have the rate of those cables that are expected to be in use if each node below sends one flow; a
    single cable is assumed to be as fast as a node's links.
    """

    nodes_per_switch: int
    hop_latency_seconds: float = 0.0
    cable_faults: tuple[CableFault, ...] = field(default=(), kw_only=True)
    routing: str = field(default=ADAPTIVE, kw_only=True)

    kind = ""

    @property
    def capacity(self) -> int | None:
        """The largest number of nodes; None if there is no limit."""
        return None

    @property
    def group_switches(self) -> int | None:
        """The number of switches in a group; None where switches are not grouped."""
        return None

    def switches(self, nodes: int) -> int:
        """The number of switches for this many nodes."""
        return -(-(self.capacity or nodes) // self.nodes_per_switch)

    def switch_of(self, node: int) -> int:
        """The switch of a node."""
        return node // self.nodes_per_switch

    def cables(self, nodes: int, node_rate: float) -> list[Cable]:
        """All cables, for nodes whose links have `node_rate` bytes per second."""
        found = self.sound_cables(nodes, node_rate)
        if self.routing == STATIC:
            found = [self._collided(cable, nodes, node_rate) for cable in found]
        for fault in self.cable_faults:
            for number in self.cables_at(fault.switches, found):
                rate = found[number].bytes_per_second * fault.rate_factor
                found[number] = replace(found[number], bytes_per_second=rate)
        return found

    def _collided(self, cable: Cable, nodes: int, node_rate: float) -> Cable:
        """The cable with the rate that static routes leave to flows of a switch's nodes, or of a group's nodes."""
        flows = self.nodes_per_switch
        if cable.one >= self.switches(nodes):
            flows *= self.group_switches or 1
        share = share_in_use(flows, max(1, round(cable.bytes_per_second / node_rate)))
        return replace(cable, bytes_per_second=cable.bytes_per_second * share)

    @abstractmethod
    def sound_cables(self, nodes: int, node_rate: float) -> list[Cable]:
        """All cables as they are without `cable_faults` and collisions."""

    def cables_at(self, switches: tuple[int, ...], cables: Sequence[Cable]) -> list[int]:
        """The numbers of the cables that end at all of these switches."""
        return [number for number, cable in enumerate(cables) if {*switches} <= {cable.one, cable.other}]

    @abstractmethod
    def route(self, nodes: int, one: int, other: int) -> list[int]:
        """The links from one switch to another one, in order."""

    @abstractmethod
    def vertex_name(self, nodes: int, vertex: int) -> str:
        """The name of a vertex in pictures: 'switch 3', 'core'."""

    def longest_seconds(self, nodes: int, node_rate: float) -> float:
        """The largest latency of a route between switches."""
        cables = self.cables(nodes, node_rate)
        return sum(cables[link // 2].latency_seconds for link in self.route(nodes, 0, self.farthest(nodes)))

    def farthest(self, nodes: int) -> int:
        """The switch that is farthest from switch 0."""
        return self.switches(nodes) - 1


@dataclass(frozen=True)
class FatTree(Topology):
    """A fat tree of two levels, or, if `switches_per_pod` is given, of three.

    The cables up from a switch together have the rate of its nodes' links divided by `oversubscription`, and those up
    from a pod have the rate of its switches' cables divided by `pod_oversubscription`. The highest level is one vertex,
    and so is a pod's second level.
    """

    oversubscription: float = 1.0
    switches_per_pod: int | None = None
    pod_oversubscription: float = 1.0

    kind = "fat-tree"

    @property
    def group_switches(self) -> int | None:
        """The switches of a pod."""
        return self.switches_per_pod

    def pods(self, nodes: int) -> int:
        """The number of pods; 0 in a tree of two levels."""
        return -(-self.switches(nodes) // self.switches_per_pod) if self.switches_per_pod else 0

    def sound_cables(self, nodes: int, node_rate: float) -> list[Cable]:
        """A cable up from each switch, then one from each pod."""
        switches, pods = self.switches(nodes), self.pods(nodes)
        rate, hop = self.nodes_per_switch * node_rate / self.oversubscription, self.hop_latency_seconds
        if not self.switches_per_pod:
            return [Cable(index, switches, rate, hop) for index in range(switches)]
        pod_rate = self.switches_per_pod * rate / self.pod_oversubscription
        found = [Cable(index, switches + index // self.switches_per_pod, rate, hop) for index in range(switches)]
        return found + [Cable(switches + pod, switches + pods, pod_rate, hop) for pod in range(pods)]

    def route(self, nodes: int, one: int, other: int) -> list[int]:
        """The links up as far as needed, and down again."""
        if one == other:
            return []
        between: list[int] = []
        if self.switches_per_pod:
            up, down = one // self.switches_per_pod, other // self.switches_per_pod
            switches = self.switches(nodes)
            between = [2 * (switches + up), 2 * (switches + down) + 1] if up != down else []
        return [2 * one, *between, 2 * other + 1]

    def vertex_name(self, nodes: int, vertex: int) -> str:
        """A switch, a pod or the core."""
        beyond = vertex - self.switches(nodes)
        if beyond < 0:
            return f"switch {vertex}"
        return f"pod {beyond}" if beyond < self.pods(nodes) else "core"


@dataclass(frozen=True)
class Dragonfly(Topology):
    """Groups of switches, with a cable between every two groups.

    The cables from a switch to its group together have `local_bytes_per_second`, and those between two groups have
    `global_bytes_per_second`. A message to another group takes three hops: to the switch with the cable, to the other
    group, and to the switch of its receiver.
    """

    groups: int = 1
    switches_per_group: int = 1
    local_bytes_per_second: float = 0.0
    global_bytes_per_second: float = 0.0

    kind = "dragonfly"

    @property
    def capacity(self) -> int:
        """The nodes of all groups."""
        return self.groups * self.switches_per_group * self.nodes_per_switch

    @property
    def group_switches(self) -> int:
        """The switches of a group."""
        return self.switches_per_group

    def sound_cables(self, nodes: int, node_rate: float) -> list[Cable]:
        """A cable from each switch to its group's middle, then one between every two groups."""
        switches, hop = self.groups * self.switches_per_group, self.hop_latency_seconds
        found = [
            Cable(index, switches + index // self.switches_per_group, self.local_bytes_per_second, hop / 2)
            for index in range(switches)
        ]
        pairs = combinations(range(switches, switches + self.groups), 2)
        return found + [Cable(one, other, self.global_bytes_per_second, 2 * hop) for one, other in pairs]

    def route(self, nodes: int, one: int, other: int) -> list[int]:
        """The links over the cable between the two groups."""
        if one == other:
            return []
        from_group, to_group = one // self.switches_per_group, other // self.switches_per_group
        between: list[int] = []
        if from_group != to_group:
            low, high = sorted((from_group, to_group))
            # Pairs are counted by their lower group.
            pair = low * (2 * self.groups - low - 1) // 2 + high - low - 1
            between = [2 * (self.groups * self.switches_per_group + pair) + (from_group > to_group)]
        return [2 * one, *between, 2 * other + 1]

    def vertex_name(self, nodes: int, vertex: int) -> str:
        """A switch or the middle of a group."""
        beyond = vertex - self.groups * self.switches_per_group
        return f"switch {vertex}" if beyond < 0 else f"group {beyond}"


@dataclass(frozen=True)
class Torus(Topology):
    """Switches on a grid, each with a cable to the next one in every dimension, in rings.

    Switches are numbered along the first dimension first. By default cables have the rate of a node's links. Messages
    go the shorter way around, dimension by dimension.
    """

    dimensions: tuple[int, ...] = ()
    cable_bytes_per_second: float | None = None

    kind = "torus"

    @property
    def capacity(self) -> int:
        """The nodes of the whole grid."""
        return math.prod(self.dimensions) * self.nodes_per_switch

    def farthest(self, nodes: int) -> int:
        """The switch halfway around every ring."""
        return sum(length // 2 * stride for length, stride in self.rings)

    @cached_property
    def rings(self) -> list[tuple[int, int]]:
        """The length of a ring, and the difference between the numbers of neighbours in it, by dimension."""
        return [(length, math.prod(self.dimensions[:number])) for number, length in enumerate(self.dimensions)]

    @cached_property
    def _cable_of(self) -> dict[tuple[int, int], int]:
        """The cable from a switch to the next in a dimension. A ring of two switches has one cable, not two."""
        found: dict[tuple[int, int], int] = {}
        for index in range(math.prod(self.dimensions)):
            for number, (length, stride) in enumerate(self.rings):
                if length > 2 or (length == 2 and index // stride % 2 == 0):
                    found[index, number] = len(found)
        return found

    def dimension_of(self, cable: int) -> int:
        """The dimension that a cable leads along."""
        return list(self._cable_of)[cable][1]

    def next_switch(self, one: int, number: int, step: int = 1) -> int:
        """The neighbour in a dimension, upwards or downwards (-1)."""
        length, stride = self.rings[number]
        at = one // stride % length
        return one + ((at + step) % length - at) * stride

    def sound_cables(self, nodes: int, node_rate: float) -> list[Cable]:
        """The cables in all dimensions of each switch in turn."""
        rate, hop = self.cable_bytes_per_second or node_rate, self.hop_latency_seconds
        return [Cable(one, self.next_switch(one, number), rate, hop) for one, number in self._cable_of]

    def route(self, nodes: int, one: int, other: int) -> list[int]:
        """The links dimension by dimension, the shorter way around."""
        links, at = [], one
        for number, (length, stride) in enumerate(self.rings):
            to = other // stride % length
            up = (to - at // stride) % length
            # Halfway around, both ways are equally long. Messages then arrive from the neighbour with the lower number,
            # as in SimGrid.
            step = 1 if 2 * up < length or (2 * up == length and 0 < to < length - 1) else -1
            for _ in range(min(up, length - up)):
                following = self.next_switch(at, number, step)
                start = at if step == 1 else following  # a cable leads up from its switch
                if length == 2:  # both ways lead over the single cable
                    start = min(at, following)
                links.append(2 * self._cable_of[start, number] + (at != start))
                at = following
        return links

    def vertex_name(self, nodes: int, vertex: int) -> str:
        """A switch with its position on the grid."""
        at = ", ".join(str(vertex // stride % length) for length, stride in self.rings)
        return f"switch {vertex} ({at})"


@dataclass(frozen=True)
class Routes:
    """The routes among some switches, in the form of simulator/schedule/engine.h.

    With pair = one * switches + other, the route from `one` to `other` has the links in
    `route_links[route_first[pair] : route_first[pair + 1]]` and takes `route_seconds[pair]`.
    """

    link_rate: npt.NDArray[np.float64]
    route_first: npt.NDArray[np.int64]
    route_links: npt.NDArray[np.int32]
    route_seconds: npt.NDArray[np.float64]


@lru_cache(maxsize=8)
def routes_among(topology: Topology, nodes: int, node_rate: float, switches: tuple[int, ...]) -> Routes:
    """The routes among these switches of a topology with this many nodes."""
    import numpy as np  # imported here, since descriptions do not need it

    cables = topology.cables(nodes, node_rate)
    latency = [cable.latency_seconds for cable in cables]
    first, links, seconds = [0], [], []
    for switch in switches:
        for other in switches:
            route = topology.route(nodes, switch, other)
            links += route
            first.append(len(links))
            seconds.append(math.fsum(latency[link // 2] for link in route))
    rates = np.repeat([cable.bytes_per_second for cable in cables], 2)
    return Routes(rates, np.array(first, np.int64), np.array(links, np.int32), np.array(seconds))


def routes_over_backbone(nodes: int, bytes_per_second: float) -> Routes:
    """The routes among nodes that share one link, in both directions. Each node counts as a switch."""
    import numpy as np  # imported here, since descriptions do not need it

    first = np.concatenate([[0], np.cumsum(~np.eye(nodes, dtype=bool))])
    return Routes(
        np.full(2, bytes_per_second), first.astype(np.int64), np.zeros(first[-1], np.int32), np.zeros(nodes * nodes)
    )


TOPOLOGIES: dict[str, type[Topology]] = {kind.kind: kind for kind in (FatTree, Dragonfly, Torus)}
"""All topologies except one switch, by the names that descriptions use."""


def vertices(cables: Sequence[Cable], switches: int) -> int:
    """The number of vertices at which cables end, at least the number of switches."""
    return max([switches, *(1 + max(cable.one, cable.other) for cable in cables)])
