"""Interconnects: descriptions of two nodes each, whose links and calibration new descriptions take over."""

from __future__ import annotations

from pathlib import Path

from collwise.common.errors import UsageError, unknown_name
from collwise.platforms.description import Platform
from collwise.platforms.loader import load_description

_FOLDER = Path(__file__).parent / "interconnects"


def interconnects() -> list[str]:
    """The names of the interconnects that are part of collwise."""
    return sorted(path.stem for path in _FOLDER.glob("*.toml"))


def interconnect(name: str) -> Platform:
    """Two nodes at two switches of an interconnect. Raises UsageError for an unknown name."""
    if name not in interconnects():
        raise unknown_name("interconnect", name, interconnects())
    found = load_description(_FOLDER / f"{name}.toml")
    if found.topology is None:
        raise UsageError(f"interconnect '{name}' has no topology (valid: one with hop_latency_seconds)")
    return found
