"""Recordings that stand for several message sizes, against recordings of these sizes."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from collwise.algorithms.catalogue import Algorithm
from collwise.simulator.schedule.library import NetworkTables, Schedule
from collwise.simulator.schedule.shared import recorded
from collwise.simulator.timing import Case
from tests.simulator.schedule.test_recording import ALGORITHMS

UNCUT = [algorithm for algorithm in ALGORITHMS if algorithm.part_parameter in ("", "segment_bytes")]


@settings(max_examples=200)
@given(
    st.sampled_from(UNCUT),
    st.integers(2, 40),
    st.integers(1, 3000),
    st.booleans(),
    st.integers(0, 3000),
    st.integers(0, 39),
)
def test_a_shared_recording_has_the_messages_of_each_size(
    algorithm: Algorithm, procs: int, elements: int, is_multiple: bool, cut: int, root: int
) -> None:
    if algorithm.objection(procs):
        return
    message_bytes = 8 * procs * elements if is_multiple else elements
    segment_bytes = 8 * cut if algorithm.part_parameter else 0
    case = Case(algorithm.collective, algorithm.name, procs, message_bytes, segment_bytes, root=root % procs)
    schedule, sizes = recorded(case)
    own = Schedule(case)
    assert schedule.messages == own.messages
    assert set(sizes) == set(own.sizes)
    tables, own_tables = (NetworkTables.of_model(procs, found, 1e-5, 1e-9, 3e-7) for found in (sizes, own.sizes))
    assert np.array_equal(schedule.play(tables).ends, own.play(own_tables).ends)


def test_sizes_of_one_algorithm_share_a_recording() -> None:
    cases = [Case("allreduce", "ring", 16, 1024 * factor) for factor in (1, 2, 7)]
    first, *others = (recorded(case)[0] for case in cases)
    assert all(other is first for other in others)
    assert recorded(Case("allreduce", "ring", 16, 1000))[0] is not first
    assert recorded(Case("allreduce", "ring", 16, 1024, processes_per_node=2))[0] is first
