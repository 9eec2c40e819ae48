"""What Open MPI's collectives do, as simulator/programs/openmpi_trace.c traces it, and ours, as they are recorded."""

from __future__ import annotations

import ctypes
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from collwise.algorithms.catalogue import Catalogue
from collwise.simulator.execution.launchers import parameter_options, run_program
from collwise.simulator.schedule.library import Schedule
from collwise.simulator.timing import Case
from collwise.validation.correctness.crosscheck import OPENMPI_PARTS, Key
from collwise.validation.libraries.openmpi_rules import OTHER_COMPONENTS

VERSION = "4.1"
BLOCK_BYTES = 4096
"""What a process has or gets of a message. Smaller pieces of memory are counts, requests and the like."""
ELEMENT_BYTES = 8

WAIT, REDUCE, COPY, ALLOCATE = 5, 10, 11, 12
"""The kinds of words of a recording (simulator/schedule/recorder.h)."""


@dataclass(frozen=True)
class Call:
    """A call of a collective that Open MPI runs by an algorithm of its own, and the case that is the same in ours.

    With number 0 Open MPI decides. `parts`: the parts are those of ours, too; otherwise Open MPI decides about them.
    """

    number: int
    case: Case
    parts: bool = True

    @property
    def key(self) -> Key:
        return self.case.collective, self.case.algorithm

    @property
    def elements(self) -> int:
        return self.case.message_bytes // (1 if self.case.collective == "bcast" else ELEMENT_BYTES)

    def lines(self) -> Iterator[str]:
        """What openmpi_trace is to do."""
        case, catalogue = self.case, Catalogue.load()
        parts = OPENMPI_PARTS.get(self.key, ()) if self.parts else ()
        forced = [(name, catalogue.algorithm(name, algorithm).openmpi[VERSION]) for name, algorithm in parts]
        forced += [(case.collective, self.number)] * bool(self.number)
        yield from (f"force {name} {number}" for name, number in forced)
        yield f"call {case.collective} {case.message_bytes} {case.algorithm} {case.segment_bytes} {case.parameter}"
        yield from (f"force {name} 0" for name, _ in forced)


@dataclass(frozen=True)
class Operation:
    """Something that a process does: 's' and 'r' start a message, 'w' waits, '+' reduces, '=' copies.

    `waits_for` are sends and receives, each by its kind and its place among those of its kind. A blocking one is two
    operations, of which the first one `blocks`.
    """

    kind: str
    bytes: int = 0
    peer: int = -1
    waits_for: frozenset[tuple[str, int]] = frozenset()
    blocks: bool = False


class Doing:
    """Collects what a process does, in order."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self._requests: list[tuple[str, int]] = []
        self._counts = {"s": 0, "r": 0}

    def message(self, kind: str, peer: int, size: int) -> None:
        """One of `kind` 's' or 'r', or a blocking one, 'S' or 'R'."""
        started = kind.lower()
        name = started, self._counts[started]
        self._counts[started] += 1
        self.operations.append(Operation(started, size, peer, blocks=kind.isupper()))
        if kind.isupper():
            self.operations.append(Operation("w", waits_for=frozenset({name})))
        else:
            self._requests.append(name)

    def wait(self, numbers: Sequence[int]) -> None:
        self.operations.append(Operation("w", waits_for=frozenset(self._requests[number] for number in numbers)))

    def work(self, kind: str, size: int) -> None:
        if size > 0:
            self.operations.append(Operation(kind, size))

    @property
    def requests(self) -> int:
        return len(self._requests)


@dataclass(frozen=True)
class Process:
    """What a process does of a call, whether its data is contiguous, and the memory that it allocates for data."""

    operations: tuple[Operation, ...]
    packs: bool
    scratch_bytes: int


class _Program(ctypes.Structure):
    _fields_ = (
        ("words", ctypes.POINTER(ctypes.c_uint64)),
        ("length", ctypes.c_size_t),
        ("is_cut", ctypes.c_int),
        ("requests", ctypes.c_uint32),
        ("strands", ctypes.c_uint32),
        ("strand_requests", ctypes.c_uint32),
        ("places", ctypes.c_void_p),
        ("count", ctypes.c_uint32),
        ("bits", ctypes.c_uint32),
    )


def recorded(case: Case) -> list[tuple[Operation, ...]]:
    """What each process does, by the recording of our code."""
    schedule = Schedule(case)
    made = schedule._made.contents
    programs = ctypes.cast(made.programs, ctypes.POINTER(_Program))
    return [
        _operations(programs[made.program_of[rank]], schedule, made.is_mirrored, rank) for rank in range(case.procs)
    ]


def _operations(program: _Program, schedule: Schedule, is_mirrored: bool, rank: int) -> tuple[Operation, ...]:
    doing = Doing()
    for word in program.words[: program.length]:
        kind, relative, size = word >> 60, word >> 32 & 0xFFFFFFF, word & 0xFFFFFFFF
        if kind == WAIT:
            first = doing.requests - size
            doing.wait(range(first, first + relative))
        elif kind in (REDUCE, COPY):
            doing.work("+" if kind == REDUCE else "=", int(schedule.sizes[size]))
        elif kind != ALLOCATE:
            peer = rank ^ relative if is_mirrored else (rank + relative) % schedule.procs
            doing.message("SRssr"[kind], peer, int(schedule.sizes[size]))
    return tuple(doing.operations)


def told(text: str) -> tuple[Operation, ...]:
    """The operations in a line of openmpi_trace."""
    doing = Doing()
    for word in text.split():
        if word[0] == "w":
            doing.wait([int(number) for number in word[1:].split(",")])
        elif word[0] in "+=":
            doing.work(word[0], int(word[1:]))
        else:
            peer, size = re.findall(r"\d+", word)
            doing.message(word[0], int(peer), int(size))
    return tuple(doing.operations)


@dataclass(frozen=True)
class Traced:
    """What each process does of a call in ours and in Open MPI's."""

    call: Call
    ours: tuple[Process, ...]
    theirs: tuple[Process, ...]


def traced(asked: Sequence[Call], folder: Path, parameters: Mapping[str, str] | None = None) -> list[Traced]:
    """Runs the calls, all on as many processes, with these parameters of Open MPI."""
    procs = asked[0].case.procs
    lines = folder / "lines"
    lines.write_text("".join(f"{line}\n" for call in asked for line in call.lines()), encoding="utf-8")
    settings = {"coll": OTHER_COMPONENTS, "coll_tuned_use_dynamic_rules": "1", "pml": "ob1", **(parameters or {})}
    run = run_program(
        "openmpi", "openmpi_trace", procs, [str(lines)], timeout_seconds=300, launcher_args=parameter_options(settings)
    )
    assert run.returncode == 0, run.problem
    written = [
        [json.loads(line) for line in lines.with_name(f"lines.{rank}").read_text(encoding="utf-8").splitlines()]
        for rank in range(procs)
    ]
    return [
        Traced(
            call,
            tuple(
                Process(operations, False, _scratch(each["our_memory"]))
                for operations, each in zip(recorded(call.case), of_call, strict=True)
            ),
            tuple(
                Process(told(each["theirs"]), "*" in each["theirs"], _scratch(each["their_memory"])) for each in of_call
            ),
        )
        for call, of_call in zip(asked, zip(*written, strict=True), strict=True)
    ]


def _scratch(allocated: Sequence[int]) -> int:
    return sum(size for size in allocated if size >= BLOCK_BYTES)


def sent_by(one: Process) -> list[tuple[int, int]]:
    """The receiver and the bytes of each message, in order."""
    return [(each.peer, each.bytes) for each in one.operations if each.kind == "s"]


def edges(processes: Sequence[Process], with_empty: bool = False) -> dict[tuple[int, int], tuple[int, int]]:
    """Messages and bytes by source and destination, also of messages without bytes if `with_empty`."""
    found: dict[tuple[int, int], tuple[int, int]] = {}
    for source, one in enumerate(processes):
        for peer, size in sent_by(one):
            if size or with_empty:
                messages, whole = found.get((source, peer), (0, 0))
                found[source, peer] = (messages + 1, whole + size)
    return found
