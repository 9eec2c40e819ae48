"""Descriptions of platform XML: against those that it was written from, and against SMPI on the XML itself."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import collwise
from collwise.common.errors import UsageError
from collwise.platforms import Dragonfly, FatTree, HostPlatform, Platform, Torus, known, load
from collwise.platforms.xml_clusters import description_of
from collwise.platforms.xml_file import seconds
from collwise.platforms.xml_routes import Leg
from collwise.simulator.schedule.networks import network_tables
from collwise.simulator.store import Store
from collwise.simulator.sweeps.runner import run_cases
from collwise.simulator.sweeps.schedule_runner import ScheduleRunner
from collwise.simulator.sweeps.smpi_runner import SmpiRunner
from collwise.simulator.timing import Case
from collwise.studies.reports.tuning import changing
from tests.command_line import run
from tests.needs import needs

ONE_SWITCH = [name for name in known() if isinstance(one := load(name), Platform) and one.topology is None]
HEAD = """<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <zone id="site" routing="Full">
    """
CLUSTER = '<cluster id="a" prefix="a-" suffix=".x" radical="0-15" speed="10Gf" core="8" bw="10Gbps" lat="10us"/>'
LATENCY = seconds("10us")


def written(folder: Path, cluster: str = CLUSTER, **attributes: str) -> Path:
    """A file with a cluster that has these attributes, too."""
    others = "".join(f' {name}="{value}"' for name, value in attributes.items())
    file = folder / "own.xml"
    file.write_text(f"{HEAD}{cluster.replace('/>', others + '/>')}\n  </zone>\n</platform>\n")
    return file


def takes_as_long_as_in_smpi(platform: HostPlatform, cases: Sequence[Case], folder: Path) -> None:
    """Asserts it of the schedule engine under SMPI's rules, within 2 %."""
    with Store(folder / "s.sqlite") as store:
        smpi = run_cases(SmpiRunner(platform), cases, store).timings
        played = run_cases(ScheduleRunner(platform, like_smpi=True), cases, store).timings
    for case in cases:
        assert played[case].seconds == pytest.approx(smpi[case].seconds, rel=0.02), case


def shape(tmp_path: Path, topology: str, parameters: str) -> Platform:
    found = description_of(load(written(tmp_path, topology=topology, topo_parameters=parameters)))
    assert isinstance(found, Platform)
    return found


@pytest.mark.parametrize("name", ONE_SWITCH)
def test_what_was_written_of_a_description_is_read_as_it_was(name: str, tmp_path: Path) -> None:
    right, sizes = load(name), np.array([0, 1, 8, 1000, 65535, 65536, 2**20], dtype=np.uint64)
    (tmp_path / "own.xml").write_text(right.xml_text())
    assert description_of(load(tmp_path / "own.xml")).smpi_options() == right.smpi_options()
    procs = min(4, len(right.hosts))
    found = network_tables(load(tmp_path / "own.xml"), procs, 1, sizes, like_smpi=True)
    for key, value in vars(network_tables(right, procs, 1, sizes, like_smpi=True)).items():
        if isinstance(value, np.ndarray):
            np.testing.assert_allclose(getattr(found, key), value, rtol=1e-12, err_msg=key)
        elif key not in ("cross_rate", "socket_of"):
            assert getattr(found, key) == value, key


@needs("smpi")
@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"bb_bw": "160Gbps", "bb_lat": "1us"},
        {"bb_bw": "5Gbps", "bb_lat": "1us", "bb_sharing_policy": "FATPIPE"},
        {"bb_bw": "40Gbps", "bb_lat": "1us"},
        {"bb_bw": "5Gbps", "bb_lat": "1us", "bb_sharing_policy": "SHARED"},
        {"loopback_bw": "4GBps", "loopback_lat": "500ns"},
    ],
)
def test_smpi_takes_as_long_on_the_file_itself(attributes: dict[str, str], tmp_path: Path) -> None:
    """Also with SimGrid's own factors, as the file has no options."""
    platform = load(written(tmp_path, **attributes))
    cases = [
        Case(*words, size)
        for words in (("bcast", "binomial", 16), ("allreduce", "ring", 16), ("gather", "linear", 7))
        for size in (8, 4096, 2**17)
    ]
    cases.append(Case("bcast", "linear", 2, 4096, processes_per_node=2))
    takes_as_long_as_in_smpi(platform, cases, tmp_path)


def cluster(name: str, hosts: str, **others: str) -> str:
    """A cluster whose hosts are like those of the others."""
    own = "".join(f' {key}="{value}"' for key, value in others.items())
    return (
        f'<cluster id="{name}" prefix="{name}-" suffix="" radical="{hosts}" speed="1Gf" bw="10Gbps" lat="10us"'
        f' router_id="{name}r"{own}/>'
    )


def link(name: str, rate: str, policy: str = "SPLITDUPLEX") -> str:
    return f'<link id="{name}" bandwidth="{rate}" latency="5us" sharing_policy="{policy}"/>'


def route(one: str, other: str, *links: str) -> str:
    """A route, or one between clusters, over links with their directions behind a colon."""
    kind, ends = "route", f'src="{one}" dst="{other}"'
    if {one, other} <= {"a", "b", "c"}:
        kind, ends = "zoneRoute", f'{ends} gw_src="{one}r" gw_dst="{other}r"'
    parts = [name.partition(":")[::2] for name in links]
    legs = [f'<link_ctn id="{name}"' + f' direction="{way}"' * bool(way) + "/>" for name, way in parts]
    return f"<{kind} {ends}>{''.join(legs)}</{kind}>"


def hosts(count: int, rate: str = "10Gbps", policy: str = "SPLITDUPLEX") -> str:
    """Hosts h0, h1, ... with links l0, l1, ..."""
    return "".join(f'<host id="h{k}" speed="1Gf"/>{link(f"l{k}", rate, policy)}' for k in range(count))


def joined(*cables: str) -> str:
    """Routes over a link of each of three clusters."""
    pairs = combinations("abc", 2)
    return "".join(cables) + "".join(route(one, other, f"{one}1:UP", f"{other}1:DOWN") for one, other in pairs)


ROUTE = re.compile("<(route|zoneRoute) .*?</(route|zoneRoute)>")


def to_router(router: str, numbers: range) -> str:
    return "".join(route(f"h{k}", router, f"l{k}:UP") for k in numbers)


CLUSTERS = cluster("a", "0-4") + cluster("b", "0-4") + cluster("c", "0-2")
UPLINKS = joined(*(link(f"{name}1", "20Gbps") for name in "abc"))
TWO = cluster("a", "0-5") + cluster("b", "7-12")
ROUTERS = '<router id="r"/><router id="s"/>'
TREE = hosts(8) + ROUTERS + to_router("r", range(4)) + to_router("s", range(4, 8))
STAR = hosts(6) + '<router id="r"/>' + to_router("r", range(6))
PAIRS = "".join(route(f"h{i}", f"h{j}", f"l{i}:UP", "x", f"l{j}:DOWN") for i, j in combinations(range(6), 2))
LOOPS = "".join(route(f"h{k}", f"h{k}", "own") for k in range(6))


def zone(folder: Path, content: str, routing: str) -> Path:
    """A file with a zone of this content, whose routes SimGrid wants behind the rest."""
    routes = "".join(found.group() for found in ROUTE.finditer(content))
    content, file = ROUTE.sub("", content) + routes, folder / "own.xml"
    file.write_text(f"{HEAD.replace('Full', routing)}{content}\n  </zone>\n</platform>\n")
    return file


@needs("smpi")
@pytest.mark.parametrize(
    ("content", "routing", "topology"),
    [
        (CLUSTERS + UPLINKS, "Full", FatTree(5, 5e-6, oversubscription=2.5)),
        (TWO + link("x", "5Gbps") + route("a", "b", "x:UP"), "Full", FatTree(6, 2.5e-6, oversubscription=12.0)),
        (TWO + link("x", "400Gbps", "SHARED") + route("a", "b", "x"), "Full", FatTree(6, 2.5e-6)),
        (
            TWO.replace("/>", ' bb_bw="40Gbps" bb_lat="3us" bb_sharing_policy="FATPIPE"/>')
            + link("x", "20Gbps", "FATPIPE")
            + route("a", "b", "x"),
            "Full",
            FatTree(6, 4e-6),
        ),
        (TREE + link("x", "10Gbps") + route("r", "s", "x:UP"), "Floyd", FatTree(4, 2.5e-6, oversubscription=4.0)),
        (STAR, "Dijkstra", None),
        (hosts(6) + link("x", "5Gbps", "FATPIPE") + PAIRS, "Full", None),
        (hosts(6) + link("x", "5Gbps", "FATPIPE") + link("own", "50Gbps", "FATPIPE") + PAIRS + LOOPS, "Full", None),
    ],
    ids=["uplinks", "one-cable", "fast-cable", "backbones", "tree", "star", "backbone", "loopback"],
)
def test_smpi_takes_as_long_on_clusters_and_hosts_that_links_join(
    content: str, routing: str, topology: FatTree | None, tmp_path: Path
) -> None:
    platform = load(zone(tmp_path, content, routing))
    found = description_of(platform)
    assert isinstance(found, Platform)
    assert str(found.topology) == str(topology)
    procs = len(platform.hosts)
    cases = [
        Case(*words, procs, size)
        for words in (("bcast", "chain"), ("gather", "linear"), ("allreduce", "ring"))
        for size in (8, 4096, 2**15)
    ]
    cases.append(Case("bcast", "linear", 2, 4096, processes_per_node=2))
    # Where only the hosts' links are shared, by ways of unlike length, SMPI prefers the short ones.
    if topology is not None and topology.oversubscription > 1:
        cases += [Case("alltoall", "linear", procs, size) for size in (4096, 2**17)]
    takes_as_long_as_in_smpi(platform, cases, tmp_path)


# What is wrong with each zone, and its routing, if it is not Full.
REFUSED = {
    "there is no route from 'a' to 'b'": [CLUSTERS],
    "switches have 4, 5, 3 hosts; all switches but the last must": [CLUSTERS.replace("0-4", "0-3", 1) + UPLINKS],
    "<cluster> 'b' differs from 'a' in its attributes": [cluster("a", "0-4") + cluster("b", "0-4", core="2") + UPLINKS],
    "link 'x' is shared by several routes": [TWO + link("x", "5Gbps", "SHARED") + route("a", "b", "x")],
    "the route from 'b' to 'c' has link 'x' where the switch's other routes have 'x'": [
        CLUSTERS + link("x", "5Gbps") + "".join(route(*pair, "x:UP") for pair in combinations("abc", 2))
    ],
    "routes between switches limit a flow": [TWO + link("x", "5Gbps", "FATPIPE") + route("a", "b", "x")],
    "the route from 'a' to 'b' has link 'x' in direction": [TWO + link("x", "5Gbps") + route("a", "b", "x")],
    "the route of cluster 'a' uses gateway 'a-0'; expected the cluster's router": [
        TWO + link("x", "5Gbps") + route("a", "b", "x:UP").replace('gw_src="ar"', 'gw_src="a-0"')
    ],
    "there is no route from 'h0' to 'h6'": [STAR.replace("h5", "h6", 1), "Floyd"],
    "zone 'site' has several routes between two hosts": [STAR + route("h0", "h1", "l0:UP"), "Floyd"],
    "zone 'site' has the routing Vivaldi (valid: Full, Floyd": [STAR, "Vivaldi"],
    "there is no route from 'h0' to 'h1'": [STAR],
    "links 'l0' and 'l1' of hosts have different rates": [STAR.replace("10Gbps", "1Gbps", 1), "Floyd"],
    "link 'l0' is SHARED; expected a link for each": [hosts(2, policy="SHARED") + route("h0", "h1", "l0", "l1")],
    "the route from 'h0' to 'h1' does not pass a link of each host": [hosts(2) + route("h0", "h1", "l0:UP")],
    "link 'l0' is WIFI": [hosts(2, policy="WIFI")],
    "the route of a host to itself is over link 'own'": [STAR + link("own", "5Gbps", "SHARED") + LOOPS, "Floyd"],
    "its hosts are in several zones, or in a zone with clusters": [STAR + CLUSTER, "Floyd"],
    "it has only one host; at least two are needed": ['<host id="h" speed="1Gf"/>'],
    "it has <peer> elements; expected <cluster> elements, or <host> elements with routes": [
        '<peer id="h" speed="1Gf" bw_in="1Gbps" bw_out="1Gbps" coordinates="0 0 0"/>',
        "Vivaldi",
    ],
}


@pytest.mark.parametrize("says", REFUSED)
def test_the_route_or_link_that_no_description_has_is_named(says: str, tmp_path: Path) -> None:
    content, routing = [*REFUSED[says], "Full"][:2]
    with pytest.raises(UsageError) as refused:
        description_of(load(zone(tmp_path, content, routing)))
    assert says in str(refused.value)
    assert str(refused.value).endswith("; use 'simulate --engine smpi'")


def test_topologies_have_the_rates_of_all_their_links(tmp_path: Path) -> None:
    tree = shape(tmp_path, "FAT_TREE", "2;4,4;1,2;1,1")
    assert tree.topology == FatTree(4, LATENCY, oversubscription=2.0)
    pods = shape(tmp_path, "FAT_TREE", "3;2,2,4;1,2,2;2,1,1").topology
    assert pods == FatTree(2, LATENCY, oversubscription=2.0, switches_per_pod=2, pod_oversubscription=1.0)
    assert shape(tmp_path, "FAT_TREE", "1;16;1;1").topology is None
    groups = shape(tmp_path, "DRAGONFLY", "2,3;2,1;2,2;2")
    assert groups.topology == Dragonfly(
        2, LATENCY, groups=2, switches_per_group=4, local_bytes_per_second=3.75e9, global_bytes_per_second=3.75e9
    )
    ring = shape(tmp_path, "TORUS", "4,4")
    assert ring.topology == Torus(1, LATENCY, dimensions=(4, 4), cable_bytes_per_second=1.25e9)
    assert ring.longest_latency_seconds == pytest.approx(4e-5)


@needs("smpi")
@pytest.mark.parametrize(("topology", "parameters"), [("FAT_TREE", "2;4,4;1,1;1,4"), ("TORUS", "16")])
def test_smpi_takes_as_long_where_no_routes_are_spread(topology: str, parameters: str, tmp_path: Path) -> None:
    platform = load(written(tmp_path, topology=topology, topo_parameters=parameters))
    cases = [Case("bcast", "chain", 16, size, 0) for size in (8, 4096, 2**17)]
    takes_as_long_as_in_smpi(platform, cases, tmp_path)


@pytest.mark.parametrize(
    ("cluster", "attributes", "says"),
    [
        (
            CLUSTER,
            {"bb_bw": "40Gbps", "topology": "TORUS", "topo_parameters": "4,4"},
            "share its backbone of 40Gbps; expected a single FLAT cluster, bb_sharing_policy=SPLITDUPLEX or FATPIPE",
        ),
        (CLUSTER.replace(' lat="10us"', ""), {}, "its <cluster> lacks lat; it needs speed, bw, lat"),
        (CLUSTER.replace(' speed="10Gf"', ""), {}, "its <cluster> lacks speed"),
        (CLUSTER, {"sharing_policy": "SHARED"}, "sharing_policy='SHARED'"),
        (CLUSTER, {"limiter_link": "1Gbps"}, "limiter_link='1Gbps'"),
        (CLUSTER, {"topology": "MESH", "topo_parameters": "4,4"}, "its topology is MESH"),
        (CLUSTER, {"topology": "TORUS", "topo_parameters": "4;4"}, "topo_parameters='4;4' are malformed"),
        (CLUSTER, {"topology": "FAT_TREE", "topo_parameters": "2;4,4;1,2"}, "are malformed"),
    ],
)
def test_what_a_description_cannot_say_is_named(
    cluster: str, attributes: dict[str, str], says: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError) as refused:
        description_of(load(written(tmp_path, cluster, **attributes)))
    assert says in str(refused.value)
    assert str(refused.value).endswith("; use 'simulate --engine smpi'")


def test_all_that_takes_descriptions_takes_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = written(tmp_path)
    run("platforms", "show", str(file), "-o", "own.toml")
    assert load("own.toml").xml_text() == description_of(load(file)).xml_text()
    answer = collwise.whatif(file, "bandwidth=x0.5", "bcast", procs=4, sizes="1MiB")
    assert answer.frame().ratio.item() > 1.5
    tuned = collwise.tune(file, "bcast", procs=4, sizes="64KiB", output="tuned")
    assert load(tuned.file(".toml")).hosts == load(file).hosts
    run(*shlex.split(changing(tuned))[1:])


def test_a_link_that_carries_all_that_hosts_send_in_both_directions_limits_no_flow() -> None:
    """The directions of a SHARED link have its rate together; connections over a FATPIPE do not compete."""
    carried = {"SHARED": 2e9, "SPLITDUPLEX": 1e9, "FATPIPE": 0.0}
    for policy, rate in carried.items():
        limits = [Leg("l", "", share * rate, 0.0, policy).limits(1e9) for share in (0.6, 0.9, 1.1, 2.1)]
        assert limits == [rate > 0, rate > 0, False, False], policy


def test_quantities_without_a_unit_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path, CLUSTER.replace("10Gbps", "125"), bb_bw="2.25GBps", bb_lat="500")
    run("platforms", "show", str(file), "--check")
    warnings = capsys.readouterr().err
    for found in ("bw of <cluster> is '125' without a unit", "bb_lat of <cluster> is '500' without a unit"):
        assert found in warnings
    assert warnings.count("without a unit") == 2
