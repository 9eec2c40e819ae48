"""What every platform can do, wherever it comes from: name its hosts and place ranks on them."""

from __future__ import annotations

import hashlib
import re
from abc import ABC, abstractmethod

from collwise.common.errors import UsageError

_RADICAL_PART = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")
_MOST_HOSTS = 1_000_000
_SMPI_EAGER_LIMIT_BYTES = 65536


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
        """Processes a node when nobody says otherwise."""

    @abstractmethod
    def smpi_options(self) -> dict[str, str]:
        """Simulator option names and values, in SimGrid's syntax, that the XML text sets."""

    @abstractmethod
    def xml_text(self) -> str:
        """The platform XML that the simulator reads."""

    @property
    def eager_limit_bytes(self) -> int:
        """The message size in bytes from which the simulated MPI library uses rendezvous; SMPI's own if not set."""
        return int(self.smpi_options().get("smpi/send-is-detached-thresh", _SMPI_EAGER_LIMIT_BYTES))

    def digest(self) -> str:
        """SHA-256 (hex) of the platform XML: equal digests simulate alike."""
        return hashlib.sha256(self.xml_text().encode()).hexdigest()

    def max_procs(self, processes_per_node: int) -> int:
        """The most processes that fit with that many on each node."""
        return len(self.hosts) * processes_per_node

    def hosts_for(self, procs: int, processes_per_node: int) -> tuple[str, ...]:
        """The host of each rank, by blocks: rank r runs on node r // processes_per_node.

        Raises UsageError if there are fewer than one process or more than fit.
        """
        if processes_per_node < 1:
            raise UsageError(f"{processes_per_node} processes per node on platform '{self.name}': the least is 1")
        hosts = self.hosts
        largest = self.max_procs(processes_per_node)
        if not 1 <= procs <= largest:
            raise UsageError(
                f"platform '{self.name}' cannot hold P = {procs} with {processes_per_node} per node;"
                f" valid: 1 to {largest} ({len(hosts)} nodes)"
            )
        return tuple(hosts[rank // processes_per_node] for rank in range(procs))


def parse_radical(text: str) -> tuple[int, ...]:
    """Host numbers from SimGrid's radical syntax: '1-3,5' gives 1, 2, 3, 5.

    Raises UsageError for anything else, for a range that runs backwards and beyond a million hosts.
    """
    numbers: list[int] = []
    for part in text.split(","):
        match = _RADICAL_PART.fullmatch(part.strip())
        if match is None:
            raise UsageError(f"malformed radical '{text}' (valid: numbers and ranges, for example 1-3,5,7-9)")
        first = int(match.group(1))
        last = int(match.group(2) or first)
        if last < first:
            raise UsageError(f"radical '{text}' runs backwards in '{part.strip()}' (valid: {last}-{first})")
        if len(numbers) + last - first >= _MOST_HOSTS:
            raise UsageError(f"radical '{text}' names more hosts than can be simulated (valid: up to {_MOST_HOSTS})")
        numbers.extend(range(first, last + 1))
    return tuple(numbers)
