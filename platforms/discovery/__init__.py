"""Descriptions of clusters from what machines and batch systems say of themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collwise.common.lazy import names_of

if TYPE_CHECKING:
    from collwise.platforms.discovery.describe import Described, described, next_steps, shown
    from collwise.platforms.discovery.facts import ESTIMATED, GIVEN, MISSING, READ, Fact, Facts, merged
    from collwise.platforms.discovery.machine import machine_facts
    from collwise.platforms.discovery.slurm import LIVE, slurm_facts

__all__ = [
    "ESTIMATED",
    "GIVEN",
    "LIVE",
    "MISSING",
    "READ",
    "Described",
    "Fact",
    "Facts",
    "described",
    "machine_facts",
    "merged",
    "next_steps",
    "shown",
    "slurm_facts",
]

__getattr__ = names_of(
    __name__,
    {
        "describe": ("Described", "described", "next_steps", "shown"),
        "facts": ("ESTIMATED", "GIVEN", "MISSING", "READ", "Fact", "Facts", "merged"),
        "machine": ("machine_facts",),
        "slurm": ("LIVE", "slurm_facts"),
    },
)
