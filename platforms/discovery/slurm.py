"""Facts about a cluster from its Slurm configuration: nodes, sockets, cores, and the tree of switches."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import hostlist

from collwise.common.errors import UsageError, check_name
from collwise.common.files import read_text
from collwise.common.units import counted
from collwise.platforms.discovery.facts import (
    LIVE,
    MISSING,
    Fabric,
    Fact,
    Facts,
    Port,
    facts,
    link_facts,
    port_of_word,
    read,
)

_SHOWN = ("config", "nodes", "topology", "partitions")
_SECONDS = 60
_PAIR = re.compile(r'([A-Za-z_]\w*)\s*=\s*("[^"]*"|\S*)')
# The words that records begin with, in files and in the output of scontrol.
_NODE, _SWITCH, _BLOCK, _PARTITION = "nodename", "switchname", "blockname", "partitionname"
_RECORDS = (_NODE, _SWITCH, _BLOCK, _PARTITION)
_SWITCH_TYPES = {"switch/hpe_slingshot": Fabric.SLINGSHOT, "switch/cray_aries": Fabric.ARIES}
_MAX_INCLUDES = 8
# The RealMemory, in MiB, of nodes for which no file sets it.
_UNSET_MEMORY = 1

Record = dict[str, str]


@dataclass
class SlurmConfiguration:
    """The records of Slurm's configuration, by kind and in order, and the settings of the whole cluster."""

    where: str
    records: dict[str, list[Record]] = field(default_factory=lambda: {kind: [] for kind in _RECORDS})
    settings: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Nodes:
    """Equal nodes: their names, sockets, cores, bytes of memory (None: unknown) and features."""

    names: tuple[str, ...]
    sockets: int | None
    cores: int | None
    memory: int | None
    features: tuple[str, ...]


def slurm_facts(source: str, partition: str | None = None) -> Facts:
    """The facts of a Slurm configuration: LIVE, or comma-separated files and folders.

    A folder has slurm.conf and topology.conf; a file is one of the two, or the output of `scontrol show` for config,
    nodes, topology or partitions. The nodes are those of `partition`, by default of Slurm's default partition, else
    all. Raises UsageError for files that cannot be read, and for a configuration without nodes.
    """
    found = _live() if source == LIVE else _from_files(source)
    nodes = list(_nodes(found))
    if not nodes:
        raise UsageError(
            f"--slurm: no NodeName in {found.where}; give slurm.conf, or what 'scontrol show nodes' prints"
        )
    all_nodes = sum(len(node.names) for node in nodes)
    nodes, whose = _selected(found, nodes, partition)
    kinds: Counter[tuple[int | None, int | None]] = Counter()
    for node in nodes:
        kinds[node.sockets, node.cores] += len(node.names)
    (sockets, cores), count = kinds.most_common(1)[0]
    chosen = [node for node in nodes if (node.sockets, node.cores) == (sockets, cores)]
    names = [name for item in chosen for name in item.names]
    left_out = all_nodes - count
    where = found.where + whose
    where += f"; {counted(left_out, 'other node')} left out (--partition selects nodes)" if left_out else ""
    return facts(
        read("nodes", count, where),
        read("hosts", hostlist.collect_hostlist(names), found.where),
        *_node_facts(found, chosen),
        *_tree_facts(found, set(names)),
        *link_facts(list(_ports(found, chosen))).values(),
    )


def _node_facts(found: SlurmConfiguration, nodes: Sequence[_Nodes]) -> Iterator[Fact]:
    """Sockets, cores and the smallest memory of nodes. Settings may make slurmd count other parts as sockets."""
    sockets, cores = nodes[0].sockets, nodes[0].cores
    settings = found.settings.get("slurmdparameters", "").lower()
    if cores is not None:
        yield read("cores", cores, found.where)
    if sockets is not None and "numa_node_as_socket" in settings:
        yield read("memory domains", sockets, f"{found.where}: sockets, by SlurmdParameters=numa_node_as_socket")
    elif sockets is not None and "l3cache_as_socket" not in settings:
        yield read("CPUs", sockets, found.where)
    known = [node.memory for node in nodes if node.memory is not None]
    if len(known) == len(nodes):
        yield read("bytes of memory", min(known), f"{found.where}: RealMemory")


def _live() -> SlurmConfiguration:
    if shutil.which("scontrol") is None:
        raise UsageError(
            "--slurm live: scontrol not found on PATH; run this on a machine of the cluster, or give FILE,..."
        )
    found = SlurmConfiguration("scontrol")
    for what in _SHOWN:
        try:
            done = subprocess.run(
                ["scontrol", "show", what], capture_output=True, text=True, timeout=_SECONDS, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as problem:
            raise UsageError(f"--slurm live: scontrol show {what}: {problem}") from None
        # A cluster without switches has no topology to show.
        if done.returncode and what != "topology":
            lines = (done.stderr or done.stdout).strip().splitlines() or ["failed"]
            raise UsageError(
                f"--slurm live: no Slurm answers here (scontrol show {what}: {lines[0]}); run this on a machine of "
                "the cluster, or give a folder with slurm.conf, or FILE,..."
            )
        _add(found, done.stdout)
    return found


def _from_files(source: str) -> SlurmConfiguration:
    files: list[Path] = []
    for word in source.split(","):
        path = Path(word)
        if path.is_dir():
            in_folder = [path / name for name in ("slurm.conf", "topology.conf") if (path / name).is_file()]
            if not in_folder:
                raise UsageError(
                    f"--slurm: no slurm.conf in {path}; expected live, a folder with slurm.conf, or FILE,..."
                )
            files += in_folder
        elif path.is_file():
            files.append(path)
        else:
            raise UsageError(f"--slurm: no file {path}; expected live, a folder with slurm.conf, or FILE,...")
    found = SlurmConfiguration(source.replace(",", ", "))
    for file in files:
        _add(found, _with_includes(file))
    return found


def _with_includes(file: Path, depth: int = 0) -> str:
    """The text of a file, and of the files that it includes. Raises UsageError for files that include themselves."""
    if depth > _MAX_INCLUDES:
        raise UsageError(f"{file}: more than {_MAX_INCLUDES} files include one another")
    lines = []
    for line in read_text(file).splitlines():
        match = re.match(r"\s*include\s+(\S+)", line, re.IGNORECASE)
        # An included file whose name has a variable, such as %c, cannot be found.
        included = file.parent / match[1] if match else None
        lines.append(_with_includes(included, depth + 1) if included is not None and included.is_file() else line)
    return "\n".join(lines)


def _add(found: SlurmConfiguration, output: str) -> None:
    """Adds the records and settings in a configuration file, or in the output of scontrol."""
    record: dict[str, str] | None = None
    for line in output.replace("\\\n", " ").splitlines():
        # A comment ends a line; scontrol also prints # inside values, such as a kernel's version.
        text = "" if line.lstrip().startswith("#") else re.split(r"\s#\s", line)[0]
        pairs = [(key.lower(), value.strip('"')) for key, value in _PAIR.findall(text)]
        if not pairs:
            record = None if not line.strip() else record
            continue
        if pairs[0][0] in _RECORDS:
            record = dict(pairs)
            found.records[pairs[0][0]].append(record)
        elif record is not None and line[0].isspace():
            record |= {key: value for key, value in pairs if key not in record}
        else:
            record = None
            found.settings.setdefault(*pairs[0])


def _nodes(found: SlurmConfiguration) -> Iterator[_Nodes]:
    """The nodes that exist, each with the defaults that the lines before it set."""
    defaults: dict[str, str] = {}
    for record in found.records[_NODE]:
        if record[_NODE].upper() == "DEFAULT":
            defaults |= record
            continue
        whole = defaults | record
        if "FUTURE" in whole.get("state", "").upper():
            continue
        boards = _number(whole, "boards") or 1
        per_board = _number(whole, "socketsperboard")
        sockets = _number(whole, "sockets") or (per_board * boards if per_board else None)
        per_socket = _number(whole, "corespersocket")
        cores = sockets * per_socket if sockets and per_socket else None
        words = ",".join(whole.get(key, "") for key in ("features", "feature", "availablefeatures", "activefeatures"))
        features = tuple(re.split(r"[,&|\s]+", words))
        mebibytes = _number(whole, "realmemory") or _UNSET_MEMORY
        memory = mebibytes * 2**20 if mebibytes > _UNSET_MEMORY else None
        yield _Nodes(tuple(_names(whole[_NODE], _NODE)), sockets if cores else None, cores, memory, features)


def _number(record: Record, key: str) -> int | None:
    value = record.get(key, "")
    return int(value) if value.isdecimal() and int(value) else None


def _names(text: str, key: str) -> list[str]:
    """The names of Slurm's bracketed lists; empty for (null)."""
    if not text or text == "(null)":
        return []
    try:
        return [str(name) for name in hostlist.expand_hostlist(text)]
    except hostlist.BadHostlist:
        raise UsageError(f"--slurm: malformed list '{text}' ({key}); write for example n1 or n[1-16,18]") from None


def _selected(found: SlurmConfiguration, nodes: list[_Nodes], partition: str | None) -> tuple[list[_Nodes], str]:
    """The nodes of `partition`, by default Slurm's default partition or else all nodes, and words that name it."""
    partitions = {record[_PARTITION]: record for record in found.records[_PARTITION]}
    defaults = partitions.pop("DEFAULT", {})
    if partition is not None:
        if not partitions:
            raise UsageError(f"--partition {partition}: no PartitionName in {found.where}; give a file that has it")
        check_name("partition", partition, partitions)
        picked = _in_partitions(nodes, [partitions[partition]])
        if not picked:
            raise UsageError(f"--partition {partition}: none of its nodes is in {found.where}")
        return picked, f"; partition {partition}"
    for name, record in partitions.items():
        if record.get("default", "").upper() == "YES" and (picked := _in_partitions(nodes, [defaults | record])):
            return picked, f"; partition {name}, the default one"
    # Nodes that are in no partition, such as login nodes, run no jobs.
    return _in_partitions(nodes, [defaults | record for record in partitions.values()]) or nodes, ""


def _in_partitions(nodes: Sequence[_Nodes], partitions: Sequence[Record]) -> list[_Nodes]:
    lists = [record.get("nodes", "") for record in partitions]
    if any(listed.upper() == "ALL" for listed in lists):
        return list(nodes)
    wanted = {name for listed in lists for name in _names(listed, "Nodes")}
    kept = [(node, tuple(name for name in node.names if name in wanted)) for node in nodes]
    return [replace(one, names=names) for one, names in kept if names]


def _tree_facts(found: SlurmConfiguration, nodes: set[str]) -> list[Fact]:
    """The topology of the nodes' switches: one switch, a fat tree of two or three levels, or a dragonfly."""
    plugin = found.settings.get("topologyplugin", "")
    if "torus" in plugin or "hypercube" in plugin:
        why = f"TopologyPlugin={plugin} does not show cables; --topology torus:dimensions=4x4x8 describes a torus"
        return [Fact("topology", None, MISSING, why)]
    leaves: dict[str, int] = {}
    parents: dict[str, str] = {}
    for record in (*found.records[_SWITCH], *found.records[_BLOCK]):
        name = record.get(_SWITCH) or record.get(_BLOCK, "")
        below = _names(record.get("switches", ""), "Switches")
        parents |= dict.fromkeys(below, name)
        # scontrol shows the nodes below each switch at any level; a file has only the nodes at the lowest switches.
        if not below and (count := len(nodes.intersection(_names(record.get("nodes", ""), "Nodes")))):
            leaves[name] = count
    if not leaves:
        return []
    sizes = sorted(set(leaves.values()))
    where = found.where
    if len(leaves) == 1:
        return [read("topology", "one-switch", f"{where}: all nodes are at switch {next(iter(leaves))}")]
    uneven = f"; switches have {sizes[0]} to {sizes[-1]} nodes; the largest number is used" if len(sizes) > 1 else ""
    per_pod = Counter(parents[leaf] for leaf in leaves if leaf in parents)
    made = [read("nodes per switch", sizes[-1], where + uneven)]
    if "dragonfly" in found.settings.get("topologyparam", "").lower():
        kind = "dragonfly"
        made += [read("groups", max(len(per_pod), 1), where)]
        made += [read("switches per group", max(per_pod.values(), default=len(leaves)), where)]
    else:
        kind = "fat-tree"
        if len(per_pod) > 1:
            made.append(read("switches per pod", max(per_pod.values()), where))
    return [read("topology", kind, f"{where}: {len(leaves)} switches with nodes"), *made]


def _ports(found: SlurmConfiguration, nodes: Sequence[_Nodes]) -> Iterator[Port]:
    """The network named by features that most nodes have, or by the switch type; features also give its rate."""
    having: Counter[str] = Counter()
    for node in nodes:
        having.update(dict.fromkeys(node.features, len(node.names)))
    count = sum(len(node.names) for node in nodes)
    named = []
    for word in sorted(having):
        of = "" if having[word] == count else f" of {having[word]} of {count} nodes"
        if 2 * having[word] > count and (port := port_of_word(word, f"{found.where}: feature {word}{of}")):
            named.append(port)
    yield from named
    switch = found.settings.get("switchtype", "")
    if not named and switch in _SWITCH_TYPES:
        yield Port(_SWITCH_TYPES[switch], None, f"{found.where}: SwitchType={switch}")
