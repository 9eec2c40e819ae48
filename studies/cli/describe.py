"""collwise platforms describe: a description from a machine, a Slurm configuration, or a few questions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from collwise.common.errors import UsageError, warn
from collwise.common.files import write_text
from collwise.platforms.discovery.facts import LIVE
from collwise.platforms.hosts import MOST_HOSTS
from collwise.platforms.schema import TOPOLOGY as TOPOLOGIES
from collwise.studies.cli import options, types
from collwise.studies.cli.declare import argument, command, flag, group, option
from collwise.studies.cli.output import print_json, print_table
from collwise.studies.cli.platform_options import (
    GIVEN_NODE,
    INTERCONNECT,
    LATENCY,
    LINK_RATE,
    RATIO,
    TOPOLOGY,
    new_name,
)
from collwise.studies.cli.types import NEW_FILE, PATH

if TYPE_CHECKING:
    from collwise.platforms.discovery.describe import Described
    from collwise.platforms.discovery.facts import Facts


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
    interconnect: str | None = INTERCONNECT,
    link_bytes_per_second: float | None = LINK_RATE,
    latency_seconds: float | None = LATENCY,
    node: dict[str, Any] = GIVEN_NODE,
    topology: dict[str, Any] = TOPOLOGY,
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
    from collwise.platforms.names import interconnect_names

    new_name(name)
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
    from collwise.platforms.names import interconnect_names

    number = click.IntRange(1)

    def ask(given: dict[str, Any], key: str, what: str, question: str, kind: click.ParamType, usual: Any) -> Any:
        if given.get(key) is not None:
            return given[key]
        before = known[what].value if what in known else None
        answer = click.prompt(question, type=kind, default=before if before is not None else usual, err=True)
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
        _ask_tree(ask, topology)


def _ask_tree(ask: Any, topology: Mapping[str, Any]) -> None:
    number = click.IntRange(1)
    ask(topology, "nodes_per_switch", "nodes per switch", "Nodes at a switch", number, None)
    question = "Oversubscription: the rate of a switch's nodes over that of its uplinks"
    ask(topology, "oversubscription", "oversubscription", question, RATIO, 1.0)
