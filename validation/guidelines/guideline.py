"""The performance guidelines GL1 to GL22 of Hunold & Carpen-Amarie 2018, section 3.1.

A guideline says that a collective is not slower than a mock-up, which is other collectives one after another. The
catalogue has the mock-ups as algorithms of their collective.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from collwise.algorithms.catalogue import Algorithm, Catalogue

REDUCE_LOCAL = "reduce_local"
"""The local part of GL20, which is no collective."""


@dataclass(frozen=True)
class Part:
    """A collective of a mock-up. `message_bytes` turns P and the guideline's message size into those of the part."""

    collective: str
    message_bytes: Callable[[int, int], int]


@dataclass(frozen=True)
class Guideline:
    """A guideline: the collective on its left side, and the parts of the mock-up on its right side, in their order."""

    name: str
    collective: str
    parts: tuple[Part, ...]

    @property
    def label(self) -> str:
        """'gather + bcast'."""
        return " + ".join(part.collective for part in self.parts)

    @property
    def profile_name(self) -> str:
        """The mock-up's name in PGMPITuneLib: 'allgather_as_gather_bcast'."""
        words = [part.collective.replace("_", "") for part in self.parts]
        return "_".join([self.collective.replace("_", ""), "as", *words])

    @property
    def mockup(self) -> Algorithm:
        """The algorithm of the catalogue."""
        return next(one for one in Catalogue.load().algorithms(self.collective) if one.guideline == self.name)


def _whole(procs: int, message_bytes: int) -> int:
    return message_bytes


def _times(procs: int, message_bytes: int) -> int:
    return procs * message_bytes


def _share(procs: int, message_bytes: int) -> int:
    """The block of a process, rounded up: mock-ups pad the message."""
    return -(-message_bytes // procs)


_ROWS: Sequence[tuple[str, Sequence[tuple[str, Callable[[int, int], int]]]]] = (
    ("allgather", (("gather", _whole), ("bcast", _times))),
    ("allgather", (("alltoall", _whole),)),
    ("allgather", (("allreduce", _times),)),
    ("allgather", (("allgatherv", _whole),)),
    ("allreduce", (("reduce", _whole), ("bcast", _whole))),
    ("allreduce", (("reduce_scatter_block", _share), ("allgather", _share))),
    ("allreduce", (("reduce_scatter", _whole), ("allgatherv", _share))),
    ("alltoall", (("alltoallv", _whole),)),
    ("bcast", (("allgatherv", _whole),)),
    ("bcast", (("scatter", _share), ("allgather", _share))),
    ("gather", (("allgather", _whole),)),
    ("gather", (("gatherv", _whole),)),
    ("gather", (("reduce", _times),)),
    ("reduce", (("allreduce", _whole),)),
    ("reduce", (("reduce_scatter_block", _share), ("gather", _share))),
    ("reduce", (("reduce_scatter", _whole), ("gatherv", _share))),
    ("reduce_scatter_block", (("reduce", _times), ("scatter", _whole))),
    ("reduce_scatter_block", (("reduce_scatter", _times),)),
    ("reduce_scatter_block", (("allreduce", _times),)),
    ("scan", (("exscan", _whole), (REDUCE_LOCAL, _whole))),
    ("scatter", (("bcast", _times),)),
    ("scatter", (("scatterv", _whole),)),
)
"""The collective and the parts of each guideline in its order.

Message sizes are as the catalogue defines them: whole vectors, or one process's block.
"""

GUIDELINES = {
    f"GL{number}": Guideline(f"GL{number}", collective, tuple(Part(*part) for part in parts))
    for number, (collective, parts) in enumerate(_ROWS, 1)
}
"""All guidelines by name."""

COLLECTIVES = tuple(dict.fromkeys(one.collective for one in GUIDELINES.values()))
"""The collectives that have guidelines."""


def guidelines_of(collective: str) -> tuple[Guideline, ...]:
    """The guidelines with this collective on their left side."""
    return tuple(one for one in GUIDELINES.values() if one.collective == collective)
