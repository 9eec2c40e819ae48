"""A cluster's description from facts: what is not known is estimated, and what cannot be estimated is listed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import hostlist

from collwise.common.program import program_name
from collwise.platforms.description import Platform, Source
from collwise.platforms.discovery.facts import (
    ESTIMATED,
    GIVEN,
    MISSING,
    NOMINAL_GBITS,
    READ,
    UNKNOWN_NETWORK,
    Fact,
    Facts,
    estimated,
)
from collwise.platforms.from_figures import Node, new_platform
from collwise.platforms.loader import interconnect

_UNKNOWN = "not known"
# The names of facts about topologies, and the keys of a description whose values these facts give.
_OF_TOPOLOGY = {
    "nodes per switch": "nodes_per_switch",
    "oversubscription": "oversubscription",
    "switches per pod": "switches_per_pod",
    "pod oversubscription": "pod_oversubscription",
    "groups": "groups",
    "switches per group": "switches_per_group",
    "Gbit/s within a group": "local_bytes_per_second",
    "Gbit/s between groups": "global_bytes_per_second",
}
# The names of facts about nodes, and the fields of Node whose values these facts give.
_OF_NODE = {
    "CPUs": "cpus",
    "cores": "cores",
    "memory domains": "memory_domains",
    "bytes of memory": "memory_bytes",
    "processes per node": "processes",
}
_GBIT = 1e9 / 8
_NUMBERED = re.compile(r"(.*?)(0|[1-9]\d*)([^\d]*)")


@dataclass(frozen=True)
class Described:
    """A description, and the facts on which it is based, including the missing ones."""

    platform: Platform
    facts: tuple[Fact, ...]


def described(
    name: str, known: Facts, node: Mapping[str, Any], topology: Mapping[str, Any], figures: Mapping[str, Any]
) -> Described:
    """The description made from the known facts and the given values; None stands for a value that was not given.

    `node` has the fields of Node, `topology` the keys of a topology and its kind under `topology`, and `figures` the
    other arguments of new_platform, whose errors it raises.
    """
    node, topology, figures = (
        {key: value for key, value in given.items() if value is not None} for given in (node, topology, figures)
    )
    facts = _completed(known | dict(_given(node, topology, figures)))
    kind = facts["topology"].value
    nodes, at_switch = facts["nodes"].value, facts.get("nodes per switch")
    if at_switch is not None and "nodes_per_switch" not in topology:
        # --nodes may describe a part of the cluster.
        facts["nodes per switch"] = replace(at_switch, value=min(at_switch.value, nodes))
    for what, key in _OF_TOPOLOGY.items():
        if what in facts and key not in topology:
            topology[key] = facts[what].value * (_GBIT if what.startswith("Gbit/s") else 1)
    node |= {key: facts[what].value for what, key in _OF_NODE.items() if what in facts}
    preset = facts["interconnect"].value
    figures.setdefault("interconnect_name", preset)
    if "Gbit/s" in facts and "link_bytes_per_second" not in figures:
        figures["link_bytes_per_second"] = _link_rate(preset, facts["Gbit/s"].value)
    topology.pop("topology", None)
    made = new_platform(name, **{**figures, "nodes": nodes}, node=Node(**node), topology=kind, **topology)
    links = facts["links"].value if "links" in facts else 1
    listed = tuple(facts.values())
    made = replace(made, links_per_node=links, sources=(*_sources(listed), *made.sources[1:]))
    return Described(_with_hosts(made, facts.get("hosts")), (*listed, *_missing(made, node)))


def next_steps(described: Described, file: str) -> list[tuple[str, str]]:
    """The next commands for the file, each with its purpose."""
    platform = described.platform
    # A fact about hosts comes from a batch system.
    has_slurm = any(fact.what == "hosts" for fact in described.facts)
    launch = "salloc --exclusive --nodes {} --ntasks-per-node {} " if has_slurm else ""
    target = '--launcher srun --mpirun-args "--cpu-bind=cores"' if launch else "--hosts HOSTS"
    few, more = min(2, platform.nodes), min(8, platform.nodes)
    whole = platform.nodes * platform.default_processes_per_node
    sweep = ",".join(map(str, sorted({min(8, whole), platform.nodes, whole})))
    steps = [
        (f"{program_name()} platforms show {file} --check", "checks the description and tries it in the simulator"),
        (f"{program_name()} platforms show {file} --draw {platform.name}.png", "shows and draws the platform"),
    ]
    if platform.nodes > 1:
        steps += [
            (
                f"{launch.format(few, 2)}{program_name()} platforms calibrate {target} --ppn 2 "
                f"--nominal {file} --nodes {few} -o {platform.name}-calibrated.toml",
                "measures latency, rate, overheads, rendezvous threshold and the loopback, which are estimates so far",
            ),
            (
                f"{launch.format(more, 1)}{program_name()} check three-way {target} --ppn 1 "
                f"--platform {platform.name}-calibrated.toml --quick",
                "tells how far simulated and measured times of collectives differ",
            ),
            (
                f"{program_name()} simulate --platform {file} --collective bcast,allreduce --procs {sweep} "
                f"--sizes 8:2MiB:x4 --engine schedule --for openmpi-4.1 -o {platform.name}.times",
                "simulates algorithms",
            ),
            (
                f"{program_name()} select {platform.name}.times --for openmpi-4.1 -o {platform.name}.json",
                "chooses among the simulated algorithms",
            ),
        ]
    return steps


def _given(
    node: Mapping[str, Any], topology: Mapping[str, Any], figures: Mapping[str, Any]
) -> Iterator[tuple[str, Fact]]:
    named = _OF_NODE | {"topology": "topology"} | _OF_TOPOLOGY
    named |= {"nodes": "nodes", "interconnect": "interconnect_name", "Gbit/s": "link_bytes_per_second"}
    given = {**node, **topology, **figures}
    for what, key in named.items():
        if key in given:
            value = given[key] / _GBIT if what.startswith("Gbit/s") else given[key]
            yield what, Fact(what, value, GIVEN, "your options or answers")


def _completed(found: Facts) -> Facts:
    """The facts, completed by estimates of what a description requires, in the order of a description."""
    facts = {what: fact for what, fact in found.items() if fact.value is not None}
    why = found["topology"].where if "topology" in found else _UNKNOWN

    def default(what: str, value: float | int | str, where: str) -> None:
        facts.setdefault(what, estimated(what, value, where))

    default("nodes", 1, f"{_UNKNOWN}: one node like this one; --nodes N")
    default("CPUs", 1, _UNKNOWN)
    default("cores", facts["CPUs"].value, f"{_UNKNOWN}: one for each CPU")
    default("memory domains", facts["CPUs"].value, "one for each CPU")
    default("processes per node", facts["cores"].value, "one for each core; --ppn N")
    if "interconnect" not in facts:
        facts.pop("links", None)
        assumed = f"{_UNKNOWN}: assumed, and most of the times depend on it; --interconnect NAME"
        default("interconnect", UNKNOWN_NETWORK, assumed)
    elif facts["interconnect"].how == GIVEN and found.get("Gbit/s", facts["interconnect"]).how != GIVEN:
        # The rate that was read may belong to another network.
        for what in ("Gbit/s", "links"):
            facts.pop(what, None)
    default("topology", "one-switch", why)
    _complete_topology(facts, default)
    order = ["nodes", "hosts", *_OF_NODE, "interconnect", "Gbit/s", "links", "topology", *_OF_TOPOLOGY]
    return {what: facts[what] for what in order if what in facts}


def _complete_topology(facts: Facts, default: Any) -> None:
    """Adds estimates of the missing facts that a topology needs; drops the facts of other topologies."""
    kind = facts["topology"].value
    if facts["topology"].how == GIVEN:
        for what in [name for name in _OF_TOPOLOGY if name in facts and facts[name].how == READ]:
            if kind == "one-switch" or (kind == "torus" and what != "nodes per switch"):
                del facts[what]
    if kind == "fat-tree":
        unknown = ["oversubscription", *(["pod oversubscription"] if "switches per pod" in facts else [])]
        for what in unknown:
            default(what, 1.0, f"Slurm does not know it, so 1 is assumed; --topology fat-tree:{_OF_TOPOLOGY[what]}=N")
    elif kind == "dragonfly" and {"nodes per switch", "groups", "switches per group"} <= facts.keys():
        preset = interconnect(facts["interconnect"].value)
        rate = preset.link_bytes_per_second / _GBIT * facts["nodes per switch"].value
        share = rate * facts["switches per group"].value / max(facts["groups"].value - 1, 1)
        how = "as fast as the links of a switch's nodes; --topology dragonfly:local_gbits=N"
        default("Gbit/s within a group", rate, how)
        how = "a group's rate divided among the other groups; --topology dragonfly:global_gbits=N"
        default("Gbit/s between groups", share, how)


def _link_rate(preset: str, gbits: float) -> float:
    """A link's rate, bytes per second: the rate in the interconnect's description times the ratio of nominal rates."""
    nominal = NOMINAL_GBITS.get(preset)
    rate = interconnect(preset).link_bytes_per_second * gbits / nominal if nominal else gbits * _GBIT
    return float(f"{rate:.6g}")


def _missing(made: Platform, node: Mapping[str, Any]) -> Iterator[Fact]:
    """The facts that the description lacks or assumes, and how to find the value of each."""
    if made.memory_bytes_per_node is None:
        yield Fact("the memory of a node", None, MISSING, "it is taken to suffice for all messages; --memory SIZE")
    if made.memory_bytes_per_second is not None and node.get("memory_bytes_per_second") is None:
        how = "20 for each CPU, as for shaheen-ii; --memory-gbytes N, about half of what a copy over all cores reaches"
        yield Fact("GB/s of memory", made.memory_bytes_per_second / 1e9, ESTIMATED, how)
    if made.cpus_per_node > 1 and made.between_sockets_bytes_per_second is None:
        how = "as within a socket; --between-sockets-gbytes and --between-sockets-latency-us"
        yield Fact("the path between sockets", None, MISSING, how)
    how = f"those of the interconnect on another cluster ({made.calibration.note}); 'platforms calibrate' measures them"
    yield Fact("latencies, overheads, rendezvous threshold, reductions", None, MISSING, how)


def _sources(facts: tuple[Fact, ...]) -> Iterator[Source]:
    for how in (READ, GIVEN, ESTIMATED):
        by_place: dict[str, list[str]] = {}
        for fact in facts:
            if fact.how == how:
                by_place.setdefault(fact.where, []).append(f"{fact.what} {shown(fact.value)}")
        for where, figures in by_place.items():
            yield Source(f"{', '.join(figures)}: {how}", where)


def shown(value: float | str | None) -> str:
    """A fact's value as people write it."""
    return "-" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _with_hosts(made: Platform, hosts: Fact | None) -> Platform:
    """The platform with its hosts' own names, if these are numbered consecutively without leading zeros."""
    names = hostlist.expand_hostlist(str(hosts.value)) if hosts is not None else []
    matches = [_NUMBERED.fullmatch(name) for name in names]
    if len(names) != made.nodes or not all(matches):
        return made
    numbers = sorted(int(match[2]) for match in matches if match)
    around = {(match[1], match[3]) for match in matches if match}
    if len(around) != 1 or numbers != list(range(numbers[0], numbers[0] + made.nodes)):
        return made
    ((prefix, suffix),) = around
    return replace(made, host_prefix=prefix, host_suffix=suffix, first_host=numbers[0])
