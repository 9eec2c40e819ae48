"""Changes of platforms: what each does to a description, and what it refuses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from collwise.common.errors import UsageError
from collwise.platforms import (
    FatTree,
    HeterogeneousPlatform,
    Platform,
    Ports,
    load,
    load_description,
    placed,
    write_description,
)
from collwise.platforms.changes import CHANGES, Change, changed, parse_change
from collwise.platforms.description import NodeFault
from tests.free import free

GROS = free()
TREE = "topology=fat-tree:nodes_per_switch=16:oversubscription=4"
TREES = (TREE, "topology=fat-tree:nodes_per_switch=16,oversubscription=4:1")
BY_FACTOR = ("bandwidth=x2", "latency=x2", "reduction=x2")


def change(platform: Platform | HeterogeneousPlatform, *texts: str) -> Platform | HeterogeneousPlatform:
    found = changed(platform, [parse_change(text) for text in texts]).platform
    assert isinstance(found, Platform | HeterogeneousPlatform)
    return found


def test_topologies_are_written_as_for_platforms() -> None:
    one, other = (single(text) for text in TREES)
    assert one.topology == other.topology
    torus = single("topology=torus:dimensions=4x4x8,nodes_per_switch=1,cable_gbits=8,hop_latency_us=2").topology
    assert (
        torus
        == single(
            "topology=torus:dimensions=[4, 4, 8]:nodes_per_switch=1:cable_bytes_per_second=1e9:hop_latency_seconds=2e-6"
        ).topology
    )


def single(*texts: str, platform: Platform = GROS) -> Platform:
    found = change(platform, *texts)
    assert isinstance(found, Platform)
    return found


@pytest.mark.parametrize("name", CHANGES)
def test_every_example_can_be_applied(name: str) -> None:
    needed = {
        "overheads": ["overheads=1us"],
        "slow_node": ["overheads=1us"],
        "oversubscription": [TREE],
        "routing": [TREE],
    }.get(name, [])
    found = changed(GROS, [parse_change(text) for text in [*needed, f"{name}={CHANGES[name].example}"]])
    assert found.platform.hosts


def test_a_slow_node_needs_no_other_change() -> None:
    """On a fat tree with ports, a rate of memory and overheads that depend on the protocol."""
    rows = ((0, 1e-6, 0.0), (1024, 2e-6, 1e-10))
    calibration = replace(GROS.calibration, os=rows, or_=rows, ois=rows)
    described = replace(single(TREE), memory_bytes_per_second=8e10, ports=Ports(3e9, 1e-5), calibration=calibration)
    found = single("slow_node=3:x4", platform=described)
    assert found.node_faults == (NodeFault(3, overhead_factor=4.0),)
    assert replace(found, name=described.name, title=described.title, node_faults=()) == described
    assert found.digest() != described.digest()


@pytest.mark.parametrize(("factor", "lists"), [("x2", 2), ("x0.5", 2), ("x1", 1)])
def test_a_node_of_other_overheads_has_its_own_in_the_xml(factor: str, lists: int) -> None:
    """Also one that is quicker than the others, whose overheads are an option of the simulation."""
    assert single("overheads=1us", f"slow_node=3:{factor}").xml_text().count('id="smpi/os"') == lists


def test_faults_of_a_node_multiply_and_vanish_where_they_change_nothing() -> None:
    found = single("overheads=1us", "degraded_link=7:x0.5", "slow_node=7:x2", "slow_node=7:x3", "degraded_link=2:x0.1")
    assert found.node_faults == (NodeFault(2, rate_factor=0.1), NodeFault(7, 6.0, 0.5))
    assert found.heterogeneous
    undone = single("degraded_link=7:x2", "slow_node=7:x0.5", platform=single("overheads=1us", "slow_node=7:x2"))
    assert undone.node_faults == (NodeFault(7, rate_factor=2.0),)
    assert single("degraded_link=7:x0.5", platform=undone).node_faults == ()
    assert single("bandwidth=x2", "nodes=8", platform=found).node_faults == found.node_faults


@pytest.mark.parametrize(
    ("topology", "link", "cables"),
    [
        (TREE, "switch2", 1),
        (f"{TREE}:switches_per_pod=4", "switch7", 1),
        ("topology=dragonfly:groups=4:switches_per_group=2:nodes_per_switch=16:local_bytes_per_second=4e9"
         ":global_bytes_per_second=5e9", "switch5", 1),
        ("topology=torus:dimensions=[4, 4]:nodes_per_switch=8", "switch5", 4),
        ("topology=torus:dimensions=[4, 4]:nodes_per_switch=8", "switch1-2", 1),
    ],
)  # fmt: skip
def test_cables_of_a_switch_are_degraded(topology: str, link: str, cables: int, tmp_path: Path) -> None:
    before, after = single(topology), single(topology, f"degraded_link={link}:x0.5", f"degraded_link={link}:x0.2")
    rates = []
    for one in (before, after):
        assert one.topology is not None
        rates.append([cable.bytes_per_second for cable in one.topology.cables(124, one.node_bytes_per_second)])
    ratios = [found / sound for sound, found in zip(*rates, strict=True)]
    assert sorted(ratios) == pytest.approx([0.1] * cables + [1.0] * (len(ratios) - cables))
    file = tmp_path / "changed.toml"
    file.write_text(write_description(after))
    assert load(file) == after
    assert after.digest() != before.digest()
    assert single("topology=one-switch", platform=after).topology is None


def test_bandwidth_and_latency() -> None:
    latency, rate = GROS.route
    assert single("bandwidth=x2").route == (latency, 2 * rate)
    assert single("bandwidth=100Gbit").route == (latency, 12.5e9)
    assert single("latency=x0.5").route == (latency / 2, rate)
    assert single("latency=5us").route[0] == pytest.approx(5e-6)


def test_ports_and_a_backbone_change_with_the_links() -> None:
    described = replace(
        GROS, backbone_bytes_per_second=2e9, backbone_latency_seconds=1e-6, ports=Ports(3e9, 1e-5, 2e-6)
    )
    found = single("bandwidth=x2", "latency=x3", platform=described)
    assert found.backbone_bytes_per_second == 4e9
    assert found.backbone_latency_seconds == pytest.approx(3e-6)
    assert found.ports == Ports(6e9, pytest.approx(3e-5), pytest.approx(6e-6))


@pytest.mark.parametrize("name", ["shaheen-ii", "stampede2", "slingshot-2048", "fat-tree-1024"])
def test_cables_change_with_the_links_and_background_takes_a_share_of_them_only(name: str) -> None:
    base = load_description(name)
    assert base.topology is not None

    def cables(of: Platform) -> list[float]:
        assert of.topology is not None
        return [one.bytes_per_second for one in of.topology.cables(of.nodes, of.node_bytes_per_second)]

    twice, busy = single("bandwidth=x2", platform=base), single("background=0.25", platform=base)
    assert cables(twice) == pytest.approx([2 * rate for rate in cables(base)])
    assert cables(busy) == pytest.approx([0.75 * rate for rate in cables(base)])
    assert busy.route == base.route


def test_static_routes_are_kept_in_a_file_and_undone(tmp_path: Path) -> None:
    tree = single(TREE)
    found = single("routing=static", platform=tree)
    file = tmp_path / "static.toml"
    file.write_text(write_description(found))
    assert load(file) == found
    assert 'routing = "static"' in file.read_text()
    assert found.digest() != tree.digest()
    assert single(TREE + ':routing="static"').topology == found.topology
    undone = single("routing=adaptive", platform=found)
    assert undone.topology == tree.topology
    assert "routing =" not in write_description(undone)


@pytest.mark.parametrize("rate", ["", ":cable_bytes_per_second=1e9"])
def test_cables_of_a_torus(rate: str) -> None:
    base = single(f"topology=torus:dimensions=[4, 4]:nodes_per_switch=8:hop_latency_seconds=1e-7{rate}")
    found = single("bandwidth=x2", "latency=x3", "background=0.5", platform=base)
    assert base.topology is not None
    assert found.topology is not None
    before, after = (one.topology.cables(124, one.node_bytes_per_second)[0] for one in (base, found) if one.topology)
    assert after.bytes_per_second == pytest.approx(before.bytes_per_second)
    assert after.latency_seconds == pytest.approx(3 * before.latency_seconds)


def test_background_on_one_switch_takes_a_share_of_the_links() -> None:
    assert single("background=0.25").route[1] == pytest.approx(0.75 * GROS.route[1])


def test_overheads_of_all_eager_messages() -> None:
    own = single("overheads=2us", "overheads=x3").calibration
    assert own.os == own.or_ == ((0, pytest.approx(6e-6), 0.0),)
    assert own.ois == ((0, pytest.approx(6e-6), 0.0), (65536, 0.0, 0.0))


def test_what_belongs_to_the_protocol_moves_with_its_threshold() -> None:
    own = single("overheads=2us", "eager_limit=128KiB").calibration
    assert own.eager_limit_bytes == 131072
    assert [start for start, _ in own.latency_factor] == [0, 131072]
    assert [row[0] for row in own.ois] == [0, 131072]
    assert single("eager_limit=1KiB").calibration.latency_factor[1] == (1024, GROS.calibration.latency_factor[1][1])


def test_a_threshold_does_not_pass_other_rows() -> None:
    rows = ((0, 1.0), (8192, 1.5), (65536, 2.5))
    described = replace(GROS, calibration=replace(GROS.calibration, latency_factor=rows))
    with pytest.raises(UsageError, match="latency_factor of the calibration has a row that starts at 8192 B"):
        change(described, "eager_limit=4KiB")
    assert single("eager_limit=16KiB", platform=described).calibration.latency_factor[2] == (16384, 2.5)


@pytest.mark.parametrize(("text", "ratio"), [("4:1", 4), ("3:2", 1.5), ("2.5", 2.5)])
def test_oversubscription_as_a_ratio(text: str, ratio: float) -> None:
    found = single(TREE, f"oversubscription={text}").topology
    assert isinstance(found, FatTree)
    assert found.oversubscription == ratio


def test_nodes_topologies_and_oversubscription() -> None:
    assert len(single("nodes=64").hosts) == 64
    found = single(TREE, "oversubscription=x2")
    assert found.topology is not None
    assert found.topology.kind == "fat-tree"
    assert found.topology.oversubscription == 8
    assert single(TREE, "topology=one-switch").topology is None


def test_a_node_of_a_cluster_of_different_nodes_becomes_a_type_of_its_own() -> None:
    base = load("hcl16")
    assert isinstance(base, HeterogeneousPlatform)
    found = change(base, "slow_node=0:x4", "degraded_link=5:x0.5")
    assert isinstance(found, HeterogeneousPlatform)
    assert found.hosts == base.hosts
    before, after = base.types_of_hosts, found.types_of_hosts
    assert after[0].send_base_seconds == 4 * before[0].send_base_seconds
    assert after[5].link_bytes_per_second == before[5].link_bytes_per_second / 2
    assert [kind.send_base_seconds for kind in after[1:]] == [kind.send_base_seconds for kind in before[1:]]
    assert (after[0].nodes, after[5].nodes) == (1, 1)


def test_placement_and_processes_per_node() -> None:
    found = changed(GROS, [parse_change("placement=cyclic"), parse_change("ppn=2"), parse_change("nodes=8")])
    assert found.processes_per_node == 2
    assert found.platform.positions(6, 2) == (0, 1, 2, 0, 1, 2)


def test_a_placement_stays_and_its_nodes_must_exist(tmp_path: Path) -> None:
    file = tmp_path / "ranks"
    file.write_text("9\n3\n")
    own = placed(GROS, str(file))
    assert changed(own, [parse_change("bandwidth=x2")]).platform.positions(2, 1) == (9, 3)
    with pytest.raises(UsageError, match="nodes that the changed platform does not have"):
        changed(own, [parse_change("nodes=9")])


def test_a_changed_platform_has_another_name_and_can_be_written(tmp_path: Path) -> None:
    found = single("bandwidth=x0.5", "latency=x2")
    assert (found.name, found.title) == ("gros-bandwidth-x0-5-latency-x2", f"{GROS.title}, bandwidth x0.5, latency x2")
    file = tmp_path / "changed.toml"
    file.write_text(write_description(found))
    assert load(file) == found
    assert single() == GROS


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("overheads=x2", "platform 'gros' has no overheads to scale; give a time, for example overheads=1us"),
        ("slow_node=3:x2", "platform 'gros' has no overheads (smpi/os, smpi/or, smpi/ois) to multiply"),
    ],
)
def test_overheads_that_are_none_have_no_factor(text: str, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        change(GROS, text)
    assert message in str(raised.value)


def test_platform_xml_can_be_changed_where_it_has_a_description(tmp_path: Path) -> None:
    file = tmp_path / "gros.xml"
    file.write_text(GROS.xml_text())
    twice = changed(load(file), [Change("bandwidth", "x2")]).platform
    assert twice.xml_text().count('bw="6250000000.0Bps"') == 1
    file.write_text(load("hcl16").xml_text())
    with pytest.raises(
        UsageError, match=r"^change bandwidth=x2: platform 'gros' is platform XML that has no description"
    ):
        changed(load(file), [Change("bandwidth", "x2")])


@pytest.mark.parametrize("text", [*BY_FACTOR, "overheads=x2", "degraded_link=3:x0.5", "slow_node=3:x2"])
def test_clusters_of_different_nodes_can_be_changed(text: str) -> None:
    base = load("hcl16")
    found = changed(base, [parse_change(text)]).platform
    assert found.digest() != base.digest()
    with pytest.raises(UsageError, match="there is no single number of nodes to change"):
        changed(base, [parse_change("nodes=4")])
