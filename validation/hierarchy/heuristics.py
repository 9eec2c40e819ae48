"""Rules of thumb that leave configurations untested (Luo et al. 2020, section III-C).

The paper names the first two kinds; the others are of the same sort, and were written down before anything was timed.
"""

from __future__ import annotations

import math

from collwise.validation.hierarchy.space import PREFIX, Point, segments_of

ONE_SIDED, SHARED_MEMORY = 2, 1
ONE_SIDED_FROM_BYTES = 512 * 2**10
"""The paper's rule: one-sided communication within a node only for segments above 512 KB."""

MOST_SEGMENTS = 256
"""More segments than fill any pipeline cost only overhead."""

PIECES_FROM_BYTES = 4
"""A segment is sent between nodes in pieces only if it is this many times as large as a piece."""


def worth_testing(point: Point) -> bool:
    """Whether the rules of thumb let a configuration be tested for an input."""
    choice, one = point.choice, point.input
    segment = min(choice.segment_bytes, one.message_bytes)
    pieces = point.segments * segments_of(segment, choice.limit_bytes or segment)
    between = choice.algorithm.removeprefix(PREFIX)
    if choice.fanout == ONE_SIDED and segment <= ONE_SIDED_FROM_BYTES:
        return False
    if choice.fanout == SHARED_MEMORY and segment > ONE_SIDED_FROM_BYTES:
        return False
    # A chain of n nodes is full after n pieces; the root of a binomial tree sends each of its children all pieces.
    if between == "chain" and pieces < one.nodes:
        return False
    if between == "binomial" and pieces > max(1, math.ceil(math.log2(one.nodes))):
        return False
    if choice.limit_bytes and segment < PIECES_FROM_BYTES * choice.limit_bytes:
        return False
    return point.segments <= MOST_SEGMENTS
