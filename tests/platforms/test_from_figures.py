"""collwise platforms new and show --draw: options for nodes and topologies, interconnects, and wrong combinations."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from collwise.common.errors import UsageError, warn
from collwise.platforms import (
    Dragonfly,
    FatTree,
    Node,
    Torus,
    check_file,
    interconnect_names,
    load_description,
    new_platform,
    with_overheads,
    write_description,
)
from collwise.platforms.description_file import read_description
from collwise.platforms.discovery.facts import NOMINAL_GBITS
from collwise.platforms.loader import interconnect
from collwise.platforms.smpi import charges_overheads
from collwise.platforms.topology import parse_topology
from collwise.studies.cli.platforms import platforms
from tests.free import free

_FOLDER = Path(__file__).parents[2] / "platforms" / "interconnects"


def make(tmp_path: Path, *options: str) -> tuple[str, Path]:
    file = tmp_path / "mine.toml"
    result = CliRunner().invoke(platforms, ["new", "mine", "-o", str(file), *options])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output, file


NODE = (
    "--nodes 64 --interconnect infiniband-hdr --cpus 2 --cores 64 --ppn 32 --memory 256GiB --memory-gbytes 80 "
    "--between-sockets-gbytes 40 --between-sockets-latency-us 0.9"
)


@pytest.mark.parametrize(
    ("name", "gbits"),
    [
        ("infiniband-edr", 100),
        ("infiniband-hdr100", 100),
        ("infiniband-hdr100-x2", 200),
        ("infiniband-ndr200", 200),
        ("infiniband-ndr", 400),
    ],
)
def test_generations_of_infiniband_are_hdr_at_their_line_rate(name: str, gbits: float) -> None:
    hdr, made = interconnect("infiniband-hdr"), interconnect(name)
    assert made.link_bytes_per_second == gbits * 1e9 / 8 == NOMINAL_GBITS[name] * 1e9 / 8
    assert made.route[0] == hdr.route[0]
    assert replace(made.calibration, note=hdr.calibration.note) == hdr.calibration
    assert "estimated" in made.calibration.note
    assert any("no measurement" in one.what for one in made.sources)


FAT_TREE = "--topology fat-tree:nodes_per_switch=16,oversubscription=2"


def test_a_cluster_with_a_2_to_1_fat_tree_in_one_command(tmp_path: Path) -> None:
    output, file = make(tmp_path, *NODE.split(), *FAT_TREE.split())
    assert "interconnect infiniband-hdr: " in output
    made, preset = load_description(file), interconnect("infiniband-hdr")
    assert made.topology == FatTree(16, preset.topology.hop_latency_seconds if preset.topology else 0.0, 2.0)
    assert (made.default_processes_per_node, made.cores_per_node, made.cpus_per_node) == (32, 64, 2)
    assert (made.memory_bytes_per_node, made.memory_bytes_per_second) == (2**38, 80e9)
    assert (made.between_sockets_bytes_per_second, made.between_sockets_latency_seconds) == (40e9, 0.9e-6)
    assert '<prop id="collwise/sockets" value="2"/>' in made.xml_text()
    assert made.calibration == preset.calibration
    assert made.route == preset.route
    assert "estimated" in file.read_text()
    assert not check_file(file)[0]


@pytest.mark.parametrize(
    ("name", "other", "ports"),
    [
        ("infiniband-hdr100", "infiniband-hdr", 2),
        ("infiniband-ndr200", "infiniband-ndr", 2),
        ("infiniband-hdr100-x2", "infiniband-hdr100", 0.5),
    ],
)
def test_a_split_port_serves_two_links_and_a_node_of_two_links_takes_two_ports(
    name: str, other: str, ports: float
) -> None:
    """The switch has as many ports for nodes as that of another interconnect, times the ratio."""

    def ports_of(interconnect_name: str) -> int:
        made = new_platform("mine", 1024, Node(), interconnect_name=interconnect_name, topology="fat-tree")
        assert isinstance(made.topology, FatTree)
        (said,) = (source.where for source in made.sources if source.what == "nodes_per_switch")
        assert said == f"assumed: half of the {2 * made.topology.nodes_per_switch} ports of a switch"
        return 2 * made.topology.nodes_per_switch

    assert ports_of(name) == ports * ports_of(other)


def test_what_the_field_writes_and_what_no_link_has(tmp_path: Path) -> None:
    _, file = make(tmp_path, *NODE.split(), *FAT_TREE.replace("tion 2", "tion 2:1").split())
    assert "oversubscription = 2.0" in file.read_text()
    result = CliRunner().invoke(platforms, ["new", "fast", "--nodes", "4", "--gbits", "1e9", "--latency-us", "1"])
    assert (result.exit_code, "100000" in result.output) == (2, True)


def test_colons_divide_parameters_of_topologies_too() -> None:
    both = (parse_topology(f"fat-tree:nodes_per_switch=16{mark}oversubscription=2:1") for mark in ",:")
    assert [*both] == [("fat-tree", [("nodes_per_switch", "16"), ("oversubscription", "2:1")])] * 2


def test_the_other_topologies(tmp_path: Path) -> None:
    base = ["--nodes", "24", "--gbits", "10", "--latency-us", "5"]
    fly = "--topology dragonfly:groups=3,switches_per_group=4,nodes_per_switch=2,hop_latency_us=0.5"
    output, file = make(tmp_path, *base, *f"{fly},local_gbits=40,global_gbits=80".split())
    assert "--interconnect NAME" in output
    assert load_description(file).topology == Dragonfly(2, 5e-7, 3, 4, 5e9, 1e10)
    file.unlink()
    make(tmp_path, *base, *["--topology", "torus:dimensions=2x3x4,hop_latency_us=0.5"])
    assert load_description(file).topology == Torus(1, 5e-7, (2, 3, 4))


@pytest.mark.parametrize("name", interconnect_names())
def test_every_interconnect_charges_overheads_and_names_its_sources(name: str) -> None:
    preset = interconnect(name)
    assert charges_overheads(preset.smpi_options())
    assert not check_file(_FOLDER / f"{name}.toml")[0]
    for figure in ("os", "or", "ois", "latency", "eager_limit_bytes", "reduce_seconds_per_byte", "hop_latency_seconds"):
        assert any(figure in source.what for source in preset.sources), figure
    assert preset.topology is not None
    assert preset.topology.hop_latency_seconds > 0


@pytest.mark.parametrize(("name", "preset"), [("grisou", "tcp-10g"), ("gros", "tcp-25g")])
def test_overheads_are_taken_off_the_latency(name: str, preset: str, tmp_path: Path) -> None:
    before = free(name)
    after = with_overheads(before, preset)
    overheads = after.calibration.os[0][1] + after.calibration.or_[0][1]
    assert after.route[0] + overheads == pytest.approx(before.route[0])
    factors = dict(after.calibration.latency_factor)
    assert factors[0] == pytest.approx(1.0)
    # Long messages have no os and or, and keep their latency.
    long = before.route[0] * dict(before.calibration.latency_factor)[65536]
    assert after.route[0] * factors[65536] == pytest.approx(long)
    assert after.digest() != before.digest()
    assert free(name).digest() == before.digest()
    file = tmp_path / f"{name}.toml"
    file.write_text(write_description(before))
    shown = CliRunner().invoke(platforms, ["show", str(file), "--change", f"overheads={preset}"])
    assert read_description(shown.output)[0] == replace(
        after, name=f"{name}-overheads-{preset}", title=f"{before.title}, overheads {preset}"
    )
    with pytest.raises(UsageError, match="already has overheads"):
        with_overheads(after, preset)
    with pytest.raises(UsageError, match="not below the latency of platform"):
        with_overheads(replace(before, link_latency_seconds=1e-6), preset)


@pytest.mark.parametrize("name", ["gros", "stampede2", "shaheen-ii"])
def test_pictures(tmp_path: Path, name: str) -> None:
    file = tmp_path / f"{name}.svg"
    result = CliRunner().invoke(platforms, ["show", name, "--draw", str(file)])
    assert result.exit_code == 0, result.output
    assert "<svg" in file.read_text()[:500]


@pytest.mark.parametrize(("cpus", "domains"), [(1, 1), (1, 4), (2, 8), (4, 2)])
def test_labels_of_a_pictured_node_stand_in_the_middle_of_its_parts(cpus: int, domains: int) -> None:
    from collwise.studies.figures.platform import platform_figure

    gros = replace(load_description("gros"), cpus_per_node=cpus, cores_per_node=16, memory_domains_per_node=domains)
    _, node = platform_figure(gros).axes
    parts = [part.get_bbox() for part in node.patches]
    for label in node.texts:
        if not label.get_text().startswith("between processes"):
            x, y = label.get_position()
            assert any(x == pytest.approx((box.x0 + box.x1) / 2) and box.y0 < y < box.y1 for box in parts[1:])
    assert len({label.get_position() for label in node.texts}) == cpus + domains + 2


def test_pictures_of_a_torus_and_of_the_rest(tmp_path: Path) -> None:
    from collwise.studies.figures.platform import platform_figure

    torus = replace(load_description("gros"), nodes=24, topology=Torus(1, 1e-6, (2, 3, 4)))
    text = [words.get_text() for axes in platform_figure(torus).axes for words in axes.texts]
    assert {"0", "5"} <= set(text)
    for (name, file), message in ((("hcl16", "a.png"), "cannot be drawn"), (("gros", "a.pdf"), "neither in .png")):
        result = CliRunner().invoke(platforms, ["show", name, "--draw", str(tmp_path / file)])
        assert message in str(result.exception)


def test_what_nobody_gave_is_assumed_with_its_source_and_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    warn.cache_clear()
    made = new_platform("mine", 64, Node(cpus=2, cores=32), interconnect_name="infiniband-hdr100", topology="fat-tree")
    assert (made.memory_bytes_per_second, getattr(made.topology, "nodes_per_switch", 0)) == (40e9, 40)
    sources = {source.what: source.where for source in made.sources}
    assert sources["memory_bytes_per_second"].startswith("assumed: 20 GB/s for each CPU")
    assert sources["nodes_per_switch"] == "assumed: half of the 80 ports of a switch"
    error = capsys.readouterr().err
    assert "--memory-gbytes" in error
    assert "nodes_per_switch" in error
    given = Node(cpus=2, cores=32, memory_bytes_per_second=8e10)
    known = new_platform("mine", 8, given, 1e9, 1e-5, topology="fat-tree", nodes_per_switch=4)
    assert known.memory_bytes_per_second == 8e10
    assert new_platform("mine", 8, Node(), 1e9, 1e-5).memory_bytes_per_second is None
    assert capsys.readouterr().err == ""
