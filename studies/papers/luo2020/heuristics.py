"""The paper's searches with rules of thumb, which leave configurations untested."""

from __future__ import annotations

import math
from dataclasses import replace

from collwise.validation.hierarchy.searches import EXHAUSTIVE, Timer, search
from collwise.validation.hierarchy.space import PREFIX, Point, Space, by_input, segments_of
from collwise.validation.hierarchy.tuning import Tuning, score

# Luo et al. 2020, section III-C, name the first two kinds of rules that leave configurations untested; the others are
# of the same sort, and were written down before anything was timed.

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


def allowed(space: Space) -> list[Point]:
    """The points that the rules of thumb let be tested; all of an input for which they would leave none."""
    groups = by_input(list(space.points())).values()
    return [point for group in groups for point in list(filter(worth_testing, group)) or group]


def with_heuristics(tuning: Tuning, timer: Timer) -> Tuning:
    """The tuning with each of its searches once more, among the points that are allowed."""
    found = {}
    for name, one in tuning.found.items():
        found[name] = one
        less = search(name, tuning.space, timer, points=allowed(tuning.space))
        found[f"{name}-heuristics"] = replace(less, search=f"{name}-heuristics")
    truth, seconds = tuning.found[EXHAUSTIVE], tuning.exhaustive_seconds
    return replace(tuning, found=found, scores=tuple(score(one, truth, seconds) for one in found.values()))
