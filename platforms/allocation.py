"""Allocations: the hosts of a job, read or drawn, and the nodes of a description that stand for these hosts.

The network of a description is regular, so any of its switches can stand for a real one. Two hosts get nodes at one
switch (or in one group of switches) exactly if the hosts share a switch (or a group).
"""

from __future__ import annotations

import hashlib
import random
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

import hostlist

from collwise.common.errors import UsageError, nearest_names, note, warn
from collwise.common.files import read_text
from collwise.common.units import counted
from collwise.platforms.description import HeterogeneousPlatform, Platform
from collwise.platforms.hosts import DerivedPlatform, HostPlatform, PlacedPlatform
from collwise.platforms.topology import Topology, Torus
from collwise.platforms.xml_clusters import description_of

_Value = TypeVar("_Value")
_RANK, _HOST, _SWITCH, _GROUP = ("rank", "mpi_rank"), ("host", "hostname", "node", "allocation"), "switch", "group"
"""The names of columns; names in one tuple mean the same."""
_PAIR = re.compile(r"([A-Za-z]\w*)\s*=\s*(\S+)")
_NODE_LIST = re.compile(r"(?:export\s+)?(?:SLURM_(?:JOB_|STEP_)?NODELIST|NodeList)\s*=\s*[\"']?([^\"']*)[\"']?")
"""SLURM's variables and the line of `scontrol show job` that have the hosts of a job."""
_NAME = re.compile(r"[A-Za-z0-9_.:-]+")
_LONGEST_NAME = 255
"""Systems refuse to look for files with longer names."""
_ALLOCATIONS = "expected CSV with rank and host, or lists such as n[001-004,7]"
_MAPS = "expected SLURM's topology.conf, CSV with host, switch and group, or lines 'NODE 0001 CELL 1 SWITCH 10100'"


class NodeMap(dict[str, tuple[str, str]]):
    """The switch of each host, and the switch's group, read from a file. The group is '' if the file has no groups."""

    def __init__(self, file: Path, places: Mapping[str, tuple[str, str]]) -> None:
        super().__init__(places)
        self.file = file


@dataclass(frozen=True)
class Allocation:
    """The hosts of a job: one for each rank if `by_rank`, otherwise each once; `rows` are their lines in `source`."""

    source: str
    hosts: tuple[str, ...]
    by_rank: bool
    rows: Mapping[str, str]


@dataclass(frozen=True, repr=False)
class AllocatedPlatform(PlacedPlatform):
    """`base` with the nodes of an allocation; `ranks` has the node of each rank or, without ranks, of each host.

    Ranks run where they ran in the job if a node has `per_node` processes. With another number, or if `per_node` is not
    known (0), processes fill the nodes of the allocation in blocks.
    """

    per_node: int = 0
    options: str = ""
    """The command-line options that give the same allocation, if they are known."""
    fixed_by = "allocation"

    @property
    def default_processes_per_node(self) -> int:
        """The number of processes per node in the allocation if it is known, else the default of the base platform."""
        return self.per_node or self.base.default_processes_per_node

    def digest(self) -> str:
        """A digest of the base platform and the allocation."""
        return hashlib.sha256(f"allocation of {self.per_node}\n{super().digest()}".encode()).hexdigest()

    def max_procs(self, processes_per_node: int) -> int:
        """The number of ranks in the allocation; with another number per node, as many as its nodes hold."""
        as_given = processes_per_node == self.per_node
        return len(self.ranks) if as_given else len(set(self.ranks)) * processes_per_node

    def positions(self, procs: int, processes_per_node: int) -> tuple[int, ...]:
        """The position in `hosts` of each rank's host. Raises UsageError for more processes than `max_procs`."""
        self.base.check_processes_per_node(processes_per_node)
        most = self.max_procs(processes_per_node)
        if not 1 <= procs <= most:
            raise UsageError(
                f"--allocation: {self.source} has no room for P = {procs} with {processes_per_node} per node "
                f"(valid: 1 to {most})"
            )
        if processes_per_node == self.per_node:
            return self.ranks[:procs]
        nodes = tuple(dict.fromkeys(self.ranks))
        return tuple(nodes[rank // processes_per_node] for rank in range(procs))


@dataclass(frozen=True, repr=False)
class ScatteredPlatform(DerivedPlatform):
    """A job on nodes of `base` that other jobs leave free in a random draw with the seed `number`.

    The logarithm of the number of free nodes is drawn uniformly, since few nodes of a busy machine are free; then the
    free nodes are drawn. The job gets consecutive free nodes, starting at a random one; ranks fill these in blocks.
    Jobs with different numbers of nodes have separate draws.
    """

    number: int

    def digest(self) -> str:
        """A digest of the base platform and the draw; the nodes drawn for half of the platform represent the draw."""
        drawn = _drawn(self.number, len(self.hosts), 1 + len(self.hosts) // 2)
        return hashlib.sha256(f"{self.base.digest()}\n{drawn}".encode()).hexdigest()

    def positions(self, procs: int, processes_per_node: int) -> tuple[int, ...]:
        """The position in `hosts` of each rank's host. Raises the errors of `base.positions`."""
        blocks = self.base.positions(procs, processes_per_node)
        drawn = _drawn(self.number, len(self.hosts), blocks[-1] + 1)
        return tuple(drawn[block] for block in blocks)


@lru_cache(maxsize=64)
def _drawn(number: int, nodes: int, count: int) -> tuple[int, ...]:
    """The nodes that a job of `count` nodes gets in a draw."""
    draw = random.Random(f"{number} {nodes} {count}").random  # only random() gives the same numbers in every Python
    free = min(int(count * ((nodes + 1) / count) ** draw()), nodes)
    order = sorted(range(nodes), key=[draw() for _ in range(nodes)].__getitem__)
    left = sorted(order[:free])
    first = int(draw() * free)
    return tuple(sorted(left[(first + place) % free] for place in range(count)))


def allocated(
    platform: HostPlatform, allocation: str | Path | Allocation, node_map: str | Path | NodeMap | None = None
) -> AllocatedPlatform:
    """The platform with a job on the hosts of an allocation.

    `allocation` is a list of hosts such as 'n[001-004,7]', or a file with such lists or with CSV of rank and host, such
    as PICO's alloc.csv. `node_map` is SLURM's topology.conf, PICO's map of Leonardo, or CSV with host, switch and
    group. Without it, the hosts must be the platform's own, or all nodes of the platform must be at one switch.
    """
    found = allocation if isinstance(allocation, Allocation) else _read_allocation(str(allocation))
    hosts = tuple(dict.fromkeys(found.hosts))
    if len(hosts) > len(platform.hosts):
        has = counted(len(platform.hosts), "node")
        raise UsageError(f"{found.source}: {counted(len(hosts), 'host')}, but '{platform.name}' has {has}")
    node_of = _by_name(platform, hosts) if node_map is None else None
    if node_of is None:
        described = description_of(platform)
        topology = described.topology if isinstance(described, Platform) else None
        places = None if node_map is None else _places(found, hosts, node_map)
        if isinstance(described, HeterogeneousPlatform) or (topology is not None and places is None):
            why = "it has several switches" if topology is not None else "its nodes differ"
            valid = ", or give --node-map FILE with the switch of each host" if topology is not None else ""
            raise UsageError(
                f"{found.rows[hosts[0]]}: '{platform.name}' has no host '{hosts[0]}', and {why}; "
                f"name its own hosts{valid}"
            )
        node_of = {host: node for node, host in enumerate(hosts)}
        if topology is not None and places is not None:
            node_of = _by_switch(described, topology, found, places)
            if isinstance(platform, Platform):
                # A description has the number of nodes; only a map shows which switches are not full.
                platform = replace(platform, nodes=max(platform.nodes, *(node + 1 for node in node_of.values())))
    ranks = tuple(node_of[host] for host in found.hosts)
    if max(ranks) >= len(platform.hosts):
        raise _too_large(found, f"nodes up to number {max(ranks)}", platform, f"{len(platform.hosts)}")
    if found is not allocation and _alike(platform):
        note(f"{found.source}: which nodes these are does not matter: all of '{platform.name}' are at one switch")
    per_node = max(Counter(ranks).values()) if found.by_rank else 0
    options = "" if isinstance(allocation, Allocation) else f" --allocation {shlex.quote(str(allocation))}"
    if options and isinstance(node_map, str | Path):
        options += f" --node-map {shlex.quote(str(node_map))}"
    return AllocatedPlatform(platform, ranks, Path(found.source).name, per_node, options)


def _alike(platform: HostPlatform) -> bool:
    """True if the nodes of a platform do not differ and are all at one switch."""
    try:
        described = description_of(platform)
    except UsageError:
        return False
    return isinstance(described, Platform) and described.topology is None and not described.node_faults


def scattered(platform: HostPlatform, count: int) -> list[HostPlatform]:
    """One platform per draw, with a job on the nodes drawn. Raises UsageError if all `count` draws are equivalent."""
    if count < 1:
        raise UsageError(f"--allocations {count}: at least 1 is needed")
    if isinstance(platform, PlacedPlatform):
        raise UsageError(
            f"--allocations draws nodes at random, but {platform.source} fixes them; give only one of the two"
        )
    described = description_of(platform)
    if isinstance(described, Platform) and described.topology is None and not described.heterogeneous:
        raise UsageError(f"--allocations: all nodes of '{platform.name}' are alike; use a platform with a topology")
    return [ScatteredPlatform(platform, number) for number in range(1, count + 1)]


def _by_name(platform: HostPlatform, hosts: Sequence[str]) -> dict[str, int] | None:
    """The nodes of hosts, found by full or short names; None if one of them is not on the platform."""
    known = _with_short({name: node for node, name in enumerate(platform.hosts)})
    found = {host: node for host in hosts if (node := known.get(host, known.get(_short(host)))) is not None}
    return found if len(found) == len(hosts) == len(set(found.values())) else None


def _short(host: str) -> str:
    return host.partition(".")[0]


def _with_short(named: Mapping[str, _Value]) -> Mapping[str, _Value]:
    """The values by full host names, and by short names (up to the first dot) that are unique."""
    counts = Counter(map(_short, named))
    return {_short(name): value for name, value in named.items() if counts[_short(name)] == 1} | {**named}


def _by_switch(platform: HostPlatform, topology: Topology, allocation: Allocation, places: NodeMap) -> dict[str, int]:
    """A node for each host, so that nodes share switches and groups as their hosts do in the map."""
    if isinstance(topology, Torus):
        raise UsageError(
            f"--node-map: {places.file} says which hosts share a switch, but on the torus '{platform.name}' it matters "
            "which switches are neighbours; use --placement FILE with the platform's own hosts"
        )
    per_switch, per_group = topology.nodes_per_switch, topology.group_switches
    switches = topology.switches(len(platform.hosts))
    if per_group and not any(group for _, group in places.values()):
        warn(f"{places.file} has no groups of switches; the groups of '{platform.name}' are filled in order")
        per_group = None
    tree: dict[str, dict[tuple[str, str], list[str]]] = {}
    for host, place in places.items():
        tree.setdefault(place[1] if per_group else "", {}).setdefault(place, []).append(host)
    groups = -(-switches // per_group) if per_group else 1
    if len(tree) > groups:
        raise _too_large(allocation, f"{len(tree)} groups of switches", platform, f"{groups}")
    found: dict[str, int] = {}
    for number, (group, own) in enumerate(tree.items()):
        if len(own) > (per_group or switches):
            where = f" in group {group}" if group else ""
            raise _too_large(allocation, f"{len(own)} switches{where}", platform, f"{per_group or switches}")
        for at, ((switch, _), hosts) in enumerate(own.items()):
            if len(hosts) > per_switch:
                raise _too_large(allocation, f"{len(hosts)} hosts at switch {switch}", platform, f"{per_switch}")
            start = (number * (per_group or switches) + at) * per_switch
            found |= {host: start + place for place, host in enumerate(hosts)}
    return found


def _too_large(allocation: Allocation, has: str, platform: HostPlatform, valid: str) -> UsageError:
    return UsageError(f"{allocation.source}: the job has {has}, more than '{platform.name}' (valid: up to {valid})")


def _places(allocation: Allocation, hosts: Sequence[str], given: str | Path | NodeMap) -> NodeMap:
    """The switch and group of each host. The map has a host's full name, short name, or final number."""
    read = given if isinstance(given, NodeMap) else read_node_map(Path(given))
    node_map, found = _with_short(read), {}
    for host in hosts:
        number = re.search(r"\d+$", _short(host))
        names = (host, _short(host), str(int(number[0])) if number else "")
        place = next((node_map[name] for name in names if name in node_map), None)
        if place is None:
            near = nearest_names(host, node_map)
            raise UsageError(f"{allocation.rows[host]}: host '{host}' is not in {read.file}{near}")
        found[host] = place
    return NodeMap(read.file, found)


def _lines(path: Path) -> list[tuple[str, str]]:
    """The lines of a file, except empty ones and comments, each after its position. A line ending in \\ continues."""
    found, before, start = [], "", 0
    for number, line in enumerate(read_text(path).removeprefix("\ufeff").splitlines(), start=1):
        start = start if before else number
        text = before + ("" if line.lstrip().startswith("#") else re.split(r"\s#", line)[0]).strip()
        before = f"{text[:-1]} " if text.endswith("\\") else ""
        if text and not before:
            found.append((f"{path}:{start}", text))
    if before:
        raise UsageError(f"{path}:{start}: the file ends in the middle of a continued line")
    return found


def _read_allocation(source: str) -> Allocation:
    like_list = "/" not in source and ("[" in source or "," in source)
    is_list = like_list and (len(source) > _LONGEST_NAME or not Path(source).is_file())
    lines = [("--allocation", source)] if is_list else _lines(Path(source))
    if not lines:
        raise UsageError(f"{source}: contains no hosts ({_ALLOCATIONS})")
    first = _cells(lines[0][1].lower())
    if {*_RANK} & {*first} or first[0].isdecimal():
        found = hosts_of_ranks(lines, source).values()
        return Allocation(source, tuple(host for _, host in found), True, {host: where for where, host in found})
    rows: dict[str, str] = {}
    for where, line in lines:
        assigned = _NODE_LIST.fullmatch(line)
        for host in _expanded(assigned[1] if assigned else line, where):
            if host in rows:
                raise UsageError(f"{where}: host '{host}' appears twice; name it once, or use CSV with rank and host")
            rows[host] = where
    return Allocation(source, tuple(rows), False, rows)


def hosts_of_ranks(lines: Sequence[tuple[str, str]], source: str) -> dict[int, tuple[str, str]]:
    """The position of each rank's line, and its host, in the order of ranks.

    `lines` are pairs of a position and a line of CSV. Without a header the first column is the rank.
    """
    columns: tuple[int, int] = (0, 1)
    if lines and not _cells(lines[0][1])[0].isdecimal():
        (where, header), *lines = lines
        columns = (_column(header, _RANK, where), _column(header, _HOST, where))
    found: dict[int, tuple[str, str]] = {}
    for where, line in lines:
        words = _cells(line)
        rank, host = (words[at] if at < len(words) else "" for at in columns)
        if not rank.isdecimal() or not _NAME.fullmatch(host) or int(rank) in found:
            raise UsageError(f"{where}: expected a rank and its host, each rank once, not '{line[:80]}'")
        found[int(rank)] = where, host
    missing = next((rank for rank in range(len(found)) if rank not in found), None)
    if missing is not None or not found:
        count = f"found {len(found)} ranks, up to {max(found, default=0)}, but not rank {missing or 0}"
        raise UsageError(f"{source}: expected all ranks, starting at 0; {count}")
    return dict(sorted(found.items()))


def _cells(line: str) -> list[str]:
    """The cells of a line of CSV; commas in bracketed lists do not separate cells."""
    return [cell.strip().strip('"') for cell in re.split(r",(?![^\[]*\])", line)]


def _column(header: str, names: Sequence[str], where: str) -> int:
    words = _cells(header.lower())
    at = next((place for place, word in enumerate(words) if word in names), None)
    if at is None:
        raise UsageError(
            f"{where}: expected the columns MPI_Rank,allocation or rank,host; no {names[0]} in '{header[:80]}'"
        )
    return at


def _expanded(text: str, where: str) -> list[str]:
    try:
        found = [str(name) for name in hostlist.expand_hostlist(text, allow_duplicates=True)]
    except hostlist.BadHostlist as problem:
        raise UsageError(f"{where}: malformed list '{text[:80]}': {problem} ({_ALLOCATIONS})") from None
    for name in found:
        if not _NAME.fullmatch(name):
            raise UsageError(f"{where}: '{name[:80]}' is not a host ({_ALLOCATIONS})")
    return found


def read_node_map(path: Path) -> NodeMap:
    """The switch and group of each host. Raises UsageError, naming the line, for unknown formats and doubled hosts."""
    lines = _lines(path)
    if not lines:
        raise UsageError(f"{path}: contains no hosts ({_MAPS})")
    first = lines[0][1]
    read = _of_words if first.startswith("NODE ") else _of_slurm if _PAIR.match(first) else _of_csv
    found: dict[str, tuple[str, str]] = {}
    for where, host, place in read(lines):
        if found.setdefault(host, place) != place:
            here, before = (" of group ".join(filter(None, entry)) for entry in (place, found[host]))
            raise UsageError(f"{where}: host '{host}' is at switch {here}, but earlier at {before}")
    return NodeMap(path, found)


_Placed = Iterator[tuple[str, str, tuple[str, str]]]
"""The position of a line, a host, and its switch and group."""


def _of_words(lines: Sequence[tuple[str, str]]) -> _Placed:
    for where, line in lines:
        words = line.split()
        given = dict(zip(words[::2], words[1::2], strict=False))
        if not given.get("NODE", "").isdecimal() or not {"CELL", "SWITCH"} <= {*given}:
            raise UsageError(f"{where}: expected NODE, CELL and SWITCH, each with its number, not '{line[:80]}'")
        yield where, str(int(given["NODE"])), (given["SWITCH"], given["CELL"])


def _of_slurm(lines: Sequence[tuple[str, str]]) -> _Placed:
    """The group of a switch with nodes is the switch above it; if one switch is above all, there are no groups."""
    leaves: dict[str, tuple[str, list[str]]] = {}
    above: dict[str, str] = {}
    for where, line in lines:
        given = {key.lower(): value.strip('"') for key, value in _PAIR.findall(line)}
        name = given.get("switchname") or given.get("blockname")
        if "blocksizes" in given:
            continue
        if name is None or not ("nodes" in given or "switches" in given):
            raise UsageError(f"{where}: expected SwitchName with Nodes or Switches, not '{line[:80]}' ({_MAPS})")
        if "switches" in given:
            above |= dict.fromkeys(_expanded(given["switches"], where), name)
        else:
            leaves[name] = where, _expanded(given["nodes"], where)
    several = len({above.get(name) for name in leaves}) > 1
    for name, (where, hosts) in leaves.items():
        yield from ((where, host, (name, above.get(name, "") if several else "")) for host in hosts)


def _of_csv(lines: Sequence[tuple[str, str]]) -> _Placed:
    (where, header), *rows = lines
    words = _cells(header.lower())
    if _SWITCH not in words:
        raise UsageError(f"{where}: not a map of hosts to switches ({_MAPS})")
    host, switch, group = _column(header, _HOST, where), words.index(_SWITCH), None
    if _GROUP in words:
        group = words.index(_GROUP)
    for where, line in rows:
        cells = _cells(line)
        if len(cells) != len(words) or not cells[host] or not cells[switch]:
            raise UsageError(f"{where}: expected {header}, not '{line[:80]}'")
        place = cells[switch], "" if group is None else cells[group]
        yield from ((where, name, place) for name in _expanded(cells[host], where))
