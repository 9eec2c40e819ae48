"""Recordings that stand for several message sizes, against recordings of these sizes."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from collwise.algorithms.catalogue import Algorithm
from collwise.simulator.schedule.library import Schedule
from collwise.simulator.schedule.shared import proportions_for, recorded
from collwise.simulator.schedule.tables import EAGER, RENDEZVOUS, NetworkTables
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


def tables_of(sizes: np.ndarray, latency: float = 2e-5, seconds_per_byte: float = 1e-8) -> NetworkTables:
    """Messages below 1000 bytes are eager; those within a node take a tenth, and reductions a fifth."""
    tables = NetworkTables.of_model(8, sizes, latency, seconds_per_byte, overhead_seconds=1e-6)
    return replace(
        tables,
        protocol=np.where(sizes < 1000, EAGER, RENDEZVOUS),
        handshake_seconds=np.full((1, 1, len(sizes)), 1e-5),
        reduce_seconds=sizes * (seconds_per_byte / 5),
        local_latency_seconds=np.full((1, len(sizes)), 1e-6),
        local_transfer_seconds=sizes[None] * (seconds_per_byte / 10),
    )


@pytest.mark.parametrize(
    ("message_bytes", "segment_bytes", "between_bytes", "latency_bytes"),
    [(4000, 0, 0, 3200), (4000, 2000, 0, 3200), (4000, 2000, 500, 2200), (0, 0, 0, 2200)],
)
def test_proportions_are_those_of_the_shortest_segment(
    message_bytes: int, segment_bytes: int, between_bytes: int, latency_bytes: int
) -> None:
    """20 us and two overheads of 1 us, and 10 us for a handshake, at 10 ns a byte."""
    case = Case("allreduce", "tasks_binary", 8, message_bytes, segment_bytes, limit_bytes=between_bytes)
    found = proportions_for(case, tables_of)
    assert found is not None
    assert (found.latency_bytes, found.local_latency_bytes) == (latency_bytes, 300)
    assert (found.local_share, found.reduce_share) == (0.1, 0.2)
    assert found.leaves_at_once
    assert 1000 <= found.eager_bytes < 1000 * 2**0.25


def test_recordings_depend_on_proportions_where_processes_take_what_comes_first() -> None:
    slow, fast = partial(tables_of, seconds_per_byte=1e-7), partial(tables_of, seconds_per_byte=1e-10)
    for name, depends in (("tasks_binary", True), ("hierarchical", False)):
        case = Case("allreduce", name, 8, 2**16, 2**12)
        proportions = [proportions_for(case, network) for network in (slow, fast)]
        assert (proportions[0] != proportions[1]) is depends
        (one, _), (other, _) = (recorded(case, tuple(range(8)), found) for found in proportions)
        assert one.equals(other) is not depends


def test_messages_without_a_rate_have_no_proportions() -> None:
    case = Case("allreduce", "tasks_binary", 8, 2**16, 2**12)
    assert proportions_for(case, partial(tables_of, seconds_per_byte=0.0)) is None
