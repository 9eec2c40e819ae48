"""collwise platforms: list, show, check, write, new, describe, draw."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from collwise.common.errors import CollwiseError, UsageError
from collwise.common.files import write_text
from collwise.common.units import counted
from collwise.platforms.names import interconnect_names
from collwise.simulator.sweeps.context import SimulationContext
from collwise.studies.cli import options, types
from collwise.studies.cli.commands import CommandGroup, example
from collwise.studies.cli.declare import argument, command, option
from collwise.studies.cli.describe import describe, new
from collwise.studies.cli.output import check_pictures, print_json, print_table, write_figure
from collwise.studies.cli.types import NEW_FILE, PATH, PLATFORM

if TYPE_CHECKING:
    from collwise.platforms import HostPlatform, Platform


@click.group(cls=CommandGroup, epilog=example("platforms list"))
def platforms() -> None:
    """Lists the clusters that are described here, and checks descriptions of your own."""


@command("platforms list --json", "list", parent=platforms)
def list_platforms(as_json: bool = options.JSON) -> None:
    """Lists the known platforms."""
    from collwise.platforms import known, load

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
    overheads: str | None = option(types.NamedChoice("interconnect", interconnect_names())),
    as_json: bool = options.JSON,
) -> None:
    """Shows a platform's description with its sources; PLATFORM is a name or a file."""
    from collwise.platforms import HeterogeneousPlatform, Platform, with_overheads, write_description

    if overheads is not None:
        if not isinstance(platform, Platform):
            raise UsageError("--overheads is for descriptions of equal nodes")
        platform = with_overheads(platform, overheads)
    if as_json:
        print_json([_facts(platform)])
    elif isinstance(platform, Platform | HeterogeneousPlatform):
        click.echo(write_description(platform), nl=False)
    else:
        click.echo(platform.xml_text(), nl=False)


@command("platforms check mine.toml", "check", parent=platforms)
def check(file: Path = argument(PATH), as_json: bool = options.JSON) -> None:
    """Checks a platform FILE (.toml or .xml): its form, then a dry run in SimGrid.

    The exit code is 0 if it is sound, else 1.
    """
    from collwise.platforms import check_file, load

    report = check_file(file)
    problems = list(report.problems)
    engine_label = ""
    if report.ok:
        engine_label, engine_problem = _dry_run(load(str(file)))
        problems += [f"{file}: {engine_label}: {engine_problem}"] if engine_problem else []
    if as_json:
        facts = {"file": str(file), "hosts": len(report.hosts), "engine": engine_label}
        print_json([{"problem": problem} for problem in problems], facts)
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
    output: Path | None = option(NEW_FILE),
) -> None:
    """Writes the platform XML that SimGrid 3.32 to 4.1 read."""
    if output is None:
        click.echo(platform.xml_text(), nl=False)
    else:
        write_text(output, platform.xml_text())
        click.echo(f"{output}: {len(platform.hosts)} hosts")


def _facts(platform: HostPlatform) -> dict[str, object]:
    from collwise.platforms import HeterogeneousPlatform, Platform

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
            "memory_bytes_per_node": platform.memory_bytes_per_node,
            "memory_bytes_per_second": platform.memory_bytes_per_second,
            "topology": platform.topology and {"kind": platform.topology.kind, **asdict(platform.topology)},
            "node_faults": [asdict(fault) for fault in platform.node_faults],
        }
    elif isinstance(platform, HeterogeneousPlatform):
        facts |= {
            "node_types": [asdict(kind) for kind in platform.node_types],
            "wires": [asdict(wire) for wire in platform.wires],
        }
    return facts


def _network(platform: HostPlatform) -> tuple[str, str]:
    """A node's link and the latency to another node, from the least to the most, with their units."""
    from collwise.platforms import HeterogeneousPlatform, Platform

    if isinstance(platform, HeterogeneousPlatform):
        kinds = {kind.name: kind for kind in platform.node_types}
        speeds = [kind.link_bytes_per_second for kind in kinds.values()]
        latencies = [
            wire.latency_seconds + kinds[wire.one].link_latency_seconds + kinds[wire.other].link_latency_seconds
            for wire in platform.wires
        ]
    else:
        assert isinstance(platform, Platform)
        speeds = [platform.node_bytes_per_second * of_rate for _, of_rate in set(platform.factors_of_nodes)]
        latencies = [platform.route[0], platform.longest_latency_seconds]
    return f"{_spread(s * 8e-9 for s in speeds)} Gbit/s", f"{_spread(seconds * 1e6 for seconds in latencies)} us"


def _spread(values: Iterable[float]) -> str:
    shown = [f"{value:.4g}" for value in sorted(values)]
    return " to ".join(dict.fromkeys((shown[0], shown[-1]))) if shown else "0"


def _short_message(platform: Platform) -> str:
    """The time of a short message over the longest way, as benchmarks show it: latencies are without overheads."""
    made = platform.calibration
    overheads = made.os[0][1] + made.or_[0][1]
    if not overheads:
        return ""
    seconds = platform.longest_latency_seconds * made.latency_factor[0][1] + overheads
    return f"; with the overheads of both processes a short message takes up to {seconds * 1e6:.4g} us"


def _understood(platform: HostPlatform) -> str:
    """A description of the platform as it was read, so that a wrong unit shows."""
    from collwise.platforms import HeterogeneousPlatform, Platform

    ends = f"{platform.hosts[0]} to {platform.hosts[-1]}"
    if isinstance(platform, HeterogeneousPlatform):
        link, way = _network(platform)
        what = f"{len(platform.node_types)} types of nodes; link {link}, {way} from node to node"
    elif isinstance(platform, Platform):
        speed = platform.node_bytes_per_second * 8e-9
        latency_us = platform.link_latency_seconds * 1e6
        faults, switches = len(platform.node_faults), ""
        if (topology := platform.topology) is not None:
            faults += len(topology.cable_faults)
            longest_us = platform.longest_latency_seconds * 1e6
            switches = f"; {topology.kind} of {topology.switches(platform.nodes)} switches, "
            switches += f"up to {longest_us:.4g} us between nodes"
        what = (
            f"link {speed:g} Gbit/s and {latency_us:g} us (two links on the way: {2 * latency_us:g} us); "
            f"{platform.cpus_per_node} CPUs per node{switches}{_short_message(platform)}"
            f"{f'; faults of nodes and cables: {faults}' if faults else ''}"
        )
    else:
        own = any(name.startswith("smpi/") for name in platform.smpi_options())
        whose = "its own" if own else "SimGrid's default"
        return f"{ends}; platform XML with {whose} SMPI calibration"
    return f"{ends}; {what}; calibration: {platform.calibration.note or 'none'}"


platforms.add_command(new)
platforms.add_command(describe)


@command("platforms draw shaheen-ii -o shaheen-ii.png", "draw", parent=platforms)
def draw(
    platform: HostPlatform = argument(PLATFORM),
    output: Path | None = option(NEW_FILE),
) -> None:
    """Draws a platform's network, and what is in its nodes."""
    from collwise.platforms import Platform
    from collwise.studies.figures.platform import platform_figure

    if not isinstance(platform, Platform):
        raise UsageError(f"platform '{platform.name}' has no picture (valid: descriptions of equal nodes)")
    path = output or types.checked_new_file(Path(f"{platform.name}.png"))
    check_pictures(output=path)
    write_figure(platform_figure(platform), path)
    click.echo(f"written: {path}")


def _dry_run(platform: HostPlatform) -> tuple[str, str]:
    """The engine, and what it says when the first and the last host, or two processes of the only one, exchange a
    message; '' if nothing.
    """
    import tempfile

    from collwise.common.experiments import ROUNDTRIP, Experiment
    from collwise.platforms import PlacedPlatform
    from collwise.simulator.store import Store

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
