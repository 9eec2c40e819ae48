"""collwise platforms: list, show, check, write, new, draw."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from collwise.common.errors import CollwiseError, UsageError
from collwise.common.files import write_text
from collwise.common.units import counted
from collwise.platforms import (
    HeterogeneousPlatform,
    HostPlatform,
    Node,
    PlacedPlatform,
    Platform,
    check_file,
    interconnects,
    known,
    load,
    new_platform,
    with_overheads,
    write_description,
)
from collwise.platforms.hosts import MOST_HOSTS
from collwise.platforms.schema import TOPOLOGY as TOPOLOGIES
from collwise.studies.cli import declare, options
from collwise.studies.cli.commands import CommandGroup, example
from collwise.studies.cli.declare import NEW_FILE, PATH, PLATFORM, argument, command, group, option
from collwise.studies.cli.output import print_json, print_table


@click.group(cls=CommandGroup, epilog=example("platforms list"))
def platforms() -> None:
    """Lists the clusters that are described here, and checks descriptions of your own."""


@command("platforms list --json", "list", parent=platforms)
def list_platforms(
    as_json: bool = options.JSON,
) -> None:
    """Lists the known platforms."""
    described = [load(name) for name in known()]
    if as_json:
        print_json([_facts(platform) for platform in described])
        return
    rows = [
        (platform.name, platform.title, len(platform.hosts), platform.default_processes_per_node, *_network(platform))
        for platform in described
    ]
    columns = ["name", "cluster", "nodes", "processes per node", "link", "one way"]
    print_table("Platforms", columns, rows, left=2, keys=1)


@command("platforms show grisou", "show", parent=platforms)
def show(
    platform: HostPlatform = argument(PLATFORM),
    overheads: str | None = option(
        "Add the overheads of an interconnect to a description without any.",
        declare.NamedChoice("interconnect", interconnects()),
        metavar="INTERCONNECT",
    ),
    as_json: bool = options.JSON,
) -> None:
    """Shows a platform's description with its sources; PLATFORM is a name or a file."""
    if overheads is not None:
        if not isinstance(platform, Platform):
            raise UsageError("--overheads is for descriptions of equal nodes")
        platform = with_overheads(platform, overheads)
    if as_json:
        print_json(_facts(platform))
    elif isinstance(platform, Platform | HeterogeneousPlatform):
        click.echo(write_description(platform), nl=False)
    else:
        click.echo(platform.xml_text(), nl=False)


@command("platforms check mine.toml", "check", parent=platforms)
def check(
    file: Path = argument(PATH),
    as_json: bool = options.JSON,
) -> None:
    """Checks a platform FILE (.toml or .xml): its form, then a dry run in SimGrid.

    The exit code is 0 if it is sound, else 1.
    """
    report = check_file(file)
    problems = list(report.problems)
    engine_label = ""
    if report.ok:
        engine_label, engine_problem = _dry_run(load(str(file)))
        problems += [f"{file}: {engine_label}: {engine_problem}"] if engine_problem else []
    if as_json:
        print_json({"file": str(file), "hosts": len(report.hosts), "engine": engine_label, "problems": problems})
    else:
        for problem in problems:
            click.echo(problem)
        if not problems:
            click.echo(f"{file}: sound, {len(report.hosts)} hosts, simulated by {engine_label}")
            click.echo(_understood(load(str(file))))
    if problems:
        raise CollwiseError(f"{file}: {counted(len(problems), 'problem')} found")


@command("platforms write grisou -o grisou.xml", "write", parent=platforms)
def write(
    platform: HostPlatform = argument(PLATFORM),
    output: Path | None = option("The XML file. Default: standard output.", NEW_FILE, names="-o --output"),
) -> None:
    """Writes the platform XML that SimGrid 3.32 to 4.1 read."""
    if output is None:
        click.echo(platform.xml_text(), nl=False)
    else:
        write_text(output, platform.xml_text())
        click.echo(f"{output}: {len(platform.hosts)} hosts")


def _facts(platform: HostPlatform) -> dict[str, object]:
    facts: dict[str, object] = {
        "name": platform.name,
        "title": platform.title,
        "hosts": len(platform.hosts),
        "default_processes_per_node": platform.default_processes_per_node,
        "digest": platform.digest(),
    }
    if isinstance(platform, Platform):
        facts |= {
            "cpus_per_node": platform.cpus_per_node,
            "link_bytes_per_second": platform.node_bytes_per_second,
            "link_latency_seconds": platform.link_latency_seconds,
            "cores_per_node": platform.cores_per_node,
            "memory_bytes_per_second": platform.memory_bytes_per_second,
            "topology": platform.topology and {"kind": platform.topology.kind, **asdict(platform.topology)},
        }
    elif isinstance(platform, HeterogeneousPlatform):
        facts |= {
            "node_types": [asdict(kind) for kind in platform.node_types],
            "wires": [asdict(wire) for wire in platform.wires],
        }
    return facts


def _network(platform: HostPlatform) -> tuple[str, str]:
    """A node's link and the latency to another node, from the least to the most, with their units."""
    if isinstance(platform, HeterogeneousPlatform):
        kinds = {kind.name: kind for kind in platform.node_types}
        speeds = [kind.link_bytes_per_second for kind in kinds.values()]
        latencies = [
            wire.latency_seconds + kinds[wire.one].link_latency_seconds + kinds[wire.other].link_latency_seconds
            for wire in platform.wires
        ]
    else:
        assert isinstance(platform, Platform)
        speeds = [platform.node_bytes_per_second]
        latencies = [platform.route[0], platform.longest_latency_seconds]
    return f"{_spread(s * 8e-9 for s in speeds)} Gbit/s", f"{_spread(seconds * 1e6 for seconds in latencies)} us"


def _spread(values: Iterable[float]) -> str:
    shown = [f"{value:.4g}" for value in sorted(values)]
    return " to ".join(dict.fromkeys((shown[0], shown[-1]))) if shown else "0"


def _switches(platform: Platform) -> str:
    topology = platform.topology
    if topology is None:
        return ""
    switches, longest = topology.switches(platform.nodes), platform.longest_latency_seconds
    return f"; {topology.kind} of {switches} switches, up to {longest * 1e6:.4g} us between nodes"


def _understood(platform: HostPlatform) -> str:
    """A description of the platform as it was read, so that a wrong unit shows."""
    ends = f"{platform.hosts[0]} to {platform.hosts[-1]}"
    if isinstance(platform, HeterogeneousPlatform):
        link, way = _network(platform)
        what = f"{len(platform.node_types)} types of nodes; link {link}, {way} from node to node"
    elif isinstance(platform, Platform):
        speed = platform.node_bytes_per_second * 8e-9
        latency_us = platform.link_latency_seconds * 1e6
        what = (
            f"link {speed:g} Gbit/s and {latency_us:g} us (two links on the way: {2 * latency_us:g} us); "
            f"{platform.cpus_per_node} CPUs per node{_switches(platform)}"
        )
    else:
        known = "its own" if any(name.startswith("smpi/") for name in platform.smpi_options()) else "SimGrid's default"
        return f"{ends}; platform XML with {known} SMPI calibration"
    return f"{ends}; {what}; calibration: {platform.calibration.note or 'none'}"


def _dimensions(text: str) -> tuple[int, ...]:
    if not re.fullmatch(r"[1-9]\d{0,4}(x[1-9]\d{0,4})*", text):
        raise UsageError(f"malformed '{text}': write the lengths with x between them, for example 4x4x8")
    return tuple(map(int, text.split("x")))


_GBITS, _GBYTES, _US = declare.Scaled(1e9 / 8), declare.Scaled(1e9), declare.Scaled(1e-6, least=0)

NODE = group(
    Node,
    cpus=option("CPUs (sockets) per node, by default with one process each.", click.IntRange(1), 1),
    cores=option("Cores per node. Default: one for each CPU.", click.IntRange(1)),
    memory_domains=option("Memory domains per node. Default: one for each CPU.", click.IntRange(1)),
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

TOPOLOGY = group(
    dict,
    topology=option("How the nodes are connected.", declare.NamedChoice("topology", TOPOLOGIES), "one-switch"),
    hop_latency_seconds=option("The latency from switch to switch in us.", _US, names="--hop-latency-us"),
    nodes_per_switch=option("Nodes at each switch (fat tree, dragonfly, torus).", click.IntRange(1)),
    oversubscription=option(
        "The rate of a switch's nodes over that of its cables up (fat tree). Default: 1.", declare.FiniteRange(1)
    ),
    switches_per_pod=option("Makes a fat tree of three levels.", click.IntRange(1)),
    pod_oversubscription=option("The same for a pod and its cables up. Default: 1.", declare.FiniteRange(1)),
    groups=option("The number of groups (dragonfly).", click.IntRange(1, 1000)),
    switches_per_group=option("Switches in each group (dragonfly).", click.IntRange(1)),
    local_bytes_per_second=option(
        "All cables of a switch to others of its group, in Gbit/s (dragonfly).", _GBITS, names="--local-gbits"
    ),
    global_bytes_per_second=option(
        "The cables between two groups in Gbit/s (dragonfly).", _GBITS, names="--global-gbits"
    ),
    dimensions=option("Switches in each dimension: 4x4x8 (torus).", declare.Parsed("dimensions", _dimensions)),
    cable_bytes_per_second=option(
        "A cable from switch to switch in Gbit/s (torus). Default: as a node's link.", _GBITS, names="--cable-gbits"
    ),
)


@command("platforms new mine --nodes 8 --gbits 25 --latency-us 12", "new", parent=platforms)
def new(
    name: str = argument(),
    nodes: int = option(None, click.IntRange(1, MOST_HOSTS), required=True),
    interconnect: str | None = option(
        "Link, latencies, overheads and protocol of a kind of network.",
        declare.NamedChoice("interconnect", interconnects()),
    ),
    link_bytes_per_second: float | None = option("The rate of a node's link in Gbit/s.", _GBITS, names="--gbits"),
    latency_seconds: float | None = option(
        "The one-way latency between two nodes at one switch in us, without processors' overheads.",
        _US,
        names="--latency-us",
    ),
    node: Node = NODE,
    topology: dict[str, Any] = TOPOLOGY,
    output: Path | None = option("Default: NAME.toml", NEW_FILE, names="-o --output"),
) -> None:
    """Writes a description of a cluster of equal nodes.

    Without --interconnect nothing is calibrated, and messages cost processors nothing. docs/platforms.md explains the
    topologies, and which figures of the interconnects are estimates.
    """
    if name in known():
        raise UsageError(f"'{name}' is a platform that is described here already; choose another name")
    if not re.fullmatch(r"[a-z][a-z0-9-]*", name):
        raise UsageError(f"malformed platform name '{name}': use small letters, digits and -, a letter first")
    made = new_platform(name, nodes, node, link_bytes_per_second, latency_seconds, interconnect, **topology)
    path = output or declare.checked_new_file(Path(f"{name}.toml"))
    write_text(path, write_description(made))
    click.echo(f"{path}: {nodes} nodes; look at it with 'collwise platforms check {path}'")
    if interconnect is not None:
        click.echo(f"interconnect {interconnect}: {made.calibration.note}")
    else:
        names = ", ".join(interconnects())
        click.echo(f"no overheads: short messages will seem too cheap; --interconnect NAME has some ({names})")


@command("platforms draw shaheen-ii -o shaheen-ii.png", "draw", parent=platforms)
def draw(
    platform: HostPlatform = argument(PLATFORM),
    output: Path | None = option("PNG or SVG. Default: NAME.png", NEW_FILE, names="-o --output"),
) -> None:
    """Draws a platform's network, and what is in its nodes."""
    from collwise.studies.figures.platform import platform_figure
    from collwise.studies.figures.style import save

    if not isinstance(platform, Platform):
        raise UsageError(f"platform '{platform.name}' has no picture (valid: descriptions of equal nodes)")
    path = output or declare.checked_new_file(Path(f"{platform.name}.png"))
    if path.suffix not in (".png", ".svg"):
        raise UsageError(f"--output: '{path}' ends neither in .png nor in .svg")
    save(platform_figure(platform), path)
    click.echo(f"written: {path}")


def _dry_run(platform: HostPlatform) -> tuple[str, str]:
    """The engine, and what it says when the first and the last host, or two processes of the only one, exchange a
    message; '' if nothing.
    """
    import tempfile

    from collwise.common.experiments import ROUNDTRIP, Experiment
    from collwise.simulator.store import Store
    from collwise.simulator.sweeps.context import SimulationContext

    with tempfile.TemporaryDirectory() as directory, Store(Path(directory, "check.sqlite")) as store:
        last = len(platform.hosts) - 1
        ends = PlacedPlatform(platform, (0, last), "check") if last > 0 else platform
        lab = SimulationContext(store).laboratory(ends, 2, 1 if last > 0 else 2)
        try:
            lab.run([Experiment(ROUNDTRIP, (0, lab.procs - 1), 1024, 1024)])
        except UsageError:
            raise
        except CollwiseError as problem:
            return lab.label, str(problem).partition(": ")[2]
    return lab.label, ""
