"""Descriptions of platform XML: against those that it was written from, and against SMPI on the XML itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import collwise
from collwise.common.errors import UsageError
from collwise.platforms import Dragonfly, FatTree, Platform, Torus, known, load
from collwise.platforms.xml_clusters import description_of
from collwise.platforms.xml_file import seconds
from collwise.simulator.schedule.networks import network_tables
from collwise.simulator.store import Store
from collwise.simulator.sweeps.runner import run_cases
from collwise.simulator.sweeps.schedule_runner import ScheduleRunner
from collwise.simulator.sweeps.smpi_runner import SmpiRunner
from collwise.simulator.timing import Case
from tests.command_line import run
from tests.needs import needs

ONE_SWITCH = [
    name
    for name in known()
    if isinstance(one := load(name), Platform) and one.topology is None and one.memory_bytes_per_second is None
]
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


def shape(tmp_path: Path, topology: str, parameters: str) -> Platform:
    found = description_of(load(written(tmp_path, topology=topology, topo_parameters=parameters)))
    assert isinstance(found, Platform)
    return found


@pytest.mark.parametrize("name", ONE_SWITCH)
def test_what_was_written_of_a_description_is_read_as_it_was(name: str, tmp_path: Path) -> None:
    right, sizes = load(name), np.array([0, 1, 8, 1000, 65535, 65536, 2**20], dtype=np.uint64)
    (tmp_path / "own.xml").write_text(right.xml_text())
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
    with Store(tmp_path / "s.sqlite") as store:
        smpi = run_cases(SmpiRunner(platform), cases, store).timings
        played = run_cases(ScheduleRunner(platform, like_smpi=True), cases, store).timings
    for case in cases:
        assert played[case].seconds == pytest.approx(smpi[case].seconds, rel=0.02), case


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
    with Store(tmp_path / "s.sqlite") as store:
        smpi = run_cases(SmpiRunner(platform), cases, store).timings
        played = run_cases(ScheduleRunner(platform, like_smpi=True), cases, store).timings
    for case in cases:
        assert played[case].seconds == pytest.approx(smpi[case].seconds, rel=0.02), case


@pytest.mark.parametrize(
    ("cluster", "attributes", "says"),
    [
        (CLUSTER + CLUSTER.replace("a-", "b-").replace('"a"', '"b"'), {}, "2 clusters"),
        ('<host id="h" speed="1Gf"/>', {}, "<host> elements"),
        (CLUSTER, {"bb_bw": "40Gbps", "bb_lat": "0us"}, "all flows share the backbone of 40Gbps"),
        (CLUSTER.replace(' lat="10us"', ""), {}, "its <cluster> lacks lat (valid: speed, bw, lat given)"),
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
    assert str(refused.value).endswith("; SMPI simulates it")


def test_all_that_takes_descriptions_takes_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = written(tmp_path)
    run("platforms", "write", str(file), "-o", "own.toml")
    assert load("own.toml").xml_text() == description_of(load(file)).xml_text()
    answer = collwise.whatif(file, "bandwidth=x0.5", "bcast", procs=4, sizes="1MiB")
    assert answer.frame().ratio.item() > 1.5
    tuned = collwise.tune(file, "bcast", procs=4, sizes="64KiB", output="tuned")
    assert load(tuned.file(".toml")).hosts == load(file).hosts
