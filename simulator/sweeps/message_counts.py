"""The approximate number of messages that a case simulates, which its cost follows: for batches and progress."""

from __future__ import annotations

from functools import cache

from collwise.algorithms.catalogue import Catalogue
from collwise.simulator.timing import Case

# The cost of a case besides its messages (agreeing on its start), in messages per process.
_FIXED_MESSAGES_PER_PROCESS = 8

# Topologies (as in the catalogue) by the number of messages: the edges of a tree carry one message each; partners at
# doubling distances exchange ceil(log2 P) times; around a ring, and between all pairs, each process sends P - 1.
_TREES = {
    *("flat", "chain", "k_chain", "binary", "binomial", "knomial", "two_tree"),
    *("in_order_binary", "in_order_binomial"),
}
_DOUBLING = {"dissemination", "hypercube", "butterfly", "recursive_doubling", "recursive_halving"}

# Collectives that take two turns on trees: up and down. On other topologies only an allreduce does.
_UP_AND_DOWN = {"allreduce", "allgather", "allgatherv", "barrier", "reduce_scatter", "reduce_scatter_block"}


def cost_of(case: Case) -> float:
    """The approximate number of messages; an upper bound where the topology is unknown or one of several."""
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
    return messages + _FIXED_MESSAGES_PER_PROCESS * case.procs


@cache
def _topologies(collective: str, algorithm: str) -> frozenset[str]:
    """The topologies that the catalogue names for an algorithm."""
    known = Catalogue.load().collectives.get(collective)
    named = known.algorithms[algorithm].topology if known is not None and algorithm in known.algorithms else "unknown"
    return frozenset(named.split(", "))
