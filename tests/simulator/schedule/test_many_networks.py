"""Times of one recording on several networks in one call, against those on each alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings, strategies as st

from collwise.algorithms.catalogue import Algorithm
from collwise.simulator.schedule.library import Played, Schedule
from collwise.simulator.schedule.tables import DEFERRED, EAGER, RENDEZVOUS, NetworkTables
from collwise.simulator.timing import Case
from tests.simulator.schedule.test_recording import ALGORITHMS, case_of


def network(schedule: Schedule, seed: int, protocol: int, per_node: int = 1, over_ports: bool = False) -> NetworkTables:
    """Two classes of nodes and costs by chance; many are 0, so that times are often equal."""
    chance = np.random.default_rng(seed)
    sizes, nodes = schedule.sizes, -(-schedule.procs // per_node)
    rows, pairs = (2, len(sizes)), (2, 2, len(sizes))

    def costs(shape: tuple[int, ...]) -> np.ndarray:
        return chance.integers(0, 4, shape) * 1e-6

    tables = NetworkTables(
        node_of=np.arange(schedule.procs) // per_node,
        class_of=np.arange(nodes) % 2,
        send_seconds=costs(rows),
        start_seconds=costs(rows),
        receive_seconds=costs(rows),
        reduce_seconds=costs(rows[1:]),
        copy_seconds=costs(rows[1:]),
        allocate_seconds=costs(rows[1:]),
        move_seconds=costs(rows[1:]),
        protocol=np.full(len(sizes), protocol),
        handshake_seconds=costs(pairs),
        answer_seconds=costs(pairs),
        latency_seconds=costs(pairs),
        transfer_seconds=costs(pairs),
        gap_seconds=costs(pairs),
        receive_gap_seconds=costs(rows),
        local_latency_seconds=costs(rows),
        local_transfer_seconds=costs(rows),
        flag_seconds=costs(rows[:1]),
    )
    if not over_ports:
        return tables
    rate = np.full(2, 1e9)
    return replace(tables, out_rate=rate, in_rate=rate, burst_bytes=np.zeros(2), load_bytes=sizes.astype(float))


def all_work_takes_time(tables: NetworkTables) -> NetworkTables:
    """The tables with a time for each local copy: networks on which others are free are not played in one pass."""
    names = ("copy_seconds", "allocate_seconds", "move_seconds")
    return replace(tables, **{name: getattr(tables, name) + 1e-6 for name in names})


def same(found: Played, expected: Played) -> bool:
    return np.array_equal(found.ends, expected.ends) and (found.seconds, found.root_seconds) == (
        expected.seconds,
        expected.root_seconds,
    )


@settings(max_examples=300)
@given(
    st.sampled_from(ALGORITHMS),
    st.integers(1, 40),
    st.integers(0, 3000),
    st.integers(1, 3),
    st.lists(st.tuples(st.integers(0, 2**16), st.sampled_from((EAGER, RENDEZVOUS, DEFERRED))), max_size=7),
    st.integers(0, 39),
)
def test_times_on_many_networks_are_those_of_each_traced_play(
    algorithm: Algorithm, procs: int, message_bytes: int, per_node: int, kinds: list[tuple[int, int]], root: int
) -> None:
    """A trace plays the whole schedule, with one time for each event, and none of its shortcuts."""
    if algorithm.objection(procs):
        return
    schedule = Schedule(case_of(algorithm, procs, message_bytes, root % procs))
    networks = [network(schedule, seed, protocol, per_node) for seed, protocol in kinds]
    found = schedule.play_many(networks)
    assert len(found) == len(networks)
    for played, tables in zip(found, networks, strict=True):
        assert same(played, schedule.play(tables))
        assert played.seconds == schedule.trace(tables).seconds


@settings(max_examples=40)
@given(
    st.sampled_from(ALGORITHMS), st.integers(1, 20), st.integers(0, 3000), st.integers(60, 140), st.integers(0, 2**16)
)
def test_passes_of_64_sets_and_of_the_rest_have_the_same_times(
    algorithm: Algorithm, procs: int, message_bytes: int, sets: int, seed: int
) -> None:
    """A pass has 64 sets at most, and that number and others have loops of their own."""
    if algorithm.objection(procs):
        return
    schedule = Schedule(case_of(algorithm, procs, message_bytes))
    networks = [all_work_takes_time(network(schedule, seed + i, EAGER)) for i in range(sets)]
    expected = [schedule.play(tables) for tables in networks]
    assert all(map(same, schedule.play_many(networks), expected))


def test_models_and_ports_can_be_mixed() -> None:
    schedule = Schedule(Case("allreduce", "recursive_doubling", 24, 4096))
    networks = [network(schedule, seed, EAGER, over_ports=seed % 2 > 0) for seed in range(5)]
    expected = [schedule.play(tables) for tables in networks]
    assert all(map(same, schedule.play_many(networks), expected))
