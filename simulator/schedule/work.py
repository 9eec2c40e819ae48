"""Lower bounds of times from the total work of processes and ports, in whatever order they do it.

No schedule is done before the busiest process has spent its time on overheads and local work, nor before the busiest
port has passed all its bytes. These bounds need no times on another network, and are exact. In a long pipeline the
busiest process or port takes the same time for each further segment, so the pipeline cannot have a higher rate than
this process or port for long.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from collwise.simulator.schedule.library import Schedule, load_library
from collwise.simulator.schedule.tables import DEFERRED, Doubles, NetworkTables, address

_Columns = npt.NDArray[np.uint32]

# The kinds of simulator/schedule/recorder.h, without waits, forks and counters.
_SEND, _RECEIVE, _START_SEND, _START_SYNCHRONOUS, _START_RECEIVE, *_, _REDUCE, _COPY, _ALLOCATE, _MOVE = range(14)
_KINDS = 14

_SENDING, _STARTING, _RECEIVING, _REDUCING, _COPYING, _ALLOCATING, _MOVING, _LEAVING, _ARRIVING = range(9)
_COSTS = 9

_MAX_COUNTS = 1 << 22
"""A schedule has no bound if the product of its numbers of programs, kinds and sizes exceeds this."""


_Row = tuple[npt.NDArray[np.intp], npt.NDArray[np.intp], Doubles]
"""The operations of one process or port: the kind of cost of each, its size, and how often it occurs."""

_Play = tuple[Schedule, Schedule | None]
"""A schedule, or a pipeline and a shorter one with the same sizes. Their difference is the pipeline's additional work.
"""


class Work:
    """The work of several plays. All plays share tables, which have a column for each message size."""

    def __init__(self, plays: Sequence[_Play], columns: Sequence[_Columns], sizes: int) -> None:
        """Counts what the schedules do. `columns` has the columns of each play in tables with `sizes` columns."""
        rows_of: dict[tuple[int, int], list[_Row]] = {}
        nothing = np.array([_COSTS * sizes])  # after all costs
        numbers: list[npt.NDArray[np.intp]] = []
        amounts: list[Doubles] = []
        firsts: list[int] = []
        for play, column_of in zip(plays, columns, strict=True):
            key = id(play[0]), id(play[1])
            if key not in rows_of:
                rows_of[key] = _rows(*play)
            firsts.append(len(numbers))
            numbers += [cost * sizes + column_of[size] for cost, size, _ in rows_of[key]] or [nothing]
            amounts += [amount for *_, amount in rows_of[key]] or [np.zeros(1)]
        self._numbers, self._amounts = np.concatenate(numbers), np.concatenate(amounts)
        self._starts, self._firsts = np.cumsum([0, *map(len, numbers[:-1])]), np.array(firsts)

    def min_seconds(self, tables: NetworkTables) -> Doubles:
        """A lower bound on the seconds of each play on a network; 0 if nothing is known."""
        costs = np.append(_costs(tables), 0)
        by_row = np.add.reduceat(costs[self._numbers] * self._amounts, self._starts)
        found: Doubles = np.maximum.reduceat(by_row, self._firsts)
        return found


def busiest_messages(schedule: Schedule) -> float:
    """The most messages that any process sends and receives; the mean if the schedule is too long to count them."""
    counts = _counts(schedule)
    if counts is None:
        return 2 * schedule.messages / schedule.procs
    messages = [_SEND, _RECEIVE, _START_SEND, _START_SYNCHRONOUS, _START_RECEIVE]
    return float(counts[:, messages].sum(axis=(1, 2)).max(initial=0))


def _rows(schedule: Schedule, shorter: Schedule | None) -> list[_Row]:
    """The operations of the processes, then those of their outgoing and of their incoming ports.

    One process or port stands for all that do the same.
    """
    counts, others = _counts(schedule), None if shorter is None else _counts(shorter)
    if counts is None:
        return []
    if others is not None and others.shape == counts.shape:
        # Programs have the same order in both schedules.
        counts = np.maximum(counts - others, 0)
    started = counts[:, _START_SEND] + counts[:, _START_SYNCHRONOUS]
    received = counts[:, _RECEIVE] + counts[:, _START_RECEIVE]
    by_cost = {
        _SENDING: counts[:, _SEND],
        _STARTING: started,
        _RECEIVING: received,
        _REDUCING: counts[:, _REDUCE],
        _COPYING: counts[:, _COPY],
        _ALLOCATING: counts[:, _ALLOCATE],
        _MOVING: counts[:, _MOVE],
        _LEAVING: counts[:, _SEND] + started,
        _ARRIVING: received,
    }
    found = []
    for together in (range(_LEAVING), [_LEAVING], [_ARRIVING]):
        chosen = np.stack([by_cost[cost] for cost in together], axis=1)
        for row in np.unique(chosen, axis=0):
            which, size = np.nonzero(row)
            if len(size):
                found.append((np.array(together)[which], size, row[which, size].astype(np.float64)))
    return found


def _counts(schedule: Schedule) -> npt.NDArray[np.int64] | None:
    """The number of operations of each program, kind and size; None if there would be too many numbers."""
    shape = (schedule.programs, _KINDS, len(schedule.sizes))
    if np.prod(shape) > _MAX_COUNTS:
        return None
    counts = np.zeros(shape, np.uint32)
    load_library().schedule_count(schedule.address, address(counts))
    return counts.astype(np.int64)


def _costs(tables: NetworkTables) -> Doubles:
    """The seconds of each kind of work by size, on the node where it takes least."""
    costs = np.zeros((_COSTS, len(tables.protocol)))
    costs[_REDUCING], costs[_COPYING] = tables.reduce_seconds, tables.copy_seconds
    costs[_ALLOCATING], costs[_MOVING] = tables.allocate_seconds, tables.move_seconds
    if tables.shares_nodes:
        return costs  # messages within nodes may have no overheads, and pass no ports
    costs[_SENDING], costs[_STARTING] = tables.send_seconds.min(axis=0), tables.start_seconds.min(axis=0)
    # With the deferred protocol, receives of synchronous messages may have no overhead.
    costs[_RECEIVING] = np.where(tables.protocol == DEFERRED, 0.0, tables.receive_seconds.min(axis=0))
    if tables.load_bytes is not None and not np.any(tables.burst_bytes):
        for kind, rates in ((_LEAVING, tables.out_rate), (_ARRIVING, tables.in_rate)):
            if rates is not None and np.min(rates) > 0:
                costs[kind] = tables.load_bytes / np.max(rates)
    return costs
