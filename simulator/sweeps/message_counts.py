"""About how many messages a case simulates, which is what it costs: for batches of like weight and honest progress."""

from __future__ import annotations

from functools import cache

from collwise.algorithms.catalogue import Catalogue
from collwise.simulator.timing import Case

# What a case costs besides its messages (agreeing on its start), in messages a process.
_FIXED_MESSAGES_A_PROCESS = 8

# Topologies (as in the catalogue) by how often each process sends a whole turn: a tree's edges carry one message each;
# partners at doubling distances meet ceil(log2 P) times; round a ring, and between all pairs, everybody sends P - 1.
_TREES = {
    *("flat", "chain", "k_chain", "binary", "binomial", "knomial", "two_tree"),
    *("in_order_binary", "in_order_binomial"),
}
_DOUBLING = {"dissemination", "hypercube", "butterfly", "recursive_doubling", "recursive_halving"}

# Collectives that take two turns on trees: up and down. On other topologies only an allreduce does.
_UP_AND_DOWN = {"allreduce", "allgather", "allgatherv", "barrier", "reduce_scatter", "reduce_scatter_block"}


def cost_of(case: Case) -> float:
    """About how many messages a case simulates; upper bounds where the topology is not known or comes with others."""
    others = case.procs - 1
    is_cut = case.segment_bytes and not 0 < case.limit_bytes < case.message_bytes
    segments = max(1, -(-case.message_bytes // case.segment_bytes)) if is_cut else 1
    topologies = _topologies(case.collective, case.algorithm)
    if case.experiment != "collective" or topologies <= _TREES:
        messages = others * segments
    elif topologies <= _TREES | _DOUBLING:
        messages = case.procs * others.bit_length() * segments
    else:
        # Blocks are what is cut here, each of a P-th of the message.
        messages = case.procs * (others + segments - 1)
    if case.collective == "allreduce" or (case.collective in _UP_AND_DOWN and topologies <= _TREES):
        messages *= 2
    if case.collective == "gather" or case.experiment == "bcast_gather":
        messages += 3 * case.procs
    return messages + _FIXED_MESSAGES_A_PROCESS * case.procs


@cache
def _topologies(collective: str, algorithm: str) -> frozenset[str]:
    """Those that the catalogue names, several by commas."""
    known = Catalogue.load().collectives.get(collective)
    named = known.algorithms[algorithm].topology if known is not None and algorithm in known.algorithms else "unknown"
    return frozenset(named.split(", "))
