"""Options of the commands that make descriptions of clusters: nodes, links and topologies."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from collwise.common.errors import UsageError
from collwise.common.units import format_size, parse_ratio, parse_size
from collwise.platforms.names import interconnect_names
from collwise.platforms.schema import TOPOLOGY as TOPOLOGIES
from collwise.studies.cli import types
from collwise.studies.cli.declare import group, option

if TYPE_CHECKING:
    from collwise.platforms import Node


def _dimensions(text: str) -> tuple[int, ...]:
    if not re.fullmatch(r"[1-9]\d{0,4}(x[1-9]\d{0,4})*", text):
        raise UsageError(f"malformed '{text}': write the lengths with x between them, for example 4x4x8")
    return tuple(map(int, text.split("x")))


_MOST_GBITS = 100_000
_LEAST_MEMORY_BYTES = 2**20


class _Ratio(types.FiniteRange):
    """A number from 1 on, also written as 4:1."""

    def __init__(self) -> None:
        super().__init__(1)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Returns the number. Raises UsageError for text that is neither a number nor a ratio."""
        if isinstance(value, str) and ":" in value:
            value = types.parsed(parse_ratio, value, param)
        return super().convert(value, param, ctx)


RATIO = _Ratio()
"""The type of an oversubscription."""
GBITS, _GBYTES, US = types.Scaled(1e9 / 8, most=_MOST_GBITS), types.Scaled(1e9), types.Scaled(1e-6, least=0)


def _memory(text: str) -> int:
    size = parse_size(text)
    if size < _LEAST_MEMORY_BYTES:
        raise UsageError(f"a node has more memory than '{text}' ({format_size(size)}): write for example 256GiB")
    return size


_MEMORY = types.Parsed("size", _memory)

_NODE = dict(
    cpus=option("CPUs (sockets) per node, by default with one process each. Default: 1.", click.IntRange(1)),
    cores=option("Cores per node, those of all its CPUs. Default: one for each CPU.", click.IntRange(1)),
    memory_domains=option("Memory domains (NUMA nodes) per node. Default: one for each CPU.", click.IntRange(1)),
    memory_bytes=option(
        "The memory of a node, for example 256GiB: longer messages are not decided. Default: unknown.",
        _MEMORY,
        names="--memory",
    ),
    processes=option(
        "Processes per node unless a command gives another number; at most --cores.", click.IntRange(1), names="--ppn"
    ),
    loopback_bytes_per_second=option(
        "The rate between two processes of a node in Gbyte/s.", _GBYTES, names="--loopback-gbytes"
    ),
    loopback_latency_seconds=option(
        "The latency between two processes of a node in us.", US, names="--loopback-latency-us"
    ),
    between_sockets_bytes_per_second=option(
        "What the messages from one socket to others of its node share, in Gbyte/s (schedule engine only). "
        "Default: no limit.",
        _GBYTES,
        names="--between-sockets-gbytes",
    ),
    between_sockets_latency_seconds=option(
        "The latency between processes on two sockets of a node in us (schedule engine only). Default: as on one.",
        US,
        names="--between-sockets-latency-us",
    ),
    memory_bytes_per_second=option(
        "What all messages within a node share, in Gbyte/s. Default: no limit.", _GBYTES, names="--memory-gbytes"
    ),
)

_TOPOLOGY = dict(
    topology=option("How the nodes are connected. Default: one-switch.", types.NamedChoice("topology", TOPOLOGIES)),
    hop_latency_seconds=option("The latency from switch to switch in us.", US, names="--hop-latency-us"),
    nodes_per_switch=option("Nodes at each switch (fat tree, dragonfly, torus).", click.IntRange(1)),
    oversubscription=option(
        "The rate of a switch's nodes over that of its uplinks (fat tree): 2:1 or 2. Default: 1.", RATIO
    ),
    switches_per_pod=option("Makes a fat tree of three levels.", click.IntRange(1)),
    pod_oversubscription=option("The same for a pod and its uplinks. Default: 1.", RATIO),
    groups=option("The number of groups (dragonfly).", click.IntRange(1, 1000)),
    switches_per_group=option("Switches in each group (dragonfly).", click.IntRange(1)),
    local_bytes_per_second=option(
        "All cables of a switch to others of its group, in Gbit/s (dragonfly).", GBITS, names="--local-gbits"
    ),
    global_bytes_per_second=option(
        "The cables between two groups in Gbit/s (dragonfly).", GBITS, names="--global-gbits"
    ),
    dimensions=option("Switches in each dimension: 4x4x8 (torus).", types.Parsed("dimensions", _dimensions)),
    cable_bytes_per_second=option(
        "A cable from switch to switch in Gbit/s (torus). Default: as a node's link.", GBITS, names="--cable-gbits"
    ),
)


def _given(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _node(**options: Any) -> Node:
    from collwise.platforms import Node

    return Node(**_given(**options))


NODE = group(_node, **_NODE)
"""The contents of a node, with the defaults of descriptions."""
GIVEN_NODE = group(_given, **_NODE)
"""The values that were given for a node."""
TOPOLOGY = group(_given, **_TOPOLOGY)
"""The values that were given for the topology: keys of a description, with the kind as `topology`."""
INTERCONNECT = option(
    "Link, latencies, overheads and protocol of a kind of network.",
    types.NamedChoice("interconnect", interconnect_names()),
)
LINK_RATE = option("The rate of a node's link in Gbit/s.", GBITS, names="--gbits")
LATENCY = option(
    "The one-way latency between two nodes at one switch in us, without processors' overheads.",
    US,
    names="--latency-us",
)


def new_name(name: str) -> str:
    """A name that a new description can have. Raises UsageError for one that is taken or malformed."""
    from collwise.platforms import known

    if name in known():
        raise UsageError(f"'{name}' is a platform that is described here already; choose another name")
    if not re.fullmatch(r"[a-z][a-z0-9-]*", name):
        raise UsageError(f"malformed platform name '{name}': use small letters, digits and -, a letter first")
    return name
