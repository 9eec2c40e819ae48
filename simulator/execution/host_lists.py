"""Which hosts there are, and how many processes each takes: host files, names by commas, node files, SLURM's lists."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from collwise.common.errors import UsageError

_HOST = re.compile(r"[A-Za-z0-9_.:-]+")
_ENTRY = re.compile(r"(?P<host>[A-Za-z0-9_.-]+)(?::(?P<count>\d+))?(?:\s+slots\s*=\s*(?P<slots>\d+))?(?:\s+max.*)?")
_MOST_SLOTS = 100_000
_RANGES = re.compile(r"\[([^\]]*)\]")

Slots = Mapping[str, int]
"""Processes that each host takes, in the order of the hosts."""


def read_hosts(text: str, option: str = "--hosts") -> Slots:
    """Names by commas, or those of a file: 'n1', 'n1 slots=4' (Open MPI) or 'n1:4' (MPICH) a line, '#' for remarks.

    A host that is named several times takes as many processes. Raises UsageError naming file and line, or the option.
    """
    path = Path(text)
    if "," not in text and path.is_file():
        return read_host_file(path)
    if "/" in text:
        raise UsageError(f"{option}: no file {text}; name a host file, or hosts by commas")
    return _counted((entry.strip(), f"{option}: '{entry.strip()}'") for entry in text.split(","))


def read_host_file(path: Path) -> Slots:
    """The hosts of a file. Raises UsageError naming file and line."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as problem:
        raise UsageError(f"cannot read {path}: {getattr(problem, 'strerror', None) or 'not text'}") from None
    entries = [(line.partition("#")[0].strip(), f"{path}:{number}") for number, line in enumerate(lines, 1)]
    entries = [(entry, where) for entry, where in entries if entry]
    if not entries:
        raise UsageError(f"{path}: no hosts in it; write one a line")
    return _counted(entries)


def _counted(entries: Iterable[tuple[str, str]]) -> Slots:
    slots: dict[str, int] = {}
    for entry, where in entries:
        match = _ENTRY.fullmatch(entry)
        if match is None:
            raise UsageError(f"{where}: not a host; write NAME, NAME slots=N or NAME:N")
        count = int(match["slots"] or match["count"] or 1)
        if not 1 <= count <= _MOST_SLOTS:
            raise UsageError(f"{where}: {count} processes; valid: from 1 to {_MOST_SLOTS}")
        slots[match["host"]] = slots.get(match["host"], 0) + count
    return slots


def expand_node_list(text: str) -> list[str]:
    """SLURM's compressed names: 'n[01-03,7],login' is n01, n02, n03, n7, login.

    Raises UsageError, naming SLURM_JOB_NODELIST, for what is no such list.
    """
    names = [name for entry in re.split(r",(?![^\[]*\])", text.strip()) for name in _expanded(entry, text)]
    if not all(_HOST.fullmatch(name) for name in names):
        raise UsageError(f"SLURM_JOB_NODELIST: '{text}' is not a list such as n[01-04,7]")
    return names


def _expanded(entry: str, text: str) -> list[str]:
    found = _RANGES.search(entry)
    if found is None:
        return [entry]
    before, after = entry[: found.start()], entry[found.end() :]
    return [f"{before}{number}{rest}" for number in _numbers(found[1], text) for rest in _expanded(after, text)]


def _numbers(ranges: str, text: str) -> list[str]:
    numbers = []
    for part in ranges.split(","):
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()) or (dash and int(last) < int(first)):
            raise UsageError(f"SLURM_JOB_NODELIST: '{text}' is not a list such as n[01-04,7]")
        numbers += [f"{number:0{len(first)}d}" for number in range(int(first), int(last or first) + 1)]
    return numbers


def repeated_tasks(text: str) -> list[int]:
    """SLURM's tasks a node: '2(x3),1' is 2, 2, 2, 1. Raises UsageError, naming SLURM_TASKS_PER_NODE."""
    counts = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,6})(?:\(x(\d{1,6})\))?\s*", part)
        if match is None:
            raise UsageError(f"SLURM_TASKS_PER_NODE: '{text}' is not a list such as 2(x3),1")
        counts += [int(match[1])] * int(match[2] or 1)
    return counts
