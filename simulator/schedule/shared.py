"""Recordings that cases share which differ only in the size of their messages."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from collwise.algorithms.catalogue import Catalogue
from collwise.simulator.schedule.library import Schedule
from collwise.simulator.timing import Case

_ELEMENT_BYTES = 8
_MOST_MESSAGE_BYTES = 2**30
"""Longer messages are sent in pieces."""

_UNITS = 3
"""Multiples from here on have no sizes in common by chance, as that of a part and of an algorithm's own data."""

_SHARED = 8
"""The number of recordings that are kept."""

NodeOf = tuple[int, ...] | None
"""The node of each process; None: by blocks."""


def recorded(case: Case, node_of: NodeOf = None) -> tuple[Schedule, npt.NDArray[np.uint64]]:
    """The schedule of a case, and its sizes.

    Algorithms cut messages into P equal parts at most. Of messages that are multiples of P doubles, the sizes of a
    schedule therefore grow evenly with the message, and one schedule stands for all. Raises UsageError if the algorithm
    cannot run on the case.
    """
    unit_bytes = _unit_bytes(case)
    if unit_bytes > 0 and case.message_bytes > 0 and case.message_bytes % unit_bytes == 0:
        unit = replace(case, message_bytes=unit_bytes, segment_bytes=0)
        by_node = Catalogue.load().algorithm(case.collective, case.algorithm).by_node
        found = _shared(unit, node_of) if by_node else _shared(replace(unit, processes_per_node=1), None)
        if found is not None:
            schedule, fewer, more = found
            sizes = fewer + (case.message_bytes // unit_bytes - _UNITS) * (more - fewer)
            if int(sizes.min(initial=0)) >= 0 and int(sizes.max(initial=0)) <= _MOST_MESSAGE_BYTES:
                return schedule, sizes.astype(np.uint64)
    schedule = Schedule(case, node_of)
    return schedule, schedule.sizes


def _unit_bytes(case: Case) -> int:
    """P doubles; 0 if the algorithm cuts messages in another way."""
    if case.experiment != "collective" or case.limit_bytes > 0:
        return 0
    algorithm = Catalogue.load().algorithm(case.collective, case.algorithm)
    is_cut = case.segment_bytes > 0 and case.message_bytes > segmented_bytes(case)
    return 0 if is_cut or algorithm.part_parameter not in ("", "segment_bytes") else _ELEMENT_BYTES * case.procs


def segmented_bytes(case: Case) -> int:
    """The bytes of a message of one segment, or of one in each block for the algorithm that cuts blocks.

    The hierarchical allgather cuts all blocks together.
    """
    if (case.collective, case.algorithm) == ("allgather", "hierarchical"):
        return case.segment_bytes // case.procs
    return case.segment_bytes * (case.procs if case.algorithm == "segmented_ring" else 1)


@lru_cache(maxsize=_SHARED)
def _shared(case: Case, node_of: NodeOf) -> tuple[Schedule, npt.NDArray[np.int64], npt.NDArray[np.int64]] | None:
    """A schedule for multiples of a message, and its sizes for _UNITS of them and one more."""
    schedule, longer = (
        Schedule(replace(case, message_bytes=(_UNITS + i) * case.message_bytes), node_of) for i in range(2)
    )
    if schedule.messages != longer.messages or len(schedule.sizes) != len(longer.sizes):
        return None
    return schedule, schedule.sizes.astype(np.int64), longer.sizes.astype(np.int64)
