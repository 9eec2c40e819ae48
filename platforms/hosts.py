"""The interface of all platforms, and the hosts on which ranks run: by default, reordered, or placed."""

from __future__ import annotations

import hashlib
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from collwise.common.errors import UsageError, located, nearest_names, unknown_name
from collwise.common.files import read_text
from collwise.common.units import counted

_RADICAL_PART = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")
MAX_HOSTS = 1_000_000
BLOCK, CYCLIC = "block", "cyclic"
_SMPI_EAGER_LIMIT_BYTES = 65536

Places = tuple[tuple[int, int], ...]
"""The node of each rank, and the rank's socket on it."""


class HostPlatform(ABC):
    """A platform that can be simulated: hosts in a fixed order and the platform XML text that defines them."""

    name: str
    title: str

    @property
    @abstractmethod
    def hosts(self) -> tuple[str, ...]:
        """Host names in the order in which ranks fill them."""

    @property
    @abstractmethod
    def default_processes_per_node(self) -> int:
        """Number of processes per node unless an option gives another number."""

    @abstractmethod
    def smpi_options(self) -> dict[str, str]:
        """The simulator options that the XML text sets, by name, in SimGrid's syntax."""

    @abstractmethod
    def xml_text(self) -> str:
        """The platform XML that the simulator reads."""

    def __repr__(self) -> str:
        processes = counted(self.default_processes_per_node, "process")
        return f"<{type(self).__name__} {self.name}: {len(self.hosts)} nodes, {processes} per node by default>"

    @property
    def eager_limit_bytes(self) -> int:
        """Rendezvous threshold of the simulated MPI library in bytes; SMPI's default if the platform sets none."""
        return int(self.smpi_options().get("smpi/send-is-detached-thresh", _SMPI_EAGER_LIMIT_BYTES))

    @property
    def sockets_per_node(self) -> int:
        """The number of sockets of a node; 1 if nodes differ, and for platform XML, where the number is unknown."""
        return 1

    @property
    def heterogeneous(self) -> bool:
        """True if the nodes differ. False for platform XML, where it is unknown."""
        return False

    @property
    def reduce_seconds_per_byte(self) -> float:
        """Time to combine one byte in a reduction (gamma); 0 if it is unknown."""
        return 0.0

    def digest(self) -> str:
        """SHA-256 (hex) of the platform XML; platforms with equal digests have equal simulated times."""
        return self._digest

    @cached_property
    def _digest(self) -> str:
        return hashlib.sha256(self.xml_text().encode()).hexdigest()

    @property
    def known_cores_per_node(self) -> int | None:
        """The cores of a node; None if nodes differ, and for platform XML."""
        return None

    @property
    def memory_bytes_per_node(self) -> int | None:
        """The memory of a node; None if it is unknown, if nodes differ, and for platform XML."""
        return None

    def max_procs(self, processes_per_node: int) -> int:
        """Largest number of processes on the platform, with `processes_per_node` on each node."""
        return len(self.hosts) * processes_per_node

    def check_processes_per_node(self, processes_per_node: int) -> None:
        """Raises UsageError for a number below 1, or above both the cores of a node and the default number."""
        if processes_per_node < 1:
            raise UsageError(f"{processes_per_node} processes per node on platform '{self.name}': at least 1 is needed")
        cores = self.known_cores_per_node
        if cores is not None and processes_per_node > (most := max(cores, self.default_processes_per_node)):
            raise UsageError(
                f"platform '{self.name}' cannot hold {processes_per_node} processes per node, since its nodes have"
                f" {cores} cores; valid: 1 to {most}"
            )

    def hosts_for(self, procs: int, processes_per_node: int) -> tuple[str, ...]:
        """The host of each rank. Raises the errors of `positions`."""
        hosts = self.hosts
        return tuple(hosts[position] for position in self.positions(procs, processes_per_node))

    def positions(self, procs: int, processes_per_node: int) -> tuple[int, ...]:
        """The position in `hosts` of each rank's host, in blocks: rank r runs on node r // processes_per_node."""
        self.check_processes_per_node(processes_per_node)
        largest = self.max_procs(processes_per_node)
        if not 1 <= procs <= largest:
            raise UsageError(
                f"platform '{self.name}' cannot hold P = {procs} with {processes_per_node} per node;"
                f" valid: 1 to {largest} ({len(self.hosts)} nodes)"
            )
        return tuple(rank // processes_per_node for rank in range(procs))

    def places(self, procs: int, processes_per_node: int) -> Places:
        """The position in `hosts` of each rank's host, and the rank's socket; ranks fill sockets in even blocks."""
        positions = self.positions(procs, processes_per_node)
        on_node, seen, found = Counter(positions), Counter[int](), []
        for position in positions:
            found.append((position, seen[position] * self.sockets_per_node // on_node[position]))
            seen[position] += 1
        return tuple(found)

    def reordered(self, order: Sequence[int]) -> ReorderedPlatform:
        """The same platform with its hosts in another order: host r of the result is host order[r] of this one."""
        count = len(self.hosts)
        if sorted(order) != list(range(count)):
            raise UsageError(
                f"platform '{self.name}': an order of {len(order)} hosts is not a permutation; "
                f"name each of 0 to {count - 1} once"
            )
        return ReorderedPlatform(self, tuple(order))


def _of_base(name: str) -> Any:
    return property(lambda derived: getattr(derived.base, name))


@dataclass(frozen=True, repr=False)
class DerivedPlatform(HostPlatform):
    """A platform that is `base` with its ranks on other hosts, and otherwise the same.

    The platform XML is that of the base, since only the host file depends on the hosts of ranks.
    """

    base: HostPlatform

    hosts = _of_base("hosts")
    default_processes_per_node = _of_base("default_processes_per_node")
    sockets_per_node = _of_base("sockets_per_node")
    heterogeneous = _of_base("heterogeneous")
    reduce_seconds_per_byte = _of_base("reduce_seconds_per_byte")
    memory_bytes_per_node = _of_base("memory_bytes_per_node")
    smpi_options = _of_base("smpi_options")
    xml_text = _of_base("xml_text")

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.base.name)
        object.__setattr__(self, "title", self.base.title)


@dataclass(frozen=True, repr=False)
class ReorderedPlatform(DerivedPlatform):
    """`base` with its hosts in another order: `order[r]` is the position in `base` of host r."""

    order: tuple[int, ...]

    @property
    def hosts(self) -> tuple[str, ...]:
        """Host names of the base platform in the new order."""
        hosts = self.base.hosts
        return tuple(hosts[position] for position in self.order)

    def reordered(self, order: Sequence[int]) -> ReorderedPlatform:
        """The platform with its hosts in another order, given by positions in this platform's order."""
        picked = super().reordered(order).order
        return self.base.reordered([self.order[position] for position in picked])

    def digest(self) -> str:
        """The digest of the base platform if the order is unchanged, otherwise a digest that includes the order."""
        if self.hosts == self.base.hosts:
            return self.base.digest()
        return hashlib.sha256("\n".join([self.base.digest(), *self.hosts]).encode()).hexdigest()


@lru_cache(maxsize=64)
def numbered_hosts(prefix: str, first: int, count: int, suffix: str) -> tuple[str, ...]:
    """The names of `count` hosts, numbered from `first`."""
    return tuple(f"{prefix}{number}{suffix}" for number in range(first, first + count))


def parse_radical(text: str) -> tuple[int, ...]:
    """Host numbers from SimGrid's radical syntax: '1-3,5' gives 1, 2, 3, 5."""
    numbers: list[int] = []
    for part in text.split(","):
        match = _RADICAL_PART.fullmatch(part.strip())
        if match is None:
            raise UsageError(f"malformed radical '{text}'; write numbers and ranges, for example 1-3,5,7-9")
        first = int(match.group(1))
        last = int(match.group(2) or first)
        if last < first:
            raise UsageError(f"radical '{text}' runs backwards in '{part.strip()}'; write {last}-{first}")
        if len(numbers) + last - first >= MAX_HOSTS:
            raise UsageError(f"radical '{text}' names more hosts than can be simulated (valid: up to {MAX_HOSTS})")
        numbers.extend(range(first, last + 1))
    return tuple(numbers)


@dataclass(frozen=True, repr=False)
class PlacedPlatform(DerivedPlatform):
    """`base` with ranks on its nodes in turn, or with rank r on host `ranks[r]`, from the file `source`."""

    ranks: tuple[int, ...] = ()
    source: str = CYCLIC
    fixed_by = "placement"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "title", f"{self.base.title}, {self.fixed_by} {self.source}")

    def digest(self) -> str:
        """A digest of the base platform and the placement."""
        placed = ",".join(map(str, self.ranks)) or CYCLIC
        return hashlib.sha256(f"{self.base.digest()}\n{placed}".encode()).hexdigest()

    def positions(self, procs: int, processes_per_node: int) -> tuple[int, ...]:
        """The position in `hosts` of each rank's host. Raises UsageError for ranks that do not fit or have no place."""
        blocks = self.base.positions(procs, processes_per_node)
        if not self.ranks:
            used = tuple(dict.fromkeys(blocks))
            return tuple(used[rank % len(used)] for rank in range(procs))
        if procs > len(self.ranks):
            raise UsageError(
                f"--placement: {self.source} places {len(self.ranks)} ranks, not P = {procs}; "
                "write a line for each rank"
            )
        placed = self.ranks[:procs]
        host, most = Counter(placed).most_common(1)[0]
        if most > processes_per_node:
            raise UsageError(
                f"--placement: {self.source} has {most} of the first {procs} ranks on {self.hosts[host]} "
                f"(valid: up to {processes_per_node}; more with --ppn {most})"
            )
        return placed

    def reordered(self, order: object) -> ReorderedPlatform:
        """Not defined: raises UsageError."""
        raise UsageError(f"platform '{self.name}' already has a placement; use a platform without a placement")


def unplaced(platform: HostPlatform) -> HostPlatform:
    """The platform without a placement of ranks."""
    return platform.base if isinstance(platform, PlacedPlatform) else platform


def placed(platform: HostPlatform, placement: str) -> HostPlatform:
    """The platform with ranks placed by 'block', 'cyclic', or a file with a line for each rank.

    A line has the name of the rank's host, or the host's number on the platform (from 0).
    """
    if placement == BLOCK:
        return platform
    if placement == CYCLIC:
        return PlacedPlatform(platform)
    path = Path(placement)
    if not path.exists() and path.name == placement and not path.suffix:
        raise unknown_name("placement", placement, (BLOCK, CYCLIC), "or the path of a file")
    with located("--placement (block, cyclic or a file)"):
        lines = read_text(path).splitlines()
    names = {name: position for position, name in enumerate(platform.hosts)}
    names |= {str(position): position for position in range(len(platform.hosts)) if str(position) not in names}
    found = []
    for number, line in enumerate(lines, start=1):
        name = line.partition("#")[0].strip()
        if not name:
            continue
        if name not in names:
            near = nearest_names(name, platform.hosts)
            hosts = f"{platform.hosts[0]} to {platform.hosts[-1]}, or 0 to {len(platform.hosts) - 1}"
            raise UsageError(f"{path}:{number}: no host '{name}' on '{platform.name}'{near} (valid: {hosts})")
        found.append(names[name])
    if not found:
        raise UsageError(f"{path}: places no ranks; write the name of a host on each line")
    return PlacedPlatform(platform, tuple(found), path.name)
