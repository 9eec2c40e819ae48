"""Lower bounds of times on one network from times on another.

A process or port continues at the latest of some times, plus a cost. The time of a schedule is therefore the length of
its longest path through messages, overheads and local work: a sum of costs, each counted as often as it lies on the
path. On another network the same path takes no longer than the whole schedule. So the parts of a time on one network
bound the schedule's time on any other network from below. The parts are five kinds of costs: latencies, overheads,
local work, messages within nodes, and bytes. The parts follow from the times on networks on which the costs of one kind
are a little larger. If the parts are unknown, the bound is the time multiplied by the smallest factor by which a cost
grows.

When messages share ports fairly, the time is not exactly such a sum, since a message that comes later may let others go
first. In random settings such sums were too high by up to 13 %, and by up to 26 % if overheads or protocols differ. A
bound is therefore the sum divided by 1.25 or 1.5.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import numpy.typing as npt

from collwise.simulator.schedule.tables import DEFERRED, EAGER, RENDEZVOUS, Doubles, NetworkTables

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

_KINDS = (_LATENCY, _OVERHEAD, _LOCAL_WORK, _WITHIN_NODES, _BYTES)
"""The tables of each kind of costs. The costs of bytes are also inversely proportional to rates."""

LATENCY, OVERHEAD, LOCAL_WORK, WITHIN_NODES, BYTES = KINDS = range(len(_KINDS))

_MAY_DIFFER = {*(name for kind in _KINDS for name in kind), *_RATES, *_RATES_WITHIN_NODES, "protocol"}

_OVERHEAD_SECONDS = 1e-6
"""The overhead that a network without overheads gets, to find the effect of overheads."""

_A_LITTLE = 1e-4
"""The share by which the costs of a kind are enlarged to find their part of a time."""


MARGIN, _MARGIN_OF_OTHERS = 0.25, 0.5
"""The shares by which sums may be too high: with the same overheads and protocols, and with different ones."""


@dataclass(frozen=True)
class Columns:
    """The columns of all cases in tables by size, one case after another; each case begins at its entry of `starts`."""

    every: npt.NDArray[np.intp]
    starts: npt.NDArray[np.intp]

    @classmethod
    def of(cls, cases: Iterable[npt.NDArray[np.uint32]], sizes: int) -> Columns:
        """The columns of some cases; each case also has the column after all sizes, which stands for no size."""
        ended = [np.append(columns, sizes).astype(np.intp) for columns in cases]
        lengths = [len(columns) for columns in ended]
        return cls(np.concatenate(ended), np.cumsum([0, *lengths[:-1]]))

    def least(self, of_columns: Doubles) -> Doubles:
        """The least value among the columns of each case."""
        found: Doubles = np.minimum.reduceat(np.append(of_columns, np.inf)[self.every], self.starts)
        return found


@dataclass(frozen=True)
class Anchor:
    """Lower bounds of the times of cases on a network, and their parts, shape (kinds, cases).

    Unknown times and parts are nan.
    """

    tables: NetworkTables
    seconds: Doubles
    parts: Doubles

    @classmethod
    def without_parts(cls, tables: NetworkTables, seconds: Doubles) -> Anchor:
        """An anchor whose parts are unknown."""
        return cls(tables, seconds, np.full((len(KINDS), len(seconds)), np.nan))

    def has(self, kind: int) -> bool:
        """True if the network has costs of a kind; always for overheads, since a network without them gets some."""
        return kind == OVERHEAD or _has(self.tables, kind)

    def with_parts(self, found: Doubles, slower: Sequence[Doubles | None]) -> Anchor:
        """The anchor with parts that follow from the times found on its network and on slower ones.

        `slower` has the times on the network of `a_little_slower` for each kind, None if no case has costs of the kind.
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
        """A lower bound for each case on a network with tables for the same sizes; 0 where there is none."""
        if not _is_comparable(self.tables, tables):
            return np.zeros(len(self.seconds))
        factors = np.array([columns.least(_factor(self.tables, tables, kind)) for kind in KINDS])
        counts = np.isfinite(factors) & np.array([[_has(self.tables, kind)] for kind in KINDS])
        lowest = np.where(counts, factors, np.inf).min(axis=0)
        together = np.where(np.isfinite(lowest), lowest, 0.0) * self.seconds
        by_parts = (self.parts * np.where(np.isfinite(factors), factors, 0.0)).sum(axis=0)
        # A message that no longer waits for its receive may make anything faster.
        waits = _waits(self.tables) & ~_waits(tables)
        still = columns.least(np.where(waits, 0.0, 1.0)) > 0
        # All other costs change when a message begins only by changing how long other messages take.
        decisive = (*_OVERHEAD, "protocol")
        has_same_order = all(np.array_equal(getattr(self.tables, name), getattr(tables, name)) for name in decisive)
        margin = MARGIN if has_same_order else _MARGIN_OF_OTHERS
        return np.where(still, np.nan_to_num(np.fmax(together, by_parts)) / (1 + margin), 0.0)


def _waits(tables: NetworkTables) -> npt.NDArray[np.bool_]:
    return np.isin(tables.protocol, (RENDEZVOUS, DEFERRED))


def _tables_of(tables: NetworkTables, kind: int) -> dict[str, Doubles]:
    """The tables of a kind that a network has. Tables of costs within nodes count only if processes share nodes."""
    names = () if kind == WITHIN_NODES and not tables.shares_nodes else _KINDS[kind]
    return {name: table for name in names if (table := getattr(tables, name)) is not None}


def _has(tables: NetworkTables, kind: int) -> bool:
    """True if the network has costs of a kind."""
    return any(bool(np.any(table)) for table in _tables_of(tables, kind).values())


def _costs(tables: NetworkTables, kind: int) -> dict[str, Doubles]:
    """The tables of a kind. If a network has no overheads, its overhead tables get a small one for eager messages."""
    found = _tables_of(tables, kind)
    if kind == OVERHEAD and not _has(tables, kind):
        eager = tables.protocol == EAGER
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
    """The smallest factor by which rates are lower; a rate of 0 means no limit."""
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
