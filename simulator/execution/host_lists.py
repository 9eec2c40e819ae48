"""Lists of hosts and their numbers of processes: host files, names separated by commas, SLURM's compressed lists."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeVar

import hostlist

from collwise.common.errors import UsageError
from collwise.common.files import read_text

_HOST = re.compile(r"[A-Za-z0-9_.:-]+")
_ENTRY = re.compile(r"(?P<host>[A-Za-z0-9_.-]+)(?::(?P<count>\d+))?(?:\s+slots\s*=\s*(?P<slots>\d+))?(?:\s+max.*)?")
_MAX_SLOTS = 100_000

Item = TypeVar("Item")
Slots = Mapping[str, int]
"""Processes that each host takes, in the order of the hosts."""


def read_hosts(text: str) -> Slots:
    """Hosts from names separated by commas, or from a host file.

    A host that is named several times takes as many processes. Raises UsageError naming file and line, or --hosts.
    """
    path = Path(text)
    if "," not in text and path.is_file():
        return read_host_file(path)
    if "/" in text:
        raise UsageError(f"--hosts: no file {text}; give a host file, or comma-separated names")
    return _parse_entries((entry.strip(), f"--hosts: '{entry.strip()}'") for entry in text.split(","))


def read_host_file(path: Path) -> Slots:
    """The hosts of a file: 'n1', 'n1 slots=4' (Open MPI) or 'n1:4' (MPICH) on each line, '#' before comments."""
    lines = read_text(path).splitlines()
    entries = [(line.partition("#")[0].strip(), f"{path}:{number}") for number, line in enumerate(lines, 1)]
    entries = [(entry, where) for entry, where in entries if entry]
    if not entries:
        raise UsageError(f"{path}: contains no hosts; write one on each line")
    return _parse_entries(entries)


def _parse_entries(entries: Iterable[tuple[str, str]]) -> Slots:
    slots: dict[str, int] = {}
    for entry, where in entries:
        match = _ENTRY.fullmatch(entry)
        if match is None:
            raise UsageError(f"{where}: not a host; write NAME, NAME slots=N or NAME:N")
        count = int(match["slots"] or match["count"] or 1)
        if not 1 <= count <= _MAX_SLOTS:
            raise UsageError(f"{where}: {count} processes; valid: 1 to {_MAX_SLOTS}")
        slots[match["host"]] = slots.get(match["host"], 0) + count
    return slots


def expand_node_list(text: str) -> list[str]:
    """The names in SLURM's compressed list: 'n[01-03,7],login' is n01, n02, n03, n7, login."""
    return _expanded(hostlist.expand_hostlist, text, _HOST.fullmatch, "SLURM_JOB_NODELIST", "n[01-04,7]")


def expand_task_counts(text: str) -> list[int]:
    """The counts in SLURM's tasks per node: '2(x3),1' is 2, 2, 2, 1. Raises UsageError, naming SLURM_TASKS_PER_NODE."""
    return _expanded(hostlist.parse_slurm_tasks_per_node, text, lambda n: n > 0, "SLURM_TASKS_PER_NODE", "2(x3),1")


def _expanded(
    expand: Callable[[str], list[Item]], text: str, fits: Callable[[Item], object], variable: str, example: str
) -> list[Item]:
    try:
        found = expand(text.strip())
    except hostlist.BadHostlist:
        found = []
    if not found or not all(map(fits, found)):
        raise UsageError(f"{variable}: '{text}' is not a list such as {example}")
    return found
