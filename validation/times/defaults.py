"""The collectives, message sizes and segment sizes, in bytes, that commands use unless they are given others.

Nothing heavy is imported, so that every command may use this module.
"""

from __future__ import annotations

from collections.abc import Sequence

USUAL_COLLECTIVES = "bcast,reduce,allreduce,allgather,alltoall"
"""The collectives that are tuned unless others are named."""
SEGMENT_BYTES = 8192
"""The segment size of Nuriyev & Lastovetsky 2021, section V-B."""
SEGMENTS = (SEGMENT_BYTES, 16384, 32768, 65536, 131072)
"""The segment sizes that a choice may have; the first one is common to all algorithms that cut messages."""
SEGMENTS_TEXT = "8KiB:128KiB:x2"
"""SEGMENTS as the text of an option."""
TOLERANCE_PERCENT = 1.0
"""The slowdown against the best that a choice of a decision table may have. Allowing it keeps the table short."""
TIE_LIMIT = 0.1
"""The largest slowdown, by mean times, that counts as a tie; a wide interval alone does not show a good choice."""
AGREEMENT = 0.1
"""Another source fills a gap only if it differs from the times measured nearby by at most this share."""

# Every collective has the same number of sizes, up to a size that keeps a sweep of all collectives short. If each
# process has a block for each other process, blocks are small, since P^2 blocks travel.
SIZES_PER_COLLECTIVE = 12
_KIB, _MIB = 2**10, 2**20


def _doubling_up_to(largest: int) -> tuple[int, ...]:
    return tuple(largest >> step for step in reversed(range(SIZES_PER_COLLECTIVE)))


SIZES = {
    "bcast": _doubling_up_to(8 * _MIB),
    **dict.fromkeys(("reduce", "allreduce", "reduce_scatter", "scan", "exscan"), _doubling_up_to(4 * _MIB)),
    "gather": _doubling_up_to(4 * _MIB),
    **dict.fromkeys(("gatherv", "scatter", "scatterv"), _doubling_up_to(_MIB)),
    **dict.fromkeys(
        ("allgather", "allgatherv", "alltoall", "alltoallv", "reduce_scatter_block"), _doubling_up_to(256 * _KIB)
    ),
    "barrier": (0,),
}
"""Message sizes by collective. `collwise show algorithms` says what a collective's size counts."""

# The processor's cost of a short message is not published for the clusters of the paper, so nothing is decided below
# the sizes on which the calibration of these clusters rests.
MIN_DECIDED = dict.fromkeys(SIZES, 8 * _KIB) | {"gather": 64 * _KIB, "barrier": 0}
"""The smallest size of each collective for which times decide if they lack the costs of short messages."""

BCAST_SIZES = tuple(8192 * 2**k for k in range(10))
GATHER_SIZES = tuple(65536 * 2**k for k in range(5))
PAPER_SIZES = {"bcast": BCAST_SIZES, "gather": GATHER_SIZES}
"""The sizes of Nuriyev & Lastovetsky 2021, sections V-B and V-C. SIZES also contain them."""


def sizes_of(collective: str, asked: Sequence[int] | None = None) -> tuple[int, ...]:
    """The sizes asked for, or the collective's defaults. A barrier always has its default."""
    if asked and collective != "barrier":
        return tuple(asked)
    return SIZES[collective]
