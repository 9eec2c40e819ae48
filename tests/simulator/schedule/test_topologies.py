"""Both engines on every topology: latencies and rates of far nodes, the memory of a node, and times of collectives."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from collwise.common.experiments import ROUNDTRIP, Experiment
from collwise.platforms import (
    Calibration,
    Dragonfly,
    FatTree,
    HostPlatform,
    PlacedPlatform,
    Platform,
    Topology,
    Torus,
    load_description,
    placed,
)
from collwise.platforms.topology import share_in_use
from collwise.simulator.schedule.critical_path import path_parts
from collwise.simulator.schedule.library import Schedule
from collwise.simulator.schedule.networks import network_tables, places_of
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import SCHEDULE, SimulationContext
from collwise.simulator.timing import Case
from tests.needs import needs

RATE, LATENCY, HOP, ENVELOPE = 1e8, 1e-5, 2e-6, 16

# Topology, and the hops and the least rate on the way from node 0 to the last of 16 nodes, which is the farthest.
TOPOLOGIES: dict[str, tuple[Topology, int, float]] = {
    "fat tree": (FatTree(4, HOP), 2, RATE),
    "fat tree, oversubscribed": (FatTree(4, HOP, 8.0), 2, RATE / 2),
    "fat tree of three levels": (FatTree(2, HOP, 1.0, 2, 1.0), 4, RATE),
    "dragonfly": (Dragonfly(2, HOP, 4, 2, 4e8, 5e7), 3, 5e7),
    "ring": (Torus(1, HOP, (16,)), 1, RATE),
    "torus": (Torus(1, HOP, (4, 4), 8e7), 2, 8e7),
    "torus of three dimensions": (Torus(2, HOP, (2, 2, 2), 1e9), 3, RATE),
}


def platform_with(topology: Topology | None, **others: object) -> Platform:
    plain: dict[str, object] = {"calibration": Calibration(crosstraffic=False, tcp_window=False), "nodes": 16}
    described = replace(
        load_description("exact"),
        link_bytes_per_second=RATE,
        link_latency_seconds=LATENCY / 2,
        loopback_bytes_per_second=4 * RATE,
        topology=topology,
    )
    return replace(described, **(plain | others))


def played(platform: HostPlatform, case: Case, like_smpi: bool = True) -> float:
    schedule = Schedule(case)
    tables = network_tables(platform, case.procs, case.processes_per_node, schedule.sizes, like_smpi)
    return schedule.play(tables).seconds


@needs("smpi")
@pytest.mark.parametrize("name", TOPOLOGIES)
def test_a_message_between_far_nodes_takes_its_hops_and_the_least_rate_on_its_way(name: str, tmp_path: Path) -> None:
    topology, hops, rate = TOPOLOGIES[name]
    # Two processes: on node 0 and on the last.
    far = PlacedPlatform(platform_with(topology), (0, 15), "far")
    with Store(tmp_path / "timings.sqlite") as store:
        lab = SimulationContext(store).laboratory(far, 2)
        for size in (1, 1_000_000):
            expected = LATENCY + hops * HOP + (size + ENVELOPE) / rate
            (both_ways,) = lab.run([Experiment(ROUNDTRIP, (0, 1), size, size)])
            assert both_ways.seconds / 2 == pytest.approx(expected, rel=1e-4)
            assert played(far, Case("bcast", "linear", 2, size)) == pytest.approx(expected, rel=1e-9)


# What sends one message at a time, or only to nodes that are equally far: nothing is shared by routes of unlike length.
STEADY = [("allgather", "ring"), ("alltoall", "pairwise"), ("allreduce", "recursive_doubling"), ("allreduce", "ring")]
SHARED = [("bcast", "binomial"), ("bcast", "linear"), ("alltoall", "linear"), ("alltoall", "bruck")]


def differences(platform: HostPlatform, algorithms: list[tuple[str, str]], per_node: int, store: Path) -> list[float]:
    cases = [
        Case(collective, algorithm, 16, size, processes_per_node=per_node)
        for collective, algorithm in algorithms
        for size in (800, 100_000)
    ]
    with Store(store) as opened:
        timings = SimulationContext(opened).simulate(platform, cases).complete().timings
    return [played(platform, case) / timing.seconds - 1 for case, timing in timings.items()]


@needs("smpi")
@pytest.mark.parametrize("name", ["fat tree", "fat tree of three levels", "torus of three dimensions"])
def test_times_are_those_of_smpi_where_no_link_is_contended(name: str, tmp_path: Path) -> None:
    platform = platform_with(TOPOLOGIES[name][0])
    assert max(map(abs, differences(platform, STEADY, 1, tmp_path / "timings.sqlite"))) < 0.01


@needs("smpi")
@pytest.mark.parametrize("name", ["fat tree, oversubscribed", "dragonfly", "torus"])
def test_times_are_near_those_of_smpi_where_routes_of_unlike_length_share_links(name: str, tmp_path: Path) -> None:
    """SMPI gives the shorter route the larger share of a link, the schedule engine gives all the same."""
    platform = platform_with(TOPOLOGIES[name][0])
    found = differences(platform, STEADY + SHARED, 1, tmp_path / "timings.sqlite")
    assert max(map(abs, found)) < 0.25


@needs("smpi")
@pytest.mark.parametrize("placement", ["block", "cyclic"])
@pytest.mark.parametrize("crosstraffic", [True, False])
def test_processes_of_a_node_share_its_memory_in_both_engines(
    placement: str, crosstraffic: bool, tmp_path: Path
) -> None:
    calibration = Calibration(crosstraffic=crosstraffic, tcp_window=False)
    memory = platform_with(None, memory_bytes_per_second=5 * RATE, calibration=calibration)
    platform = placed(memory, placement)
    found = differences(platform, [("alltoall", "linear"), ("allgather", "ring")], 8, tmp_path / "timings.sqlite")
    assert max(map(abs, found)) < (0.04 if crosstraffic else 0.01)
    within = Case("alltoall", "linear", 8, 100_000, processes_per_node=8)
    assert played(memory, within) == pytest.approx(56 * (100_000 + ENVELOPE) / (5 * RATE), rel=1e-3)


def test_messages_from_one_socket_to_others_share_a_port() -> None:
    """Of a linear alltoall on a node of 2 sockets with 4 processes each, 16 messages leave either socket."""
    size, cable, memory = 1_000_000, RATE / 10, 100 * RATE
    within = Case("alltoall", "linear", 8, size, processes_per_node=8)
    node = {"nodes": 1, "cpus_per_node": 2, "cores_per_node": 8, "loopback_bytes_per_second": RATE}
    free = platform_with(None, **node)
    limited = replace(free, between_sockets_bytes_per_second=cable)
    assert played(free, within, like_smpi=False) < 1.1 * 4 * size / RATE
    assert played(limited, within, like_smpi=False) == pytest.approx(16 * size / cable, rel=0.01)
    # Through the node's memory as well, which limits nothing.
    both = replace(limited, memory_bytes_per_second=memory)
    assert played(both, within, like_smpi=False) == pytest.approx(16 * size / cable, rel=0.01)
    # As much again is within sockets: 24 messages.
    slow = replace(limited, memory_bytes_per_second=cable)
    assert played(slow, within, like_smpi=False) == pytest.approx(56 * size / cable, rel=0.01)


def test_a_message_to_another_socket_has_its_own_latency() -> None:
    """On its way alone, and by its part of the critical path."""
    node = {"nodes": 1, "cpus_per_node": 2, "cores_per_node": 2, "loopback_latency_seconds": 1e-6}
    node |= {"loopback_bytes_per_second": 1e12}
    platform = platform_with(None, between_sockets_latency_seconds=5e-6, **node)
    case = Case("bcast", "linear", 2, 1, processes_per_node=2)
    for ranks, latency in ((2, 5e-6), (4, 1e-6)):
        schedule = Schedule(replace(case, procs=ranks, processes_per_node=ranks))
        tables = network_tables(platform, ranks, ranks, schedule.sizes)
        assert tables.socket_of is not None
        parts = path_parts(schedule, tables)[1]
        assert parts.seconds["latency"] == pytest.approx(5e-6)
        assert schedule.play(tables).ends[1] == pytest.approx(latency, rel=0.01)


@given(st.permutations(range(16)), st.sampled_from(sorted(TOPOLOGIES)))
def test_a_barrier_takes_as_long_as_its_farthest_pairs_whatever_the_placement(order: list[int], name: str) -> None:
    platform = PlacedPlatform(platform_with(TOPOLOGIES[name][0]), tuple(order), "any")
    seconds = played(platform, Case("barrier", "bruck", 16, 0), like_smpi=False)
    longest = platform_with(TOPOLOGIES[name][0]).longest_latency_seconds
    assert 4 * LATENCY * (1 - 1e-9) <= seconds <= 4 * longest * (1 + 1e-9)


def test_cyclic_placement_sends_what_blocks_keep_within_nodes() -> None:
    """Of a ring over 8 nodes with 2 processes each, blocks send every other message within a node, cyclic none."""
    platform = platform_with(None, nodes=8, loopback_bytes_per_second=1e12, loopback_latency_seconds=0.0)
    ring = Case("allgather", "ring", 16, 100_000, processes_per_node=2)
    block, cyclic = played(platform, ring), played(placed(platform, "cyclic"), ring)
    assert cyclic == pytest.approx(2 * block, rel=0.03)


def test_the_parts_of_a_critical_path_have_the_latency_of_the_route() -> None:
    platform = PlacedPlatform(platform_with(FatTree(4, HOP)), (0, 15), "far")
    schedule = Schedule(Case("bcast", "linear", 2, 1000))
    parts = path_parts(schedule, network_tables(platform, 2, 1, schedule.sizes))[1]
    assert parts.seconds["latency"] == pytest.approx(LATENCY + 2 * HOP)
    assert parts.seconds["waiting for ports"] == 0


@needs("smpi")
def test_static_routes_are_slower_where_all_uplinks_are_in_use_in_both_engines(tmp_path: Path) -> None:
    """Of 8 cables 1 - (7/8)^8 are in use when 8 nodes send to other switches; what stays at a switch is as fast."""
    spread, static = (platform_with(FatTree(8, HOP, routing=routing)) for routing in ("adaptive", "static"))
    case = Case("allgather", "recursive_doubling", 16, 1_000_000)
    slower = played(static, case) / played(spread, case)
    # Of 15 blocks that a rank sends in turn the last 8 go to the other switch, when all others' do.
    assert slower == pytest.approx(1 + 8 / 15 * (1 / share_in_use(8, 8) - 1), rel=0.005)
    with Store(tmp_path / "timings.sqlite") as store:
        context = SimulationContext(store)
        times = [context.simulate(one, [case]).complete().timings[case].seconds for one in (spread, static)]
    assert times[1] / times[0] == pytest.approx(slower, rel=0.005)
    near = Case("allgather", "recursive_doubling", 8, 1_000_000)
    assert played(static, near) == played(spread, near)


@pytest.mark.parametrize("algorithm", ["ring", "bruck", "recursive_doubling"])
def test_bytes_between_places_are_those_of_messages(algorithm: str) -> None:
    platform = platform_with(FatTree(2, HOP, 1.0, 2, 1.0))
    schedule = Schedule(Case("allgather", algorithm, 16, 1024))
    trace = schedule.trace(network_tables(platform, 16, 1, schedule.sizes))
    places = places_of(platform, 16, 1)
    assert trace.bytes_between(np.arange(16)) == trace.bytes_between(places["nodes"]) == schedule.message_bytes
    assert trace.bytes_between(np.zeros(16, int)) == 0
    # Of 16 steps of a ring 8 leave a switch of 2 nodes, 4 a pod of 4; of 15 blocks that a rank sends 14 and 12 do.
    shares = {"ring": (8 / 16, 4 / 16), "recursive_doubling": (14 / 15, 12 / 15)}
    found = tuple(trace.bytes_between(places[what]) / schedule.message_bytes for what in ("switches", "groups"))
    assert found == shares.get(algorithm, found)


def test_long_pipelines_are_played_whole(tmp_path: Path) -> None:
    """Links between switches are not extrapolated from short pipelines."""
    platform = platform_with(FatTree(4, HOP, 2.0))
    case = Case("bcast", "chain", 16, 4_000_000, 1000)
    with Store(tmp_path / "timings.sqlite") as store:
        (timing,) = SimulationContext(store, SCHEDULE).simulate(platform, [case]).complete().timings.values()
    assert timing.seconds == played(platform, case, like_smpi=False)
