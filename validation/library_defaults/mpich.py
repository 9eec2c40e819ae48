"""The decisions of MPICH 4 without tuning, for every collective, with one process on each node.

They are those of `mpich_tables`. With several processes on a node MPICH combines algorithms within and between nodes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from collwise.validation.library_defaults.decision import Decision, elements
from collwise.validation.library_defaults.mpich_tables import own_tables, selected
from collwise.validation.times.choice import Choice

_EXCHANGES_AT_A_TIME = 32

# What MPICH's algorithms are in the catalogue, where the names differ; None: it has none that is the same.
_COUNTERPARTS: dict[tuple[str, str], Choice | None] = {
    ("gatherv", "linear"): Choice("linear_nonblocking"),
    ("scatterv", "linear"): Choice("linear_nonblocking"),
    ("barrier", "dissemination"): Choice("bruck"),
    ("bcast", "scatter_recursive_doubling_allgather"): Choice("scatter_allgather"),
    ("reduce", "reduce_scatter_gather"): Choice("rabenseifner"),
    ("allreduce", "reduce_scatter_allgather"): Choice("rabenseifner"),
    ("allgather", "brucks"): Choice("bruck"),
    ("allgatherv", "brucks"): Choice("bruck"),
    ("allgatherv", "recursive_doubling"): None,
    ("alltoall", "brucks"): Choice("bruck"),
    ("reduce_scatter", "pairwise"): None,
    ("reduce_scatter_block", "pairwise"): None,
}


def decide(collective: str, procs: int, message_bytes: int) -> Decision:
    """The decision for a commutative built-in operation, and for blocks of one size."""
    name = mpichs_algorithm(own_tables(), collective, procs, message_bytes)
    if name == "scattered":
        return Decision(name, _scattered(collective, procs))
    return Decision(name, _COUNTERPARTS.get((collective, name), Choice(name)))


def mpichs_algorithm(tables: Mapping[str, Any], collective: str, procs: int, message_bytes: int) -> str:
    """The algorithm that the tables select for a call with one process on each node, by MPICH's name."""
    found = selected(tables, collective, procs, message_bytes, elements(message_bytes))
    name = found.removeprefix(f"MPIR_{collective.capitalize()}_")
    # Without several processes on a node, what treats nodes differently is this.
    return "recursive_doubling" if name == "intra_smp" else re.sub("^(intra|allcomm)_", "", name)


def _scattered(collective: str, procs: int) -> Choice | None:
    """All exchanges at once, up to a number; more go in groups, to which a limit of those under way comes nearest."""
    if procs - 1 <= _EXCHANGES_AT_A_TIME:
        return Choice("linear")
    return Choice("linear_sync", fanout=_EXCHANGES_AT_A_TIME) if collective == "alltoall" else None
