"""Processes that do the same are played once: their times against those of a play of all processes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collwise.algorithms.catalogue import Algorithm
from collwise.simulator.schedule.library import EAGER, RENDEZVOUS, NetworkTables, Schedule
from tests.simulator.schedule.test_recording import ALGORITHMS, case_of


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
        memory_rate=1e10 if per_node == 3 else 0.0,
    )


@settings(max_examples=300)
@given(
    st.sampled_from(ALGORITHMS),
    st.integers(2, 48),
    st.integers(1, 4),
    st.integers(1, 50),
    st.booleans(),
    st.sampled_from((EAGER, RENDEZVOUS)),
)
def test_times_are_those_of_a_play_of_all_processes(
    algorithm: Algorithm, procs: int, per_node: int, elements: int, over_ports: bool, protocol: int
) -> None:
    if algorithm.objection(procs):
        return
    schedule = Schedule(case_of(algorithm, procs, 8 * procs * elements))
    plays = [
        schedule.play(network(schedule, per_node, over_ports=over_ports, protocol=protocol, apart=apart)).ends
        for apart in (False, True)
    ]
    assert plays[0] == pytest.approx(plays[1], rel=1e-12)
