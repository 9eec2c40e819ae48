"""Families of algorithms that stand in one file."""

from __future__ import annotations


def file_name(algorithm: str) -> str:
    """The name of the C file that an algorithm is in."""
    return next((family for family in ("tasks", "multi_leader") if algorithm.startswith(family)), algorithm) + ".c"
