"""collwise platforms: show, new, describe, and the commands of experiment.py."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from collwise import arguments
from collwise.common.errors import CollwiseError, UsageError, check_name, note, warn
from collwise.common.experiments import ROUNDTRIP, Experiment
from collwise.common.files import write_text
from collwise.common.program import program_name
from collwise.common.units import counted, format_size, parse_ratio, parse_size
from collwise.platforms import (
    HeterogeneousPlatform,
    HostPlatform,
    Node,
    PlacedPlatform,
    Platform,
    check_file,
    interconnect_names,
    known,
    load,
    new_platform,
    write_description,
)
from collwise.platforms.changes import changed, parse_change
from collwise.platforms.description import Description
from collwise.platforms.description_file import TOPOLOGY as TOPOLOGIES
from collwise.platforms.discovery.describe import described, next_steps, shown
from collwise.platforms.discovery.facts import ESTIMATED, LIVE, MISSING, Facts, merged
from collwise.platforms.discovery.machine import machine_facts
from collwise.platforms.discovery.slurm import slurm_facts
from collwise.platforms.hosts import MAX_HOSTS
from collwise.platforms.loader import interconnect as load_interconnect
from collwise.platforms.topology import parse_topology
from collwise.platforms.xml_clusters import description_of
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import SimulationContext
from collwise.studies.cli import types
from collwise.studies.cli.commands import CommandGroup, example
from collwise.studies.cli.declare import argument, flag, group, option, refuse_others
from collwise.studies.cli.derive import command
from collwise.studies.cli.experiment import calibrate, experiment, ranks, thresholds
from collwise.studies.cli.types import NEW_FILE, PATH
from collwise.studies.present.shown import Shown, Table, drawing, said


@click.group(cls=CommandGroup, epilog=example("platforms show"))
def platforms() -> None:
    """Lists and checks descriptions of clusters, makes new ones, and determines a cluster's properties."""


for one in (calibrate, experiment, thresholds, ranks):
    platforms.add_command(one)


def _listed() -> Shown:
    """The known platforms and interconnects."""
    described = [load(name) for name in known()]
    links = [load_interconnect(name) for name in interconnect_names()]
    rows = [
        (platform.name, platform.title, len(platform.hosts), platform.default_processes_per_node, *_network(platform))
        for platform in described
    ]
    columns = ["name", "cluster", "nodes", "processes per node", "link", "one way"]
    uses = "Interconnects, for 'tune', 'whatif' and 'platforms new --interconnect'"
    of_links = [(link.name, link.title, *_network(link), link.calibration.note) for link in links]
    parts = [
        Table("Platforms", columns, rows, left=2, keys=1),
        Table(uses, ("name", "interconnect", "link", "one way", "figures"), of_links, left=2, keys=1),
    ]
    names = [{"name": link.name, "title": link.title} for link in links]
    return Shown(parts, list(map(_facts, described)), {"interconnects": names})


@command("platforms show grisou -o grisou.xml", "show", platforms, draw=True)
def show(
    name: str | None = argument(types.WORD_OF_PLATFORM, required=False, metavar="[PLATFORM]"),
    check: bool = flag(),
    changes: Sequence[str] = option(multiple=True),
    output: Path | None = option(NEW_FILE),
) -> Shown:
    """Lists the platforms, or shows, draws, writes or checks one.

    PLATFORM is a name or a file. A description has its sources in it. --change first changes the platform, as in
    'whatif'. -o writes platform XML, which SimGrid 3.32 to 4.1 read, or a description if the name ends in .toml. The
    exit code of --check is 0 if the file is sound, and 1 if not.
    """
    if name is None:
        refuse_others((), "one PLATFORM; name it")
        return _listed()
    if check:
        refuse_others(("name", "check"), "showing and writing, not for --check")
        return _checked(name)
    platform = changed(arguments.platform(name), [parse_change(change) for change in changes]).platform
    if output is None:
        text = write_description(platform) if isinstance(platform, Description) else platform.xml_text()
    else:
        write_text(output, _description(platform) if output.suffix == ".toml" else platform.xml_text())
        text = f"{output}: {len(platform.hosts)} hosts"
    return Shown([text.rstrip("\n")], [_facts(platform)], figures={"": drawing("platform.platform_figure", platform)})


def _description(platform: HostPlatform) -> str:
    """The description of a platform, without the placement of ranks."""
    if isinstance(platform, PlacedPlatform):
        note("a description has no placement; give --placement to the commands that read it")
        platform = platform.base
    return write_description(description_of(platform))


def _checked(name: str) -> Shown:
    """The problems of a platform's file, as SimGrid's if it has none of its own."""
    problems, hosts = check_file(name)
    parts, engine = problems, ""
    if not problems:
        platform = load(name)
        engine, engine_problem = _dry_run(platform)
        if engine_problem:
            problems.append(f"{name}: {engine}: {engine_problem}")
        else:
            parts = [f"{name}: sound, {len(hosts)} hosts, simulated by {engine}", _understood(platform)]
    facts = {"file": name, "hosts": len(hosts), "engine": engine}
    problem = f"{name}: {counted(len(problems), 'problem')} found" if problems else ""
    return Shown(parts, [{"problem": name} for name in problems], facts, problem=problem)


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
    """A node's link and the latency to another node, as ranges with units."""
    if isinstance(platform, HeterogeneousPlatform):
        kinds = {kind.name: kind for kind in platform.node_types}
        speeds = [kind.link_bytes_per_second for kind in kinds.values()]
        latencies = [platform.route(kinds[wire.one], kinds[wire.other])[0] for wire in platform.wires]
    else:
        assert isinstance(platform, Platform)
        speeds = [platform.node_bytes_per_second * of_rate for _, of_rate in set(platform.factors_of_nodes)]
        latencies = [platform.route[0], platform.longest_latency_seconds]
    return f"{_spread(s * 8e-9 for s in speeds)} Gbit/s", f"{_spread(seconds * 1e6 for seconds in latencies)} us"


def _spread(values: Iterable[float]) -> str:
    shown = [f"{value:.4g}" for value in sorted(values)]
    return " to ".join(dict.fromkeys((shown[0], shown[-1]))) if shown else "0"


def _understood(platform: HostPlatform) -> str:
    """Sentences on the platform as it was read, so that a wrong unit is noticed."""
    values: dict[str, Any] = {"one": platform, "types": (), "node_rate": 0.0, "own": False}
    if isinstance(platform, HeterogeneousPlatform):
        link, way = _network(platform)
        values |= {"types": platform.node_types, "link": link, "way": way}
    elif isinstance(platform, Platform):
        made, topology = platform.calibration, platform.topology
        overheads = made.os[0][1] + made.or_[0][1]
        values["short"] = overheads and platform.longest_latency_seconds * made.latency_factor[0][1] + overheads
        values["faults"] = len(platform.node_faults) + (len(topology.cable_faults) if topology is not None else 0)
        values["node_rate"] = platform.node_bytes_per_second
    else:
        values["own"] = any(name.startswith("smpi/") for name in platform.smpi_options())
    return " ".join(said("platform", **values))


def _dry_run(platform: HostPlatform) -> tuple[str, str]:
    """The engine, and its error if the first and the last host (or two processes of one) exchange a message."""
    import tempfile

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


def _dimensions(text: str) -> tuple[int, ...]:
    if not re.fullmatch(r"[1-9]\d{0,4}(x[1-9]\d{0,4})*", text):
        raise UsageError(f"malformed '{text}': separate the lengths by x, for example 4x4x8")
    return tuple(map(int, text.split("x")))


_MAX_GBITS = 100_000
_MIN_MEMORY_BYTES = 2**20


def _oversubscription(text: str) -> float:
    ratio = parse_ratio(text)
    if ratio < 1:
        raise UsageError(f"'{text}' is less than 1; the nodes of a switch have at least the rate of its uplinks")
    return ratio


_RATIO = types.Parsed("ratio", _oversubscription)
_TRIES = 3
_GBITS, _GBYTES, _US = types.Scaled(1e9 / 8, maximum=_MAX_GBITS), types.Scaled(1e9), types.Scaled(1e-6, minimum=0)


def _memory(text: str) -> int:
    size = parse_size(text)
    if size < _MIN_MEMORY_BYTES:
        raise UsageError(f"'{text}' ({format_size(size)}) is too little memory for a node; write for example 256GiB")
    return size


_MEMORY = types.Parsed("size", _memory)

_NODE = group(
    lambda **figures: {name: value for name, value in figures.items() if value is not None},
    cpus=option(click.IntRange(1)),
    cores=option(click.IntRange(1)),
    memory_bytes=option(_MEMORY),
    processes=option(click.IntRange(1), key="ppn"),
    between_sockets_bytes_per_second=option(_GBYTES),
    between_sockets_latency_seconds=option(_US),
    memory_bytes_per_second=option(_GBYTES),
)
"""The values that were given for a node."""
_FIGURES: dict[str, click.ParamType] = {
    "nodes_per_switch": click.IntRange(1),
    "oversubscription": _RATIO,
    "switches_per_pod": click.IntRange(1),
    "pod_oversubscription": _RATIO,
    "groups": click.IntRange(1, 1000),
    "switches_per_group": click.IntRange(1),
    "local_gbits": _GBITS,
    "global_gbits": _GBITS,
    "dimensions": types.Parsed("dimensions", _dimensions),
    "cable_gbits": _GBITS,
    "hop_latency_us": _US,
}
"""The parameters of --topology, and their types."""
_FIGURES_TEXT = """\b
Parameters of --topology. Write them after the kind and a colon, with commas
between them:
  fat-tree:   nodes_per_switch (at each lower switch), oversubscription (total
              rate of a switch's nodes divided by that of its uplinks: 2:1 or
              2); for three levels also switches_per_pod, pod_oversubscription
  dragonfly:  nodes_per_switch, groups, switches_per_group; local_gbits
              (total Gbit/s from a switch to the others of its group),
              global_gbits (total Gbit/s between two groups)
  torus:      dimensions (switches in each: 4x4x8), nodes_per_switch,
              cable_gbits (by default the rate of a node's link)
  all three:  hop_latency_us, from switch to switch"""


def _topology(text: str) -> dict[str, Any]:
    """The topology and its parameters, by their keys in descriptions, from text such as fat-tree:oversubscription=2."""
    kind, figures = parse_topology(text)
    check_name("topology", kind, TOPOLOGIES)
    found: dict[str, Any] = {"topology": kind}
    for name, value in figures:
        check_name("parameter of a topology", name, _FIGURES)
        key = name.replace("_gbits", "_bytes_per_second").replace("_us", "_seconds")
        try:
            found[key] = _FIGURES[name].convert(value, None, None)
        except (click.BadParameter, UsageError) as problem:
            raise UsageError(f"{name}: {getattr(problem, 'message', problem)}") from None
    return found


_TOPOLOGY = group(
    lambda topology: topology or {},
    topology=option(
        types.Parsed("topology", _topology, lambda _: TOPOLOGIES, listed=False), said={"kinds": TOPOLOGIES}
    ),
)
"""The values that were given for the topology: keys of a description, with the kind as `topology`."""


def _cluster(**of_nodes: Any) -> Any:
    """The other arguments of new_platform; None for values that were not given."""
    return group(
        dict,
        nodes=option(click.IntRange(1, MAX_HOSTS), **of_nodes),
        interconnect_name=option(types.NamedChoice("interconnect", interconnect_names()), key="interconnect"),
        link_bytes_per_second=option(_GBITS),
        latency_seconds=option(_US),
    )


def _check_name(name: str) -> None:
    if name in known():
        raise UsageError(f"'{name}' is already the name of a known platform; choose another name")
    if not re.fullmatch(r"[a-z][a-z0-9-]*", name):
        raise UsageError(f"malformed platform name '{name}': use small letters, digits and -, a letter first")


@command("platforms new mine --nodes 8 --gbits 25 --latency-us 12", "new", parent=platforms, more=_FIGURES_TEXT)
def new(
    name: str = argument(),
    cluster: dict[str, Any] = _cluster(required=True),
    node: dict[str, Any] = _NODE,
    topology: dict[str, Any] = _TOPOLOGY,
    output: Path | None = option(NEW_FILE),
) -> None:
    """Writes a description of a cluster of equal nodes.

    Without --interconnect nothing is calibrated, and messages have no overheads. docs/platforms.md explains the
    topologies, and says which parameters of the interconnects are estimates.
    """
    _check_name(name)
    made = new_platform(name, node=Node(**node), **cluster, **topology)
    path = output or types.checked_new_file(Path(f"{name}.toml"))
    write_text(path, write_description(made))
    click.echo(f"{path}: {made.nodes} nodes; look at it with '{program_name()} platforms show {path} --check'")
    if (interconnect := cluster["interconnect_name"]) is not None:
        click.echo(f"interconnect {interconnect}: {made.calibration.note}")
    else:
        names = ", ".join(interconnect_names())
        click.echo(f"no overheads: short messages will seem too cheap; --interconnect NAME adds them (valid: {names})")


def _known(machine: bool, hardware: Sequence[Path], slurm: str | None, partition: str | None, ask: bool) -> Facts:
    """The facts from the named sources, or from this machine if no source is named and no question is asked."""
    if partition is not None and slurm is None:
        raise UsageError("--partition works only with --slurm")
    if machine and hardware:
        raise UsageError("--machine is this machine; --hardware names files of another one")
    folders = [path for path in hardware if path.is_dir()]
    files = [path for path in hardware if path not in folders]
    if max(len(folders), len(files)) > 1:
        raise UsageError("--hardware takes at most one file, and one folder with a copy of /sys")
    sources = [slurm_facts(slurm, partition)] if slurm is not None else []
    if hardware or machine or (slurm is None and not ask):
        sources.append(machine_facts(next(iter(files), None), next(iter(folders), None)))
    return merged(*sources)


_SOURCES = group(
    dict,
    machine=flag(),
    hardware=option(PATH, multiple=True),
    slurm=option(said={"live": LIVE}),
    partition=option(),
    ask=flag(),
)


@command(
    "platforms describe mycluster --nodes 16 --interconnect tcp-25g -o mycluster.toml",
    "describe",
    parent=platforms,
    more=_FIGURES_TEXT,
)
def describe(
    name: str = argument(),
    sources: dict[str, Any] = _SOURCES,
    cluster: dict[str, Any] = _cluster(),
    node: dict[str, Any] = _NODE,
    topology: dict[str, Any] = _TOPOLOGY,
    output: Path | None = option(NEW_FILE),
) -> Shown:
    """Writes a cluster's description from a node, Slurm and options.

    CPUs, cores and network are read from a node (hwloc, /sys), nodes and switches from Slurm. Options override what is
    read. The command says which values are read, estimated or missing, and what to measure next.
    """
    _check_name(name)
    path = output or types.checked_new_file(Path(f"{name}.toml"))
    known = _known(**sources)
    if sources["ask"]:
        _ask(known, node, topology, cluster)
    made = described(name, known, node, topology, cluster)
    write_text(path, write_description(made.platform))
    for fact in made.facts:
        if fact.what == "interconnect" and fact.how == ESTIMATED:
            warn(
                f"no interconnect was found: {fact.value} is assumed, and most of the times depend on it; "
                f"name yours with --interconnect NAME (valid: {', '.join(interconnect_names())})"
            )
    missing = [fact for fact in made.facts if fact.how == MISSING]
    rows = [(fact.what, shown(fact.value), fact.how, fact.where) for fact in made.facts if fact.how != MISSING]
    columns = ["figure", "value", "how", "where from"]
    parts: tuple[Table | str, ...] = (
        Table(f"{path}: what it rests on", columns, rows, left=4, wrap=True, keys=1),
        "Missing:",
        *(f"- {fact.what}: {fact.where}" for fact in missing),
        "Next:",
        *(f"- {words}\n  {purpose}" for words, purpose in next_steps(made, str(path))),
    )
    return Shown(parts, [vars(fact) for fact in made.facts], {"file": str(path)})


def _answer(question: str, kind: click.ParamType, default: Any) -> Any:
    """The answer to a question. If it is missing, or wrong three times, raises UsageError, which says what is valid."""
    # Without a default, click repeats the question after an empty answer, and does not say why.
    shown, usual = (question, default) if default is not None else (f"{question} (needed)", "")
    wrong = ""
    for _ in range(_TRIES):
        try:
            given = click.prompt(shown, default=usual, show_default=default is not None, value_proc=str, err=True)
        except click.Abort as problem:
            if not isinstance(problem.__context__, EOFError):
                raise
            given, wrong = "", wrong or "no answer"
            break
        try:
            return kind.convert(given, None, None)
        except (click.BadParameter, UsageError) as problem:
            wrong = getattr(problem, "message", str(problem))
            click.echo(wrong, err=True)
    if isinstance(kind, types.NamedChoice):
        wrong = f"{wrong.partition(';')[0]}; valid: {', '.join(kind.choices)}"
    raise UsageError(f"--ask: {question}: {wrong}")


def _ask(known: Facts, node: dict[str, Any], topology: dict[str, Any], figures: dict[str, Any]) -> None:
    """Asks for values that no option gave. Answers that differ from the known facts are added to the given values."""
    number = click.IntRange(1)

    def ask(given: dict[str, Any], key: str, what: str, question: str, kind: click.ParamType, usual: Any) -> Any:
        if given.get(key) is not None:
            return given[key]
        before = known[what].value if what in known else None
        default = before if before is not None else usual
        answer = _answer(question, kind, default)
        if answer != before:
            given[key] = answer
        return answer

    ask(figures, "nodes", "nodes", "Nodes", click.IntRange(1, MAX_HOSTS), None)
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
        question = "Oversubscription: the total rate of a switch's nodes divided by the rate of its uplinks"
        ask(topology, "oversubscription", "oversubscription", question, _RATIO, 1.0)
