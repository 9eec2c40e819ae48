"""The decisions of MPICH 4 without tuning, for every collective, with one process on each node.

The thresholds are those of the selection tables (JSON) that the library carries; `installed_mpich` reads them from an
installed one. With several processes on a node MPICH combines algorithms within and between nodes.
"""

from __future__ import annotations

from collwise.validation.library_defaults.decision import Decision, fewer_elements_than_half
from collwise.validation.selection.choice import Choice

_KIB = 1024
# A tree carries short broadcasts; all of them to few processes.
_SHORT_BCAST_BYTES = 12 * _KIB
_MEDIUM_BCAST_BYTES = 512 * _KIB
_FEW_PROCS = 8
_SHORT_ALLREDUCE_BYTES = 8
_SHORT_REDUCE_BYTES = 2 * _KIB
# Of all blocks together.
_LONG_TOTAL_BYTES = 512 * _KIB
_SHORT_TOTAL_BYTES = 80 * _KIB
_SHORT_ALLTOALL_BYTES = 256
_MEDIUM_ALLTOALL_BYTES = 32 * _KIB
_EXCHANGES_AT_A_TIME = 32

_ALWAYS = {
    "gather": Decision("binomial", Choice("binomial")),
    "gatherv": Decision("linear", Choice("linear_nonblocking")),
    "scatter": Decision("binomial", Choice("binomial")),
    "scatterv": Decision("linear", Choice("linear_nonblocking")),
    "barrier": Decision("dissemination", Choice("bruck")),
    "scan": Decision("recursive_doubling", Choice("recursive_doubling")),
    "exscan": Decision("recursive_doubling", Choice("recursive_doubling")),
}
# What MPICH's algorithms are in the catalogue, where the names differ; None: it has none that is the same.
_COUNTERPARTS: dict[tuple[str, str], Choice | None] = {
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
    if collective in _ALWAYS:
        return _ALWAYS[collective]
    name = _decided(collective, procs, message_bytes)
    if name == "scattered":
        return Decision(name, _scattered(collective, procs))
    return Decision(name, _COUNTERPARTS.get((collective, name), Choice(name)))


def _decided(collective: str, procs: int, message_bytes: int) -> str:
    """The name that MPICH gives the algorithm of its choice."""
    if collective == "bcast":
        return _bcast(procs, message_bytes)
    if collective in ("allgather", "allgatherv"):
        short = _LONG_TOTAL_BYTES if _power_of_two(procs) else _SHORT_TOTAL_BYTES
        if message_bytes * procs >= short:
            return "ring"
        return "recursive_doubling" if _power_of_two(procs) else "brucks"
    if collective == "alltoall":
        return _alltoall(procs, message_bytes)
    if collective == "alltoallv":
        return "scattered"
    if collective == "reduce":
        few = message_bytes <= _SHORT_REDUCE_BYTES or fewer_elements_than_half(procs, message_bytes)
        return "binomial" if few else "reduce_scatter_gather"
    if collective == "allreduce":
        few = message_bytes <= _SHORT_ALLREDUCE_BYTES or fewer_elements_than_half(procs, message_bytes)
        return "recursive_doubling" if few else "reduce_scatter_allgather"
    total = message_bytes * (procs if collective == "reduce_scatter_block" else 1)
    return "recursive_halving" if total < _LONG_TOTAL_BYTES else "pairwise"


def _bcast(procs: int, message_bytes: int) -> str:
    if procs < _FEW_PROCS or message_bytes <= _SHORT_BCAST_BYTES:
        return "binomial"
    if _power_of_two(procs) and message_bytes <= _MEDIUM_BCAST_BYTES:
        return "scatter_recursive_doubling_allgather"
    return "scatter_ring_allgather"


def _alltoall(procs: int, message_bytes: int) -> str:
    # The table says 'fewer than 8', but MPICH 4.0 runs this on 8, too.
    if procs > _FEW_PROCS and message_bytes <= _SHORT_ALLTOALL_BYTES:
        return "brucks"
    return "scattered" if message_bytes <= _MEDIUM_ALLTOALL_BYTES else "pairwise"


def _scattered(collective: str, procs: int) -> Choice | None:
    """All exchanges at once, up to a number; more go in groups, to which a limit of those under way comes nearest."""
    if procs - 1 <= _EXCHANGES_AT_A_TIME:
        return Choice("linear")
    return Choice("linear_sync", fanout=_EXCHANGES_AT_A_TIME) if collective == "alltoall" else None


def _power_of_two(procs: int) -> bool:
    return procs & (procs - 1) == 0
