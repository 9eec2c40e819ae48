"""Reads and writes cluster descriptions in TOML, by tables of keys with their valid values."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, TypeVar

import tomli_w

from collwise.common.errors import UsageError, nearest_names
from collwise.platforms.description import (
    Buffers,
    Calibration,
    Description,
    HeterogeneousPlatform,
    NodeFault,
    NodeType,
    Platform,
    Ports,
    Source,
    Wire,
    needed_wires,
)
from collwise.platforms.hosts import MAX_HOSTS
from collwise.platforms.smpi import LARGEST_BYTES, MAX_ROWS
from collwise.platforms.topology import ADAPTIVE, ROUTINGS, TOPOLOGIES, CableFault, Topology

_Described = TypeVar("_Described", bound=Description)

# --- Keys -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Key:
    """A key: a phrase for its valid values, the test of a value, and the conversion to the stored type."""

    valid: str
    fits: Callable[[Any], bool]
    read: Callable[[Any], Any]
    required: bool = True


def is_number(value: object) -> bool:
    """True for finite numbers; TOML also has nan and infinities, and Python counts truth values as numbers."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_whole(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _whole(least: int, most: int | None = None) -> Key:
    valid = f"a whole number of at least {least}" if most is None else f"a whole number from {least} to {most}"
    return Key(valid, lambda v: _is_whole(v, least) and (most is None or v <= most), int)


def _text(pattern: str, valid: str) -> Key:
    return Key(valid, lambda v: isinstance(v, str) and re.fullmatch(pattern, v, re.DOTALL) is not None, str)


MAX_DIFFERENT_NODES = 1000
"""The largest number of nodes in heterogeneous clusters, whose platform XML has a route for every two nodes."""

MAX_HOPS = 30
"""The largest number of cables between switches on a route; the schedule engine has no room for more."""

_TRUTH = Key("true or false", lambda v: isinstance(v, bool), bool)
_POSITIVE = Key("a number above 0", lambda v: is_number(v) and v > 0, float)
_AMOUNT = Key("a number of at least 0", lambda v: is_number(v) and v >= 0, float)
_SIZE = _whole(0, LARGEST_BYTES)
_SOME_TEXT = _text(r".+", "text")
_HOST_PART = _text(r"[A-Za-z0-9._-]*", "letters, digits, dots, - and _")

# The valid values of keys, by the end of a key's name, which is the unit.
_BY_UNIT = {
    "bytes_per_second": _POSITIVE,
    "flops": _POSITIVE,
    "seconds": _AMOUNT,
    "seconds_per_byte": _AMOUNT,
    "per_node": _whole(1),
    "bytes": _SIZE,
}


def _keys(names: str, **others: Key) -> dict[str, Key]:
    """Keys in the order of `names`, in which ? marks optional ones; `others` are the keys whose names lack a unit."""
    found = {}
    for word in names.split():
        name = word.rstrip("?")
        key = others.get(name) or next(key for unit, key in _BY_UNIT.items() if name.endswith(unit))
        found[name] = replace(key, required=word == name)
    return found


FACTOR_COLUMNS = _keys("from_bytes factor", factor=_POSITIVE)
OVERHEAD_COLUMNS = _keys("from_bytes base_seconds seconds_per_byte")
SOURCE_COLUMNS = _keys("what where", what=_SOME_TEXT, where=_SOME_TEXT)
TOP = _keys(
    "name title site",
    name=_text(r"[a-z0-9][a-z0-9_-]*", "lower-case letters, digits, - and _"),
    title=_SOME_TEXT,
    site=_text(r"[A-Za-z0-9._-]+", "letters, digits, dots, - and _"),
)
CLUSTER = _keys(
    "nodes host_prefix host_suffix first_host? cpus_per_node cores_per_node memory_domains_per_node? core_flops "
    "processes_per_node? memory_bytes_per_node?",
    nodes=_whole(1, MAX_HOSTS),
    host_prefix=_HOST_PART,
    host_suffix=_HOST_PART,
    first_host=_whole(0, 1_000_000),
)
NETWORK = _keys(
    "link_bytes_per_second link_latency_seconds links_per_node? loopback_bytes_per_second loopback_latency_seconds "
    "between_sockets_bytes_per_second? between_sockets_latency_seconds? memory_bytes_per_second? "
    "flag_latency_seconds? "
    "backbone_bytes_per_second? backbone_latency_seconds? backbone_is_shared?",
    backbone_is_shared=_TRUTH,
)
_SHARE = Key("a number of at least 1", lambda v: is_number(v) and v >= 1, float)
_ROUTING = Key(" or ".join(ROUTINGS), lambda v: v in ROUTINGS, str)
TOPOLOGY = {
    "one-switch": {},
    "fat-tree": _keys(
        "nodes_per_switch oversubscription? switches_per_pod? pod_oversubscription? hop_latency_seconds? routing?",
        nodes_per_switch=_whole(1),
        oversubscription=_SHARE,
        switches_per_pod=_whole(1),
        pod_oversubscription=_SHARE,
        routing=_ROUTING,
    ),
    "dragonfly": _keys(
        "groups switches_per_group nodes_per_switch local_bytes_per_second global_bytes_per_second "
        "hop_latency_seconds? routing?",
        groups=_whole(1, 1000),
        switches_per_group=_whole(1),
        nodes_per_switch=_whole(1),
        routing=_ROUTING,
    ),
    "torus": _keys(
        "dimensions nodes_per_switch? cable_bytes_per_second? hop_latency_seconds?",
        dimensions=Key(
            f"a list of 1 to 6 whole numbers of at least 1, the halves of which add up to at most {MAX_HOPS}",
            lambda v: (
                isinstance(v, list)
                and 1 <= len(v) <= 6
                and all(_is_whole(n, 1) for n in v)
                and sum(n // 2 for n in v) <= MAX_HOPS
            ),
            tuple,
        ),
        nodes_per_switch=_whole(1),
    ),
}
NODE_FAULT = _keys(
    "node overhead_factor? rate_factor?", node=_whole(0, MAX_HOSTS), overhead_factor=_POSITIVE, rate_factor=_POSITIVE
)
CABLE_FAULT = _keys(
    "switches rate_factor",
    switches=Key(
        "a list of one switch, or of two with a cable between them; switches are numbered from 0",
        lambda v: isinstance(v, list) and 1 <= len({*map(repr, v)}) == len(v) <= 2 and all(_is_whole(n, 0) for n in v),
        tuple,
    ),
    rate_factor=_POSITIVE,
)
NODE_TYPE = _keys(
    "name nodes cpus_per_node cores_per_node core_flops send_base_seconds send_seconds_per_byte receive_base_seconds "
    "receive_seconds_per_byte link_bytes_per_second link_latency_seconds",
    name=TOP["site"],
    nodes=_whole(1, MAX_DIFFERENT_NODES),
)
_NODE_TYPE_NAME = _text(r".+", "the name of a node type")
WIRE = _keys("one other latency_seconds bytes_per_second", one=_NODE_TYPE_NAME, other=_NODE_TYPE_NAME)
HETEROGENEOUS_CLUSTER = {
    key: CLUSTER[key] for key in ("host_prefix", "host_suffix", "first_host", "processes_per_node")
}
HETEROGENEOUS_NETWORK = {key: NETWORK[key] for key in ("loopback_bytes_per_second", "loopback_latency_seconds")}
PORTS = _keys(
    "bytes_per_second latency_seconds handshake_seconds? burst_bytes? header_bytes? acknowledgement_share? "
    "send_buffer_bytes? loopback_latency_seconds? loopback_bytes_per_second?",
    burst_bytes=_AMOUNT,
    header_bytes=_AMOUNT,
    loopback_bytes_per_second=_AMOUNT,
    send_buffer_bytes=_AMOUNT,
    acknowledgement_share=Key("a number from 0 to below 1", lambda v: is_number(v) and 0 <= v < 1, float),
)
BUFFERS = _keys(
    "buffer_bytes? retransmission_seconds? packet_bytes? initial_window_packets?",
    buffer_bytes=_whole(1, LARGEST_BYTES),
    retransmission_seconds=_POSITIVE,
    packet_bytes=_whole(1, LARGEST_BYTES),
    initial_window_packets=_whole(1, 1_000_000),
)
CALIBRATION = _keys(
    "eager_limit_bytes? acknowledged_from_bytes? crosstraffic? reduce_seconds_per_byte? copy_seconds_per_byte? "
    "allocate_seconds_per_byte? kept_memory_bytes? tcp_window? note?",
    acknowledged_from_bytes=_whole(1, LARGEST_BYTES),
    kept_memory_bytes=_whole(1, LARGEST_BYTES),
    crosstraffic=_TRUTH,
    tcp_window=_TRUTH,
    note=_text(r".*", "text"),
)
_FACTORS = dict.fromkeys(("latency_factor", "bandwidth_factor"), FACTOR_COLUMNS)
_OVERHEADS = dict.fromkeys(("os", "or", "ois"), OVERHEAD_COLUMNS)
# The keys of the cluster and of the network, and the lists of the calibration, without and with node types.
_FORMS = {
    False: (CLUSTER, NETWORK, _FACTORS | _OVERHEADS),
    True: (HETEROGENEOUS_CLUSTER, HETEROGENEOUS_NETWORK, _FACTORS),
}

# --- Reading ----------------------------------------------------------------------------------------------------------

_HEADER = re.compile(r"""\s*(\[\[?)([\w."' -]+)\]\]?\s*(?:#.*)?$""")
_ASSIGNMENT = re.compile(r"""\s*([\w-]+|"[^"]*"|'[^']*')\s*=""")
_ROW = re.compile(r"\s*\{")
_TABLES = ("cluster", "network", "topology", "node_faults", "calibration", "ports", "published", "sources")
_TYPES = "node_types"
_WIRES = "one for every two types, and one for each type of several nodes"


@dataclass(frozen=True, order=True)
class Problem:
    """A problem at a line (counted from 1) of a file; `what` describes the error and the valid input."""

    line: int
    what: str


def read_description(text: str) -> tuple[Description | None, list[Problem]]:
    """Returns the platform that TOML text describes, or None, and all problems."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"line (\d+)", str(error))
        line = int(found.group(1)) if found else max(1, len(text.splitlines()))
        return None, [Problem(line, f"broken TOML: {error}")]
    reader = _Reader(text)
    return reader.description(document), sorted(reader.problems)


def line_of(text: str, key: str) -> int:
    """The line of a key such as network.link_latency_seconds or wires[3], or of the nearest enclosing table."""
    return _nearest(_key_lines(text), key)


class _Reader:
    """Reads tables key by key and collects problems instead of stopping at the first."""

    def __init__(self, text: str) -> None:
        self.problems: list[Problem] = []
        self._lines = _key_lines(text)

    def description(self, document: Mapping[str, Any]) -> Description | None:
        heterogeneous = _TYPES in document
        cluster, network, lists = _FORMS[heterogeneous]
        values = self._table(document, TOP, "", extra=(*_TABLES, _TYPES))
        values |= self._sub_table(document, "cluster", cluster)
        values |= self._sub_table(document, "network", network, extra=("wires",) if heterogeneous else ())
        values["calibration"] = Calibration(**self._calibration(document, lists))
        values["published"] = self._published(document.get("published", {}), "published")
        values["sources"] = self._sources(document, "")
        if heterogeneous:
            values |= self._types_and_wires(document)
            for name in ("ports", "topology", "node_faults"):
                if name in document:
                    self._add("", name, "is given with node types; it is for clusters of equal nodes only")
        else:
            if "topology" in document:
                values["topology"] = self._topology(document, values)
            self._check_relations(values)
            values["node_faults"] = self._node_faults(document, values)
            values["ports"] = self._ports(document) if "ports" in document else None
        if self.problems:
            return None
        return HeterogeneousPlatform(**values) if heterogeneous else Platform(**values)

    def _topology(self, document: Mapping[str, Any], values: Mapping[str, Any]) -> Topology | None:
        table = document["topology"]
        kind = table.get("kind") if isinstance(table, dict) else None
        if not isinstance(kind, str) or kind not in TOPOLOGY:
            near = nearest_names(kind, TOPOLOGY) if isinstance(kind, str) else ""
            given = "missing" if kind is None else f"unknown topology '{kind}'"
            self._add("topology", "kind", f"{given}{near} (valid: {', '.join(TOPOLOGY)})")
            return None
        extra = ("kind", "cable_faults") if kind in TOPOLOGIES else ("kind",)
        found = self._table(table, TOPOLOGY[kind], "topology", extra=extra)
        faults = self._rows(table, "cable_faults", CABLE_FAULT, "topology") or []
        if self.problems or kind not in TOPOLOGIES:
            return None
        self._check_both(found, "topology", ("pod_oversubscription",), "switches_per_pod")
        if "backbone_bytes_per_second" in values:
            what = f"is given with a {kind}; it is for nodes at one switch only"
            self._add("network", "backbone_bytes_per_second", what)
        made = TOPOLOGIES[kind](**{"nodes_per_switch": 1} | found)
        if made.capacity is not None and values["nodes"] > made.capacity:
            self._add("cluster", "nodes", f"{values['nodes']} do not fit on the {kind} (valid: up to {made.capacity})")
        self._check_cable_faults(made, values["nodes"], faults)
        return replace(made, cable_faults=tuple(CableFault(**row) for row in faults))

    def _check_cable_faults(self, topology: Topology, nodes: int, faults: list[dict[str, Any]]) -> None:
        switches, cables = topology.switches(nodes), topology.sound_cables(nodes, 1.0)
        for number, row in enumerate(faults, start=1):
            where = f"topology.cable_faults[{number}]"
            unknown = [item for item in row["switches"] if item >= switches]
            if unknown:
                self._add(where, "switches", f"there is no switch {unknown[0]} (valid: 0 to {switches - 1})")
            elif not topology.cables_at(row["switches"], cables):
                what = f"no cable ends at {' and '.join(map(str, row['switches']))} of the {topology.kind}"
                self._add(where, "switches", f"{what}; expected one switch, or on a torus two neighbours")

    def _node_faults(self, document: Mapping[str, Any], values: Mapping[str, Any]) -> tuple[NodeFault, ...]:
        rows = self._rows(document, "node_faults", NODE_FAULT, "") or []
        self._check_once(rows, "node_faults", "node")
        for number, row in enumerate(rows, start=1):
            nodes = values.get("nodes", row["node"] + 1)
            if row["node"] >= nodes:
                what = f"there is no node {row['node']} (valid: 0 to {nodes - 1})"
                self._add(f"node_faults[{number}]", "node", what)
        return tuple(NodeFault(**row) for row in rows)

    def _check_once(self, rows: Sequence[Mapping[str, Any]], where: str, key: str) -> None:
        seen = set()
        for number, row in enumerate(rows, start=1):
            if row[key] in seen:
                self._add(f"{where}[{number}]", key, f"{row[key]!r} is given twice; use each {key} once")
            seen.add(row[key])

    def _ports(self, document: Mapping[str, Any]) -> Ports | None:
        values = self._sub_table(document, "ports", PORTS | BUFFERS)
        buffers = {name: values.pop(name) for name in BUFFERS if name in values}
        self._check_both(buffers, "ports", tuple(buffers)[:1], "buffer_bytes")
        if self.problems:
            return None
        if not buffers:
            return Ports(**values)
        found = Buffers(**buffers)
        if found.buffer_bytes < found.packet_bytes:
            what = f"{found.buffer_bytes} is less than a packet (valid: at least {found.packet_bytes})"
            self._add("ports", "buffer_bytes", what)
        return Ports(**values, buffers=found)

    def _types_and_wires(self, document: Mapping[str, Any]) -> dict[str, Any]:
        types = self._rows(document, _TYPES, NODE_TYPE, "")
        network = document.get("network")
        wires = self._rows(network, "wires", WIRE, "network") if isinstance(network, dict) else []
        if self.problems or types is None or wires is None:
            return {}
        self._check_types(types)
        if not self.problems:
            self._check_wires(types, wires)
        if self.problems:
            return {}
        return {"node_types": tuple(NodeType(**row) for row in types), "wires": tuple(Wire(**row) for row in wires)}

    def _check_types(self, types: list[dict[str, Any]]) -> None:
        if not types:
            self._add("", _TYPES, "none; at least one is needed")
        nodes, most = sum(row["nodes"] for row in types), MAX_DIFFERENT_NODES
        if nodes > most:
            self._add("", _TYPES, f"{nodes} nodes in all (valid: up to {most} in a heterogeneous cluster)")
        for number, row in enumerate(types, start=1):
            self._check_cores(f"{_TYPES}[{number}]", row)
        self._check_once(types, _TYPES, "name")

    def _check_wires(self, types: list[dict[str, Any]], wires: list[dict[str, Any]]) -> None:
        names = {row["name"]: row["nodes"] for row in types}
        missing = dict.fromkeys(frozenset(pair) for pair in needed_wires(names))
        seen: set[frozenset[str]] = set()
        for number, row in enumerate(wires, start=1):
            where, pair = f"network.wires[{number}]", frozenset((row["one"], row["other"]))
            for end in ("one", "other"):
                if row[end] not in names:
                    self._add(where, end, f"unknown node type '{row[end]}' (valid: {', '.join(names)})")
            if pair <= set(names) and pair not in missing:
                again = "given twice" if pair in seen else "between a single node and itself"
                self._add("", where, f"{again}: '{row['one']}' and '{row['other']}'; give {_WIRES}")
            missing.pop(pair, None)
            seen.add(pair)
        if missing and not self.problems:
            first = sorted(next(iter(missing)))
            more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
            self._add("network", "wires", f"none between '{first[0]}' and '{first[-1]}'{more}; give {_WIRES}")

    def _calibration(self, document: Mapping[str, Any], lists: Mapping[str, Mapping[str, Key]]) -> dict[str, Any]:
        if "calibration" not in document:
            return {}
        values = self._sub_table(document, "calibration", CALIBRATION, extra=(*lists, "sources"))
        table = document["calibration"]
        if not isinstance(table, dict):
            return {}
        found = {_field(name): self._ascending(table, name, keys) for name, keys in lists.items() if name in table}
        return values | found | {"sources": self._sources(table, "calibration")}

    def _check_cores(self, where: str, values: Mapping[str, Any]) -> None:
        cpus, cores = values.get("cpus_per_node", 0), values.get("cores_per_node")
        if cores is not None and cores < cpus:
            self._add(where, "cores_per_node", f"{cores} is fewer than the CPUs (valid: at least {cpus})")
        elif cores is not None and cpus and cores % cpus:
            what = f"{cores} is not a multiple of the {cpus} CPUs; each CPU must have the same number of cores"
            self._add(where, "cores_per_node", what)

    def _check_both(self, values: Mapping[str, Any], where: str, names: Sequence[str], other: str) -> None:
        for name in names:
            if name in values and other not in values:
                self._add(where, name, f"is given without {other}; give both, or neither")

    def _check_relations(self, values: Mapping[str, Any]) -> None:
        cpus, cores = values.get("cpus_per_node", 0), values.get("cores_per_node")
        self._check_cores("cluster", values)
        of_backbone = ("backbone_latency_seconds", "backbone_is_shared")
        self._check_both(values, "network", of_backbone, "backbone_bytes_per_second")
        for name in ("between_sockets_bytes_per_second", "between_sockets_latency_seconds"):
            if name in values and cpus == 1:
                self._add("network", name, "is given for nodes of one CPU; cpus_per_node must be at least 2")
        domains = values.get("memory_domains_per_node", 1)
        if cores is not None and domains > cores:
            self._add("cluster", "memory_domains_per_node", f"{domains} is more than the cores (valid: up to {cores})")

    def _table(
        self, table: Mapping[str, Any], keys: Mapping[str, Key], where: str, extra: tuple[str, ...] = ()
    ) -> dict[str, Any]:
        valid = (*keys, *extra)
        for name in table:
            if name not in valid:
                self._add(where, name, f"unknown key{nearest_names(name, valid)} (valid: {', '.join(valid)})")
        values = {}
        for name, key in keys.items():
            if name not in table:
                if key.required:
                    self._add(where, name, f"missing (valid: {key.valid})")
            elif key.fits(table[name]):
                values[name] = key.read(table[name])
            else:
                self._misfit(where, name, table[name], key.valid)
        return values

    def _sub_table(
        self, document: Mapping[str, Any], name: str, keys: Mapping[str, Key], extra: tuple[str, ...] = ()
    ) -> dict[str, Any]:
        table = document.get(name)
        if isinstance(table, dict):
            return self._table(table, keys, name, extra)
        valid = f"a table [{name}] with {', '.join((*keys, *extra))}"
        if table is None:
            self._add("", name, f"missing (valid: {valid})")
        else:
            self._misfit("", name, table, valid)
        return {}

    def _rows(
        self, table: Mapping[str, Any], name: str, columns: Mapping[str, Key], where: str
    ) -> list[dict[str, Any]] | None:
        """The tables in a list; None if there are problems in them."""
        rows = table.get(name, [])
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            self._misfit(where, name, rows, f"a list of tables with {', '.join(columns)}")
            return None
        path, before = f"{where}.{name}" if where else name, len(self.problems)
        found = [self._table(row, columns, f"{path}[{number}]") for number, row in enumerate(rows, start=1)]
        return found if len(self.problems) == before else None

    def _ascending(
        self, table: Mapping[str, Any], name: str, columns: Mapping[str, Key]
    ) -> tuple[tuple[Any, ...], ...]:
        rows = self._rows(table, name, columns, "calibration")
        if rows is None:
            return ()
        sizes = [row["from_bytes"] for row in rows]
        if sizes[:1] != [0] or any(low >= high for low, high in pairwise(sizes)):
            given = ", ".join(map(str, sizes)) or "no rows"
            self._add("calibration", name, f"from_bytes has {given}; sizes must ascend from 0, each once")
        if len(rows) > MAX_ROWS:
            self._add("calibration", name, f"{len(rows)} rows (valid: 1 to {MAX_ROWS})")
        return tuple(tuple(row[column] for column in columns) for row in rows)

    def _sources(self, table: Mapping[str, Any], where: str) -> tuple[Source, ...]:
        return tuple(Source(**row) for row in self._rows(table, "sources", SOURCE_COLUMNS, where) or ())

    def _published(self, table: object, where: str) -> dict[str, Any]:
        if not isinstance(table, dict):
            self._misfit("", where, table, f"a table [{where}] of numbers")
            return {}
        figures: dict[str, Any] = {}
        for name, value in table.items():
            if isinstance(value, dict):
                figures[name] = self._published(value, f"{where}.{name}")
            elif is_number(value):
                figures[name] = float(value)
            else:
                self._misfit(where, name, value, "a number, or a table of numbers")
        return figures

    def _misfit(self, where: str, name: str, value: object, valid: str) -> None:
        shown = repr(value) if isinstance(value, str | int | float) else f"a {type(value).__name__}"
        self._add(where, name, f"{shown} does not fit (valid: {valid})")

    def _add(self, where: str, name: str, what: str) -> None:
        key = f"{where}.{name}" if where else name
        self.problems.append(Problem(_nearest(self._lines, key), f"{key}: {what}"))


def _nearest(lines: Mapping[str, int], key: str) -> int:
    # A missing key, or a key inside a row, has no line of its own, so the line of the enclosing table is used.
    while key:
        if key in lines:
            return lines[key]
        index = re.search(r"\[\d+\]$", key)
        key = key[: index.start()] if index else key.rpartition(".")[0]
    return 1


def _key_lines(text: str) -> dict[str, int]:
    """The line of each table header ('cluster'), list entry ('sources[2]') and key ('cluster.nodes')."""
    lines: dict[str, int] = {}
    counts: dict[str, int] = {}
    table = last = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _HEADER.match(line):
            table = re.sub(r"[\s\"']", "", header.group(2))
            if header.group(1) == "[[":
                lines.setdefault(table, number)
                counts[table] = counts.get(table, 0) + 1
                table = f"{table}[{counts[table]}]"
            lines.setdefault(table, number)
        elif assignment := _ASSIGNMENT.match(line):
            name = assignment.group(1).strip("\"'")
            last = f"{table}.{name}" if table else name
            lines.setdefault(last, number)
        elif _ROW.match(line):
            counts[last] = counts.get(last, 0) + 1
            lines.setdefault(f"{last}[{counts[last]}]", number)
    return lines


# --- Writing ----------------------------------------------------------------------------------------------------------


def checked(platform: _Described) -> _Described:
    """Returns the platform. Raises UsageError with the first problem that its description in a file would have."""
    problems = read_description(write_description(platform))[1]
    if problems:
        raise UsageError(problems[0].what)
    return platform


def write_description(platform: Description) -> str:
    """TOML text from which `read_description` makes an equal platform."""
    cluster, network, lists = _FORMS[isinstance(platform, HeterogeneousPlatform)]
    document = _values(platform, TOP)
    document |= {"cluster": _values(platform, cluster), "network": _values(platform, network)}
    document["calibration"] = _calibration(platform.calibration, lists)
    if isinstance(platform, Platform):
        if platform.backbone_bytes_per_second is None:
            del document["network"]["backbone_latency_seconds"]
        if not platform.backbone_is_shared:
            del document["network"]["backbone_is_shared"]
        if topology := platform.topology:
            values = {"kind": topology.kind, **_values(topology, TOPOLOGY[topology.kind])}
            if "switches_per_pod" not in values:
                values.pop("pod_oversubscription", None)
            if topology.routing == ADAPTIVE:
                values.pop("routing", None)
            values["cable_faults"] = _list(topology.cable_faults, CABLE_FAULT)
            document["topology"] = _given(values)
        document["node_faults"] = _list(platform.node_faults, NODE_FAULT)
        if ports := platform.ports:
            document["ports"] = _values(ports, PORTS) | (_values(ports.buffers, BUFFERS) if ports.buffers else {})
    elif isinstance(platform, HeterogeneousPlatform):
        document["node_types"] = _list(platform.node_types, NODE_TYPE)
        document["network"]["wires"] = _list(platform.wires, WIRE) or []
    document["published"] = platform.published or None
    document["sources"] = _list(platform.sources, SOURCE_COLUMNS)
    return tomli_w.dumps(_given(document))


def _calibration(calibration: Calibration, lists: Mapping[str, Mapping[str, Key]]) -> dict[str, Any]:
    values = {"note": None} | _values(calibration, CALIBRATION)
    values |= {"note": calibration.note or None, "tcp_window": None if calibration.tcp_window else False}
    if calibration.allocate_seconds_per_byte is None:
        del values["kept_memory_bytes"]
    for name, columns in lists.items():
        values[name] = [dict(zip(columns, row, strict=True)) for row in getattr(calibration, _field(name))]
    return _given(values | {"sources": _list(calibration.sources, SOURCE_COLUMNS)})


def _field(name: str) -> str:
    """The name of a list in `Calibration`; the list `or` is named `or_` there, since `or` is a keyword of Python."""
    return "or_" if name == "or" else name


def _list(described: Sequence[object], keys: Mapping[str, Key]) -> list[dict[str, Any]] | None:
    return [_values(value, keys) for value in described] or None


def _values(described: object, keys: Mapping[str, Key]) -> dict[str, Any]:
    return _given({key: getattr(described, key) for key in keys})


def _given(table: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in table.items() if value is not None}
