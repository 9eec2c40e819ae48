"""collwise platforms new, describe: descriptions of clusters, from figures, a machine, Slurm, or a few questions."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from collwise.common.errors import UsageError, warn
from collwise.common.files import write_text
from collwise.common.program import program_name
from collwise.common.units import format_size, parse_ratio, parse_size
from collwise.platforms.description_file import TOPOLOGY as TOPOLOGIES
from collwise.platforms.discovery.facts import LIVE
from collwise.platforms.hosts import MOST_HOSTS
from collwise.platforms.names import interconnect_names, known
from collwise.studies.cli import options, types
from collwise.studies.cli.declare import argument, command, flag, group, option
from collwise.studies.cli.output import print_json, print_table
from collwise.studies.cli.types import NEW_FILE, PATH

if TYPE_CHECKING:
    from collwise.platforms import Node
    from collwise.platforms.discovery.describe import Described
    from collwise.platforms.discovery.facts import Facts


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


_RATIO = _Ratio()
"""The type of an oversubscription."""
_GBITS, _GBYTES, _US = types.Scaled(1e9 / 8, most=_MOST_GBITS), types.Scaled(1e9), types.Scaled(1e-6, least=0)


def _memory(text: str) -> int:
    size = parse_size(text)
    if size < _LEAST_MEMORY_BYTES:
        raise UsageError(f"a node has more memory than '{text}' ({format_size(size)}): write for example 256GiB")
    return size


_MEMORY = types.Parsed("size", _memory)

_OF_NODE = dict(
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
        "The latency between two processes of a node in us.", _US, names="--loopback-latency-us"
    ),
    between_sockets_bytes_per_second=option(
        "What the messages from one socket to others of its node share, in Gbyte/s (schedule engine only). "
        "Default: no limit.",
        _GBYTES,
        names="--between-sockets-gbytes",
    ),
    between_sockets_latency_seconds=option(
        "The latency between processes on two sockets of a node in us (schedule engine only). Default: as on one.",
        _US,
        names="--between-sockets-latency-us",
    ),
    memory_bytes_per_second=option(
        "What all messages within a node share, in Gbyte/s. Default: no limit.", _GBYTES, names="--memory-gbytes"
    ),
)

_OF_TOPOLOGY = dict(
    topology=option("How the nodes are connected. Default: one-switch.", types.NamedChoice("topology", TOPOLOGIES)),
    hop_latency_seconds=option("The latency from switch to switch in us.", _US, names="--hop-latency-us"),
    nodes_per_switch=option("Nodes at each switch (fat tree, dragonfly, torus).", click.IntRange(1)),
    oversubscription=option(
        "The rate of a switch's nodes over that of its uplinks (fat tree): 2:1 or 2. Default: 1.", _RATIO
    ),
    switches_per_pod=option("Makes a fat tree of three levels.", click.IntRange(1)),
    pod_oversubscription=option("The same for a pod and its uplinks. Default: 1.", _RATIO),
    groups=option("The number of groups (dragonfly).", click.IntRange(1, 1000)),
    switches_per_group=option("Switches in each group (dragonfly).", click.IntRange(1)),
    local_bytes_per_second=option(
        "All cables of a switch to others of its group, in Gbit/s (dragonfly).", _GBITS, names="--local-gbits"
    ),
    global_bytes_per_second=option(
        "The cables between two groups in Gbit/s (dragonfly).", _GBITS, names="--global-gbits"
    ),
    dimensions=option("Switches in each dimension: 4x4x8 (torus).", types.Parsed("dimensions", _dimensions)),
    cable_bytes_per_second=option(
        "A cable from switch to switch in Gbit/s (torus). Default: as a node's link.", _GBITS, names="--cable-gbits"
    ),
)


def _given(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _node(**options: Any) -> Node:
    from collwise.platforms import Node

    return Node(**_given(**options))


_NODE = group(_node, **_OF_NODE)
"""The contents of a node, with the defaults of descriptions."""
_GIVEN_NODE = group(_given, **_OF_NODE)
"""The values that were given for a node."""
_TOPOLOGY = group(_given, **_OF_TOPOLOGY)
"""The values that were given for the topology: keys of a description, with the kind as `topology`."""
_INTERCONNECT = option(
    "Link, latencies, overheads and protocol of a kind of network.",
    types.NamedChoice("interconnect", interconnect_names()),
)
_LINK_RATE = option("The rate of a node's link in Gbit/s.", _GBITS, names="--gbits")
_LATENCY = option(
    "The one-way latency between two nodes at one switch in us, without processors' overheads.",
    _US,
    names="--latency-us",
)


def _check_name(name: str) -> None:
    """Raises UsageError for a name that a new description cannot have: one that is taken or malformed."""
    if name in known():
        raise UsageError(f"'{name}' is a platform that is described here already; choose another name")
    if not re.fullmatch(r"[a-z][a-z0-9-]*", name):
        raise UsageError(f"malformed platform name '{name}': use small letters, digits and -, a letter first")


@command("platforms new mine --nodes 8 --gbits 25 --latency-us 12", "new")
def new(
    name: str = argument(),
    nodes: int = option(None, click.IntRange(1, MOST_HOSTS), required=True),
    interconnect: str | None = _INTERCONNECT,
    link_bytes_per_second: float | None = _LINK_RATE,
    latency_seconds: float | None = _LATENCY,
    node: Node = _NODE,
    topology: dict[str, Any] = _TOPOLOGY,
    output: Path | None = option("Default: NAME.toml", NEW_FILE, names="-o --output"),
) -> None:
    """Writes a description of a cluster of equal nodes.

    Without --interconnect nothing is calibrated, and messages cost processors nothing. docs/platforms.md explains the
    topologies, and which figures of the interconnects are estimates.
    """
    from collwise.platforms import new_platform, write_description

    _check_name(name)
    made = new_platform(name, nodes, node, link_bytes_per_second, latency_seconds, interconnect, **topology)
    path = output or types.checked_new_file(Path(f"{name}.toml"))
    write_text(path, write_description(made))
    click.echo(f"{path}: {nodes} nodes; look at it with '{program_name()} platforms check {path}'")
    if interconnect is not None:
        click.echo(f"interconnect {interconnect}: {made.calibration.note}")
    else:
        names = ", ".join(interconnect_names())
        click.echo(f"no overheads: short messages will seem too cheap; --interconnect NAME has some ({names})")


def _known(
    machine: bool, hardware: Path | None, sys: Path | None, slurm: str | None, partition: str | None, ask: bool
) -> Facts:
    """The facts of the sources that were named; without any, those of this machine, unless questions are asked."""
    from collwise.platforms.discovery.facts import merged
    from collwise.platforms.discovery.machine import machine_facts
    from collwise.platforms.discovery.slurm import slurm_facts

    if partition is not None and slurm is None:
        raise UsageError("--partition is for --slurm")
    if machine and (hardware is not None or sys is not None):
        raise UsageError("--machine is this machine; --hardware and --sys are files of another one")
    saved = hardware is not None or sys is not None
    sources = [slurm_facts(slurm, partition)] if slurm is not None else []
    if saved or machine or (slurm is None and not ask):
        sources.append(machine_facts(hardware, sys))
    return merged(*sources)


_SOURCES = group(
    dict,
    machine=flag("Read this machine as one of the cluster's nodes. This is the default without another source."),
    hardware=option("What 'lstopo --of xml' or 'lscpu' printed on a node.", PATH, metavar="FILE"),
    sys=option("A copy of a node's /sys, with class/net and class/infiniband.", PATH, metavar="FOLDER"),
    slurm=option(
        f"Slurm: {LIVE} (asks scontrol), the folder of slurm.conf and topology.conf, or files by commas, which may "
        "also be what scontrol show config, nodes, topology and partitions print.",
        metavar="SOURCE",
    ),
    partition=option("For --slurm: the nodes of this partition only."),
    ask=flag("Ask for what is not known; an empty answer takes what stands in brackets."),
)


@command("platforms describe mycluster --nodes 16 --interconnect tcp-25g -o mycluster.toml", "describe")
def describe(
    name: str = argument(),
    sources: dict[str, Any] = _SOURCES,
    nodes: int | None = option("The number of nodes.", click.IntRange(1, MOST_HOSTS)),
    interconnect: str | None = _INTERCONNECT,
    link_bytes_per_second: float | None = _LINK_RATE,
    latency_seconds: float | None = _LATENCY,
    node: dict[str, Any] = _GIVEN_NODE,
    topology: dict[str, Any] = _TOPOLOGY,
    output: Path | None = option("Default: NAME.toml", NEW_FILE, names="-o --output"),
    as_json: bool = options.JSON,
) -> None:
    """Writes a description of a cluster from what a node, Slurm or you say of it.

    A node tells its CPUs, cores and network (hwloc, /sys), Slurm the nodes and switches. Options override what is
    read. The command says which figures are read, estimated and missing, and what to measure next.
    """
    from collwise.platforms import write_description
    from collwise.platforms.discovery.describe import described
    from collwise.platforms.discovery.facts import ESTIMATED

    _check_name(name)
    path = output or types.checked_new_file(Path(f"{name}.toml"))
    known = _known(**sources)
    figures = {
        "nodes": nodes,
        "interconnect_name": interconnect,
        "link_bytes_per_second": link_bytes_per_second,
        "latency_seconds": latency_seconds,
    }
    if sources["ask"]:
        _ask(known, node, topology, figures)
    made = described(name, known, node, topology, figures)
    write_text(path, write_description(made.platform))
    for fact in made.facts:
        if fact.what == "interconnect" and fact.how == ESTIMATED:
            warn(
                f"no interconnect was found: {fact.value} is assumed, and most of the times depend on it; "
                f"--interconnect NAME (valid: {', '.join(interconnect_names())})"
            )
    if as_json:
        print_json([vars(fact) for fact in made.facts], {"file": str(path)})
    else:
        _print(made, path)


def _print(made: Described, path: Path) -> None:
    from collwise.platforms.discovery.describe import next_steps, shown
    from collwise.platforms.discovery.facts import MISSING

    rows = [(fact.what, shown(fact.value), fact.how, fact.where) for fact in made.facts if fact.how != MISSING]
    print_table(f"{path}: what it rests on", ["figure", "value", "how", "where from"], rows, left=4, wrap=True, keys=1)
    click.echo("Missing:")
    for fact in made.facts:
        if fact.how == MISSING:
            click.echo(f"- {fact.what}: {fact.where}")
    click.echo("Next:")
    for words, purpose in next_steps(made, str(path)):
        click.echo(f"- {words}\n  {purpose}")


def _ask(known: Facts, node: dict[str, Any], topology: dict[str, Any], figures: dict[str, Any]) -> None:
    """Asks for what no option gave; what differs from the known facts is added to what was given."""
    number = click.IntRange(1)

    def ask(given: dict[str, Any], key: str, what: str, question: str, kind: click.ParamType, usual: Any) -> Any:
        if given.get(key) is not None:
            return given[key]
        before = known[what].value if what in known else None
        default = before if before is not None else usual
        # click asks again without a word where an answer is empty and there is no default.
        needed = " (needed)" if default is None else ""
        answer = click.prompt(f"{question}{needed}", type=kind, default=default, err=True)
        if answer != before:
            given[key] = answer
        return answer

    ask(figures, "nodes", "nodes", "Nodes", click.IntRange(1, MOST_HOSTS), None)
    cpus = ask(node, "cpus", "CPUs", "CPUs (sockets) of a node", number, 2)
    cores = ask(node, "cores", "cores", "Cores of a node, of all its CPUs", number, cpus)
    ask(node, "processes", "processes per node", "Processes that you run on a node", number, cores)
    names = types.NamedChoice("interconnect", interconnect_names())
    ask(figures, "interconnect_name", "interconnect", "Interconnect", names, None)
    kinds = types.NamedChoice("topology", [kind for kind in TOPOLOGIES if kind in ("one-switch", "fat-tree")])
    if topology.get("topology") not in (None, "one-switch", "fat-tree"):
        return
    if ask(topology, "topology", "topology", "Topology", kinds, "one-switch") == "fat-tree":
        ask(topology, "nodes_per_switch", "nodes per switch", "Nodes at a switch", number, None)
        question = "Oversubscription: the rate of a switch's nodes over that of its uplinks"
        ask(topology, "oversubscription", "oversubscription", question, _RATIO, 1.0)
