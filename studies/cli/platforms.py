"""collwise platforms: list, show, check, write, new."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

import click

from collwise.common.errors import CollwiseError, UsageError
from collwise.common.files import write_text
from collwise.platforms import (
    Calibration,
    HeterogeneousPlatform,
    HostPlatform,
    Platform,
    Source,
    check_file,
    known,
    load,
    write_description,
)
from collwise.platforms.hosts import MOST_HOSTS
from collwise.studies.cli import declare, options
from collwise.studies.cli.commands import CommandGroup, example
from collwise.studies.cli.declare import NEW_FILE, PATH, PLATFORM, argument, command, option
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
    as_json: bool = options.JSON,
) -> None:
    """Shows a platform's description with its sources; PLATFORM is a name or a file."""
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
        raise CollwiseError(f"{file}: {len(problems)} problem{'s' if len(problems) > 1 else ''} found")


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
        latencies = [2 * platform.link_latency_seconds + platform.backbone_latency_seconds]
    return f"{_spread(s * 8e-9 for s in speeds)} Gbit/s", f"{_spread(seconds * 1e6 for seconds in latencies)} us"


def _spread(values: Iterable[float]) -> str:
    shown = [f"{value:.4g}" for value in sorted(values)]
    return " to ".join(dict.fromkeys((shown[0], shown[-1]))) if shown else "0"


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
            f"{platform.cpus_per_node} CPUs per node"
        )
    else:
        known = "its own" if any(name.startswith("smpi/") for name in platform.smpi_options()) else "SimGrid's default"
        return f"{ends}; platform XML with {known} SMPI calibration"
    return f"{ends}; {what}; calibration: {platform.calibration.note or 'none'}"


@command("platforms new mine --nodes 8 --gbits 25 --latency-us 12", "new", parent=platforms)
def new(
    name: str = argument(),
    nodes: int = option(None, click.IntRange(1, MOST_HOSTS), required=True),
    gbits: float = option("The rate of a node's link in Gbit/s.", declare.FiniteRange(0, min_open=True), required=True),
    latency_us: float = option("The one-way latency between two nodes in us.", declare.FiniteRange(0), required=True),
    cpus: int = option("CPUs per node, which is the default number of processes.", click.IntRange(1), 1),
    output: Path | None = option("Default: NAME.toml", NEW_FILE, names="-o --output"),
) -> None:
    """Writes a description of a cluster behind one switch, with nothing calibrated."""
    if name in known():
        raise UsageError(f"'{name}' is a platform that is described here already; choose another name")
    if not re.fullmatch(r"[a-z][a-z0-9-]*", name):
        raise UsageError(f"malformed platform name '{name}': use small letters, digits and -, a letter first")
    what = "the figures given to: collwise platforms new"
    made = Platform(
        name=name,
        title=name,
        site="site",
        nodes=nodes,
        host_prefix=f"{name}-",
        host_suffix="",
        cpus_per_node=cpus,
        cores_per_node=cpus,
        core_flops=1e9,
        link_bytes_per_second=gbits * 1e9 / 8,
        link_latency_seconds=float(f"{latency_us * 1e-6 / 2:.6g}"),
        loopback_bytes_per_second=5e9,
        loopback_latency_seconds=5e-7,
        calibration=Calibration(note="none: nominal bandwidth, no overheads"),
        sources=(Source("nodes, link and CPUs", what), Source("loopback and core_flops", "assumed")),
    )
    path = output or declare.checked_new_file(Path(f"{name}.toml"))
    write_text(path, write_description(made))
    click.echo(f"{path}: {nodes} nodes; look at it with 'collwise platforms check {path}'")


def _dry_run(platform: HostPlatform) -> tuple[str, str]:
    """The engine, and what it says when the first and the last host, or two processes of the only one, exchange a
    message; '' if nothing.
    """
    import tempfile

    from collwise.common.experiments import ROUNDTRIP, Experiment
    from collwise.simulator.store import Store
    from collwise.simulator.sweeps.context import SimulationContext

    with tempfile.TemporaryDirectory() as directory, Store(Path(directory, "check.sqlite")) as store:
        single = len(platform.hosts) == 1
        lab = SimulationContext(store).laboratory(platform, 2 if single else None, 2 if single else 1)
        try:
            lab.run([Experiment(ROUNDTRIP, (0, lab.procs - 1), 1024, 1024)])
        except UsageError:
            raise
        except CollwiseError as problem:
            return lab.label, str(problem).partition(": ")[2]
    return lab.label, ""
