"""The performance guidelines GL1 to GL22 of Hunold & Carpen-Amarie 2018, section 3.1, from guidelines.toml.

A guideline says that a collective is not slower than a mock-up, which runs other collectives one after another. The
mock-ups are algorithms of the catalogue, each under the collective that it replaces.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from collwise.algorithms.catalogue import Algorithm, Catalogue

REDUCE_LOCAL = "reduce_local"
"""The local part of GL20, which is not a collective."""


@dataclass(frozen=True)
class MockUpPart:
    """A collective that a mock-up runs. `message_bytes` computes its message size from P and the call's size."""

    collective: str
    message_bytes: Callable[[int, int], int]


@dataclass(frozen=True)
class Guideline:
    """A guideline: a collective on the left side; on the right side, the parts of its mock-up in the order they run."""

    name: str
    collective: str
    parts: tuple[MockUpPart, ...]

    @property
    def label(self) -> str:
        """The parts of the mock-up as text, such as 'gather + bcast'."""
        return " + ".join(part.collective for part in self.parts)

    @property
    def profile_name(self) -> str:
        """The mock-up's name in PGMPITuneLib: 'allgather_as_gather_bcast'."""
        words = [part.collective.replace("_", "") for part in self.parts]
        return "_".join([self.collective.replace("_", ""), "as", *words])

    @property
    def mockup(self) -> Algorithm:
        """The mock-up, which is an algorithm of the catalogue."""
        return next(
            algorithm for algorithm in Catalogue.load().algorithms(self.collective) if algorithm.guideline == self.name
        )


_SIZES: Mapping[str, Callable[[int, int], int]] = {
    "same": lambda procs, message_bytes: message_bytes,
    "all": lambda procs, message_bytes: procs * message_bytes,
    "share": lambda procs, message_bytes: -(-message_bytes // procs),
}
_TABLE = tomllib.loads(Path(__file__).with_name("guidelines.toml").read_text(encoding="utf-8"))

GUIDELINES = {
    name: Guideline(
        name, row["collective"], tuple(MockUpPart(part, _SIZES[size]) for part, size in row["parts"].items())
    )
    for name, row in _TABLE.items()
}
"""All guidelines by name."""

COLLECTIVES = tuple(dict.fromkeys(guideline.collective for guideline in GUIDELINES.values()))
"""The collectives that have guidelines."""


def guidelines_of(collective: str) -> tuple[Guideline, ...]:
    """The guidelines with this collective on their left side."""
    return tuple(guideline for guideline in GUIDELINES.values() if guideline.collective == collective)
