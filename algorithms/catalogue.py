"""The catalogue of collectives and algorithms (catalogue.toml) as Python objects."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from collwise.algorithms.catalogue_check import (
    COUNT_PARAMETERS,
    LIMIT_PARAMETERS,
    PART_PARAMETERS,
    CatalogueError,
    read_catalogue,
)
from collwise.common.errors import UsageError, located, unknown_name
from collwise.common.units import format_size, parse_size

# Requirements on the number of processes: a check, and the text that is shown if the check fails.
_CONDITIONS: Mapping[str, tuple[Callable[[int], bool], str]] = {
    "power_of_two": (lambda procs: procs & (procs - 1) == 0, "needs P to be a power of two"),
    "even": (lambda procs: procs % 2 == 0, "needs an even P"),
}

CATALOGUE_PATH = Path(__file__).with_name("catalogue.toml")
_BLOCKS = {"gather", "scatter", "allgather", "alltoall", "reduce_scatter_block"}
REDUCTIONS = {"reduce", "allreduce", "reduce_scatter", "reduce_scatter_block", "scan", "exscan"}
"""The collectives that combine elements: doubles, or bytes if a message is no whole number of doubles."""

GUIDELINES = "guidelines"  # this name, given instead of algorithms' names, stands for all mock-ups of a collective
_INTEGER_BYTES = 4
_CHUNK_BYTES = 64
ELEMENT_BYTES = 8  # of a double
_TOO_LONG = 2**31


def elements(message_bytes: int) -> int:
    """The number of elements of a reduced message: doubles if its size is a multiple of 8 bytes, otherwise bytes."""
    return message_bytes // ELEMENT_BYTES if message_bytes % ELEMENT_BYTES == 0 else message_bytes


@dataclass(frozen=True)
class Memory:
    """The bytes of a mock-up's two buffers: for messages, and for counts and displacements (integers)."""

    message_bytes: int
    integer_bytes: int


USUAL_BUFFERS = Memory(128 << 20, 1 << 20)
"""The default sizes of the two buffers, as in collwise.h (COLLWISE_MESSAGE_BUFFER_BYTES)."""
BUFFER_VARIABLES = ("COLLWISE_MESSAGE_BUFFER", "COLLWISE_INTEGER_BUFFER")
"""The environment variables that set the sizes of the two buffers; libcollwise reads the same variables."""


def buffers() -> Memory:
    """The sizes of the buffers that mock-ups may use, as the environment sets them."""
    sizes = []
    for name, usual in zip(BUFFER_VARIABLES, (USUAL_BUFFERS.message_bytes, USUAL_BUFFERS.integer_bytes), strict=True):
        with located(name):
            sizes.append(parse_size(os.environ.get(name) or str(usual)))
    return Memory(*sizes)


@dataclass(frozen=True)
class Algorithm:
    """One algorithm. Its fields are the keys of catalogue.toml, which explains them."""

    collective: str
    name: str
    title: str
    function: str
    topology: str
    parameters: tuple[str, ...]
    requires: tuple[str, ...]
    selectable: bool
    openmpi: Mapping[str, int]
    reference: str
    defaults: Mapping[str, int] = field(default_factory=dict)
    smpi: str = ""
    smpi_segment_bytes: int = 0
    by_node: bool = False
    real_mpi_only: bool = False
    mpich: str = ""
    intel: int | None = None
    mvapich2: int | None = None
    ucc: str = ""
    pgmpi: str = ""
    guideline: str = ""
    calls: tuple[str, ...] = ()
    message_memory: str = "0"
    integer_memory: str = "0"

    def name_in(self, library: str) -> str:
        """The name or id that `library`, one of LIBRARIES, gives this algorithm; empty if the catalogue lists none."""
        name = getattr(self, library)
        return "" if name is None else str(name)

    @property
    def part_parameter(self) -> str:
        """The name of the size that can be chosen (`segment_bytes`, `first_bytes` or `bound_bytes`), or empty."""
        return next((name for name in self.parameters if name in PART_PARAMETERS), "")

    @property
    def count_parameter(self) -> str:
        """The name of the count to be chosen (`chains`, `radix`, `max_requests`, `within`, `leaders`), or empty."""
        return next((name for name in self.parameters if name in COUNT_PARAMETERS), "")

    @property
    def limit_parameter(self) -> str:
        """The name of the second size that can be chosen (`limit_bytes` or `between_segment_bytes`), or empty."""
        return next((name for name in self.parameters if name in LIMIT_PARAMETERS), "")

    @property
    def default_count(self) -> int:
        """The default of `count_parameter`, 0 if there is none."""
        return self.defaults.get(self.count_parameter, 0)

    def named_parameters(self, part_bytes: int, count: int = 0, limit_bytes: int = 0) -> dict[str, int]:
        """The parameters of a choice that are not 0 (the default), under the names that this algorithm gives them."""
        values = {self.part_parameter: part_bytes, self.limit_parameter: limit_bytes, self.count_parameter: count}
        return {name: value for name, value in values.items() if name in self.parameters and value}

    @property
    def pipelined(self) -> bool:
        """True if the message is cut into segments of a size that can be chosen."""
        return "segment_bytes" in self.parameters

    @property
    def does_several_at_once(self) -> bool:
        """True if a process does several operations at once, each of which waits only for its own messages."""
        return self.name.startswith(("tasks_", "multi_leader_"))

    @property
    def bounded(self) -> bool:
        """True if the algorithm splits messages only when it is given a bound on the size of the parts."""
        return "bound_bytes" in self.parameters

    @property
    def bound_to_procs(self) -> bool:
        """True if there are process counts on which the algorithm cannot run."""
        return any(requirement in _CONDITIONS for requirement in self.requires)

    def objection(self, procs: int, message_bytes: int = 0) -> str:
        """The reason why the algorithm cannot run on P processes ('needs an even P'), or empty.

        A mock-up cannot run on messages for which its buffers (`buffers`) are too small.
        """
        conditions = [_CONDITIONS[requirement] for requirement in self.requires if requirement in _CONDITIONS]
        reasons = [text for holds, text in conditions if not holds(procs)]
        if self.guideline:
            whole = message_bytes * (procs if self.collective in _BLOCKS else 1)
            if whole + procs * ELEMENT_BYTES >= _TOO_LONG:
                reasons.append("needs messages of less than 2 GiB in all")
            needed, given = self.extra_memory(procs, message_bytes), buffers()
            for which in ("message", "integer"):
                most, has = getattr(needed, f"{which}_bytes"), getattr(given, f"{which}_bytes")
                if most > has:
                    reasons.append(f"needs {format_size(most)} of its {which} buffer, which has {format_size(has)}")
        return next(iter(reasons), "")

    @property
    def reduces(self) -> bool:
        """True if the algorithm combines elements."""
        return self.collective in REDUCTIONS

    def extra_memory(self, procs: int, message_bytes: int, element_bytes: int | None = None) -> Memory:
        """The memory that a mock-up takes besides the program's buffers, on the process that needs most.

        `element_bytes` is the size of a reduced element, by default 8 if the message is a whole number of doubles, else
        1.
        """
        element = element_bytes or (ELEMENT_BYTES if message_bytes % ELEMENT_BYTES == 0 else 1) if self.reduces else 1
        n = message_bytes * (procs if self.collective in ("scatter", "reduce_scatter_block") else 1)
        terms = {
            "n": n,
            "P": procs,
            "I": _INTEGER_BYTES,
            "c": -n % (procs * element),
            "C": max(1, _CHUNK_BYTES // element) * element,
        }
        # This eval is safe, since the check of the catalogue lets only arithmetic on these terms pass.
        formulas = (self.message_memory, self.integer_memory)
        return Memory(*(int(eval(formula, {"__builtins__": {}}, terms)) for formula in formulas))


@dataclass(frozen=True)
class Collective:
    """One collective with its algorithms, in catalogue order."""

    name: str
    title: str
    message_bytes: str
    openmpi_collective: int
    openmpi_message: str
    algorithms: Mapping[str, Algorithm]

    @property
    def selectable(self) -> tuple[str, ...]:
        """Names of the algorithms that can be chosen."""
        return tuple(name for name, algorithm in self.algorithms.items() if algorithm.selectable)

    @property
    def mock_ups(self) -> tuple[str, ...]:
        """Names of the mock-ups of performance guidelines."""
        return tuple(name for name, algorithm in self.algorithms.items() if algorithm.guideline)

    @property
    def by_node(self) -> tuple[str, ...]:
        """Names of the algorithms that treat the processes of one node differently and can be simulated."""
        every = self.algorithms.items()
        return tuple(name for name, algorithm in every if algorithm.by_node and not algorithm.real_mpi_only)


@dataclass(frozen=True)
class Catalogue:
    """All collectives by name."""

    collectives: Mapping[str, Collective]

    @staticmethod
    @cache
    def load() -> Catalogue:
        """The project's catalogue. Raises UsageError for the first problem in the file."""
        try:
            document = read_catalogue(CATALOGUE_PATH)
        except CatalogueError as problem:
            raise UsageError(str(problem)) from None
        return Catalogue({name: _collective(name, entry) for name, entry in document.items()})

    def collective(self, name: str) -> Collective:
        """The collective of that name. Raises UsageError, with similar names, if there is none."""
        if name not in self.collectives:
            raise unknown_name("collective", name, self.collectives)
        return self.collectives[name]

    def our_name(self, name: str) -> str:
        """The name of a collective without MPI's spelling: allreduce for MPI_Allreduce; an unknown name is kept."""
        plain = name.lower().removeprefix("mpi_")
        return plain if plain in self.collectives else name

    def find(self, collective: str, name: str) -> Algorithm | None:
        """The algorithm of that name; None if the catalogue does not have it."""
        known = self.collectives.get(collective)
        return None if known is None else known.algorithms.get(name)

    def algorithms(self, collective: str | None = None) -> list[Algorithm]:
        """All algorithms of one collective, or of all collectives."""
        entries = self.collectives.values() if collective is None else [self.collective(collective)]
        return [algorithm for entry in entries for algorithm in entry.algorithms.values()]

    def algorithm(self, collective: str, name: str) -> Algorithm:
        """The algorithm of that name. Raises UsageError, with similar names, if there is none."""
        known = self.collective(collective).algorithms
        if name not in known:
            same = [one.name for one in known.values() if one.smpi.endswith(f"_{name}")]
            hints = [*(f"SMPI's {name} is '{ours}' here" for ours in same), "see 'collwise show algorithms'"]
            raise unknown_name(f"{collective} algorithm", name, known, "; ".join(hints))
        return known[name]


def _collective(name: str, entry: Mapping[str, Any]) -> Collective:
    algorithms = {}
    for item in entry["algorithm"]:
        lists = {key: tuple(item.get(key, ())) for key in ("parameters", "requires", "calls")}
        algorithms[item["name"]] = Algorithm(collective=name, **{**item, **lists})
    described = {field: entry[field] for field in ("title", "message_bytes", "openmpi_collective", "openmpi_message")}
    return Collective(name=name, algorithms=algorithms, **described)
