"""Recordings that stand for several message sizes, against recordings of these sizes."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from collwise.algorithms.catalogue import Algorithm
from collwise.simulator.schedule.library import Schedule
from collwise.simulator.schedule.shared import recorded
from collwise.simulator.schedule.tables import NetworkTables
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


def test_algorithms_by_node_are_recorded_for_each_placement() -> None:
    placements = [tuple(rank // 4 for rank in range(16)), tuple(rank % 4 for rank in range(16)), None]
    case = Case("allreduce", "hierarchical", 16, 1024, processes_per_node=2)
    for node_of in placements:
        schedule, sizes = recorded(case, node_of)
        own = Schedule(case, node_of)
        tables, own_tables = (NetworkTables.of_model(16, found, 1e-5, 1e-9, 3e-7) for found in (sizes, own.sizes))
        assert np.array_equal(schedule.play(tables).ends, own.play(own_tables).ends)
        assert recorded(replace(case, message_bytes=2048), node_of)[0] is schedule
    found = [recorded(case, node_of)[0] for node_of in placements]
    assert not any(one.equals(other) for one, other in combinations(found, 2))


@pytest.mark.parametrize("segment_bytes", [0, 128 * 16 - 8, 128 * 16, 200])
def test_the_hierarchical_allgather_cuts_all_blocks_together(segment_bytes: int) -> None:
    case = Case("allgather", "hierarchical", 16, 128, segment_bytes, processes_per_node=4)
    assert recorded(case)[0].messages == Schedule(case).messages
