"""The search space of hierarchical collectives: the inputs and outputs of autotuning (Luo et al. 2020, tables I, II).

A configuration is a `Choice` of one of the algorithms made of tasks. Its `segment_bytes` is the segment size fs of the
tasks. Its `parameter` is an index in WITHIN and says how the processes of a node communicate. Its `limit_bytes` is the
size of the pieces in which a segment travels between nodes (ibs and irs; 0: the whole segment).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product

from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import UsageError
from collwise.common.grouping import grouped
from collwise.common.units import format_size
from collwise.simulator.schedule.tasks import BY_SOCKET
from collwise.simulator.timing import Case
from collwise.validation.times.choice import Choice
from collwise.validation.times.grid import case_of

PREFIX = "tasks_"
"""The prefix of the names of algorithms made of tasks; the name of the algorithm between nodes follows it."""

BETWEEN = ("chain", "binary", "binomial", "library")
"""The algorithms between nodes with which an allreduce has the steps sr, ir, ib and sb of equation (4)."""

WITHIN = ("point-to-point", "shared memory", "one-sided", "by socket")
"""The kinds of communication between the processes of a node, in the order of the parameter's values.

'by socket' adds a third level: all processes of a socket exchange messages, and one process of each socket exchanges
messages with the other sockets of the node.
"""

SIMULATED = (0, BY_SOCKET)
"""The indices in WITHIN of the kinds of communication that both engines can simulate."""

EXHAUSTIVE, PREDICT = "exhaustive", "predict"
"""The names of two searches: the one that the others are compared with, and the one that needs predictions."""

SEARCHES = (EXHAUSTIVE, "tasks", PREDICT)
"""The names of the searches (`tuning`)."""

SEGMENTS = 8
"""The number of segments of timed tasks. Figure 3 shows sbib(1) to sbib(8), whose times are stable from sbib(3) on."""

BUDGET = 0.02
"""The share of the exhaustive search's machine time that `predict` may take."""


@dataclass(frozen=True, order=True)
class Input:
    """An input of autotuning (table I): n nodes, p processes on each, and m bytes. The collective is in `Space`."""

    nodes: int
    processes_per_node: int
    message_bytes: int

    @property
    def procs(self) -> int:
        """The number of processes."""
        return self.nodes * self.processes_per_node

    @property
    def place(self) -> tuple[int, int]:
        """Nodes and processes per node."""
        return self.nodes, self.processes_per_node


@dataclass(frozen=True)
class Space:
    """The inputs for which a collective is tuned, and the values of the tuned parameters.

    `algorithms` are the algorithms between nodes, without PREFIX.
    """

    collective: str
    nodes: tuple[int, ...]
    processes_per_node: tuple[int, ...]
    message_bytes: tuple[int, ...]
    segment_bytes: tuple[int, ...]
    algorithms: tuple[str, ...]
    within: tuple[int, ...] = (0,)
    between_segment_bytes: tuple[int, ...] = (0,)

    def __post_init__(self) -> None:
        known = Catalogue.load().collective(self.collective).algorithms
        valid = [name for name in BETWEEN if PREFIX + name in known]
        if not valid:
            raise UsageError(f"{self.collective} has no task-based algorithms, and only these are tuned here")
        for name in self.algorithms:
            if name not in valid:
                raise UsageError(
                    f"{self.collective} has no tasks with '{name}' between nodes; valid: {', '.join(valid)}"
                )
        if min(self.message_bytes) < 1 or min(self.segment_bytes) < 1:
            raise UsageError("message and segment sizes of a hierarchical collective must be at least 1 byte")

    @property
    def inputs(self) -> tuple[Input, ...]:
        """Every input, in the order of nodes, then of processes per node, then of message sizes."""
        return tuple(Input(*entry) for entry in product(self.nodes, self.processes_per_node, self.message_bytes))

    def choices(self, message_bytes: int) -> tuple[Choice, ...]:
        """The distinct configurations for messages of this size.

        Segment sizes above the message size are left out, except the smallest one if all are above it. Pieces between
        nodes are smaller than a segment; MPI's own collectives between nodes cannot divide a segment into pieces.
        """
        algorithm = Catalogue.load().algorithm
        return tuple(
            Choice(f"{PREFIX}{name}", segment, within, between)
            for segment in self.segments_for(message_bytes)
            for name, within, between in product(self.algorithms, self.within, self.between_segment_bytes)
            if between < min(segment, message_bytes)
            and (between == 0 or algorithm(self.collective, PREFIX + name).limit_parameter)
        )

    def segments_for(self, message_bytes: int) -> tuple[int, ...]:
        """The segment sizes up to the message size; if all are larger, the smallest, which leaves the message whole."""
        return tuple(size for size in self.segment_bytes if size <= message_bytes) or (min(self.segment_bytes),)

    def cases(self) -> list[Case]:
        """Every configuration for every input: whole collectives that could be timed."""
        return [
            case_of(self.collective, choice, item.procs, item.message_bytes, item.processes_per_node)
            for item in self.inputs
            for choice in self.choices(item.message_bytes)
        ]


def input_of(case: Case) -> Input:
    """The input (nodes, processes per node, message size) of a case of a whole collective."""
    return Input(case.nodes, case.processes_per_node, case.message_bytes)


def segments_of(message_bytes: int, segment_bytes: int) -> int:
    """The number u of segments of a message."""
    return max(1, -(-message_bytes // segment_bytes))


def outputs(collective: str, choice: Choice) -> dict[str, str | int | None]:
    """The autotuned parameters of table II: sizes in bytes, None for a parameter that the configuration does not have.

    The module between nodes, imod, is 'rounds' for schedules of rounds that collwise progresses itself, or 'library'
    for the MPI library's own non-blocking collectives.
    """
    between = choice.algorithm.removeprefix(PREFIX)
    own = between != "library"
    reduces = collective in ("reduce", "allreduce")
    broadcasts = collective != "reduce"
    pieces = choice.limit_bytes or choice.segment_bytes
    return {
        "fs": choice.segment_bytes,
        "imod": "rounds" if own else "library",
        "smod": WITHIN[choice.parameter],
        "ibalg": between if own and broadcasts else None,
        "iralg": between if own and reduces else None,
        "ibs": pieces if own and broadcasts else None,
        "irs": pieces if own and reduces else None,
    }


def label(choice: Choice) -> str:
    """A configuration as text in a table or figure, such as 'binary, 64 KiB in 16 KiB, shared memory'."""
    pieces = f" in {format_size(choice.limit_bytes)}" if choice.limit_bytes else ""
    name = choice.algorithm.removeprefix(PREFIX)
    return f"{name}, {format_size(choice.segment_bytes)}{pieces}, {WITHIN[choice.parameter]}"


def by_input(cases: Iterable[Case]) -> dict[Input, list[Case]]:
    """The cases of each input."""
    return grouped(cases, input_of)
