"""Open MPI's built-in decisions for broadcast and gather (3.1), and for allreduce (up to 4.0).

The decisions of later versions, for all collectives, are in `openmpi_untuned`.
"""

from __future__ import annotations

from collwise.common.errors import UsageError
from collwise.validation.times.choice import Choice

# Listing 1 of Nuriyev & Lastovetsky 2021: thresholds of the broadcast decision of Open MPI 3.1.
_SMALL_BYTES = 2048
_INTERMEDIATE_BYTES = 370728
# Each is (a, b, segment size): for fewer processes than a * m + b, a pipeline has this segment size.
PIPELINES = ((1.6134e-6, 2.1102, 131072), (2.3679e-6, 1.1787, 65536), (3.2118e-6, 8.7936, 16384))
_LAST_PIPELINE_SEGMENT_BYTES = 8192
# Open MPI 3.1 has one more branch than Listing 1 shows: few processes, long messages.
_FEW_PROCS = 13

# Thresholds of the gather decision of Open MPI 3.1.
_LARGE_BLOCK_BYTES = 92160
_INTERMEDIATE_BLOCK_BYTES = 6000
_SMALL_BLOCK_BYTES = 1024
_LARGE_COMMUNICATOR = 60
_SMALL_COMMUNICATOR = 10

# Thresholds of the allreduce decision of Open MPI up to 4.0 (coll_tuned_decision_fixed.c).
_DOUBLED_BYTES = 10000
_RING_SEGMENT_BYTES = 1 << 20
_FLOAT_BYTES = 4

DECIDED = ("bcast", "gather")
"""The collectives that `decide` covers."""


def decide(collective: str, procs: int, message_bytes: int) -> Choice:
    """The choice that Open MPI 3.1 makes untuned, with its own segment sizes, by the catalogue's names."""
    if collective == "bcast":
        return _decide_bcast(procs, message_bytes)
    if collective == "gather":
        return _decide_gather(procs, message_bytes)
    raise UsageError(f"no fixed decision of Open MPI for collective '{collective}'; valid: {', '.join(DECIDED)}")


def decide_allreduce(procs: int, message_bytes: int) -> Choice:
    """The choice of untuned Open MPI 4.0 for a commutative operation on floats."""
    if message_bytes < _DOUBLED_BYTES:
        return Choice("recursive_doubling")
    if message_bytes // _FLOAT_BYTES <= procs:
        return Choice("non_overlapping")
    if message_bytes <= procs * _RING_SEGMENT_BYTES:
        return Choice("ring")
    return Choice("segmented_ring", _RING_SEGMENT_BYTES)


def decide_as_listed(collective: str, procs: int, message_bytes: int) -> str:
    """The algorithm that `decide` chooses; for long broadcasts, the chain, as in Listing 1 of the paper."""
    listed = collective == "bcast" and message_bytes >= _INTERMEDIATE_BYTES
    return "chain" if listed else decide(collective, procs, message_bytes).algorithm


def _decide_bcast(procs: int, message_bytes: int) -> Choice:
    if message_bytes < _SMALL_BYTES:
        return Choice("binomial")
    if message_bytes < _INTERMEDIATE_BYTES:
        return Choice("split_binary", 1024)
    for slope, intercept, segment_bytes in PIPELINES:
        if procs < slope * message_bytes + intercept:
            return Choice("chain", segment_bytes)
        if segment_bytes == PIPELINES[0][2] and procs < _FEW_PROCS:
            return Choice("split_binary", 8192)
    return Choice("chain", _LAST_PIPELINE_SEGMENT_BYTES)


def _decide_gather(procs: int, message_bytes: int) -> Choice:
    if message_bytes > _LARGE_BLOCK_BYTES:
        return Choice("linear_sync", 32768)
    if message_bytes > _INTERMEDIATE_BLOCK_BYTES:
        return Choice("linear_sync", 1024)
    if procs > _LARGE_COMMUNICATOR or (procs > _SMALL_COMMUNICATOR and message_bytes < _SMALL_BLOCK_BYTES):
        return Choice("binomial")
    return Choice("linear")
