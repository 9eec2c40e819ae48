"""Slow nodes and degraded cables on switched networks, in both engines."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from collwise.common.experiments import ROUNDTRIP, Experiment
from collwise.platforms import (
    Buffers,
    Calibration,
    HeterogeneousPlatform,
    HostPlatform,
    PlacedPlatform,
    Platform,
    Ports,
)
from collwise.platforms.description import NodeFault, NodeType, Wire
from collwise.platforms.topology import CableFault
from collwise.simulator.schedule.library import Schedule
from collwise.simulator.schedule.networks import network_tables
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import SimulationContext
from collwise.simulator.timing import Case
from tests.needs import needs
from tests.simulator.schedule.test_topologies import ENVELOPE, LATENCY, RATE, TOPOLOGIES, platform_with

OVERHEAD = 3e-6
ROWS = ((0, OVERHEAD, 1e-10),)
CALIBRATION = Calibration(os=ROWS, or_=ROWS, ois=ROWS, crosstraffic=False, tcp_window=False, eager_limit_bytes=2**30)
FREE = Calibration(crosstraffic=False, tcp_window=False, eager_limit_bytes=2**30)
SWITCHED = sorted(TOPOLOGIES)
ALGORITHMS = [
    ("allgather", "ring"),
    ("allreduce", "recursive_doubling"),
    ("alltoall", "linear"),
    ("bcast", "binomial"),
    ("bcast", "chain"),
    ("gather", "linear"),
    ("reduce", "binomial"),
]
FASTER_BY_CHANCE = [("allreduce", "recursive_doubling"), ("bcast", "binomial"), ("gather", "linear")]


def faulty(platform: Platform, nodes: tuple[NodeFault, ...] = (), cables: tuple[CableFault, ...] = ()) -> Platform:
    topology = platform.topology and replace(platform.topology, cable_faults=cables)
    return replace(platform, node_faults=nodes, topology=topology)


def ends_of(platform: HostPlatform, case: Case) -> list[float]:
    schedule = Schedule(case)
    tables = network_tables(platform, case.procs, case.processes_per_node, schedule.sizes)
    return schedule.play(tables).ends.tolist()


cases = st.builds(
    lambda named, size, segment: Case(*named, 16, size, segment if named[1] == "chain" else 0),
    st.sampled_from(ALGORITHMS),
    st.sampled_from([1, 4096, 1_000_000]),
    st.sampled_from([0, 65536]),
)
platforms = st.builds(
    lambda name, calibration: platform_with(TOPOLOGIES[name][0], calibration=calibration),
    st.sampled_from(SWITCHED),
    st.sampled_from([FREE, CALIBRATION]),
)
factors = st.floats(1, 20)
node_faults = st.builds(
    lambda node, overheads, rate: NodeFault(node, overheads, 1 / rate), st.integers(0, 15), factors, factors
)
cable_faults = st.builds(lambda switch, rate: CableFault((switch,), 1 / rate), st.integers(0, 3), factors)


@given(platforms, cases, st.integers(0, 15), st.integers(0, 3))
def test_factors_of_one_change_nothing_to_the_last_digit(
    platform: Platform, case: Case, node: int, switch: int
) -> None:
    same = faulty(platform, (NodeFault(node),), (CableFault((switch,), 1.0),))
    assert ends_of(same, case) == ends_of(platform, case)
    assert not same.heterogeneous
    assert same.digest() == platform.digest()


@given(platforms, cases, st.lists(node_faults, max_size=2, unique_by=lambda one: one.node), st.lists(cable_faults))
def test_faults_make_no_collective_faster(
    platform: Platform, case: Case, nodes: list[NodeFault], cables: list[CableFault]
) -> None:
    """Except where a message that starts later leaves a shared port or link to others, whose receivers then go on.

    Of 10,000 broadcasts by a binomial tree 278 were faster, by 15 % at most.
    """
    slower = faulty(platform, tuple(nodes), tuple(cables))
    less = 0.25 if (case.collective, case.algorithm) in FASTER_BY_CHANCE else 1e-9
    assert max(ends_of(slower, case)) >= max(ends_of(platform, case)) * (1 - less)


@given(platforms, cases, node_faults, cable_faults)
def test_processes_that_repeat_are_told_from_those_with_faults(
    platform: Platform, case: Case, node: NodeFault, cable: CableFault
) -> None:
    """With a trace all processes are played, otherwise one stands for those that do the same on equal nodes."""
    for slower in (faulty(platform, (node,)), faulty(platform, (), (cable,))):
        schedule = Schedule(case)
        tables = network_tables(slower, 16, 1, schedule.sizes)
        assert schedule.play(tables).seconds == pytest.approx(schedule.trace(tables).seconds, rel=1e-12)


def latency_between(platform: Platform, one: int, other: int) -> float:
    topology = platform.topology
    assert topology is not None
    cables = topology.cables(16, RATE)
    route = topology.route(16, topology.switch_of(one), topology.switch_of(other))
    return LATENCY + sum(cables[link // 2].latency_seconds for link in route)


@pytest.mark.parametrize("name", SWITCHED)
def test_a_linear_gather_takes_as_long_as_its_slow_port_is_busy(name: str) -> None:
    """The root's is busy from the first byte of its nearest node on, a sender's from the start."""
    size, slow = 1_000_000, RATE / 50
    base = platform_with(TOPOLOGIES[name][0], calibration=FREE)
    gather = Case("gather", "linear", 16, size)
    nearest = min(latency_between(base, 0, other) for other in range(1, 16))
    root = faulty(base, (NodeFault(0, rate_factor=1 / 50),))
    assert max(ends_of(root, gather)) == pytest.approx(nearest + 15 * size / slow, rel=1e-9)
    for node in (1, 7, 15):
        sender = faulty(base, (NodeFault(node, rate_factor=1 / 50),))
        expected = latency_between(base, node, 0) + size / slow
        assert max(ends_of(sender, gather)) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("name", "switches"),
    [
        *(("fat tree", (one,)) for one in range(4)),
        ("fat tree of three levels", (7,)),
        ("dragonfly", (5,)),
        ("torus", (1, 0)),
        ("torus", (4, 5)),
        ("torus", (3,)),
        ("ring", (0, 15)),
    ],
)
def test_a_linear_gather_takes_as_long_as_a_degraded_cable_is_busy(name: str, switches: tuple[int, ...]) -> None:
    """All messages pass it whose routes do."""
    size = 1_000_000
    base = platform_with(TOPOLOGIES[name][0], calibration=FREE)
    topology = base.topology
    assert topology is not None
    cables = topology.cables(16, RATE)
    degraded = topology.cables_at(switches, cables)
    passing = [0] * 2 * len(cables)
    for node in range(1, 16):
        for link in topology.route(16, topology.switch_of(node), 0):
            passing[link] += 1
    busy = max(max(passing[2 * one : 2 * one + 2]) / cables[one].bytes_per_second for one in degraded)
    found = max(ends_of(faulty(base, (), (CableFault(switches, 1e-3),)), Case("gather", "linear", 16, size)))
    assert busy > 0
    assert found == pytest.approx(size * busy * 1e3, rel=1e-4)


def test_the_root_of_a_broadcast_spends_its_overheads_slowly() -> None:
    base = platform_with(TOPOLOGIES["fat tree"][0], calibration=CALIBRATION)
    bcast = Case("bcast", "linear", 16, 1)
    before, after = (ends_of(one, bcast) for one in (base, faulty(base, (NodeFault(0, overhead_factor=8),))))
    assert after[0] - before[0] == pytest.approx(7 * 15 * (OVERHEAD + 1e-10), rel=1e-9)
    receiver = ends_of(faulty(base, (NodeFault(6, overhead_factor=8),)), bcast)
    assert receiver[6] - before[6] == pytest.approx(7 * (OVERHEAD + 1e-10), rel=1e-9)
    assert receiver[:6] + receiver[7:] == before[:6] + before[7:]


def of_two_types(platform: Platform, fault: NodeFault) -> HeterogeneousPlatform:
    """The same at one switch as a cluster of different nodes, of which the last one has the fault."""
    assert fault.node == platform.nodes - 1
    (_, base, per_byte), own = platform.calibration.os[0], platform.calibration
    usual = NodeType(
        *("usual", platform.nodes - 1, 1, 1, platform.core_flops, base, per_byte, base, per_byte),
        link_bytes_per_second=platform.node_bytes_per_second,
        link_latency_seconds=platform.link_latency_seconds,
    )
    times = {name: getattr(usual, name) * fault.overhead_factor for name in vars(usual) if name[:4] in ("send", "rece")}
    rate = usual.link_bytes_per_second * fault.rate_factor
    other = replace(usual, name="faulty", nodes=1, link_bytes_per_second=rate, **times)
    free = ((0, 0.0, 0.0),)
    return HeterogeneousPlatform(
        name="two-types",
        title="two types",
        site=platform.site,
        host_prefix=platform.host_prefix,
        host_suffix=platform.host_suffix,
        loopback_bytes_per_second=platform.loopback_bytes_per_second,
        loopback_latency_seconds=platform.loopback_latency_seconds,
        calibration=replace(own, os=free, or_=free, ois=free),
        node_types=(usual, other),
        wires=(Wire("usual", "usual", 0.0, 1e15), Wire("usual", "faulty", 0.0, 1e15)),
    )


@given(cases, st.builds(lambda overheads, rate: NodeFault(15, overheads, 1 / rate), factors, factors))
def test_times_are_those_of_a_cluster_with_a_node_of_another_type(case: Case, fault: NodeFault) -> None:
    """At one switch, and at a switch of a fat tree that holds all nodes."""
    expected = ends_of(of_two_types(platform_with(None, calibration=CALIBRATION), fault), case)
    for topology in (None, replace(TOPOLOGIES["fat tree"][0], nodes_per_switch=16)):
        platform = faulty(platform_with(topology, calibration=CALIBRATION), (fault,))
        assert ends_of(platform, case) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("buffers", [None, Buffers(10**9, initial_window_packets=10**6)])
def test_described_ports_and_packets_pass_at_a_degraded_rate(buffers: Buffers | None) -> None:
    ports = Ports(RATE, LATENCY, loopback_latency_seconds=1e-6, loopback_bytes_per_second=RATE, buffers=buffers)
    base = platform_with(TOPOLOGIES["fat tree"][0], calibration=FREE, ports=ports)
    before, after = (
        ends_of(one, Case("bcast", "linear", 2, 1_000_000)) for one in (base, faulty(base, (NodeFault(1, 1, 0.1),)))
    )
    assert before[1] == pytest.approx(1_000_000 / RATE, rel=0.01)
    assert after[1] == pytest.approx(1_000_000 / (RATE / 10), rel=0.01)


@needs("smpi")
@pytest.mark.parametrize("name", SWITCHED)
def test_a_message_from_a_slow_node_takes_the_same_in_smpi(name: str, tmp_path: Path) -> None:
    """Its overheads and its link, and a cable of its switch, one at a time, and the way back to the root's node."""
    base = platform_with(TOPOLOGIES[name][0], calibration=CALIBRATION)
    assert base.topology is not None
    last, size = base.topology.switch_of(15), 500_000
    sound = latency_between(base, 0, 15) + (size + ENVELOPE) / TOPOLOGIES[name][2]
    overheads = OVERHEAD + size * 1e-10
    (index, *_) = base.topology.cables_at((last,), base.topology.cables(16, RATE))
    cable = base.topology.cables(16, RATE)[index].bytes_per_second * 0.01
    with Store(tmp_path / "timings.sqlite") as store:
        for nodes, cables, expected in (
            ((NodeFault(15, overhead_factor=10),), (), sound + 11 * overheads),
            (
                (NodeFault(15, rate_factor=0.05),),
                (),
                latency_between(base, 0, 15) + (size + ENVELOPE) / (RATE * 0.05) + 2 * overheads,
            ),
            (
                (),
                (CableFault((last,), 0.01),),
                latency_between(base, 0, 15) + (size + ENVELOPE) / cable + 2 * overheads,
            ),
        ):
            far = PlacedPlatform(faulty(base, nodes, cables), (0, 15), "far")
            (both_ways,) = SimulationContext(store).laboratory(far, 2).run([Experiment(ROUNDTRIP, (0, 1), size, size)])
            assert both_ways.seconds / 2 == pytest.approx(expected, rel=1e-3)


@needs("smpi")
def test_collectives_with_a_slow_node_take_nearly_the_same_in_smpi(tmp_path: Path) -> None:
    """Over topologies on which SMPI and the schedule engine agree without faults."""
    with Store(tmp_path / "timings.sqlite") as store:
        for name in ("fat tree", "fat tree of three levels", "torus of three dimensions"):
            base = platform_with(TOPOLOGIES[name][0])
            platform = faulty(base, (NodeFault(5, 4.0, 0.25),), (CableFault((1,), 0.5),))
            asked = [
                Case(collective, algorithm, 16, 100_000)
                for collective, algorithm in (("allgather", "ring"), ("allreduce", "ring"), ("bcast", "chain"))
            ]
            timings = SimulationContext(store).simulate(platform, asked).complete().timings
            for case, timing in timings.items():
                schedule = Schedule(case)
                tables = network_tables(platform, 16, 1, schedule.sizes, like_smpi=True)
                assert schedule.play(tables).seconds == pytest.approx(timing.seconds, rel=0.01)
