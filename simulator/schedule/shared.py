"""Recordings that are shared by cases which differ only in the size of their messages."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from collwise.algorithms.catalogue import ELEMENT_BYTES
from collwise.platforms.hosts import Places
from collwise.simulator.schedule.library import Schedule
from collwise.simulator.schedule.tables import NetworkTables
from collwise.simulator.timing import Case

_MAX_MESSAGE_BYTES = 2**30  # longer messages are sent in pieces
# The smallest multiple of a message for which two sizes, such as those of parts and own data, never coincide.
_UNITS = 3
# The limits of recordings kept for other sizes: their number, and their memory (one recording may exceed it).
_MAX_KEPT, _MAX_KEPT_BYTES = 32, 64 << 20
Sizes = npt.NDArray[np.uint64]
TablesOf = Callable[[Sizes], NetworkTables]
"""A network, as a function that returns its tables for messages of given sizes."""

NodeOf = tuple[int, ...] | Places | None
"""The node of each process, or its node and its socket there if sockets matter. None places processes by blocks."""


def recorded(case: Case, node_of: NodeOf = None) -> tuple[Schedule, Sizes]:
    """The schedule of a case, and its sizes.

    Algorithms cut messages into at most P equal parts. If a message is a multiple of P doubles, all sizes of its
    schedule are therefore linear in the message size, and one recorded schedule serves all such messages.
    """
    unit_bytes = ELEMENT_BYTES * case.procs
    if case.message_bytes > 0 and case.message_bytes % unit_bytes == 0 and uncut(case) is not None:
        unit = replace(case, message_bytes=unit_bytes, segment_bytes=0)
        alone = replace(unit, processes_per_node=1)
        found = _KEPT.get(unit, node_of) if case.entry.by_node else _KEPT.get(alone, None)
        if found is not None:
            schedule, fewer, more = found
            sizes = fewer + (case.message_bytes // unit_bytes - _UNITS) * (more - fewer)
            if int(sizes.min(initial=0)) >= 0 and int(sizes.max(initial=0)) <= _MAX_MESSAGE_BYTES:
                return schedule, sizes.astype(np.uint64)
    schedule = Schedule(case, node_of)
    return schedule, schedule.sizes


def uncut(case: Case) -> Case | None:
    """The equivalent case without segment size if the message has only one segment, otherwise None."""
    if case.experiment != "collective" or case.limit_bytes > 0:
        return None
    algorithm = case.entry
    if algorithm.guideline or case.uses_windows:
        return None  # windows cut messages into chunks
    is_cut = case.segment_bytes > 0 and case.message_bytes > segmented_bytes(case)
    is_known = algorithm.part_parameter in ("", "segment_bytes")
    return replace(case, segment_bytes=0) if is_known and not is_cut else None


def segmented_bytes(case: Case) -> int:
    """The bytes of a message that consists of one segment; in segmented_ring, which cuts each block, of one per block.

    The hierarchical allgather cuts all P blocks as one piece.
    """
    if (case.collective, case.algorithm) == ("allgather", "hierarchical"):
        return case.segment_bytes // case.procs
    return case.segment_bytes * (case.procs if case.algorithm == "segmented_ring" else 1)


Shared = tuple[Schedule, npt.NDArray[np.int64], npt.NDArray[np.int64]]
"""A schedule for multiples of a message, and its sizes for _UNITS and _UNITS + 1 times the message."""


class _Kept:
    """The recordings that were used last. Several threads may use them."""

    def __init__(self) -> None:
        self._found: dict[tuple[Case, NodeOf], Shared | None] = {}
        self._lock = threading.Lock()

    def get(self, case: Case, node_of: NodeOf) -> Shared | None:
        """A recording for multiples of the case's message; None if these multiples have no schedule in common."""
        key = (case, node_of)
        with self._lock:
            if key in self._found:
                self._found[key] = self._found.pop(key)
                return self._found[key]
        found = _shared(case, node_of)
        with self._lock:
            self._found[key] = found
            while len(self._found) > 1 and (len(self._found) > _MAX_KEPT or self._bytes() > _MAX_KEPT_BYTES):
                del self._found[next(iter(self._found))]
        return found

    def _bytes(self) -> int:
        return sum(shared[0].memory_bytes for shared in self._found.values() if shared is not None)


_KEPT = _Kept()


def _shared(case: Case, node_of: NodeOf) -> Shared | None:
    schedule, longer = (
        Schedule(replace(case, message_bytes=(_UNITS + i) * case.message_bytes), node_of) for i in range(2)
    )
    if schedule.messages != longer.messages or len(schedule.sizes) != len(longer.sizes):
        return None
    return schedule, schedule.sizes.astype(np.int64), longer.sizes.astype(np.int64)
