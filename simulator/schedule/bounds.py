"""Lower bounds of the times of schedules, from times on another network, and from the work of processes and ports.

A schedule's time is the length of its longest path: a sum of costs, each counted as often as it lies on the path. On
another network the same path takes no longer than the whole schedule. So the parts of a time (latencies, overheads,
local work, messages within nodes, bytes) on one network bound the time on any other network from below. If the parts
are unknown, the bound is the time multiplied by the smallest factor by which a cost grows.

When messages share ports fairly, the time is not exactly such a sum, since a message that comes later may let others go
first. In random settings such sums were too high by up to 13 %, and by up to 26 % if overheads or protocols differ or
ports share the memory of nodes with several processes. A bound is therefore the sum divided by 1.25 or 1.5.

With several processes on a node, times jump by up to some percent where two messages change their order. A jump near
the network would pass for a large part, so that parts are then taken to be unknown.

Bounds from work are exact and need no other network: no schedule is done before the busiest process has spent its time
on overheads and local work, nor before the busiest port has passed all its bytes. In a long pipeline each further
segment adds the same work, which limits the pipeline's rate.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import numpy.typing as npt

from collwise.simulator.schedule.library import Schedule, load_library
from collwise.simulator.schedule.tables import ACKNOWLEDGED, DEFERRED, EAGER, Doubles, NetworkTables, address

_LATENCY = ("latency_seconds", "handshake_seconds", "answer_seconds", "route_seconds")
_OVERHEAD = ("send_seconds", "start_seconds", "receive_seconds")
_LOCAL_WORK = ("reduce_seconds", "copy_seconds", "allocate_seconds")
_WITHIN_NODES = (
    "local_latency_seconds",
    "local_transfer_seconds",
    "cross_latency_seconds",
    "cross_transfer_seconds",
    "flag_seconds",
    "move_seconds",
)
_BYTES = ("transfer_seconds", "gap_seconds", "receive_gap_seconds", "load_bytes")
_RATES, _RATES_WITHIN_NODES = ("out_rate", "in_rate", "link_rate"), ("memory_rate", "cross_rate")
# The tables of each kind of costs. The costs of bytes are also inversely proportional to rates.
_KINDS = (_LATENCY, _OVERHEAD, _LOCAL_WORK, _WITHIN_NODES, _BYTES)
LATENCY, OVERHEAD, LOCAL_WORK, WITHIN_NODES, BYTES = KINDS = range(len(_KINDS))
_MAY_DIFFER = {*(name for kind in _KINDS for name in kind), *_RATES, *_RATES_WITHIN_NODES, "protocol"}
_OVERHEAD_SECONDS = 1e-6  # the overhead that a network without overheads gets, to find the effect of overheads
_A_LITTLE = 1e-4  # the share by which the costs of a kind are enlarged to find their part of a time
MARGIN, _MARGIN_OF_OTHERS = 0.25, 0.5
"""Shares by which sums may be too high; the second if overheads or protocols differ or ports share memory."""


@dataclass(frozen=True)
class Columns:
    """The columns of tables by size that each case uses, one case after another; case i begins at `starts[i]`."""

    every: npt.NDArray[np.intp]
    starts: npt.NDArray[np.intp]

    @classmethod
    def of(cls, cases: Iterable[npt.NDArray[np.uint32]], sizes: int) -> Columns:
        """Joins the columns of cases; each case also gets the column after the last size, which stands for no size."""
        ended = [np.append(columns, sizes).astype(np.intp) for columns in cases]
        lengths = [len(columns) for columns in ended]
        return cls(np.concatenate(ended), np.cumsum([0, *lengths[:-1]]))

    def least(self, of_columns: Doubles) -> Doubles:
        """The least value among the columns of each case."""
        found: Doubles = np.minimum.reduceat(np.append(of_columns, np.inf)[self.every], self.starts)
        return found


@dataclass(frozen=True)
class Anchor:
    """A network, lower bounds of the times of cases on it, and the parts of these times; unknown values are nan.

    The shape of `parts` is (kinds, cases).
    """

    tables: NetworkTables
    seconds: Doubles
    parts: Doubles

    @classmethod
    def without_parts(cls, tables: NetworkTables, seconds: Doubles) -> Anchor:
        """An anchor whose parts are unknown."""
        return cls(tables, seconds, np.full((len(KINDS), len(seconds)), np.nan))

    def has(self, kind: int) -> bool:
        """True if the network has costs of a kind; always for overheads, since a network without any is given some."""
        return kind == OVERHEAD or _has(self.tables, kind)

    def with_parts(self, found: Doubles, slower: Sequence[Doubles | None]) -> Anchor:
        """The anchor with the parts that follow from the times found on its network and on slower ones.

        `slower` has the times on the network of `a_little_slower` for each kind, None if no case has costs of the kind.
        Processes must not share nodes.
        """
        parts = np.zeros((len(KINDS), len(found)))
        for kind, seconds in enumerate(slower):
            if seconds is not None:
                parts[kind] = np.maximum(seconds - found, 0) / _A_LITTLE
        present = [kind for kind in range(BYTES) if _has(self.tables, kind)]
        parts[present] *= np.minimum(1, found / np.maximum(parts[present].sum(axis=0), np.finfo(float).tiny))
        parts[BYTES] = np.maximum(found - parts[present].sum(axis=0), 0)
        return replace(self, parts=parts * np.divide(self.seconds, found, out=np.zeros_like(found), where=found > 0))

    def a_little_slower(self, kind: int) -> NetworkTables:
        """The network with slightly larger costs of a kind, other than bytes."""
        enlarged = {
            name: getattr(self.tables, name) + _A_LITTLE * cost for name, cost in _costs(self.tables, kind).items()
        }
        return replace(self.tables, **enlarged)

    def min_seconds(self, tables: NetworkTables, columns: Columns) -> Doubles:
        """A lower bound of each case's time on a network with tables for the same sizes; 0 if none is known."""
        if not _is_comparable(self.tables, tables):
            return np.zeros(len(self.seconds))
        factors = np.array([columns.least(_factor(self.tables, tables, kind)) for kind in KINDS])
        counts = np.isfinite(factors) & np.array([[_has(self.tables, kind)] for kind in KINDS])
        lowest = np.where(counts, factors, np.inf).min(axis=0)
        together = np.where(np.isfinite(lowest), lowest, 0.0) * self.seconds
        by_parts = (self.parts * np.where(np.isfinite(factors), factors, 0.0)).sum(axis=0)
        # A message that waits no longer for its receive, or whose sender waits no longer, may make anything faster.
        eased = self.tables.waits_for_receives & ~tables.waits_for_receives
        eased |= (self.tables.protocol == ACKNOWLEDGED) & (tables.protocol != ACKNOWLEDGED)
        still = columns.least(np.where(eased, 0.0, 1.0)) > 0
        # Other costs affect the start of a message only through the durations of other messages.
        decisive = (*_OVERHEAD, "protocol")
        has_same_order = all(np.array_equal(getattr(self.tables, name), getattr(tables, name)) for name in decisive)
        # A message that moves changes the speed of copies, too, if ports share a node's memory.
        shares_memory = tables.memory_share_of_ports > 0 and tables.shares_nodes
        margin = MARGIN if has_same_order and not shares_memory else _MARGIN_OF_OTHERS
        return np.where(still, np.nan_to_num(np.fmax(together, by_parts)) / (1 + margin), 0.0)


def _tables_of(tables: NetworkTables, kind: int) -> dict[str, Doubles]:
    """The tables of a kind that a network has. Costs within nodes count only if processes share nodes."""
    names = () if kind == WITHIN_NODES and not tables.shares_nodes else _KINDS[kind]
    return {name: table for name in names if (table := getattr(tables, name)) is not None}


def _has(tables: NetworkTables, kind: int) -> bool:
    """True if the network has costs of a kind."""
    return any(bool(np.any(table)) for table in _tables_of(tables, kind).values())


def _costs(tables: NetworkTables, kind: int) -> dict[str, Doubles]:
    """The tables of a kind. If a network has no overheads, its overhead tables get a small one for eager messages."""
    found = _tables_of(tables, kind)
    if kind == OVERHEAD and not _has(tables, kind):
        eager = np.isin(tables.protocol, (EAGER, ACKNOWLEDGED))
        return {name: np.ones_like(table) * eager * _OVERHEAD_SECONDS for name, table in found.items()}
    return found


def _factor(before: NetworkTables, after: NetworkTables, kind: int) -> Doubles:
    """The smallest factor by which costs of a kind grow, for each size; infinite if there are no such costs."""
    sizes = len(before.protocol)
    least = np.full(sizes, np.inf)
    for name, table in _costs(before, kind).items():
        grown = np.divide(
            getattr(after, name), table, out=np.full(np.shape(table), np.inf), where=np.asarray(table) > 0
        )
        if name in ("route_seconds", "flag_seconds"):
            grown = np.full(sizes, grown.min(initial=np.inf))
        elif name == "load_bytes":
            grown = np.where(np.isfinite(grown), grown * _slower(before, after), np.inf)
        least = np.minimum(least, grown.reshape(-1, sizes).min(axis=0))
    return least


def _slower(before: NetworkTables, after: NetworkTables) -> float:
    """The smallest factor by which a rate falls; a rate of 0 means no limit."""
    least = np.inf
    for name in _RATES + (_RATES_WITHIN_NODES if before.shares_nodes else ()):
        if getattr(before, name) is not None:
            one, other = (np.atleast_1d(getattr(tables, name)) for tables in (before, after))
            grown = np.divide(one, other, out=np.zeros(len(one)), where=other > 0)
            least = min(least, float(grown[one > 0].min(initial=np.inf)))
    return least


def _is_comparable(tables: NetworkTables, other: NetworkTables) -> bool:
    """True if two networks have sizes, differ in their costs alone, and lose no packets."""
    if len(tables.protocol) == 0 or tables.buffers is not None or other.buffers is not None:
        return False
    for field in fields(NetworkTables):
        mine, others = getattr(tables, field.name), getattr(other, field.name)
        if (mine is None) != (others is None) or np.shape(mine) != np.shape(others):
            return False
        if field.name not in _MAY_DIFFER and mine is not None and not np.array_equal(mine, others):
            return False
    return True


_Columns = npt.NDArray[np.uint32]

# --- Bounds from work alone ------------------------------------------------------------------------------------------

# The operations of simulator/schedule/recorder.h, without waits, forks and counters.
_SEND, _RECEIVE, _START_SEND, _START_SYNCHRONOUS, _START_RECEIVE, *_, _REDUCE, _COPY, _ALLOCATE, _MOVE = range(14)
_OPERATIONS = 14
_SENDING, _STARTING, _RECEIVING, _REDUCING, _COPYING, _ALLOCATING, _MOVING, _LEAVING, _ARRIVING = range(9)
_COSTS = 9
_MAX_COUNTS = 1 << 22  # a schedule has no bound if the product of its numbers of programs, kinds and sizes exceeds this


# The operations of one process or port: the kind of cost of each, its size, and how often it occurs.
_Row = tuple[npt.NDArray[np.intp], npt.NDArray[np.intp], Doubles]
# A schedule, or a pipeline and a shorter one with the same sizes whose work is subtracted.
_Play = tuple[Schedule, Schedule | None]


class Work:
    """The work of several plays. All plays share tables, which have a column for each message size."""

    def __init__(self, plays: Sequence[_Play], columns: Sequence[_Columns], sizes: int) -> None:
        """Counts the operations of schedules; `columns` has, by play, the table column of each of its message sizes."""
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
        costs = np.append(_costs_of_work(tables), 0)
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
    """The operations of each distinct process, outgoing port and incoming port, less those of the shorter schedule."""
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
    shape = (schedule.programs, _OPERATIONS, len(schedule.sizes))
    if np.prod(shape) > _MAX_COUNTS:
        return None
    counts = np.zeros(shape, np.uint32)
    load_library().schedule_count(schedule.address, address(counts))
    return counts.astype(np.int64)


def _costs_of_work(tables: NetworkTables) -> Doubles:
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
