"""Routes of topologies, against what they must be by the definition of each."""

from __future__ import annotations

import statistics
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, strategies as st

from collwise.common.errors import UsageError
from collwise.platforms import Dragonfly, FatTree, Platform, Topology, Torus, known, load
from collwise.platforms.linear_costs import point_to_point
from collwise.platforms.topology import CableFault, routes_among, share_in_use, vertices

HOP = 1e-6
RATE = 1e9
_SMALL = st.integers(1, 4)
TOPOLOGIES = st.one_of(
    st.builds(FatTree, _SMALL, st.just(HOP), st.floats(1, 8)),
    st.builds(FatTree, _SMALL, st.just(HOP), st.floats(1, 8), _SMALL, st.floats(1, 8)),
    st.builds(Dragonfly, _SMALL, st.just(HOP), st.integers(1, 5), _SMALL, st.just(2e9), st.just(3e9)),
    st.builds(Torus, _SMALL, st.just(HOP), st.lists(st.integers(1, 5), min_size=1, max_size=3).map(tuple)),
)


def nodes_of(topology: Topology) -> int:
    return topology.capacity or 5 * topology.nodes_per_switch + 1


@given(TOPOLOGIES)
def test_routes_lead_from_switch_to_switch_without_a_gap(topology: Topology) -> None:
    nodes = nodes_of(topology)
    cables, switches = topology.cables(nodes, RATE), topology.switches(nodes)
    for one, other in product(range(switches), repeat=2):
        at = one
        for link in topology.route(nodes, one, other):
            cable = cables[link // 2]
            begin, end = (cable.other, cable.one) if link % 2 else (cable.one, cable.other)
            assert begin == at
            at = end
        assert at == other


@given(TOPOLOGIES)
def test_no_route_takes_longer_than_the_longest(topology: Topology) -> None:
    nodes = nodes_of(topology)
    switches = topology.switches(nodes)
    routes = routes_among(topology, nodes, RATE, tuple(range(switches)))
    assert topology.longest_seconds(nodes, RATE) == pytest.approx(max(routes.route_seconds), abs=1e-15)
    assert len(routes.route_first) == switches**2 + 1
    assert routes.route_first[-1] == len(routes.route_links)
    assert (
        len({topology.vertex_name(nodes, one) for one in range(vertices(topology.cables(nodes, RATE), switches))}) > 0
    )


@given(st.lists(st.integers(1, 6), min_size=1, max_size=3).map(tuple), st.data())
def test_on_a_torus_routes_are_as_short_as_rings_allow(dimensions: tuple[int, ...], data: st.DataObject) -> None:
    torus = Torus(1, HOP, dimensions)
    count = torus.capacity
    one, other = data.draw(st.integers(0, count - 1)), data.draw(st.integers(0, count - 1))
    hops = 0
    for length, stride in torus.rings:
        away = abs(other // stride % length - one // stride % length)
        hops += min(away, length - away)
    assert len(torus.route(count, one, other)) == hops


def test_rates_of_a_fat_tree_follow_from_its_oversubscription() -> None:
    two = FatTree(nodes_per_switch=8, oversubscription=2.0).cables(20, RATE)
    assert [cable.bytes_per_second for cable in two] == [4 * RATE] * 3
    three = FatTree(8, HOP, 2.0, switches_per_pod=2, pod_oversubscription=4.0)
    assert [cable.bytes_per_second for cable in three.cables(32, RATE)] == [4 * RATE] * 4 + [2 * RATE] * 2
    names = [three.vertex_name(32, vertex) for vertex in range(7)]
    assert names == ["switch 0", "switch 1", "switch 2", "switch 3", "pod 0", "pod 1", "core"]
    assert three.route(32, 0, 1) == [0, 3]
    assert three.route(32, 1, 2) == [2, 8, 11, 5]


def test_a_dragonfly_has_one_cable_between_every_two_groups_and_three_hops_across() -> None:
    fly = Dragonfly(2, HOP, 5, 3, 2e9, 3e9)
    cables = fly.cables(30, RATE)
    between = [(cable.one - 15, cable.other - 15) for cable in cables[15:]]
    assert between == [(one, other) for one in range(5) for other in range(one + 1, 5)]
    seconds = routes_among(fly, 30, RATE, tuple(range(15))).route_seconds.reshape(15, 15)
    assert seconds[0, 1] == pytest.approx(HOP)
    assert seconds[0, 14] == pytest.approx(3 * HOP)
    assert seconds[0, 0] == 0


@given(st.integers(1, 5), st.integers(1, 6))
def test_the_share_of_cables_in_use_is_that_of_balls_thrown_into_bins(flows: int, cables: int) -> None:
    used = [len({*throws}) for throws in product(range(cables), repeat=flows)]
    assert share_in_use(flows, cables) == pytest.approx(statistics.mean(used) / cables)


def test_static_routes_leave_parallel_cables_the_rate_of_those_in_use() -> None:
    tree = FatTree(16, HOP, 2.0, switches_per_pod=4, pod_oversubscription=2.0)
    fly = Dragonfly(2, HOP, 5, 3, 2 * RATE, RATE)
    for topology, expected in (
        (tree, [share_in_use(16, 8)] * 8 + [share_in_use(64, 16)] * 2),
        (fly, [share_in_use(2, 2)] * 15 + [1.0] * 10),  # one cable between groups: nothing to choose
    ):
        static = replace(topology, routing="static", cable_faults=(CableFault((1,), 0.5),))
        before, after = topology.cables(128, RATE), static.cables(128, RATE)
        shares = [one.bytes_per_second / other.bytes_per_second for one, other in zip(after, before, strict=True)]
        expected[1] /= 2
        assert shares == pytest.approx(expected)
        assert [one.latency_seconds for one in after] == [one.latency_seconds for one in before]


@pytest.mark.parametrize("name", ["shaheen-ii", "stampede2", "slingshot-2048", "fat-tree-1024"])
def test_the_machines_have_the_cores_of_their_sources(name: str) -> None:
    platform = load(name)
    assert isinstance(platform, Platform)
    expected = {"shaheen-ii": 32, "stampede2": 48, "slingshot-2048": 128, "fat-tree-1024": 64}
    assert platform.cores_per_node == expected[name]
    assert platform.calibration.os[0][1] > 0
    assert platform.memory_bytes_per_second
    assert any("estimated" in source.what for source in platform.sources)


def test_exact_parameters_are_refused_where_pairs_of_nodes_differ() -> None:
    with pytest.raises(UsageError, match="stampede2' is a fat-tree"):
        point_to_point(load("stampede2"))


def test_the_paper_s_experiments_fit_on_the_machines() -> None:
    assert {"shaheen-ii", "stampede2"} <= set(known())
    assert load("shaheen-ii").hosts_for(4096, 32)[-1] == "shaheen-ii-128"
    assert load("stampede2").hosts_for(1536, 48)[-1] == "stampede2-32"
