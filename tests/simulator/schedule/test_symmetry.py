"""Processes that do the same are played once: their times against those of a play of all processes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from collwise.algorithms.catalogue import Algorithm
from collwise.platforms import Dragonfly, FatTree, Topology, Torus
from collwise.simulator.schedule.library import Schedule
from collwise.simulator.schedule.networks import network_tables
from collwise.simulator.schedule.tables import ACKNOWLEDGED, EAGER, RENDEZVOUS, NetworkTables
from collwise.simulator.timing import Case
from tests.simulator.schedule.test_recording import ALGORITHMS, case_of
from tests.simulator.schedule.test_topologies import platform_with


def network(schedule: Schedule, per_node: int, *, over_ports: bool, protocol: int, apart: bool) -> NetworkTables:
    """Equal nodes; `apart` puts each into a class of its own, so that none stands for another."""
    sizes, nodes = schedule.sizes, -(-schedule.procs // per_node)
    classes = nodes if apart else 1
    tables = NetworkTables.of_model(schedule.procs, sizes, 1e-5, 1e-9, 3e-7, protocol)
    ones, pairs = np.ones((classes, 1)), np.ones((classes, classes, 1))
    tables = replace(
        tables,
        node_of=np.arange(schedule.procs) // per_node,
        class_of=np.arange(nodes) % classes,
        send_seconds=ones * tables.send_seconds,
        start_seconds=ones * tables.start_seconds,
        receive_seconds=ones * tables.receive_seconds,
        handshake_seconds=pairs * np.full((1, 1, len(sizes)), 3e-6),
        answer_seconds=pairs * np.full((1, 1, len(sizes)), 2e-6),
        latency_seconds=pairs * tables.latency_seconds,
        transfer_seconds=pairs * tables.transfer_seconds,
        gap_seconds=pairs * tables.gap_seconds,
        receive_gap_seconds=ones * tables.receive_gap_seconds,
        local_latency_seconds=ones * np.full((1, len(sizes)), 3e-7),
        local_transfer_seconds=ones * sizes[None] * 1.5e-10,
    )
    if not over_ports:
        return tables
    rates = np.full(classes, 1e9)
    return replace(
        tables,
        out_rate=rates,
        in_rate=rates,
        burst_bytes=np.zeros(classes),
        load_bytes=sizes.astype(np.float64),
        acknowledgement_share=0.05,
        memory_rate={2: 3e9, 3: 1e10}.get(per_node, 0.0),
        memory_share_of_ports=0.5 if per_node == 2 else 0.0,
    )


@settings(max_examples=300)
@given(
    st.sampled_from(ALGORITHMS),
    st.integers(2, 48),
    st.integers(1, 4),
    st.integers(1, 50),
    st.booleans(),
    st.sampled_from((EAGER, RENDEZVOUS, ACKNOWLEDGED)),
)
def test_times_are_those_of_a_play_of_all_processes(
    algorithm: Algorithm, procs: int, per_node: int, elements: int, over_ports: bool, protocol: int
) -> None:
    if algorithm.objection(procs):
        return
    over_ports |= protocol == ACKNOWLEDGED
    schedule = Schedule(case_of(algorithm, procs, 8 * procs * elements))
    plays = [
        schedule.play(network(schedule, per_node, over_ports=over_ports, protocol=protocol, apart=apart)).ends
        for apart in (False, True)
    ]
    assert plays[0] == pytest.approx(plays[1], rel=1e-12)


MIRRORED = [one for one in ALGORITHMS if one.name in ("recursive_doubling", "recursive_halving", "rabenseifner")]
"""Those in which partners differ in a bit of their ranks if P is a power of two; a few more."""


@settings(max_examples=150)
@given(
    st.sampled_from(MIRRORED),
    st.sampled_from((2, 4, 8, 16, 32, 64)),
    st.integers(1, 4),
    st.integers(1, 50),
    st.booleans(),
    st.booleans(),
    st.sampled_from((EAGER, RENDEZVOUS, ACKNOWLEDGED)),
)
def test_times_of_mirrored_processes_are_those_of_a_play_of_all(
    algorithm: Algorithm, procs: int, per_node: int, elements: int, has_blocks: bool, over_ports: bool, protocol: int
) -> None:
    over_ports |= protocol == ACKNOWLEDGED
    schedule = Schedule(case_of(algorithm, procs, 8 * elements * (procs if has_blocks else 1)))
    plays = [
        schedule.play(network(schedule, per_node, over_ports=over_ports, protocol=protocol, apart=apart)).ends
        for apart in (False, True)
    ]
    assert plays[0] == pytest.approx(plays[1], rel=1e-12)


@pytest.mark.parametrize("over_ports", [False, True])
def test_a_slow_node_is_noticed_wherever_it_is(over_ports: bool) -> None:
    """Recursive doubling looks the same from every process, and so takes as long with any one of them slow."""
    procs, slowed = 8, 10 * np.eye(8, 1, -1) + 1  # the second class of nodes
    schedule = Schedule(Case("allreduce", "recursive_doubling", procs, 8))
    tables = network(schedule, 1, over_ports=over_ports, protocol=EAGER, apart=True)
    tables = replace(
        tables, start_seconds=slowed * tables.start_seconds, receive_seconds=slowed * tables.receive_seconds
    )

    def seconds(slow: int) -> float:
        return schedule.play(replace(tables, class_of=(np.arange(procs) == slow).astype(np.intp))).seconds

    assert [seconds(slow) for slow in range(procs)] == pytest.approx([seconds(0)] * procs)
    assert seconds(0) > 1.1 * seconds(procs)  # of which none is slow


def test_processes_whose_partners_differ_in_a_bit_share_a_program() -> None:
    doubling = Schedule(Case("allreduce", "recursive_doubling", 1024, 8))
    # Every second one ends with its sum in the other buffer, and copies it.
    assert (doubling.programs, doubling.messages) == (2, 1024 * 10)
    assert Schedule(Case("allreduce", "recursive_doubling", 1000, 8)).programs > 500
    assert doubling.rounds() == 10


HOP = 2e-6

# Those after which a part of the switches can stand for all, and those in which a route passes alike links twice, as
# along a ring of the torus, or the number of nodes leaves a switch half empty.
TOPOLOGIES = (
    FatTree(2, HOP, 2.0),
    FatTree(4, HOP, 8.0),
    FatTree(3, HOP, 2.0),
    FatTree(2, HOP, 1.0, 2, 2.0),
    Dragonfly(2, HOP, 4, 2, 4e8, 5e7),
    Dragonfly(2, HOP, 2, 4, 4e8, 5e7),
    Torus(1, HOP, (16,)),
    Torus(2, HOP, (2, 2, 2), 1e8),
    Torus(4, HOP, (2, 2), 5e7),
)


def apart(tables: NetworkTables) -> NetworkTables:
    """The same tables with each node in a class of its own, so that none stands for another."""
    nodes = len(tables.class_of)
    by_class = ("send_seconds", "start_seconds", "receive_seconds", "receive_gap_seconds", "local_latency_seconds")
    by_class += ("local_transfer_seconds", "out_rate", "in_rate", "burst_bytes")
    by_pair = ("handshake_seconds", "answer_seconds", "latency_seconds", "transfer_seconds", "gap_seconds")
    changes = {name: np.repeat(getattr(tables, name), nodes, axis=0) for name in by_class}
    for name in by_pair:
        changes[name] = np.repeat(np.repeat(getattr(tables, name), nodes, axis=0), nodes, axis=1)
    return replace(tables, class_of=np.arange(nodes), **changes)


@settings(max_examples=300)
@given(
    st.sampled_from([one for one in ALGORITHMS if one.name in ("ring", "linear", "pairwise", "linear_sync", "bruck")]),
    st.sampled_from(TOPOLOGIES),
    st.sampled_from((4, 8, 12, 16)),
    st.integers(1, 4),
    st.sampled_from((1, 100, 3000, 20000)),
    st.booleans(),
)
def test_times_over_links_between_switches_are_those_of_a_play_of_all_processes(
    algorithm: Algorithm, topology: Topology, nodes: int, per_node: int, elements: int, shares_memory: bool
) -> None:
    procs = nodes * per_node
    schedule = Schedule(replace(case_of(algorithm, procs, 8 * elements), processes_per_node=per_node))
    platform = platform_with(topology, memory_bytes_per_second=3e8 if shares_memory else None)
    tables = network_tables(platform, procs, per_node, schedule.sizes)
    assert schedule.play(tables).ends == pytest.approx(schedule.play(apart(tables)).ends, rel=1e-12)
