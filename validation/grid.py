"""The points that the paper evaluates and that everything here is compared at. Sizes in bytes.

Nuriyev & Lastovetsky 2021, sections V-B and V-C. Nothing heavy is imported, so that every command may use it.
"""

from __future__ import annotations

SEGMENT_BYTES = 8192
BCAST_SIZES = tuple(8192 * 2**k for k in range(10))
GATHER_SIZES = tuple(65536 * 2**k for k in range(5))
SIZES = {"bcast": BCAST_SIZES, "gather": GATHER_SIZES}

# Segment sizes that a choice may have besides the paper's.
MORE_SEGMENTS = (16384, 32768, 65536, 131072)

# Message sizes of decision tables. No published figure tells what a short message costs the processor on these
# clusters, so nothing is decided below the sizes that the calibration rests on.
DECISION_SIZES = {
    "bcast": tuple(8192 * 2**k for k in range(11)),
    "gather": tuple(65536 * 2**k for k in range(7)),
}
