"""The paper's searches with rules of thumb, which leave configurations untested."""

from __future__ import annotations

import math
from dataclasses import replace

from collwise.simulator.bench import Timer
from collwise.simulator.timing import Case
from collwise.validation.hierarchy.space import PREFIX, Space, by_input, segments_of
from collwise.validation.hierarchy.tuning import Tuning, search

# Luo et al. 2020, section III-C, name the first two kinds of rules below. The other kinds also leave configurations
# untested; they were written down before anything was timed.

ONE_SIDED, SHARED_MEMORY = 2, 1
ONE_SIDED_FROM_BYTES = 512 * 2**10
"""The paper's rule: one-sided communication within a node only for segments above 512 KB."""

MAX_SEGMENTS = 256
"""The largest number of segments worth testing. This many fill any pipeline; further segments only add overhead."""

PIECES_FROM_BYTES = 4
"""A segment is sent between nodes in pieces only if it is this many times as large as a piece."""


def worth_testing(case: Case) -> bool:
    """True if the rules of thumb let a configuration be tested for an input."""
    segment = min(case.segment_bytes, case.message_bytes)
    segments = segments_of(case.message_bytes, case.segment_bytes)
    pieces = segments * segments_of(segment, case.limit_bytes or segment)
    between = case.algorithm.removeprefix(PREFIX)
    if case.parameter == ONE_SIDED and segment <= ONE_SIDED_FROM_BYTES:
        return False
    if case.parameter == SHARED_MEMORY and segment > ONE_SIDED_FROM_BYTES:
        return False
    # A chain of n nodes is full after n pieces; the root of a binomial tree sends all pieces to each of its children.
    if between == "chain" and pieces < case.nodes:
        return False
    if between == "binomial" and pieces > max(1, math.ceil(math.log2(case.nodes))):
        return False
    if case.limit_bytes and segment < PIECES_FROM_BYTES * case.limit_bytes:
        return False
    return segments <= MAX_SEGMENTS


def allowed(space: Space) -> list[Case]:
    """The configurations that the rules of thumb allow; if they allow none for an input, all of its configurations."""
    groups = by_input(space.cases()).values()
    return [case for group in groups for case in list(filter(worth_testing, group)) or group]


def with_heuristics(tuning: Tuning, timer: Timer) -> Tuning:
    """The tuning; each of its searches is also repeated among the configurations that the heuristics allow."""
    found = {}
    for name, item in tuning.found.items():
        found[name] = item
        less = search(name, allowed(tuning.space), timer)
        found[f"{name}-heuristics"] = replace(less, search=f"{name}-heuristics")
    return replace(tuning, found=found)
