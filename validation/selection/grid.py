"""The points that the paper evaluates and that everything here is compared at. Sizes in bytes.

Nuriyev & Lastovetsky 2021, sections V-B and V-C. Nothing heavy is imported, so that every command may use it.
"""

from __future__ import annotations

SEGMENT_BYTES = 8192
BCAST_SIZES = tuple(8192 * 2**k for k in range(10))
GATHER_SIZES = tuple(65536 * 2**k for k in range(5))
PAPER_SIZES = {"bcast": BCAST_SIZES, "gather": GATHER_SIZES}

# Segment sizes that a choice may have besides the paper's.
MORE_SEGMENTS = (16384, 32768, 65536, 131072)

# The same number of sizes for every collective, each up to what keeps a sweep of all of them short. They hold those of
# the paper. Where each process has a block for each other one, blocks are small: P^2 of them travel.
SWEEP_SIZES_A_COLLECTIVE = 12
_LARGEST_MESSAGE = 4 * 2**20
_LARGEST_BLOCK = 2**20
_LARGEST_OF_ALL_PAIRS = 2**18


def _doubling_up_to(largest: int) -> tuple[int, ...]:
    return tuple(largest >> step for step in reversed(range(SWEEP_SIZES_A_COLLECTIVE)))


SWEEP_SIZES = {
    **dict.fromkeys(
        ("bcast", "reduce", "allreduce", "reduce_scatter", "scan", "exscan"), _doubling_up_to(_LARGEST_MESSAGE)
    ),
    **dict.fromkeys(("gather", "gatherv", "scatter", "scatterv"), _doubling_up_to(_LARGEST_BLOCK)),
    **dict.fromkeys(
        ("allgather", "allgatherv", "alltoall", "alltoallv", "reduce_scatter_block"),
        _doubling_up_to(_LARGEST_OF_ALL_PAIRS),
    ),
    "barrier": (0,),
}

# What is compared, measured and predicted unless other sizes are asked for: the paper's where it has some.
SIZES = SWEEP_SIZES | PAPER_SIZES

# Message sizes of decision tables. No published figure tells what a short message costs the processor on these
# clusters, so nothing is decided below the sizes that the calibration rests on.
_LEAST_DECIDED = 8192
DECISION_SIZES = {
    name: tuple(size for size in sizes if size == 0 or size >= _LEAST_DECIDED) for name, sizes in SWEEP_SIZES.items()
} | {
    "bcast": tuple(8192 * 2**k for k in range(11)),
    "gather": tuple(65536 * 2**k for k in range(7)),
}
