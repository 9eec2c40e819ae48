"""Times of schedules on small networks, against times computed by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from collwise.simulator.schedule.library import ON_WAY, Schedule
from collwise.simulator.schedule.tables import ACKNOWLEDGED, EAGER, RENDEZVOUS, NetworkTables
from collwise.simulator.timing import Case
from tests.simulator.schedule.test_recording import ALGORITHMS, case_of, flat_network

ALPHA, BETA = 1e-5, 1e-9


def seconds(case: Case, **changes: object) -> float:
    """The time over ports with latency ALPHA and 1 / BETA bytes per second, with other tables as given."""
    schedule = Schedule(case)
    network = flat_network(schedule, ALPHA, BETA, over_ports=True)
    return schedule.play(replace(network, **changes)).seconds  # type: ignore[arg-type]


def table(schedule: Schedule, each: float) -> np.ndarray:
    return np.full((1, len(schedule.sizes)), each)


def test_one_message() -> None:
    case = Case("bcast", "linear", 2, 1000)
    assert seconds(case) == pytest.approx(ALPHA + 1000 * BETA)
    schedule = Schedule(case)
    network = flat_network(schedule, ALPHA, BETA)
    with_overheads = replace(network, send_seconds=table(schedule, 2e-6), receive_seconds=table(schedule, 3e-6))
    assert schedule.play(with_overheads).seconds == pytest.approx(ALPHA + 1000 * BETA + 5e-6)


@pytest.mark.parametrize("root", range(5))
@pytest.mark.parametrize("over_ports", [False, True])
def test_the_roots_time_is_when_the_root_ends(root: int, over_ports: bool) -> None:
    """A root that sends is done first, and one that gathers is done last."""
    for collective in ("bcast", "gather"):
        schedule = Schedule(Case(collective, "binomial", 5, 1000, root=root))
        played = schedule.play(flat_network(schedule, ALPHA, BETA, over_ports=over_ports))
        assert played.root_seconds == played.ends[root]
        assert (played.root_seconds == played.seconds) == (collective == "gather")


def test_a_port_divides_its_rate_among_connections() -> None:
    """All messages of a linear scatter, or gather, end together; a sender that waits serves one after another."""
    for collective in ("scatter", "gather"):
        assert seconds(Case(collective, "linear", 5, 1000)) == pytest.approx(ALPHA + 4 * 1000 * BETA)
    schedule = Schedule(Case("scatter", "linear", 5, 1000))
    over_ports = flat_network(schedule, ALPHA, BETA, over_ports=True)
    ends = schedule.play(over_ports).ends
    assert ends[1:] == pytest.approx([ALPHA + 4 * 1000 * BETA] * 4)
    waiting = schedule.play(replace(over_ports, protocol=np.full(len(schedule.sizes), RENDEZVOUS))).ends
    assert waiting[1:] == pytest.approx([ALPHA + i * 1000 * BETA for i in (1, 2, 3, 4)])


def test_messages_of_one_connection_follow_one_another() -> None:
    """A chain of segments: ALPHA for each step, and the time of a segment for each step and each segment but one."""
    case = Case("bcast", "chain", 4, 8000, 1000)
    assert seconds(case) == pytest.approx(3 * ALPHA + (3 + 7) * 1000 * BETA)


def test_a_token_bucket_lets_the_first_bytes_pass() -> None:
    assert seconds(Case("bcast", "linear", 2, 1000), burst_bytes=np.array([400.0])) == pytest.approx(ALPHA + 600 * BETA)
    assert seconds(Case("bcast", "linear", 2, 1000), burst_bytes=np.array([4000.0])) == pytest.approx(ALPHA)


def test_a_sender_waits_until_the_rest_of_its_message_fits_into_the_buffer() -> None:
    """The next message of a linear scatter then shares the port with that rest."""
    schedule = Schedule(Case("scatter", "linear", 3, 1000))
    network = replace(
        flat_network(schedule, ALPHA, BETA, over_ports=True), protocol=np.full(len(schedule.sizes), RENDEZVOUS)
    )
    ends = schedule.play(replace(network, send_buffer_bytes=400.0)).ends
    assert ends == pytest.approx([1600 * BETA, ALPHA + 1400 * BETA, ALPHA + 2000 * BETA])
    in_the_buffer = schedule.play(replace(network, send_buffer_bytes=1e6)).ends
    assert in_the_buffer == pytest.approx([0, ALPHA + 2000 * BETA, ALPHA + 2000 * BETA])


def test_acknowledgements_take_a_share_of_the_opposite_direction() -> None:
    exchange = Case("allreduce", "recursive_doubling", 2, 80000)
    assert seconds(exchange) == pytest.approx(ALPHA + 80000 * BETA)
    before_any_arrives = ALPHA / BETA
    slowed = (80000 - before_any_arrives) * 1.05 + before_any_arrives
    assert seconds(exchange, acknowledgement_share=0.05) == pytest.approx(ALPHA + slowed * BETA)
    one_way = Case("bcast", "linear", 2, 80000)
    assert seconds(one_way, acknowledgement_share=0.05) == pytest.approx(ALPHA + 80000 * BETA)


def test_uplinks_of_a_fat_tree_are_shared() -> None:
    """Two groups of four nodes whose uplink has the rate of one port: a message from each node crosses it."""
    case = Case("alltoall", "linear", 8, 1000)
    groups = {
        "switch_of": np.repeat([0, 1], 4),
        "link_rate": np.full(4, 1 / BETA),
        "route_first": np.array([0, 0, 2, 4, 4]),
        "route_links": np.array([0, 3, 2, 1]),
        "route_seconds": np.zeros(4),
    }
    assert seconds(case) == pytest.approx(ALPHA + 7 * 1000 * BETA)
    assert seconds(case, **groups) == pytest.approx(ALPHA + 16 * 1000 * BETA, rel=0.02)
    fast = groups | {"link_rate": np.full(4, 100 / BETA)}
    assert seconds(case, **fast) == pytest.approx(ALPHA + 7 * 1000 * BETA, rel=0.001)


def test_processes_of_a_node_share_its_port_and_its_memory() -> None:
    schedule = Schedule(Case("alltoall", "linear", 4, 1000))
    network = flat_network(schedule, ALPHA, BETA, over_ports=True)
    one_node = replace(
        network,
        node_of=np.zeros(4),
        class_of=np.zeros(1),
        local_transfer_seconds=schedule.sizes[None].astype(float) * BETA,
    )
    assert schedule.play(one_node).seconds == pytest.approx(1000 * BETA)
    # Twelve messages share 2e9 bytes a second.
    assert schedule.play(replace(one_node, memory_rate=2 / BETA)).seconds == pytest.approx(6 * 1000 * BETA)
    two_nodes = replace(one_node, node_of=np.array([0, 0, 1, 1]), class_of=np.zeros(2))
    assert schedule.play(two_nodes).seconds == pytest.approx(ALPHA + 4 * 1000 * BETA)


def test_ports_and_copies_slow_one_another_in_a_nodes_memory() -> None:
    """A process sends a message to another one of its node and one to another node, at the same time."""
    schedule = Schedule(Case("scatter", "linear_nonblocking", 3, 1000))
    network = flat_network(schedule, ALPHA, BETA, over_ports=True)
    within = 4 / BETA
    shared = replace(
        network,
        node_of=np.array([0, 0, 1]),
        class_of=np.zeros(2),
        local_transfer_seconds=schedule.sizes[None].astype(float) / within,
        memory_share_of_ports=0.5,
    )
    alone = [1000 / within, ALPHA + 1000 * BETA]
    # No limit, and as much as they want.
    for enough in (0.0, 4.5 / BETA):
        assert schedule.play(replace(shared, memory_rate=enough)).ends[1:] == pytest.approx(alone)
    rate = 4.2 / BETA
    part = rate / (within + 0.5 / BETA)
    local_end = 1000 / (part * within)
    far_end = local_end + 1000 * BETA - part * local_end
    found = schedule.play(replace(shared, memory_rate=rate)).ends[1:]
    assert found == pytest.approx([local_end, ALPHA + far_end])
    ports_take_nothing = replace(shared, memory_rate=rate, memory_share_of_ports=0.0)
    assert schedule.play(ports_take_nothing).ends[1:] == pytest.approx(alone)


def test_handshakes_delay_what_waits_for_its_receive() -> None:
    schedule = Schedule(Case("bcast", "linear", 2, 1000))
    network = flat_network(schedule, ALPHA, BETA, protocol=RENDEZVOUS, over_ports=True)
    delayed = replace(network, handshake_seconds=np.full((1, 1, len(schedule.sizes)), 2 * ALPHA))
    assert schedule.play(delayed).seconds == pytest.approx(3 * ALPHA + 1000 * BETA)


@pytest.mark.parametrize("procs", [2, 5])
def test_senders_wait_until_the_other_node_has_acknowledged_their_messages(procs: int) -> None:
    """Each step of a ring takes a round trip, whether or not the receiver is there; within a node nothing changes."""
    schedule = Schedule(Case("allgather", "ring", procs, 1000))
    sizes = len(schedule.sizes)
    network = flat_network(schedule, ALPHA, BETA, over_ports=True)
    network = replace(network, answer_seconds=np.full((1, 1, sizes), ALPHA))
    acknowledged = replace(network, protocol=np.full(sizes, ACKNOWLEDGED))
    steps = procs - 1
    assert schedule.play(network).seconds == pytest.approx(steps * (ALPHA + 1000 * BETA))
    assert schedule.play(acknowledged).seconds == pytest.approx(steps * (2 * ALPHA + 1000 * BETA))
    one_node = {"node_of": np.zeros(procs), "class_of": np.zeros(1)}
    assert schedule.play(replace(acknowledged, **one_node)).ends.tolist() == (
        schedule.play(replace(network, **one_node)).ends.tolist()
    )
    late = Schedule(Case("bcast", "linear", 2, 1000))
    found = late.play(
        replace(
            flat_network(late, ALPHA, BETA, over_ports=True),
            protocol=np.full(len(late.sizes), ACKNOWLEDGED),
            answer_seconds=np.full((1, 1, len(late.sizes)), ALPHA),
            receive_seconds=table(late, 9 * ALPHA),
        )
    )
    assert found.ends == pytest.approx([2 * ALPHA + 1000 * BETA, 10 * ALPHA + 1000 * BETA])


@given(st.sampled_from(ALGORITHMS), st.integers(2, 40), st.integers(0, 100_000), st.booleans())
def test_times_repeat_and_grow_with_what_messages_cost(
    algorithm: object, procs: int, message_bytes: int, over_ports: bool
) -> None:
    if algorithm.objection(procs):  # type: ignore[attr-defined]
        return
    schedule = Schedule(case_of(algorithm, procs, message_bytes))  # type: ignore[arg-type]
    network = flat_network(schedule, ALPHA, BETA, over_ports=over_ports)
    found = schedule.play(network)
    assert np.array_equal(found.ends, schedule.play(network).ends)
    twice = flat_network(schedule, 2 * ALPHA, 2 * BETA, over_ports=over_ports)
    assert schedule.play(twice).seconds == pytest.approx(2 * found.seconds, rel=1e-9)
    if not over_ports:
        # Over ports it may take less: a message that comes later leaves a port to one that others wait for.
        slower: NetworkTables = replace(network, latency_seconds=2 * network.latency_seconds)
        assert schedule.play(slower).seconds >= found.seconds * (1 - 1e-9)
    assert found.root_seconds <= found.seconds


@given(
    st.sampled_from(ALGORITHMS),
    st.integers(2, 40),
    st.integers(1, 100_000),
    st.sampled_from([(False, EAGER), (False, RENDEZVOUS), (True, EAGER), (True, RENDEZVOUS), (True, ACKNOWLEDGED)]),
)
def test_the_critical_path_is_the_whole_time_without_a_gap(
    algorithm: object, procs: int, message_bytes: int, carrier: tuple[bool, int]
) -> None:
    if algorithm.objection(procs):  # type: ignore[attr-defined]
        return
    schedule = Schedule(case_of(algorithm, procs, message_bytes))  # type: ignore[arg-type]
    over_ports, protocol = carrier
    network = flat_network(schedule, ALPHA, BETA, over_ports=over_ports, protocol=protocol)
    overhead = table(schedule, 1e-6)
    network = replace(network, send_seconds=overhead, start_seconds=overhead, receive_seconds=overhead)
    path = schedule.trace(network).path
    assert path["begin_seconds"][0] == 0
    assert np.array_equal(path["begin_seconds"][1:], path["end_seconds"][:-1])
    assert path["end_seconds"][-1] == schedule.play(network).seconds


def test_coefficients_of_the_critical_path_are_those_of_the_formula() -> None:
    """Binomial broadcast of P = 8, Hockney: 3 messages follow one another; chain: P - 1 and the segments behind."""
    for name, cut, messages, bytes_on_way in (("binomial", 0, 3, 24000), ("chain", 1000, 7, 7000)):
        schedule = Schedule(Case("bcast", name, 8, 8000, cut))
        trace = schedule.trace(flat_network(schedule, ALPHA, BETA))
        on_way = trace.path[trace.path["spent"] == ON_WAY]
        assert len(on_way) == messages, name
        assert int(trace.sizes[on_way["size"]].sum()) == bytes_on_way, name


def test_within_a_node_there_is_no_handshake_over_the_network() -> None:
    """Neither for a message that waits for its receive nor for the answer to a synchronous send of two segments."""
    schedule = Schedule(Case("bcast", "linear", 2, 1000))
    network = flat_network(schedule, ALPHA, BETA, protocol=RENDEZVOUS, over_ports=True)
    one_node = {
        "node_of": np.zeros(2),
        "class_of": np.zeros(1),
        "local_latency_seconds": table(schedule, ALPHA / 10),
        "handshake_seconds": np.full((1, 1, len(schedule.sizes)), 2 * ALPHA),
        "answer_seconds": np.full((1, 1, len(schedule.sizes)), ALPHA),
    }
    assert schedule.play(replace(network, **one_node)).seconds == pytest.approx(ALPHA / 10)
    schedule = Schedule(Case("bcast", "two_tree", 2, 4000, 1000))
    network = flat_network(schedule, ALPHA, BETA, over_ports=True)
    tables = {name: np.zeros((1, 1, len(schedule.sizes))) for name in ("handshake_seconds", "answer_seconds")}
    near = {"local_latency_seconds": table(schedule, ALPHA / 10)}
    within = replace(network, **one_node | tables | near)
    far = {name: values + 100 * ALPHA for name, values in tables.items()}
    assert schedule.play(replace(within, **far)).seconds == schedule.play(within).seconds > 0
