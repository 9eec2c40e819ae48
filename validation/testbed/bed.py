"""Test beds: namespaces for nodes and switch, veth pairs, a bridge, and token buckets in both directions."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path

from collwise.common.errors import CollwiseError, UsageError

STATE_DIRECTORY = Path("/run/collwise-testbed")
_PREFIX = "collwise-"
# Enough for two packets; more would let the first bytes after a pause through unshaped.
_BURST_BYTES = 3200
_NODE_QUEUE_BYTES = 10_000_000


@dataclass(frozen=True)
class Shape:
    """Size and speeds: of each port in both directions, and the buffer of a switch's port towards a node."""

    nodes: int = 8
    bits_per_second: float = 100e6
    buffer_bytes: int = 1_000_000
    burst_bytes: int = _BURST_BYTES


@dataclass(frozen=True)
class Bed:
    """A test bed that is up."""

    name: str
    shape: Shape

    @property
    def directory(self) -> Path:
        """Where its state and the nodes' temporary files are."""
        return STATE_DIRECTORY / self.name

    def namespace(self, what: str) -> str:
        """The network namespace of 'n1', 'n2', ... or 'switch'."""
        return f"{_PREFIX}{self.name}-{what}"

    def address(self, node: int) -> str:
        """Of node 1, 2, ..."""
        return f"10.77.{node // 250}.{node % 250}"


def up(shape: Shape, name: str = "bed") -> Bed:
    """Makes a test bed, after removing what is left of one of this name.

    Raises UsageError where namespaces may not be made and CollwiseError when a command fails.
    """
    down(name)
    bed = Bed(name, shape)
    bed.directory.mkdir(parents=True)
    (bed.directory / "shape.json").write_text(json.dumps(asdict(shape)))
    switch = bed.namespace("switch")
    _ip("netns", "add", switch)
    _ip("-n", switch, "link", "add", "br0", "type", "bridge")
    _ip("-n", switch, "link", "set", "br0", "up")
    for node in range(1, shape.nodes + 1):
        _add_node(bed, node)
    return bed


def _add_node(bed: Bed, node: int) -> None:
    switch, namespace, port = bed.namespace("switch"), bed.namespace(f"n{node}"), f"p{node}"
    (bed.directory / f"n{node}").mkdir()
    _ip("netns", "add", namespace)
    _ip("-n", namespace, "link", "set", "lo", "up")
    _ip("-n", namespace, "link", "add", "eth0", "type", "veth", "peer", "name", port, "netns", switch)
    _ip("-n", switch, "link", "set", port, "master", "br0", "up")
    _ip("-n", namespace, "addr", "add", f"{bed.address(node)}/16", "dev", "eth0")
    # Packets larger than the bucket would be dropped.
    _ip("-n", namespace, "link", "set", "eth0", "gso_max_segs", "1", "up")
    _ip("-n", switch, "link", "set", port, "gso_max_segs", "1")
    _shape(namespace, "eth0", bed.shape, _NODE_QUEUE_BYTES)
    _shape(switch, port, bed.shape, bed.shape.buffer_bytes)


def _shape(namespace: str, device: str, shape: Shape, limit_bytes: int) -> None:
    bucket = ["rate", f"{shape.bits_per_second:.0f}bit", "burst", str(shape.burst_bytes), "limit", str(limit_bytes)]
    _command("tc", "-n", namespace, "qdisc", "add", "dev", device, "root", "tbf", *bucket)


def down(name: str = "bed") -> int:
    """Ends the processes of a test bed and removes what was made for it; how many namespaces there were."""
    found = [one for one in _namespaces() if one.startswith(f"{_PREFIX}{name}-")]
    for namespace in found:
        for process in _command("ip", "netns", "pids", namespace).split():
            _command("kill", "-9", process, check=False)
        _ip("netns", "del", namespace)
    _command("rm", "-rf", str(STATE_DIRECTORY / name))
    return len(found)


def running(name: str = "bed") -> Bed:
    """The test bed of that name. Raises UsageError when it is not up."""
    file = STATE_DIRECTORY / name / "shape.json"
    if not file.exists():
        raise UsageError(f"no test bed '{name}' is up; make one: collwise testbed up")
    return Bed(name, Shape(**json.loads(file.read_text())))


def _namespaces() -> list[str]:
    return [line.split()[0] for line in _command("ip", "netns", "list").splitlines() if line]


def _ip(*arguments: str) -> None:
    _command("ip", *arguments)


def _command(*words: str, check: bool = True) -> str:
    if os.geteuid() != 0:
        raise UsageError("a test bed needs the right to make network namespaces; run as root")
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if check and done.returncode != 0:
        raise CollwiseError(f"{' '.join(words)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout
