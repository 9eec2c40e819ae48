"""Placements: which node each rank runs on."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from collwise.common.errors import UsageError, nearest_names, unknown_name
from collwise.platforms.hosts import DerivedPlatform, HostPlatform, ReorderedPlatform

BLOCK, CYCLIC = "block", "cyclic"


@dataclass(frozen=True, repr=False)
class PlacedPlatform(DerivedPlatform):
    """`base` with ranks on its nodes in turn, or with rank r on host `ranks[r]`, from the file `source`."""

    ranks: tuple[int, ...] = ()
    source: str = CYCLIC

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "title", f"{self.base.title}, placement {self.source}")

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
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as problem:
        why = getattr(problem, "strerror", None) or "not text"
        raise UsageError(f"--placement: {path} cannot be read ({why}); valid: block, cyclic or a file") from None
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
