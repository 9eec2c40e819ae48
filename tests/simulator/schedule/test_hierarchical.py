"""Algorithms that treat the processes of one node differently from others, as the schedule engine records them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import UsageError
from collwise.platforms import Calibration, Ports, load
from collwise.platforms.hosts import placed
from collwise.simulator.schedule.library import Schedule
from collwise.simulator.schedule.tables import DEFERRED, EAGER, RENDEZVOUS
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import ENGINES, SimulationContext
from collwise.simulator.timing import Case
from tests.simulator.schedule.test_recording import case_of, flat_network

BY_NODE = [
    one
    for collective in Catalogue.load().collectives.values()
    for one in collective.algorithms.values()
    if one.by_node and not one.real_mpi_only
]
PLACEMENTS = st.lists(st.integers(0, 6), min_size=1, max_size=40)
PLACES = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=40)
BY_SOCKET = 3


def seconds(
    schedule: Schedule,
    node_of: list[int],
    latency_seconds: float,
    seconds_per_byte: float = 0.0,
    local_seconds_per_byte: float = 0.0,
    protocol: int = EAGER,
    over_ports: bool = False,
) -> float:
    """The time where only messages between nodes have a latency."""
    tables = flat_network(schedule, latency_seconds, seconds_per_byte, protocol=protocol, over_ports=over_ports)
    local = schedule.sizes.astype(np.float64)[None] * local_seconds_per_byte
    placed = np.unique(node_of, return_inverse=True)[1]
    return schedule.play(replace(tables, node_of=placed, local_transfer_seconds=local)).seconds


@given(st.sampled_from(BY_NODE), PLACEMENTS | PLACES, st.integers(1, 5000), st.data())
def test_every_send_meets_its_receive_for_any_placement_and_root(
    algorithm: object, node_of: list[int], message_bytes: int, data: st.DataObject
) -> None:
    counts = {"leaders": st.integers(1, 5), "within": st.integers(0, BY_SOCKET)}
    root = data.draw(st.integers(0, len(node_of) - 1))
    part_bytes = data.draw(st.integers(1, 600))
    case = replace(
        case_of(algorithm, len(node_of), message_bytes, root),  # type: ignore[arg-type]
        segment_bytes=part_bytes if algorithm.pipelined else 0,  # type: ignore[attr-defined]
        limit_bytes=data.draw(st.integers(0, 600)) if algorithm.limit_parameter else 0,  # type: ignore[attr-defined]
        parameter=data.draw(counts.get(algorithm.count_parameter, st.just(0))),  # type: ignore[attr-defined]
    )
    schedule = Schedule(case, node_of)
    for protocol in (EAGER, RENDEZVOUS, DEFERRED):
        assert schedule.play(flat_network(schedule, 1e-5, 1e-9, protocol=protocol)).seconds >= 0


@given(PLACEMENTS, st.data())
def test_messages_cross_between_nodes_as_often_as_the_leaders_algorithm_needs(
    node_of: list[int], data: st.DataObject
) -> None:
    """Latencies on the longest path, and messages altogether."""
    procs, nodes = len(node_of), len(set(node_of))
    root = data.draw(st.integers(0, procs - 1))
    deepest = max(bin(node).count("1") for node in range(nodes))  # of an in-order binomial tree
    equal = len({node_of.count(node) for node in node_of}) == 1
    tree = procs - 1
    rounds = (nodes - 1).bit_length()
    # Bruck's allgather and the dissemination barrier send a message in each round; each way within a node is a tree.
    inside = procs - nodes
    leaders = Schedule(Case("allreduce", "recursive_doubling", nodes, 8))
    expected = {
        ("bcast", "hierarchical"): (nodes.bit_length() - 1, tree),
        ("bcast", "hierarchical_chain"): (nodes - 1, tree),
        ("reduce", "hierarchical"): (deepest, tree),
        ("reduce", "hierarchical_chain"): (nodes - 1, tree),
        ("allreduce", "hierarchical"): (2 * deepest, 2 * tree),
        ("allreduce", "hierarchical_chain"): (2 * (nodes - 1), 2 * tree),
        ("allreduce", "hierarchical_doubling"): (
            seconds(leaders, list(range(nodes)), 1.0),
            2 * inside + leaders.messages,
        ),
        ("barrier", "hierarchical"): (rounds, 2 * inside + nodes * rounds),
        ("gather", "hierarchical"): (deepest if equal else int(nodes > 1), tree),
        ("scatter", "hierarchical"): (deepest if equal else int(nodes > 1), tree),
        ("allgather", "hierarchical"): (rounds, 2 * inside + nodes * rounds),
        ("alltoall", "hierarchical"): (nodes - 1, 2 * inside + nodes * (nodes - 1)),
    }
    tasks = {  # with one segment those along a chain and along a binomial tree are these, message by message
        (collective, f"tasks_{between}"): expected[collective, name]
        for collective, between, name in (
            *(("bcast", "chain", "hierarchical_chain"), ("reduce", "chain", "hierarchical_chain")),
            *(("allreduce", "chain", "hierarchical_chain"), ("reduce", "binomial", "hierarchical")),
            *(("allreduce", "binomial", "hierarchical"), ("allreduce", "doubling", "hierarchical_doubling")),
            *(("barrier", "doubling", "hierarchical"), ("allgather", "doubling", "hierarchical")),
            ("alltoall", "pairwise", "hierarchical"),
        )
    }
    depth = max(nodes - 1, 0)
    tasks |= {
        **{("bcast", "tasks_binomial"): (deepest, tree), ("barrier", "tasks_chain"): (2 * depth, 2 * tree)},
        **{("barrier", "tasks_binomial"): (2 * deepest, 2 * tree), ("gather", "tasks_chain"): (depth, tree)},
        **{("gather", "tasks_binomial"): (deepest, tree), ("scatter", "tasks_chain"): (depth, tree)},
        **{("scatter", "tasks_binomial"): (deepest, tree), ("allgather", "tasks_chain"): (2 * depth, 2 * tree)},
        **{("allgather", "tasks_binomial"): (2 * deepest, 2 * tree)},
        **{("allgather", "tasks_ring"): (depth, 2 * inside + nodes * depth)},
        **{("allreduce", "tasks_ring"): (2 * depth, 2 * inside + 2 * nodes * depth)},
    }
    others = {one.name for one in BY_NODE} - {name for _, name in (*expected, *tasks)}
    assert others == {"tasks_binary", *(f"multi_leader_{name}" for name in ("chain", "binary", "binomial"))}
    expected |= tasks
    for (collective, name), (latencies, messages) in expected.items():
        message_bytes = 0 if collective == "barrier" else 8
        schedule = Schedule(Case(collective, name, procs, message_bytes, root=root), node_of)
        assert seconds(schedule, node_of, 1.0) == pytest.approx(latencies), (collective, name)
        assert schedule.messages == messages, (collective, name)


@given(PLACES, st.data())
def test_by_socket_each_socket_gets_one_message_from_the_others_of_its_node(
    places: list[tuple[int, int]], data: st.DataObject
) -> None:
    """Latencies between sockets on the longest path: those of a binomial tree of the sockets of a node."""
    procs = len(places)
    root = data.draw(st.integers(0, procs - 1))
    nodes = np.unique([node for node, _ in places], return_inverse=True)[1]
    sockets = [len({socket for at, socket in places if at == node}) for node, _ in places]
    deepest = max(bin(socket).count("1") for socket in range(max(sockets)))
    count, once, twice = len(set(nodes.tolist())), procs - 1, 2 * (procs - 1)
    rooted = dict.fromkeys(("bcast", "reduce", "gather", "scatter"), once)
    others = dict.fromkeys(("allreduce", "barrier", "allgather"), twice)
    others["alltoall"] = 2 * (procs - count) + count * (count - 1)
    for collective, messages in {**rooted, **others}.items():
        ways = 1 if collective in rooted else 2
        case = Case(
            collective, "tasks_pairwise" if collective == "alltoall" else "tasks_chain", procs,
            0 if collective == "barrier" else 8, 0, BY_SOCKET, root=root if ways == 1 else 0,
        )  # fmt: skip
        schedule = Schedule(case, places)
        assert schedule.messages == messages, collective
        none = np.zeros((1, len(schedule.sizes)))
        tables = replace(
            flat_network(schedule),
            node_of=nodes,
            socket_of=np.array([socket for _, socket in places]),
            cross_latency_seconds=none + 1.0,
            cross_transfer_seconds=none,
        )
        assert schedule.play(tables).seconds == pytest.approx(ways * deepest), collective


def test_the_three_levels_work_on_different_segments_at_once() -> None:
    """Where a segment takes as long on each level, as many segments take little longer than on one."""
    places, segments = [(rank // 4, rank // 2 % 2) for rank in range(8)], 100
    for collective, procs_on_way in (("bcast", 3), ("reduce", 3), ("allreduce", 6)):
        case = Case(collective, "tasks_chain", 8, 1000 * segments, 1000, BY_SOCKET)
        schedule = Schedule(case, places)
        took = seconds(schedule, [node for node, _ in places], 0.0, 1e-3, 1e-3)
        assert segments <= took <= (segments + procs_on_way) * (2 if collective == "allreduce" else 1), collective


@pytest.mark.parametrize("node_of", [[0] * 13, list(range(13))], ids=["one node", "one process a node"])
@pytest.mark.parametrize(
    ("collective", "name", "flat"),
    [
        ("bcast", "hierarchical", "binomial"),
        ("bcast", "hierarchical_chain", "chain"),
        ("reduce", "hierarchical", "binomial"),
        ("reduce", "hierarchical_chain", "pipeline"),
        ("gather", "hierarchical", "binomial"),
        ("scatter", "hierarchical", "binomial"),
    ],
)
def test_on_one_level_it_is_the_flat_algorithm(collective: str, name: str, flat: str, node_of: list[int]) -> None:
    times = []
    for algorithm in (name, flat):
        cut = 800 if Catalogue.load().algorithm(collective, algorithm).pipelined else 0
        schedule = Schedule(Case(collective, algorithm, 13, 8000, cut), node_of)
        times.append(schedule.play(flat_network(schedule, 1e-5, 1e-9)).seconds)
    assert times[0] == pytest.approx(times[1])


@pytest.mark.parametrize("protocol", [EAGER, RENDEZVOUS])
@pytest.mark.parametrize(("name", "more"), [("hierarchical", 2), ("tasks_chain", 3)])
def test_broadcasts_within_nodes_go_on_while_segments_arrive_from_others(name: str, more: int, protocol: int) -> None:
    """As the task sbib: a segment takes as long on both levels, and the whole little longer than on one."""
    node_of, segments = [0, 0, 1, 1], 100
    schedule = Schedule(Case("bcast", name, 4, 1000 * segments, 1000), node_of)
    took = seconds(schedule, node_of, 0.0, 1e-3, 1e-3, protocol)
    assert segments <= took <= segments + more


@pytest.mark.parametrize("protocol", [EAGER, RENDEZVOUS])
@pytest.mark.parametrize(
    ("name", "most"),
    [
        # The root receives from several while it sends to them.
        ("hierarchical", 0.75),
        # Every process of a chain sends and receives at once already, in the reduction as in the broadcast.
        ("hierarchical_chain", 1.02),
    ],
)
def test_an_allreduce_overlaps_its_reduction_and_its_broadcast(name: str, most: float, protocol: int) -> None:
    """Many segments are under way in both directions, although each one's way up and down takes many latencies."""
    node_of = [rank // 4 for rank in range(32)]
    times = {}
    for collective in ("reduce", "bcast", "allreduce"):
        schedule = Schedule(Case(collective, name, 32, 400 * 8192, 8192), node_of)
        times[collective] = seconds(schedule, node_of, 2e-5, 1e-9, 2e-10, protocol, over_ports=True)
    assert times["allreduce"] < most * (times["reduce"] + times["bcast"])


@pytest.mark.parametrize("between", ["chain", "binomial"])
def test_the_parts_of_a_segment_make_the_way_along_a_chain_shorter(between: str) -> None:
    """A chain of 8 nodes passes on a part while the next one comes; a binomial tree's root sends as much as before."""
    times = []
    for part_bytes in (0, 1000):
        case = Case("bcast", f"tasks_{between}", 16, 8000, 8000, limit_bytes=part_bytes, processes_per_node=2)
        times.append(seconds(Schedule(case), [rank // 2 for rank in range(16)], 0.0, 1e-3))
    whole, in_parts = times
    assert whole == pytest.approx({"chain": 7 * 8, "binomial": 3 * 8}[between])
    assert in_parts == pytest.approx({"chain": 8 + 6, "binomial": 3 * 8}[between])


def test_several_leaders_share_the_way_between_nodes() -> None:
    """Where processes have ports of their own, as many leaders as processes take as many times less."""
    node_of = [rank // 4 for rank in range(16)]
    for collective in ("bcast", "allreduce"):
        times = []
        for leaders in (1, 2, 4):
            case = Case(collective, "multi_leader_chain", 16, 64000, 8000, leaders, processes_per_node=4)
            times.append(seconds(Schedule(case), node_of, 0.0, 1e-3))
        assert times[0] > 1.8 * times[1] > 3.4 * times[2]


def test_messages_go_on_in_the_order_in_which_they_arrive() -> None:
    """The reduction of a segment passes the broadcast of the one before, which comes from the other end of the chain.

    The last leader sends its second segment behind the first one, so that two segments take one message more than one:
    if every leader waited for the broadcast first, they would take half as long again.
    """
    node_of = list(range(8))
    one, two = (
        seconds(Schedule(Case("allreduce", "tasks_chain", 8, 1000 * count, 1000)), node_of, 1.0) for count in (1, 2)
    )
    assert one == pytest.approx(14)
    assert two <= 15


def test_mpis_own_collectives_are_refused() -> None:
    with pytest.raises(UsageError, match="MPI's own collectives"):
        Schedule(Case("bcast", "tasks_library", 8, 8000, processes_per_node=4))


def test_simulations_place_processes_as_the_platform_says(tmp_path: Path) -> None:
    """Cyclic placement makes a chain over nodes of a flat one, and changes nothing for a hierarchical one."""
    times = {}
    for platform in (load("gros"), placed(load("gros"), "cyclic")):
        for name in ("chain", "hierarchical_chain"):
            case = Case("bcast", name, 32, 2**20, 8192, processes_per_node=8)
            with Store(tmp_path / "timings.sqlite") as store:
                done = SimulationContext(store, ENGINES["schedule"]).simulate(platform, [case]).complete()
            times[platform.title, name] = done.timings[case].seconds
    flat, by_node, flat_cyclic, by_node_cyclic = times.values()
    assert by_node_cyclic == pytest.approx(by_node)
    assert flat_cyclic > 2 * flat


def test_communicators_of_many_nodes_are_recorded() -> None:
    schedule = Schedule(Case("allreduce", "hierarchical", 4096, 8, processes_per_node=32))
    assert schedule.messages == 2 * 4095


@pytest.mark.parametrize("own_path", [False, True], ids=["SMPI's loopback", "its own path"])
def test_a_message_within_a_node_has_its_own_path_and_no_overheads_of_the_network(
    own_path: bool, tmp_path: Path
) -> None:
    calibration = Calibration(os=((0, 2e-6, 0.0),), or_=((0, 3e-6, 0.0),), ois=((0, 1e-6, 0.0),), tcp_window=False)
    path = {"loopback_latency_seconds": 1e-5, "loopback_bytes_per_second": 1e9} if own_path else {}
    platform = replace(
        load("gros"),
        loopback_latency_seconds=4e-6,
        loopback_bytes_per_second=5e8,
        calibration=calibration,
        ports=Ports(1e8, 7e-6, **path),
    )
    cases = [Case("bcast", "linear", 2, 1000, processes_per_node=per_node) for per_node in (2, 1)]
    with Store(tmp_path / "store.sqlite") as store:
        timings = SimulationContext(store, ENGINES["schedule"]).simulate(platform, cases).timings
    within = 1e-5 + 1000 / 1e9 if own_path else 2e-6 + 4e-6 + 1000 / 5e8 + 3e-6
    assert timings[cases[0]].seconds == pytest.approx(within)
    assert timings[cases[1]].seconds == pytest.approx(2e-6 + 7e-6 + 1000 / 1e8 + 3e-6)
