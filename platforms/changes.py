"""Changes of a platform, given as text: more bandwidth, another latency, fewer nodes, a slow node and so on."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import tomli_w

from collwise.common.errors import UsageError, check_name, located
from collwise.common.units import parse_ratio, parse_size
from collwise.platforms import interconnect_names
from collwise.platforms.description import (
    Calibration,
    HeterogeneousPlatform,
    NodeFault,
    NodeType,
    Platform,
    needed_wires,
)
from collwise.platforms.description_file import checked, read_description, write_description
from collwise.platforms.from_figures import with_overheads
from collwise.platforms.hosts import HostPlatform, PlacedPlatform, placed, unplaced
from collwise.platforms.topology import (
    ROUTINGS,
    CableFault,
    Dragonfly,
    FatTree,
    Topology,
    Torus,
    parse_topology,
)
from collwise.platforms.xml_clusters import description_of

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Described = Platform | HeterogeneousPlatform
_Item = TypeVar("_Item", bound="DataclassInstance")

_FACTOR = re.compile(r"x([0-9.]+(?:[eE][+-]?[0-9]+)?)")
_RATE = re.compile(r"([0-9.]+)\s*([KMGT]?)bit(?:/s)?", re.IGNORECASE)
_SWITCHES = re.compile(r"switch([0-9]+)(?:-([0-9]+))?:(x.+)")
_TIME = re.compile(r"([0-9.]+)\s*(s|ms|us|ns)")
_TIME_UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_TOPOLOGY_UNITS = {"_gbits": ("_bytes_per_second", 1.25e8), "_us": ("_seconds", 1e-6)}
"""The ends of names with other units than descriptions have, the ends there, and the factors between the units."""
_RATE_UNITS = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}


@dataclass(frozen=True)
class Change:
    """One change, such as bandwidth x2: the name of what is changed, and the value as text."""

    name: str
    value: str

    @property
    def label(self) -> str:
        """The change in words: 'bandwidth x2', 'slow node 3:x4'."""
        return f"{self.name.replace('_', ' ')} {self.value}"


@dataclass(frozen=True)
class Changed:
    """A changed platform, and the number of processes on each node if a change sets it."""

    platform: HostPlatform
    processes_per_node: int | None = None


def parse_change(text: str) -> Change:
    """Parses 'NAME=VALUE'; `changed` reads the value. Raises UsageError for an unknown name."""
    name, equals, value = (part.strip() for part in text.partition("="))
    check_name("change", name, CHANGES)
    if not equals or not value:
        raise UsageError(f"malformed change '{text}'; write for example {name}={CHANGES[name].example}")
    return Change(name, value)


def changed(platform: HostPlatform, changes: Sequence[Change]) -> Changed:
    """The platform with these changes, made in the order given; placement and processes per node come last.

    The name of the result says what was changed, so its times are never mistaken for those of `platform`.
    """
    per_node: int | None = None
    placement: str | None = None
    base = unplaced(platform)
    for change in changes:
        with located(f"change {change.name}={change.value}"):
            if change.name == "ppn":
                per_node = _whole(change.value)
            elif change.name == "placement":
                placement = change.value
            else:
                base = checked(CHANGES[change.name].apply(description_of(base), change.value))
    labels = [change.label for change in changes if change.name not in ("ppn", "placement")]
    if labels and isinstance(base, Platform | HeterogeneousPlatform):
        words = re.sub(r"[^a-z0-9]+", "-", " ".join(labels).lower()).strip("-")
        base = replace(base, name=f"{base.name}-{words}", title=f"{base.title}, {', '.join(labels)}")
    if placement is not None:
        return Changed(placed(base, placement), per_node)
    if isinstance(platform, PlacedPlatform):
        if max(platform.ranks, default=0) >= len(base.hosts):
            raise UsageError(f"{platform.source} places ranks on nodes that the changed platform does not have")
        return Changed(replace(platform, base=base), per_node)
    return Changed(base, per_node)


def _homogeneous(platform: Described, what: str) -> Platform:
    if not isinstance(platform, Platform):
        raise UsageError(f"the nodes of platform '{platform.name}' differ, so there is no single {what} to change")
    return platform


# --- Values -----------------------------------------------------------------------------------------------------------


def factor_of(text: str) -> float:
    """2.0 from 'x2'. Raises UsageError for anything else, and for a factor that is not above 0."""
    found = _factor(text)
    if found is None:
        raise UsageError(f"'{text}' is not a factor; write for example x0.5 or x2")
    return found


def _factor(text: str) -> float | None:
    match = _FACTOR.fullmatch(text)
    return None if match is None else _positive(match.group(1), text)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _positive(number: str, text: str) -> float:
    found = _number(number)
    if not (math.isfinite(found) and found > 0):
        raise UsageError(f"'{text}' is not a number above 0")
    return found


def _quantity(text: str, pattern: re.Pattern[str], units: Mapping[str, float], what: str) -> float:
    match = pattern.fullmatch(text)
    if match is None:
        raise UsageError(f"'{text}' is neither a factor nor {what}")
    return _positive(match[1], text) * units[match[2].lower()]


def _bytes_per_second(text: str) -> float:
    return _quantity(text, _RATE, _RATE_UNITS, "a rate; write for example x2 or 25Gbit") / 8


def _seconds(text: str) -> float:
    return _quantity(text, _TIME, _TIME_UNITS, "a time; write for example x0.5 or 2us")


def _whole(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise UsageError(f"'{text}' is not a whole number of at least 1")
    return int(text)


def _node_and_factor(platform: Described, text: str) -> tuple[int, float]:
    node, colon, factor = text.partition(":")
    if not node.isdecimal() or not colon:
        raise UsageError(f"'{text}' is not a node and a factor; write for example 3:x4 (nodes are numbered from 0)")
    if int(node) >= platform.nodes:
        raise UsageError(f"there is no node {node} (valid: 0 to {platform.nodes - 1})")
    return int(node), factor_of(factor)


# --- Rates and times --------------------------------------------------------------------------------------------------


def _scaled(item: _Item, factor: float, *names: str) -> _Item:
    """The item with these numbers multiplied, except those that are None."""
    found = {name: getattr(item, name) for name in names}
    return replace(item, **{name: value * factor for name, value in found.items() if value is not None})


def _with_links(platform: HeterogeneousPlatform, factor: float, of_node: str, of_wire: str) -> HeterogeneousPlatform:
    """Multiplies the field that `of_node` names in all node types, and the field that `of_wire` names in all wires."""
    kinds = tuple(_scaled(kind, factor, of_node) for kind in platform.node_types)
    return replace(platform, node_types=kinds, wires=tuple(_scaled(wire, factor, of_wire) for wire in platform.wires))


def _bandwidth(platform: Described, text: str) -> Described:
    factor = _factor(text)
    if factor is None:
        single = _homogeneous(platform, "bandwidth")
        factor = _bytes_per_second(text) / (
            single.ports.bytes_per_second if single.ports is not None else single.route[1]
        )
    if isinstance(platform, HeterogeneousPlatform):
        return _with_links(platform, factor, "link_bytes_per_second", "bytes_per_second")
    return replace(
        _scaled(platform, factor, "link_bytes_per_second", "backbone_bytes_per_second"),
        ports=platform.ports and _scaled(platform.ports, factor, "bytes_per_second"),
        topology=_topology_with_rates(platform.topology, factor, keeps_uplinks=True),
    )


def _topology_with_rates(topology: Topology | None, factor: float, keeps_uplinks: bool) -> Topology | None:
    """The topology with cables' rates multiplied; if `keeps_uplinks`, rates that follow from links stay the same."""
    if isinstance(topology, FatTree):
        return _scaled(topology, 1.0 if keeps_uplinks else 1 / factor, "oversubscription")
    if isinstance(topology, Dragonfly):
        return _scaled(topology, factor, "local_bytes_per_second", "global_bytes_per_second")
    if isinstance(topology, Torus):
        return _scaled(topology, factor, "cable_bytes_per_second")
    return topology


def _latency(platform: Described, text: str) -> Described:
    factor = _factor(text)
    if factor is None:
        single = _homogeneous(platform, "latency")
        known = single.ports.latency_seconds if single.ports is not None else single.route[0]
        if known == 0:
            raise UsageError(f"platform '{platform.name}' has no latency to change")
        factor = _seconds(text) / known
    if isinstance(platform, HeterogeneousPlatform):
        return _with_links(platform, factor, "link_latency_seconds", "latency_seconds")
    return replace(
        _scaled(platform, factor, "link_latency_seconds", "backbone_latency_seconds"),
        ports=platform.ports and _scaled(platform.ports, factor, "latency_seconds", "handshake_seconds"),
        topology=platform.topology and _scaled(platform.topology, factor, "hop_latency_seconds"),
    )


def _overheads(platform: Described, text: str) -> Described:
    if text in interconnect_names():
        return with_overheads(_homogeneous(platform, "overhead"), text)
    factor = _factor(text)
    own = platform.calibration
    if factor is None:
        _homogeneous(platform, "overhead")
        seconds, limit = _seconds(text), own.eager_limit_bytes
        usual = ((0, seconds, 0.0),)
        started = (*usual, (limit, 0.0, 0.0)) if limit > 0 else ((0, 0.0, 0.0),)
        return replace(platform, calibration=replace(own, os=usual, or_=usual, ois=started))
    if isinstance(platform, HeterogeneousPlatform):
        return replace(platform, node_types=tuple(_slower(kind, factor) for kind in platform.node_types))
    if not _has_overheads(own):
        raise UsageError(
            f"platform '{platform.name}' has no overheads to scale; give a time, for example overheads=1us"
        )
    return replace(platform, calibration=own.with_overheads_times(factor))


def _has_overheads(own: Calibration) -> bool:
    return any(base > 0 or per_byte > 0 for rows in (own.os, own.or_, own.ois) for _, base, per_byte in rows)


def _slower(kind: NodeType, factor: float) -> NodeType:
    of_both = [f"{way}_{part}" for way in ("send", "receive") for part in ("base_seconds", "seconds_per_byte")]
    return _scaled(kind, factor, *of_both)


def _reduction(platform: Described, text: str) -> Described:
    own = platform.calibration
    if own.reduce_seconds_per_byte == 0:
        raise UsageError(f"platform '{platform.name}' has no reduce_seconds_per_byte to change")
    per_byte = own.reduce_seconds_per_byte * factor_of(text)
    return replace(platform, calibration=replace(own, reduce_seconds_per_byte=per_byte))


def _eager_limit(platform: Described, text: str) -> Described:
    """Moves the threshold, and the rows of the calibration that start at it, since these belong to the protocol."""
    own, limit = platform.calibration, parse_size(text)
    before = own.eager_limit_bytes
    if limit < 1 or before < 1:
        raise UsageError(f"the threshold of {before} B cannot become less than 1 B")

    names = ("latency_factor", "bandwidth_factor", "os", "or_", "ois")
    moved: dict[str, Any] = {}
    for name in names:
        rows = getattr(own, name)
        starts = [row[0] for row in rows]
        if before in starts:
            low, high = sorted((before, limit))
            if between := [start for start in starts if start != before and low <= start <= high]:
                raise UsageError(
                    f"{name.rstrip('_')} of the calibration has a row that starts at {between[0]} B; the threshold "
                    "cannot be moved beyond this size"
                )
            moved[name] = tuple((limit if row[0] == before else row[0], *row[1:]) for row in rows)
    return replace(platform, calibration=replace(own, eager_limit_bytes=limit, **moved))


def _background(platform: Described, text: str) -> Described:
    share = _number(text)
    if not 0 <= share < 1:
        raise UsageError(f"'{text}' is not a share; write a number of at least 0 and below 1")
    if isinstance(platform, Platform) and platform.topology is not None:
        topology = _topology_with_rates(platform.topology, 1 - share, keeps_uplinks=False)
        if isinstance(topology, Torus) and topology.cable_bytes_per_second is None:
            topology = replace(topology, cable_bytes_per_second=platform.node_bytes_per_second * (1 - share))
        return replace(platform, topology=topology)
    return _bandwidth(platform, f"x{1 - share!r}")


def _memory(platform: Described, text: str) -> Described:
    single = _homogeneous(platform, "rate of memory")
    if text == "none":
        return replace(
            single,
            memory_bytes_per_second=None,
            between_sockets_bytes_per_second=None,
            between_sockets_latency_seconds=None,
        )
    if single.memory_bytes_per_second is None:
        raise UsageError(f"platform '{platform.name}' has no memory_bytes_per_second to change")
    return _scaled(single, factor_of(text), "memory_bytes_per_second")


# --- Nodes and topologies ---------------------------------------------------------------------------------------------


def _nodes(platform: Described, text: str) -> Described:
    return replace(_homogeneous(platform, "number of nodes"), nodes=_whole(text))


def _topology(platform: Described, text: str) -> Described:
    kind, settings = parse_topology(text)
    table: dict[str, object] = {"kind": kind}
    for name, value in settings:
        ending = next((one for one in _TOPOLOGY_UNITS if name.endswith(one)), "")
        unit, scale = _TOPOLOGY_UNITS.get(ending, ("", 1.0))
        table[name.removesuffix(ending) + unit] = scale * _positive(value, value) if ending else _topology_value(value)
    document = tomllib.loads(write_description(_homogeneous(platform, "topology")))
    document["topology"] = table
    made, problems = read_description(tomli_w.dumps(document))
    if made is None:
        raise UsageError(problems[0].what)
    assert isinstance(made, Platform)
    return made


def _topology_value(text: str) -> object:
    """A value as --topology of `platforms` takes it (2:1, 4x4x8), or as TOML."""
    if re.fullmatch(r"\d+(x\d+)+", text):
        return [int(number) for number in text.split("x")]
    if ":" in text:
        return parse_ratio(text)
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        raise UsageError(
            f"'{text}' is neither a number nor a list of numbers; write for example 16, 2.5 or [8, 8]"
        ) from None


def _oversubscription(platform: Described, text: str) -> Described:
    single = _homogeneous(platform, "topology")
    topology = single.topology
    if not isinstance(topology, FatTree):
        raise UsageError(
            f"platform '{platform.name}' is not a fat tree; first make a change such as "
            "topology=fat-tree:nodes_per_switch=16"
        )
    factor = _factor(text)
    rate = parse_ratio(text) if factor is None else topology.oversubscription * factor
    return replace(single, topology=replace(topology, oversubscription=rate))


def _routing(platform: Described, text: str) -> Described:
    single = _homogeneous(platform, "topology")
    if not isinstance(single.topology, FatTree | Dragonfly):
        raise UsageError(f"platform '{platform.name}' has no parallel cables; expected a fat tree or a dragonfly")
    check_name("routing", text, ROUTINGS)
    return replace(single, topology=replace(single.topology, routing=text))


# --- One node or link -------------------------------------------------------------------------------------------------


def _slow_node(platform: Described, text: str) -> Described:
    node, factor = _node_and_factor(platform, text)
    if isinstance(platform, HeterogeneousPlatform):
        return _with_other_node(platform, node, lambda kind: _slower(kind, factor))
    if not _has_overheads(platform.calibration):
        raise UsageError(
            f"platform '{platform.name}' has no overheads (smpi/os, smpi/or, smpi/ois) to multiply; first make "
            "a change such as overheads=1us"
        )
    return _with_node_fault(platform, node, overheads=factor)


def _degraded_link(platform: Described, text: str) -> Described:
    if text.startswith("switch"):
        return _with_cable_fault(platform, text)
    node, factor = _node_and_factor(platform, text)
    if isinstance(platform, HeterogeneousPlatform):
        return _with_other_node(platform, node, lambda kind: _scaled(kind, factor, "link_bytes_per_second"))
    return _with_node_fault(platform, node, rate=factor)


def _with_node_fault(platform: Platform, node: int, overheads: float = 1.0, rate: float = 1.0) -> Platform:
    """The platform with a node's overheads and rate multiplied by further factors."""
    before, before_rate = platform.factors_of_nodes[node]
    fault = NodeFault(node, before * overheads, before_rate * rate)
    others = [node_fault for node_fault in platform.node_faults if node_fault.node != node]
    found = [*others, fault] if fault.factors != (1.0, 1.0) else others
    return replace(platform, node_faults=tuple(sorted(found, key=lambda node_fault: node_fault.node)))


def _with_cable_fault(platform: Described, text: str) -> Platform:
    """The platform with a further factor for a switch's cables; `checked` reports a switch without cables."""
    single = _homogeneous(platform, "topology")
    if single.topology is None:
        raise UsageError(
            f"platform '{platform.name}' has only one switch; name the link of a node, 3:x0.1, or first make a "
            "change such as topology=fat-tree:nodes_per_switch=16"
        )
    match = _SWITCHES.fullmatch(text)
    if match is None:
        raise UsageError(
            f"'{text}' is not a switch and a factor; write for example switch2:x0.1, or on a torus switch2-3:x0.1"
        )
    *switches, factor = (found for found in match.groups() if found is not None)
    fault = CableFault(tuple(map(int, switches)), factor_of(factor))
    further = (fault,) if fault.rate_factor != 1 else ()
    return replace(single, topology=replace(single.topology, cable_faults=(*single.topology.cable_faults, *further)))


def _with_other_node(
    base: HeterogeneousPlatform, node: int, other: Callable[[NodeType], NodeType]
) -> HeterogeneousPlatform:
    kinds: list[NodeType] = []
    whole_of: dict[str, NodeType] = {}
    own, first = f"-node{node}", 0
    for kind in base.node_types:
        at, parts = node - first, {"": kind.nodes}
        if 0 <= at < kind.nodes:
            parts = {"": at, own: 1, f"-from{node + 1}": kind.nodes - at - 1}
        for suffix, count in parts.items():
            if count > 0:
                part = replace(kind, name=kind.name + suffix, nodes=count)
                kinds.append(other(part) if suffix == own else part)
                whole_of[part.name] = kind
        first += kind.nodes
    wires = [
        replace(base.wire(whole_of[name], whole_of[another]), one=name, other=another)
        for name, another in needed_wires({kind.name: kind.nodes for kind in kinds})
    ]
    return replace(base, node_types=tuple(kinds), wires=tuple(wires))


def _elsewhere(platform: Described, text: str) -> Described:
    """Returns the description unchanged, for changes that `changed` makes, since no description can express them."""
    return platform


@dataclass(frozen=True)
class ChangeKind:
    """A kind of change: an example value, the meaning, and whether a sweep over factors can make such a change."""

    example: str
    meaning: str
    apply: Callable[[Described, str], Described]
    has_factor: bool = False


CHANGES: dict[str, ChangeKind] = {
    "bandwidth": ChangeKind(
        "x2", "the rate of all links, ports and cables between nodes (or 25Gbit)", _bandwidth, True
    ),
    "latency": ChangeKind("x0.5", "the latency between nodes, handshakes and hops included (or 5us)", _latency, True),
    "overheads": ChangeKind(
        "x2",
        "the processors' overheads smpi/os, smpi/or and smpi/ois (or 1us: the same for every message; or tcp-10g: "
        "those of an interconnect, for a platform without any)",
        _overheads,
        True,
    ),
    "reduction": ChangeKind("x0.5", "the time to combine a byte", _reduction, True),
    "memory": ChangeKind("none", "no limit on the memory rate that a node's processes share (or x2)", _memory, True),
    "nodes": ChangeKind("64", "the number of nodes", _nodes),
    "ppn": ChangeKind("4", "the processes per node", _elsewhere),
    "placement": ChangeKind("cyclic", "where ranks run: block, cyclic or a file", _elsewhere),
    "topology": ChangeKind("fat-tree:nodes_per_switch=16,oversubscription=4", "the network's switches", _topology),
    "oversubscription": ChangeKind(
        "4:1", "the oversubscription of a fat tree's lowest switches (or 4, or x2)", _oversubscription, True
    ),
    "routing": ChangeKind(
        "static", "a message takes one of the parallel cables (or adaptive: it is spread over all of them)", _routing
    ),
    "eager_limit": ChangeKind("128KiB", "the message size at which the rendezvous protocol begins", _eager_limit),
    "slow_node": ChangeKind("3:x4", "the overheads of one node; nodes are numbered from 0", _slow_node),
    "degraded_link": ChangeKind(
        "3:x0.1", "the rate of one node's link (or switch2:x0.1: of all cables of a switch)", _degraded_link
    ),
    "background": ChangeKind(
        "0.3",
        "other traffic takes this share of the bandwidth between switches (with one switch: of all links)",
        _background,
    ),
}
"""The kinds of changes, by name."""
