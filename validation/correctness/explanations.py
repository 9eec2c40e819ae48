"""Known differences of SMPI's and Open MPI's algorithms from ours, with the reasons for the differences.

crosscheck.toml lists them under 'collective algorithm'.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Key = tuple[str, str]
"""A collective and an algorithm."""


@dataclass(frozen=True)
class Explanation:
    """The reason why a library's algorithm differs from ours, and the range of our time divided by the library's.

    `by_default` says whether the algorithms differ for the default process counts and sizes.
    """

    why: str
    min_ratio: float = 0.0
    max_ratio: float = float("inf")
    by_default: bool = True


@dataclass(frozen=True)
class CodeDifference:
    """A difference between Open MPI 4.1's code of an algorithm and ours. The root is rank 0.

    `differs` has words that crosscheck.toml explains. `where` says which calls differ; if it is empty, all calls do.
    """

    differs: tuple[str, ...]
    why: str
    where: str = ""

    @property
    def text(self) -> str:
        """The difference as text: for example 'scratch, copies, where P is no power of two: ' and `why`."""
        return f"{', '.join(self.differs)}{', where ' * bool(self.where)}{self.where}: {self.why}"


def _key(name: str) -> Key:
    collective, algorithm = name.split()
    return collective, algorithm


def _code_differences(entries: list[dict[str, Any]]) -> Mapping[Key, Sequence[CodeDifference]]:
    found: dict[Key, list[CodeDifference]] = {}
    for entry in entries:
        names, differs = entry.pop("algorithms"), tuple(entry.pop("differs"))
        for name in names:
            found.setdefault(_key(name), []).append(CodeDifference(differs, **entry))
    return found


def _explanations(entries: list[dict[str, Any]]) -> Mapping[Key, Explanation]:
    return {_key(name): Explanation(**entry) for entry in entries for name in entry.pop("algorithms")}


_DOCUMENT = tomllib.loads(Path(__file__).with_name("crosscheck.toml").read_text(encoding="utf-8"))
SMPI, OPENMPI = _explanations(_DOCUMENT["smpi"]), _explanations(_DOCUMENT["openmpi"])
"""The reasons why algorithms differ from SMPI's and from Open MPI's."""
OPENMPI_CODE = _code_differences(_DOCUMENT["openmpi_code"])
"""The differences of Open MPI's code from our code of the same algorithm."""
PARTS = "parts"
"""The word in `differs` if an algorithm calls other collectives, for which Open MPI itself decides the algorithms."""
NOT_IN_SMPI: Mapping[Key, str] = {_key(name): why for name, why in _DOCUMENT["not_in_smpi"].items()}
"""Algorithms that SMPI seems to have as well, with the reason why they cannot be compared."""
OPENMPI_NAMES: Mapping[Key, str] = {_key(name): theirs for name, theirs in _DOCUMENT["openmpi_names"].items()}
"""Open MPI's names of algorithms, where they differ from ours."""
OPENMPI_PARTS = {_key(name): [_key(part) for part in parts] for name, parts in _DOCUMENT["openmpi_parts"].items()}
"""The collectives that an algorithm of Open MPI calls, each with the algorithm that is forced for it."""
