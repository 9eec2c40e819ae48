"""The schedule engine's C library: recording schedules, and playing them on a network."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from ctypes import POINTER, c_char, c_char_p, c_double, c_int, c_int32, c_size_t, c_uint32, c_uint64, c_void_p
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from collwise.algorithms.catalogue import Memory
from collwise.common.errors import CollwiseError, UsageError
from collwise.common.folders import builds_folder
from collwise.simulator.execution.installations import Build
from collwise.simulator.schedule.tables import EAGER, RENDEZVOUS, Doubles, Network, NetworkTables, address
from collwise.simulator.timing import Case

PROBLEM_BYTES = 200  # the size of the buffer for the library's message about a problem


class _Schedule(ctypes.Structure):
    _fields_ = (
        ("procs", c_int),
        ("program_of", POINTER(c_uint32)),
        ("programs", c_void_p),
        ("program_count", c_size_t),
        ("sizes", POINTER(c_uint64)),
        ("size_count", c_size_t),
        ("messages", c_uint64),
        ("bytes", c_uint64),
        ("extra_message_bytes", c_size_t),
        ("extra_integer_bytes", c_size_t),
        ("is_begin", c_int),
        ("has_synchronous", c_int),
        ("has_strands", c_int),
        ("has_windows", c_int),
        ("is_mirrored", c_int),
        ("blocks", c_void_p),
    )


@dataclass(frozen=True)
class LibraryDecisions:
    """The decisions of an MPI library, with their name and digest.

    `decide` takes a collective, P and the message bytes, and returns the case that does what the library runs for such
    a call. It raises UsageError if the library's choice is not known.
    """

    name: str
    digest: str
    decide: Callable[[str, int, int], Case]

    @property
    def details(self) -> dict[str, str]:
        """The additional facts in the configuration of times of mock-ups."""
        return {"library_decisions": f"{self.name} {self.digest}"}


class _Choice(ctypes.Structure):
    _fields_ = (("algorithm", c_char * 64), ("part_bytes", c_uint64), ("limit_bytes", c_uint64), ("count", c_int))


# The type schedule_library (simulator/schedule/recorder.h).
_ASK = ctypes.CFUNCTYPE(c_int, c_char_p, c_int, c_uint64, POINTER(_Choice))


class _Asked:
    """The decisions as a C function; `problem` is the error that `decide` raised, if any."""

    def __init__(self, decisions: LibraryDecisions | None) -> None:
        self.problem: CollwiseError | None = None
        self._decisions = decisions
        self.function = _ASK() if decisions is None else _ASK(self._decide)

    def _decide(self, collective: bytes, procs: int, message_bytes: int, chosen: ctypes._Pointer[_Choice]) -> int:
        assert self._decisions is not None
        try:
            case = self._decisions.decide(collective.decode(), procs, message_bytes)
        except CollwiseError as problem:
            self.problem = problem
            return 0
        chosen[0] = _Choice(case.algorithm.encode(), case.segment_bytes, case.limit_bytes, case.parameter)
        return 1


class _Case(ctypes.Structure):
    _fields_ = (
        ("experiment", c_char_p),
        ("collective", c_char_p),
        ("algorithm", c_char_p),
        ("procs", c_int),
        ("root", c_int),
        ("message_bytes", c_uint64),
        ("part_bytes", c_uint64),
        ("gather_bytes", c_uint64),
        ("limit_bytes", c_uint64),
        ("count", c_int),
        ("node_of", c_void_p),
        ("socket_of", c_void_p),
        ("library", _ASK),
    )


class _Result(ctypes.Structure):
    _fields_ = (
        ("seconds", c_double),
        ("root_seconds", c_double),
        ("lost_packets", c_uint64),
        ("time_outs", c_uint64),
        ("is_longer", c_int),
        ("is_open", c_int),
        ("failed", c_int),
        ("problem", c_char * 160),
    )


class _Trace(ctypes.Structure):
    _fields_ = (
        ("spans", c_void_p),
        ("count", c_size_t),
        ("room", c_size_t),
        ("last", c_int32),
        ("of_period", c_int),
    )


class _Log(ctypes.Structure):
    _fields_ = (("items", c_void_p), ("count", c_size_t), ("room", c_size_t))


COMPARISONS = np.dtype([("one", np.float64), ("other", np.float64), ("entity", np.uint32), ("kind", np.uint32)])
"""A comparison of two times (`schedule_comparison` in simulator/schedule/engine.h)."""

SPANS = np.dtype(
    [
        ("begin_seconds", np.float64),
        ("end_seconds", np.float64),
        ("before", np.int32),
        ("process", np.int32),
        ("peer", np.int32),
        ("size", np.uint32),
        ("spent", np.uint32),
        ("is_local", np.uint16),
        ("waits_for", np.uint16),
    ]
)
"""A span of time of a process (`schedule_span` in simulator/schedule/engine.h)."""

SENDING, ON_WAY, LEAVING, IN_GAP, TAKING_IN, RECEIVING = range(6)
REDUCING, COPYING, ALLOCATING, MOVING, ANSWERING, SEEING = range(6, 12)
"""The activities that a span can be spent on (`schedule_spent` in simulator/schedule/engine.h)."""

PORT, MEMORY, SOCKETS, LINK = range(4)
"""The resources that messages wait for (`schedule_resource` in simulator/schedule/engine.h)."""


@dataclass(frozen=True)
class Played:
    """The times at which all processes of a schedule, the root, and each single process are done, in seconds.

    With finite buffers, `lost_packets` counts the packets that switches lost, `time_outs` the retransmission time-outs.
    """

    seconds: float
    root_seconds: float
    ends: Doubles
    lost_packets: int = 0
    time_outs: int = 0


@dataclass(frozen=True)
class Trace:
    """A record of how processes spent their time until `seconds`: `spans` of the type SPANS, and the critical path.

    `critical` has the positions, in `spans`, of the critical path, whose spans follow one another without a gap from
    the start of the run until the last process ends. Spans give a size as an index i; `sizes[i]` is that size in bytes.
    """

    spans: npt.NDArray[np.void]
    critical: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.uint64]
    seconds: float
    lost_packets: int = 0
    time_outs: int = 0

    @property
    def path(self) -> npt.NDArray[np.void]:
        """The spans of the critical path, in their order."""
        return self.spans[self.critical]

    def bytes_between(self, places: npt.NDArray[np.integer]) -> int:
        """The bytes of all messages whose sender and receiver are at different `places`, such as nodes or switches."""
        sent = self.spans[self.spans["spent"] == ON_WAY]
        apart = places[sent["process"]] != places[sent["peer"]]
        return int(self.sizes[sent["size"][apart]].sum())


NodeOf = Sequence[int] | Sequence[tuple[int, int]] | npt.NDArray[np.integer] | None


class Schedule:
    """The operations of every process of a case: sends, receives, waits and computation, recorded from the C code.

    `messages` and `message_bytes` are the numbers of messages and of bytes that all processes send together; `programs`
    is the number of distinct programs; `sizes` has the sizes of messages and local work in bytes, one for each column
    of a network's tables.
    """

    def __init__(
        self,
        case: Case,
        node_of: NodeOf = None,
        library: LibraryDecisions | None = None,
        *,
        root_alone: bool = False,
        max_words: int = 0,
    ) -> None:
        """Records a case. Raises UsageError if the algorithm cannot run the case.

        `node_of` is the node of each process, or its node and socket, for algorithms that split communicators by these;
        by default processes are placed by blocks. `library` says what runs for the collectives that a mock-up calls.
        With `root_alone`, only the root and the process after it are recorded, for `own_seconds`; recording fails if
        these two need information from other processes. With `max_words`, the recording of each process ends after
        that many operations, for `begins_longer`.
        """
        self._library = load_library()
        nodes, sockets = _placed(case, node_of)
        asked = _Asked(library)
        names = (name.encode() for name in (case.experiment, case.collective, case.algorithm))
        sizes = (case.message_bytes, case.segment_bytes, case.gather_bytes, case.limit_bytes)
        places = (None if array is None else address(array) for array in (nodes, sockets))
        wanted = _Case(*names, case.procs, case.root, *sizes, case.parameter, *places, asked.function)
        problem = ctypes.create_string_buffer(PROBLEM_BYTES)
        if max_words > 0:
            self._made = self._library.schedule_record_begin(wanted, max_words, problem, PROBLEM_BYTES)
        else:
            record = self._library.schedule_record_root if root_alone else self._library.schedule_record
            self._made = record(wanted, problem, PROBLEM_BYTES)
        if not self._made:
            raise asked.problem or UsageError(problem.value.decode())
        made = self._made.contents
        self.root, self.procs = case.root, case.procs
        self.messages, self.message_bytes, self.programs = made.messages, made.bytes, made.program_count
        count = made.size_count
        self.sizes = np.ctypeslib.as_array(made.sizes, (count,)).copy() if count else np.zeros(0, np.uint64)

    def __del__(self) -> None:
        if getattr(self, "_made", None):
            self._library.schedule_free(self._made)

    @property
    def address(self) -> int:
        """The address of the schedule in C, valid as long as this object."""
        return ctypes.addressof(self._made.contents)

    @property
    def extra_memory(self) -> Memory:
        """The most memory that a process of a mock-up takes besides the program's buffers."""
        made = self._made.contents
        return Memory(made.extra_message_bytes, made.extra_integer_bytes)

    @property
    def memory_bytes(self) -> int:
        """The memory that the schedule takes."""
        return int(self._library.schedule_memory(self._made))

    def equals(self, other: Schedule) -> bool:
        """True if all processes do the same in both schedules, with the same sizes; the times are then equal, too."""
        return bool(self._library.schedule_equal(self._made, other._made))

    def own_seconds(self, network: NetworkTables) -> float:
        """A lower bound on the time of a play, from the root and the process after it alone.

        The bound is the longest time that one of the two spends on overheads and local work, or that the messages of
        one of them take at its node's ports.
        """
        ranks = (self.root, (self.root + 1) % self.procs)
        return max(self._library.schedule_own_seconds(self._made, network.structure, rank) for rank in ranks)

    def play(self, network: NetworkTables, trace: _Trace | None = None, log: _Log | None = None) -> Played:
        """The times on a network. Raises CollwiseError if processes wait forever or messages do not match."""
        ends = np.zeros(self.procs)
        result = self._library.schedule_play(self._made, network.structure, self.root, address(ends), trace, log)
        return _played(result, ends)

    def play_within(self, network: NetworkTables, max_seconds: float) -> Played | None:
        """The times on a network; None as soon as it is clear that they exceed `max_seconds`.

        On networks with finite buffers every schedule is played to its end, and longer times are returned as well.
        Raises as `play` does.
        """
        ends = np.zeros(self.procs)
        play = self._library.schedule_play_within
        result = play(self._made, network.structure, self.root, address(ends), max_seconds)
        return None if result.is_longer else _played(result, ends)

    def begins_longer(self, network: NetworkTables, max_seconds: float) -> float:
        """Plays a schedule recorded with `max_words`. Returns infinity if the whole schedule exceeds `max_seconds`.

        Otherwise returns the time at which the first process has no more operations, or 0 if that is not known.
        """
        result = self._library.schedule_play_within(self._made, network.structure, self.root, None, max_seconds)
        if result.is_longer:
            return math.inf
        return float(result.seconds) if result.is_open else 0.0

    def play_many(self, networks: Sequence[NetworkTables]) -> list[Played]:
        """The times on several networks, as `play` finds them on each.

        Consecutive point-to-point models with the same nodes and protocols are played in one pass. Raises as `play`
        does.
        """
        count = len(networks)
        pointers = (POINTER(Network) * count)(*(ctypes.pointer(network.structure) for network in networks))
        ends, results = np.zeros((count, self.procs)), (_Result * count)()
        self._library.schedule_play_many(self._made, pointers, count, self.root, address(ends), results)
        return [_played(result, row) for result, row in zip(results, ends, strict=True)]

    def play_compared(self, network: NetworkTables) -> tuple[Played, npt.NDArray[np.void]]:
        """The times on a network, and all comparisons that decided them. Raises as `play` does."""
        log = _Log()
        try:
            played = self.play(network, log=log)
            text = ctypes.string_at(log.items, log.count * COMPARISONS.itemsize) if log.count else b""
        finally:
            self._library.schedule_log_free(log)
        return played, np.frombuffer(text, dtype=COMPARISONS)

    def rounds(self, synchronous_sends: bool = False) -> int:
        """The depth of the schedule: the length of the longest chain of messages, each of which needs the one before.

        With synchronous sends, raises CollwiseError if the processes then wait forever.
        """
        protocol = RENDEZVOUS if synchronous_sends else EAGER
        one_second_each = NetworkTables.of_model(self.procs, self.sizes, latency_seconds=1.0, protocol=protocol)
        return round(self.play(one_second_each).seconds)

    def trace(self, network: NetworkTables, of_period: bool = False) -> Trace:
        """The trace on a network. Raises as `play` does.

        With `of_period`, the trace contains only those processes that are played without a trace, since all others do
        the same as one of them; peers are then numbered modulo the number of processes in the trace.
        """
        trace = _Trace(of_period=of_period)
        try:
            played = self.play(network, trace)
            at = int(trace.last)
            text = ctypes.string_at(trace.spans, trace.count * SPANS.itemsize) if trace.count else b""
        finally:
            self._library.schedule_trace_free(trace)
        spans = np.frombuffer(text, dtype=SPANS)
        path = []
        while at >= 0:
            path.append(at)
            at = int(spans["before"][at])
        critical = np.array(path[::-1], dtype=np.int64)
        return Trace(spans, critical, self.sizes, played.seconds, played.lost_packets, played.time_outs)


@contextmanager
def ended_by(flag: ctypes.c_int) -> Iterator[None]:
    """Recordings and plays of this thread raise CollwiseError soon after another thread sets the flag to 1."""
    library = load_library()
    library.schedule_obey(ctypes.addressof(flag))
    try:
        yield
    finally:
        library.schedule_obey(None)


def _placed(case: Case, node_of: NodeOf) -> tuple[npt.NDArray[np.int32] | None, npt.NDArray[np.int32] | None]:
    """The nodes of processes (None: each has a node of its own), and their sockets (None: each node is one socket)."""
    if node_of is None:
        alone = case.processes_per_node == 1
        return None if alone else np.arange(case.procs, dtype=np.int32) // np.int32(case.processes_per_node), None
    placed = np.asarray(node_of, dtype=np.int32)
    if len(placed) != case.procs or placed.ndim > 2:
        raise UsageError(f"node_of places {len(placed)} processes, not {case.procs}; give a node for each process")
    if placed.ndim == 1:
        return np.ascontiguousarray(placed), None
    nodes, sockets = np.ascontiguousarray(placed.T)
    return nodes, sockets


def _played(result: _Result, ends: Doubles) -> Played:
    """The times that the engine found. Raises CollwiseError if it found a problem."""
    if result.failed:
        raise CollwiseError(result.problem.decode())
    return Played(result.seconds, result.root_seconds, ends, result.lost_packets, result.time_outs)


def schedule_build() -> Build:
    """The build of the C library."""
    return Build(builds_folder() / "schedule", "none", Path("gcc"), "the schedule engine")


def library_file() -> Path:
    """The file of the C library. Raises as `Build.file` does."""
    return schedule_build().file("libschedule.so")


# The structures that C shares with this module, in the order of layout.c.
_STRUCTURES: Sequence[type[ctypes.Structure] | np.dtype[Any]] = (
    *(_Schedule, _Choice, _Case, SPANS, _Trace, COMPARISONS, _Log, _Result),
    Network,
)

_PLAYED = (POINTER(_Schedule), POINTER(Network), c_int)
# The functions of the C library: what each returns, and the types of its arguments.
_FUNCTIONS: Mapping[str, tuple[type | None, Sequence[type]]] = {
    "schedule_layout": (c_size_t, (c_int,)),
    "schedule_record": (POINTER(_Schedule), (POINTER(_Case), c_char_p, c_size_t)),
    "schedule_record_root": (POINTER(_Schedule), (POINTER(_Case), c_char_p, c_size_t)),
    "schedule_record_begin": (POINTER(_Schedule), (POINTER(_Case), c_uint64, c_char_p, c_size_t)),
    "schedule_free": (None, (POINTER(_Schedule),)),
    "schedule_memory": (c_uint64, (POINTER(_Schedule),)),
    "schedule_equal": (c_int, (POINTER(_Schedule), POINTER(_Schedule))),
    "schedule_count": (None, (c_void_p, c_void_p)),
    "schedule_own_seconds": (c_double, _PLAYED),
    "schedule_play": (_Result, (*_PLAYED, c_void_p, POINTER(_Trace), POINTER(_Log))),
    "schedule_play_within": (_Result, (*_PLAYED, c_void_p, c_double)),
    "schedule_play_many": (
        None,
        (POINTER(_Schedule), POINTER(POINTER(Network)), c_size_t, c_int, c_void_p, POINTER(_Result)),
    ),
    "schedule_play_batch": (
        None,
        (c_size_t, c_void_p, c_void_p, POINTER(Network), c_size_t, c_void_p, c_void_p, c_char_p, c_size_t),
    ),
    "schedule_obey": (None, (c_void_p,)),
    "schedule_trace_free": (None, (POINTER(_Trace),)),
    "schedule_log_free": (None, (POINTER(_Log),)),
}


@cache
def load_library() -> ctypes.CDLL:
    """The C library. Raises as `library_file` does, and CollwiseError if its structures have other sizes than ours."""
    file = library_file()
    library = ctypes.CDLL(str(file))
    for name, (result, arguments) in _FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    for place, mirrored in enumerate(_STRUCTURES):
        here = mirrored.itemsize if isinstance(mirrored, np.dtype) else ctypes.sizeof(mirrored)
        if (there := library.schedule_layout(place)) != here:
            raise CollwiseError(f"{file}: structure {place} of layout.c has {there} bytes, not {here}; build it again")
    return library
