"""Each problem of a platform's name or file is reported in one line."""

from __future__ import annotations

from dataclasses import replace
from difflib import SequenceMatcher
from pathlib import Path

import pytest

from collwise.common.errors import UsageError
from collwise.platforms import Calibration, check_file, known, load, load_description, write_description
from collwise.platforms.xml_file import XmlPlatform
from tests.platforms.test_keys import FORMS

_GOOD = write_description(replace(load_description("grisou"), calibration=Calibration()))
_XML = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <config><prop id="smpi/bw-factor" value="65472:0.94;0:0.8"/><prop id="maxmin/precision" value="1e-9"/></config>
  <zone id="AS0" routing="Full">
    <host id="front" speed="1Gf"/>
    <cluster id="c" prefix="n-" suffix=".x" radical="1-2,9" speed="1Gf" bw="125MBps" lat="50us"/>
    <link id="l" bandwidth="1GBps" latency="0"/>
  </zone>
</platform>
"""


def _message(file: Path, text: str) -> str:
    """The error of loading `text`, without the file's name; checks that the report starts with the same line."""
    file.write_text(text)
    with pytest.raises(UsageError) as error:
        load(file)
    assert error.value.exit_code == 2
    message = str(error.value)
    assert "\n" not in message
    assert message.startswith(f"{file}:")
    assert message.startswith(check_file(file)[0][0])
    return message.removeprefix(f"{file}:")


def _line(text: str, start: str) -> int:
    return next(number for number, line in enumerate(text.splitlines(), 1) if line.startswith(start))


def test_unknown_name() -> None:
    with pytest.raises(UsageError) as error:
        load("grisu")
    assert str(error.value) == (
        "unknown platform 'grisu'; did you mean grisou or gros? (see 'collwise platforms show')"
    )


def test_missing_unreadable_and_foreign_files(tmp_path: Path) -> None:
    missing = tmp_path / "no.toml"
    with pytest.raises(UsageError) as error:
        load(str(missing))
    assert str(error.value) == f"platform file '{missing}' does not exist; expected the path of a .toml or .xml file"
    with pytest.raises(UsageError) as error:
        load(f"{tmp_path}/a.json")
    assert str(error.value).endswith("a.json' has an unknown type; its name must end in .toml or .xml")
    folder = tmp_path / "folder.xml"
    folder.mkdir()
    with pytest.raises(UsageError) as error:
        load(folder)
    assert str(error.value) == f"platform file '{folder}' cannot be read: Is a directory"
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"name = '\xff'")
    with pytest.raises(UsageError) as error:
        load(binary)
    assert str(error.value) == f"platform file '{binary}' is not UTF-8 text (at byte 8)"


_FAULTS = """
[[node_faults]]
node = 3
rate_factor = 0.5

[[node_faults]]
node = 4
overhead_factor = 2.0

[topology]
kind = "fat-tree"
nodes_per_switch = 16
cable_faults = [
    { switches = [1], rate_factor = 0.5 },
]
"""
_DIFFERENT = write_description(FORMS["node-types"])
_LATENCY = "latency_factor = [\n    { from_bytes = 0, factor = 1.0 },\n]"
_WIRE = '    { one = "fast", other = "slow", latency_seconds = 3e-05, bytes_per_second = 100000000.0 },\n'
_WIRES = "; give one for every two types, and one for each type of several nodes"
_UNPAIRED = "is given without backbone_bytes_per_second; give both, or neither"
_ORDER = "; sizes must ascend from 0, each once"


def _rows(*starts: int) -> str:
    return f"latency_factor = [{', '.join(f'{{from_bytes = {start}, factor = 1}}' for start in starts)}]"


# A text, what stands in its place, what is wrong, and how the line begins that is named, if it is not a changed one.
_BROKEN = {
    _GOOD: [
        ("nodes = 51", "nodes =", "broken TOML: Invalid value (at line 6, column 8)"),
        ("core_flops =", "zzzz = 1\ncore_flops =", "cluster.zzzz: unknown key (valid: nodes, host_prefix, "),
        ("cores_per_node = 16", "cores_per_node = 1", "cluster.cores_per_node: 1 is fewer than the CPUs"),
        ("cores_per_node = 16", "cores_per_node = 63", "cluster.cores_per_node: 63 is not a multiple of the 2 CPUs"),
        ("links_per_node = 1", "backbone_latency_seconds = 1", f"network.backbone_latency_seconds: {_UNPAIRED}"),
        ("links_per_node = 1", "backbone_is_shared = true", f"network.backbone_is_shared: {_UNPAIRED}"),
        ("7 = 1.54", '7 = "x"', "published.gamma.7: 'x' does not fit (valid: a number, or a table of numbers)"),
        (_LATENCY, "latency_factor = [[0, 1.0]]", "a list does not fit (valid: a list of tables with from_bytes, fact"),
        (_LATENCY, "latency_factor = 1.0", "1.0 does not fit (valid: a list of tables with from_bytes, factor)"),
        (_LATENCY, "latency_factor = []", f"calibration.latency_factor: from_bytes has no rows{_ORDER}"),
        (_LATENCY, _rows(1), f"calibration.latency_factor: from_bytes has 1{_ORDER}"),
        (_LATENCY, _rows(0, 9, 9), f"from_bytes has 0, 9, 9{_ORDER}"),
        (_LATENCY, _rows(*range(16)), "calibration.latency_factor: 16 rows (valid: 1 to 15)"),
    ],
    write_description(FORMS["one-switch"]): [
        (
            "buffer_bytes = 32000",
            "buffer_bytes = 100",
            "ports.buffer_bytes: 100 is less than a packet (valid: at least",
        ),
        ("buffer_bytes = 32000\n", "", "ports.retransmission_seconds: is given without buffer_bytes; give", "retrans"),
        (
            "cpus_per_node = 2",
            "cpus_per_node = 1",
            "latency_seconds: is given for nodes of one CPU; c",
            "between_sockets_l",
        ),
    ],
    _GOOD + _FAULTS: [
        ("node = 4", "node = 51", "node_faults[2].node: there is no node 51 (valid: 0 to 50)"),
        ("node = 4", "node = 3", "node_faults[2].node: 3 is given twice; use each node once"),
        ("[1]", "[4]", "topology.cable_faults[1].switches: there is no switch 4 (valid: 0 to 3)"),
        ("[1]", "[1, 2]", "no cable ends at 1 and 2 of the fat-tree; expected one switch, or on a torus"),
        ("[1]", "[]", "(valid: a list of one switch, or of two with a cable between them"),
        ('"fat-tree"\nnodes_per_switch = 16', '"one-switch"', "topology.cable_faults: unknown key", "cable_faults"),
        ('"fat-tree"', '"fatt-tree"', "topology.kind: unknown topology 'fatt-tree'; did you mean fat-tree?"),
        ('kind = "fat-tree"\n', "", "topology.kind: missing (valid: one-switch, fat-tree, dragonfly, to", "[topology]"),
        ("16\ncable", "16\npod_oversubscription = 2.0\ncable", "is given without switches_per_pod; give both, or neit"),
        ("links_per", "backbone_bytes_per_second = 1e9\nlinks_per", "network.backbone_bytes_per_second: is given with"),
        ("core_flops", "memory_domains_per_node = 17\ncore_flops", "17 is more than the cores (valid: up to 16)"),
    ],
    _DIFFERENT: [
        ("nodes = 2", "nodes = 1000", "1001 nodes in all (valid: up to 1000 in a heterogeneous clu", "[[node_types]]"),
        ("cpus_per_node = 1", "cpus_per_node = 3", "node_types[1].cores_per_node: 2 is fewer than the CPUs (", "cores"),
        ('name = "slow"', 'name = "fast"', "node_types[2].name: 'fast' is given twice; use each name once"),
        ('other = "slow"', 'other = "slo"', "network.wires[2].other: unknown node type 'slo' (valid: fast, slow)"),
        ('other = "slow"', 'other = "fast"', f"network.wires[2]: given twice: 'fast' and 'fast'{_WIRES}"),
        ('one = "fast", other = "slow"', 'one = "slow", other = "slow"', "between a single node and itself: 'slow' an"),
        (_WIRE, "", f"network.wires: none between 'fast' and 'slow'{_WIRES}", "wires"),
        ('host_prefix = "n"', 'host_prefix = "n"\nnodes = 3', "cluster.nodes: unknown key"),
        ("[calibration]", "[calibration]\nos = []", "calibration.os: unknown key"),
        ("= 12500000.0", "= 1.25e5", "node_types[2].link_bytes_per_second: 125000 bytes per second is too slow for a"),
        ("3e-05", "3.0", "network.wires[2].latency_seconds: a route of 3 s makes SimGrid's TCP window the bottleneck"),
    ],
}


def _changed_lines(good: str, bad: str) -> set[int]:
    """The numbers of the lines of a text that another one does not have at their place."""
    changes = SequenceMatcher(None, good.splitlines(), bad.splitlines(), autojunk=False).get_opcodes()
    return {line + 1 for kind, *_, first, end in changes if kind != "equal" for line in range(first, end)}


@pytest.mark.parametrize(
    ("good", "old", "new", "message", "start"),
    [(good, *row, "")[:5] for good, rows in _BROKEN.items() for row in rows],
)
def test_a_problem_is_named_with_its_line(
    tmp_path: Path, good: str, old: str, new: str, message: str, start: str
) -> None:
    assert old in good
    file, bad = tmp_path / "bad.toml", good.replace(old, new, 1)
    file.write_text(bad)
    [found] = [problem for problem in check_file(file)[0] if message in problem]
    assert "\n" not in found
    line = int(found.removeprefix(f"{file}:").partition(":")[0])
    assert line in ([_line(bad, start)] if start else _changed_lines(good, bad)), found


def test_missing_table_and_the_count_of_further_problems(tmp_path: Path) -> None:
    file = tmp_path / "bad.toml"
    assert _message(file, 'name = "x"\nsite = "y"\n') == (
        "1: cluster: missing (valid: a table [cluster] with nodes, host_prefix, host_suffix, first_host, cpus_per_node,"
        " cores_per_node, memory_domains_per_node, core_flops, processes_per_node, memory_bytes_per_node)"
        f" [and 2 more: see 'collwise platforms show {file} --check']"
    )
    assert len(check_file(file)[0]) == 3


def test_a_short_description_is_enough(tmp_path: Path) -> None:
    file = tmp_path / "lab.toml"
    file.write_text(_GOOD[: _GOOD.index("[calibration]")])
    assert load_description(file).calibration.eager_limit_bytes == 65536
    assert not check_file(file)[0]


def test_a_latency_at_which_the_tcp_window_bites(tmp_path: Path) -> None:
    line = next(content for content in _GOOD.splitlines() if content.startswith("link_latency_seconds"))
    bandwidth = load_description("grisou").link_bytes_per_second
    file = tmp_path / "far.toml"
    file.write_text(_GOOD.replace(line, "link_latency_seconds = 0.001"))
    (problem,) = check_file(file)[0]
    most = 4194304 / 2 / bandwidth
    assert problem == (
        f"{file}:{_line(_GOOD, 'link_latency')}: network.link_latency_seconds: a route of 0.002 s makes SimGrid's TCP"
        f" window the bottleneck; shorten it to {most:.3g} s at {bandwidth:g} B/s, or set calibration.tcp_window = "
        "false"
    )
    file.write_text(file.read_text().replace("crosstraffic = true", "crosstraffic = true\ntcp_window = false"))
    assert not check_file(file)[0]


def test_xml_is_taken_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "own.xml"
    file.write_text(_XML)
    platform = load(str(file))
    assert isinstance(platform, XmlPlatform)
    assert platform.name == "own"
    assert platform.hosts == ("front", "n-1.x", "n-2.x", "n-9.x")
    assert platform.hosts_for(3, 2) == ("front", "front", "n-1.x")
    assert platform.default_processes_per_node == 1
    assert platform.xml_text() == _XML
    assert platform.smpi_options() == {"smpi/bw-factor": "65472:0.94;0:0.8"}
    assert not check_file(file)[0]
    digest = platform.digest()
    file.write_text(_XML.replace("50us", "51us"))
    assert load(file).digest() != digest
    with pytest.raises(UsageError) as error:
        load_description(file)
    assert str(error.value).endswith(
        f"own.xml' has no description; expected a .toml file or one of {', '.join(known())}"
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("</zone>", "", "10: broken XML: mismatched tag inside <zone>"),
        (_XML, "", "1: broken XML: no element found"),
        ("platform", "plat", "3: the root element is <plat> (valid: <platform>)"),
        ('version="4.1"', 'version="3"', "3: <platform> has version 3 (valid: 4.1, or 4)"),
        (' version="4.1"', "", "3: <platform> has version none (valid: 4.1, or 4)"),
        ('"front"', '"n-2.x"', "7: host 'n-2.x' is also on line 6; each needs its own name"),
        ('"1-2,9"', '"2-1"', "7: radical '2-1' runs backwards in '2-1'; write 1-2"),
        ('suffix=".x" ', "", "7: <cluster> lacks the attribute suffix; it needs prefix, radical and suffix"),
        ("125MBps", "0MBps", "7: bw of <cluster> is '0MBps' (valid: a bandwidth above 0, for example 1.25GBps)"),
        ("1GBps", "-1GBps", "8: bandwidth of <link> is '-1GBps' (valid: a bandwidth above 0, for example 1.25GBps)"),
        ("1GBps", "1GBytes", "8: bandwidth of <link> is '1GBytes' (valid: a bandwidth above 0, for example 1.25GBps)"),
        ("50us", "-50us", "7: lat of <cluster> is '-50us' (valid: a time of at least 0, for example 10us)"),
        (
            '"front" speed="1Gf"',
            '"front" speed="0"',
            "6: speed of <host> is '0' (valid: a speed above 0, for example 1Gf)",
        ),
        ("smpi/bw-factor", "smpi/bw-facto", "4: unknown option 'smpi/bw-facto'; did you mean smpi/bw-factor"),
        (
            "65472:0.94;0:0.8",
            "0.94",
            "4: smpi/bw-factor '0.94' has no message size, which makes SimGrid 3.32 crash; wri",
        ),
        ("65472:0.94;0:0.8", "0:0", "4: smpi/bw-factor: factor 0 in '0:0' (valid: above 0)"),
        (
            "65472:0.94;0:0.8",
            "0:1;9:1;5:1",
            "4: smpi/bw-factor: sizes 0, 9, 5 are not in order; write them in ascending order",
        ),
        ("65472:0.94;0:0.8", "0:1;9:1;9:2", "4: smpi/bw-factor: a size is given twice; give each size once"),
        ("65472:0.94;0:0.8", "0:1:2", "4: smpi/bw-factor: malformed row '0:1:2'; write for example 0:1.0;65536:0.94"),
        ("65472:0.94;0:0.8", "0:x", "4: smpi/bw-factor: '0:x' contains something other than numbers; write "),
        (
            "65472:0.94;0:0.8",
            "9999999999:1",
            "4: smpi/bw-factor: size 9999999999 is too large (valid: up to 2147483631)",
        ),
        (
            'bw-factor" value="65472:0.94;0:0.8',
            'os" value="0:1',
            "4: smpi/os: malformed row '0:1'; write for example 0:0.0:0.0;1024",
        ),
        ('value="1e-9"', "", "4: a <prop> of <config> lacks id or value; it needs both"),
    ],
)
def test_broken_xml(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in _XML
    assert _message(tmp_path / "bad.xml", _XML.replace(old, new)).startswith(message)


def test_xml_without_hosts(tmp_path: Path) -> None:
    message = _message(tmp_path / "bad.xml", "<platform version='4.1'>\n<zone id='z' routing='Full'/></platform>")
    assert message == "1: no host; at least one <host>, <cluster>, <cabinet> or <peer> is needed"


def test_a_heterogeneous_description_is_not_a_homogeneous_one(tmp_path: Path) -> None:
    file = tmp_path / "lab.toml"
    file.write_text(_DIFFERENT)
    assert not check_file(file)[0]
    assert load(file).hosts == ("n1", "n2", "n3")
    with pytest.raises(UsageError) as error:
        load_description(file)
    assert str(error.value) == f"platform '{file}' has nodes that differ; use a platform of equal nodes"


def test_no_node_types_at_all(tmp_path: Path) -> None:
    text = _DIFFERENT[: _DIFFERENT.index("[[node_types]]")].replace("[cluster]", "node_types = []\n[cluster]")
    file = tmp_path / "bad.toml"
    file.write_text(text)
    line = text[: text.index("\nnode_types")].count("\n") + 2
    assert check_file(file)[0][0] == f"{file}:{line}: node_types: none; at least one is needed"
