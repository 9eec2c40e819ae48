"""Interconnects: descriptions of two nodes each, whose links and calibration new descriptions take over."""

from __future__ import annotations

from collwise.common.errors import UsageError, check_name
from collwise.platforms.description import Platform
from collwise.platforms.loader import load_description
from collwise.platforms.names import INTERCONNECTS, interconnect_names


def interconnect(name: str) -> Platform:
    """Two nodes at two switches of an interconnect. Raises UsageError for an unknown name."""
    check_name("interconnect", name, interconnect_names())
    found = load_description(INTERCONNECTS / f"{name}.toml")
    if found.topology is None:
        raise UsageError(f"interconnect '{name}' has no topology (valid: one with hop_latency_seconds)")
    return found
