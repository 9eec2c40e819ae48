"""What is known of the same algorithms inside SMPI and Open MPI: why they differ from ours, and what they are called.

crosscheck.toml holds it, by 'collective algorithm'.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Key = tuple[str, str]
"""A collective and an algorithm."""


@dataclass(frozen=True)
class Explanation:
    """The reason why ours and theirs differ and, if times differ, the range of the ratio of ours to theirs.

    `by_default` says whether they differ for the default process counts and sizes.
    """

    why: str
    least_ratio: float = 0.0
    most_ratio: float = float("inf")
    by_default: bool = True


def _key(name: str) -> Key:
    collective, algorithm = name.split()
    return collective, algorithm


def _explanations(entries: list[dict[str, Any]]) -> Mapping[Key, Explanation]:
    return {_key(name): Explanation(**entry) for entry in entries for name in entry.pop("algorithms")}


_DOCUMENT = tomllib.loads(Path(__file__).with_name("crosscheck.toml").read_text(encoding="utf-8"))
SMPI, OPENMPI = _explanations(_DOCUMENT["smpi"]), _explanations(_DOCUMENT["openmpi"])
"""Why algorithms differ from SMPI's and from Open MPI's."""
NOT_IN_SMPI: Mapping[Key, str] = {_key(name): why for name, why in _DOCUMENT["not_in_smpi"].items()}
"""Algorithms that SMPI seems to have as well, with the reason why they cannot be compared."""
OPENMPI_NAMES: Mapping[Key, str] = {_key(name): theirs for name, theirs in _DOCUMENT["openmpi_names"].items()}
"""Open MPI's names of algorithms, where they differ from ours."""
OPENMPI_PARTS = {_key(name): [_key(part) for part in parts] for name, parts in _DOCUMENT["openmpi_parts"].items()}
"""Other collectives that an algorithm of Open MPI calls, with their algorithms, which are forced, too."""
