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
from collwise.platforms.discovery.facts import LIVE
from collwise.platforms.hosts import MOST_HOSTS
from collwise.platforms.names import interconnect_names, known
from collwise.platforms.schema import TOPOLOGY as TOPOLOGIES
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
    cpus=option(click.IntRange(1)),
    cores=option(click.IntRange(1)),
    memory_domains=option(click.IntRange(1)),
    memory_bytes=option(_MEMORY),
    processes=option(click.IntRange(1)),
    loopback_bytes_per_second=option(_GBYTES),
    loopback_latency_seconds=option(_US),
    between_sockets_bytes_per_second=option(_GBYTES),
    between_sockets_latency_seconds=option(_US),
    memory_bytes_per_second=option(_GBYTES),
)

_OF_TOPOLOGY = dict(
    topology=option(types.NamedChoice("topology", TOPOLOGIES)),
    hop_latency_seconds=option(_US),
    nodes_per_switch=option(click.IntRange(1)),
    oversubscription=option(_RATIO),
    switches_per_pod=option(click.IntRange(1)),
    pod_oversubscription=option(_RATIO),
    groups=option(click.IntRange(1, 1000)),
    switches_per_group=option(click.IntRange(1)),
    local_bytes_per_second=option(_GBITS),
    global_bytes_per_second=option(_GBITS),
    dimensions=option(types.Parsed("dimensions", _dimensions)),
    cable_bytes_per_second=option(_GBITS),
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
_INTERCONNECT = option(types.NamedChoice("interconnect", interconnect_names()))
_LINK_RATE = option(_GBITS)
_LATENCY = option(_US)


def _check_name(name: str) -> None:
    """Raises UsageError for a name that a new description cannot have: one that is taken or malformed."""
    if name in known():
        raise UsageError(f"'{name}' is a platform that is described here already; choose another name")
    if not re.fullmatch(r"[a-z][a-z0-9-]*", name):
        raise UsageError(f"malformed platform name '{name}': use small letters, digits and -, a letter first")


@command("platforms new mine --nodes 8 --gbits 25 --latency-us 12", "new")
def new(
    name: str = argument(),
    nodes: int = option(click.IntRange(1, MOST_HOSTS), required=True),
    interconnect: str | None = _INTERCONNECT,
    link_bytes_per_second: float | None = _LINK_RATE,
    latency_seconds: float | None = _LATENCY,
    node: Node = _NODE,
    topology: dict[str, Any] = _TOPOLOGY,
    output: Path | None = option(NEW_FILE),
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
    machine=flag(),
    hardware=option(PATH),
    sys=option(PATH),
    slurm=option(said={"live": LIVE}),
    partition=option(),
    ask=flag(),
)


@command("platforms describe mycluster --nodes 16 --interconnect tcp-25g -o mycluster.toml", "describe")
def describe(
    name: str = argument(),
    sources: dict[str, Any] = _SOURCES,
    nodes: int | None = option(click.IntRange(1, MOST_HOSTS)),
    interconnect: str | None = _INTERCONNECT,
    link_bytes_per_second: float | None = _LINK_RATE,
    latency_seconds: float | None = _LATENCY,
    node: dict[str, Any] = _GIVEN_NODE,
    topology: dict[str, Any] = _TOPOLOGY,
    output: Path | None = option(NEW_FILE),
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
