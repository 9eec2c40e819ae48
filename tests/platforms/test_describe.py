"""collwise platforms describe: recorded machines and Slurm configurations, this machine, and questions."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from collwise.common.errors import UsageError, warn
from collwise.platforms import FatTree, Platform, load_description
from collwise.platforms.discovery.describe import _with_hosts
from collwise.platforms.discovery.facts import READ, Fact, Facts, facts, merged, read
from collwise.platforms.discovery.machine import machine_facts
from collwise.platforms.discovery.slurm import slurm_facts
from collwise.platforms.loader import check_file, interconnect
from collwise.studies.cli.platforms import platforms
from tests.command_line import read as read_words
from tests.needs import needs

RECORDED = Path(__file__).parent / "recorded"
LAPTOP, OMNI_PATH, HDR = RECORDED / "laptop.lscpu", RECORDED / "omnipath.scontrol", RECORDED / "hdr"


def describe(folder: Path, *words: str, answers: str = "") -> tuple[Platform, str]:
    """The description that the command writes, which is sound, and what the command prints."""
    file = folder / "mine.toml"
    result = CliRunner().invoke(platforms, ["describe", "mine", "-o", str(file), *words], input=answers)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    assert not check_file(file)[0]
    made = load_description(file)
    assert isinstance(made, Platform)
    return made, result.output


def sys_tree(folder: Path, files: Mapping[str, str]) -> Path:
    """A copy of /sys that has these files; names that end in a slash are folders."""
    for name, text in files.items():
        path = folder / "sys" / name
        (path if name.endswith("/") else path.parent).mkdir(parents=True, exist_ok=True)
        if not name.endswith("/"):
            path.write_text(f"{text}\n")
    return folder / "sys"


def interface(name: str, speed: str = "", state: str = "up", kind: str = "1", real: bool = True) -> dict[str, str]:
    found = {f"class/net/{name}/operstate": state, f"class/net/{name}/type": kind}
    found |= {f"class/net/{name}/speed": speed} if speed else {}
    return found | ({f"class/net/{name}/device/": ""} if real else {})


def port(device: str, rate: str, state: str = "4: ACTIVE", layer: str = "InfiniBand") -> dict[str, str]:
    where = f"class/infiniband/{device}/ports/1"
    return {f"{where}/rate": rate, f"{where}/state": state, f"{where}/link_layer": layer}


def processors(sockets: int, cores: int, threads: int, domains: int) -> dict[str, str]:
    """The processors of a machine whose threads are numbered as Linux does: all first threads, then the second ones."""
    found = {}
    for core in range(sockets * cores):
        siblings = [core + thread * sockets * cores for thread in range(threads)]
        for cpu in siblings:
            where = f"devices/system/cpu/cpu{cpu}/topology"
            found[f"{where}/physical_package_id"] = str(core // cores)
            found[f"{where}/thread_siblings_list"] = ",".join(map(str, siblings))
    found |= {f"devices/system/node/node{number}/cpulist": str(number) for number in range(domains)}
    found |= {
        f"devices/system/node/node{number}/meminfo": f"Node {number} MemTotal: 2048 kB" for number in range(domains)
    }
    return found | {"devices/system/cpu/cpufreq/": "", f"devices/system/node/node{domains}/cpulist": ""}


def lstopo(sockets: int, domains: int, cores: int, devices: str = "") -> str:
    """hwloc's XML of a machine with so many domains in each socket, and cores in each domain."""
    core = '<object type="Core"><object type="PU"/><object type="PU"/></object>'
    domain = f'<object type="Group"><object type="NUMANode" local_memory="4096"/>{core * cores}</object>'
    package = f'<object type="Package">{domain * domains}</object>'
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE topology SYSTEM "hwloc2.dtd">\n'
        f'<topology version="2.0"><object type="Machine">{package * sockets}{devices}</object></topology>\n'
    )


CONNECTX = """<object type="Bridge"><object type="PCIDev"><info name="PCIDevice" value="MT28908 Family [ConnectX-6]"/>
<object type="OSDev" name="ib0" osdev_type="2"/>
<object type="OSDev" name="mlx5_0" osdev_type="3"><info name="Port1State" value="4"/>
<info name="Port1LID" value="0x2a"/></object></object></object>"""


def values(found: Facts) -> dict[str, object]:
    return {what: fact.value for what, fact in found.items()}


def test_a_laptop_has_one_cpu_and_its_wired_network(tmp_path: Path) -> None:
    files = interface("eno1", "1000") | interface("docker0", "10000", real=False) | interface("lo", kind="772")
    files |= interface("wlp2s0") | {"class/net/wlp2s0/wireless/": ""} | interface("eno2", "10000", state="down")
    made, output = describe(tmp_path, "--hardware", str(LAPTOP), "--hardware", str(sys_tree(tmp_path, files)))
    preset = interconnect("tcp-1g")
    assert (made.nodes, made.cpus_per_node, made.cores_per_node, made.processes_per_node) == (1, 1, 4, 4)
    assert (made.link_bytes_per_second, made.calibration) == (preset.link_bytes_per_second, preset.calibration)
    assert re.search(r"│ nodes +│ 1 +│ estimated │", output)
    assert "calibrate" in output
    assert "salloc" not in output


def test_two_epycs_with_hdr(tmp_path: Path) -> None:
    (tmp_path / "node.xml").write_text(lstopo(2, 4, 8))
    files = port("mlx5_0", "200 Gb/sec (4X HDR)") | port("mlx5_1", "25 Gb/sec (1X EDR)", layer="Ethernet")
    files |= port("mlx5_2", "40 Gb/sec (4X QDR)", state="1: DOWN") | interface("eno1", "25000")
    words = ["--hardware", str(tmp_path / "node.xml"), "--hardware", str(sys_tree(tmp_path, files)), "--nodes", "32"]
    made, output = describe(tmp_path, *words, "--ppn", "32", "--gbits", "200")
    assert (made.nodes, made.cpus_per_node, made.cores_per_node, made.memory_domains_per_node) == (32, 2, 64, 8)
    assert (made.default_processes_per_node, made.memory_bytes_per_node) == (32, 8 * 4096)
    assert made.link_bytes_per_second == interconnect("infiniband-hdr").link_bytes_per_second
    sources = {source.what: source.where for source in made.sources}
    assert sources["CPUs 2, cores 64, memory domains 8, bytes of memory 32768: read"] == str(tmp_path / "node.xml")
    assert sources["nodes 32, processes per node 32, Gbit/s 200: given"]
    assert "the path between sockets" in output
    assert "collwise platforms calibrate --hosts HOSTS --ppn 2 --nominal " in output


def test_hwloc_names_the_card_where_no_rate_is_known(tmp_path: Path) -> None:
    (tmp_path / "node.xml").write_text(lstopo(2, 1, 16, CONNECTX))
    found = values(machine_facts(tmp_path / "node.xml"))
    assert (found["CPUs"], found["cores"], found["memory domains"]) == (2, 32, 2)
    assert (found["interconnect"], found["Gbit/s"]) == ("infiniband-hdr", 200.0)
    # A port of a RoCE card has no LID, and one without a cable is not active.
    for before, after in (("0x2a", "0x0"), ('value="4"', 'value="1"')):
        (tmp_path / "node.xml").write_text(lstopo(2, 1, 16, CONNECTX.replace(before, after)))
        assert "interconnect" not in machine_facts(tmp_path / "node.xml")


@pytest.mark.parametrize(("sockets", "cores", "threads", "domains"), [(1, 4, 1, 1), (2, 32, 2, 8), (4, 3, 1, 4)])
def test_processors_of_sys(tmp_path: Path, sockets: int, cores: int, threads: int, domains: int) -> None:
    found = values(machine_facts(sys=sys_tree(tmp_path, processors(sockets, cores, threads, domains))))
    memory = {"bytes of memory": domains * 2**21}
    assert found == {"CPUs": sockets, "cores": sockets * cores, "memory domains": domains, **memory}


@pytest.mark.parametrize(
    ("files", "preset", "gbits", "links"),
    [
        (port("hfi1_0", "100 Gb/sec (4X EDR)"), "omni-path", 100, None),
        (port("mlx5_0", "100 Gb/sec (4X EDR)"), "infiniband-edr", 100, None),
        (port("mlx5_0", "100 Gb/sec (2X HDR)"), "infiniband-hdr100", 100, None),
        (port("mlx5_0", "400 Gb/sec (4X NDR)"), "infiniband-ndr", 400, None),
        (port("mlx5_0", "56 Gb/sec (4X FDR)"), "infiniband-hdr", 56, None),
        (port("mlx5_0", "200 Gb/sec (4X HDR)") | port("mlx5_1", "200 Gb/sec (4X HDR)"), "infiniband-hdr", 200, 2),
        (port("mlx5_0", "100 Gb/sec (4X EDR)", layer="Ethernet"), "infiniband-hdr", 100, None),
        ({"class/cxi/cxi0/": ""} | interface("hsn0", "200000") | interface("eth0", "1000"), "slingshot", 200, None),
        ({"class/cxi/cxi0/": "", "class/cxi/cxi1/": ""}, "slingshot", None, 2),
        (interface("ipogif0", real=False), "aries", None, None),
        (interface("eth0", "1000") | interface("eth1", "1000"), "tcp-1g", 1, None),
        (interface("eth0", "10000"), "tcp-10g", 10, None),
        (interface("eth0", "100000"), "tcp-25g", 100, None),
        (interface("eth0", "-1"), "tcp-10g", None, None),
    ],
)
def test_networks_of_sys(
    tmp_path: Path, files: dict[str, str], preset: str, gbits: float | None, links: int | None
) -> None:
    found = values(machine_facts(sys=sys_tree(tmp_path, files)))
    assert (found["interconnect"], found.get("Gbit/s"), found.get("links")) == (preset, gbits, links)


def test_other_rates_of_a_network_scale_what_was_measured_of_it(tmp_path: Path) -> None:
    files = interface("eth0", "40000")
    made, _ = describe(tmp_path, "--hardware", str(sys_tree(tmp_path, files)), "--nodes", "4")
    assert made.link_bytes_per_second == pytest.approx(interconnect("tcp-25g").link_bytes_per_second * 40 / 25)
    again, _ = describe(
        tmp_path, "--hardware", str(tmp_path / "sys"), "--nodes", "4", "--interconnect", "omni-path", "--force"
    )
    assert again.link_bytes_per_second == interconnect("omni-path").link_bytes_per_second


def test_omni_path_and_a_slurm_tree(tmp_path: Path) -> None:
    made, output = describe(tmp_path, "--slurm", str(OMNI_PATH), "--topology", "fat-tree:oversubscription=2")
    preset = interconnect("omni-path")
    assert (made.nodes, made.cpus_per_node, made.cores_per_node) == (6, 2, 40)
    assert made.hosts == ("cn1", "cn2", "cn3", "cn4", "cn5", "cn6")
    assert made.topology == FatTree(3, preset.topology.hop_latency_seconds if preset.topology else 0, 2.0)
    assert (made.link_bytes_per_second, made.calibration) == (preset.link_bytes_per_second, preset.calibration)
    assert "1 other node left out (--partition selects nodes)" in output
    fat, _ = describe(tmp_path, "--slurm", str(OMNI_PATH), "--partition", "bigmem", "--force")
    assert (fat.nodes, fat.cpus_per_node, fat.cores_per_node, fat.topology) == (1, 4, 56, None)


def test_a_folder_with_slurm_conf_defaults_and_includes(tmp_path: Path) -> None:
    made, output = describe(tmp_path, "--slurm", str(HDR), "--ppn", "32")
    assert (made.nodes, made.cpus_per_node, made.cores_per_node, made.default_processes_per_node) == (64, 2, 64, 32)
    assert made.topology == FatTree(16, 1.3e-07, 1.0)
    assert made.memory_bytes_per_node == 257000 * 2**20
    assert made.calibration == interconnect("infiniband-hdr").calibration
    assert "2 other nodes left out" in output
    assert "Slurm does not know it" in output
    srun = '--launcher srun --mpirun-args "--cpu-bind=cores"'
    assert f"salloc --exclusive --nodes 2 --ntasks-per-node 2 collwise platforms calibrate {srun} --ppn 2" in output
    main, _ = describe(tmp_path, "--slurm", str(HDR), "--partition", "main", "--force")
    assert main.nodes == 64


@needs("smpi")
def test_the_other_commands_take_what_it_writes(tmp_path: Path) -> None:
    describe(tmp_path, "--slurm", str(HDR), "--ppn", "32")
    for words in (["show", "mine.toml", "--check"], ["show", "mine.toml", "--draw", str(tmp_path / "mine.svg")]):
        words[1] = str(tmp_path / words[1])
        result = CliRunner().invoke(platforms, words)
        assert result.exit_code == 0, result.output
    assert (tmp_path / "mine.svg").stat().st_size > 0


@pytest.mark.parametrize("words", [["--slurm", str(HDR), "--ppn", "32"], ["--nodes", "4"]], ids=["slurm", "hosts"])
def test_what_to_do_next_can_be_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]) -> None:
    monkeypatch.chdir(tmp_path)
    _, output = describe(tmp_path, *words)
    steps = re.findall(r"^- (?:salloc .*? )?collwise (.*)$", output, re.MULTILINE)
    assert [" ".join(step.split()[:2]) for step in steps] == [
        "platforms show",
        "platforms show",
        "platforms calibrate",
        "check three-way",
        "simulate --platform",
        "select mine.times",
    ]
    for step in steps:
        read_words(shlex.split(step))
        if step.startswith("platforms calibrate"):
            (tmp_path / "mine-calibrated.toml").write_text((tmp_path / "mine.toml").read_text())


def test_slurm_counts_more_than_the_machine_that_asks(tmp_path: Path) -> None:
    login = sys_tree(tmp_path, processors(1, 8, 1, 1) | interface("eth0", "10000"))
    made, _ = describe(tmp_path, "--slurm", str(HDR), "--hardware", str(login))
    assert (made.cores_per_node, made.link_bytes_per_second) == (64, 25e9)
    mixed = merged(facts(read("interconnect", "omni-path", "one")), facts(read("Gbit/s", 1.0, "two")))
    assert list(mixed) == ["interconnect"]


def slurm(folder: Path, text: str) -> dict[str, object]:
    (folder / "slurm.conf").write_text(text)
    return values(slurm_facts(str(folder)))


NODES = "NodeName=n[1-8] Sockets=2 CoresPerSocket=8\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SwitchName=s Nodes=n[1-8]", {"topology": "one-switch"}),
        ("SwitchName=s Nodes=n[1-2]\nSwitchName=t Nodes=n[3-8]", {"topology": "fat-tree", "nodes per switch": 6}),
        (
            "".join(f"SwitchName=l{i} Nodes=n[{2 * i + 1}-{2 * i + 2}]\n" for i in range(4))
            + "SwitchName=p1 Switches=l[0-1]\nSwitchName=p2 Switches=l[2-3]\nSwitchName=top Switches=p[1-2]",
            {"topology": "fat-tree", "nodes per switch": 2, "switches per pod": 2},
        ),
        (
            "TopologyParam=Dragonfly\nSwitchName=a Nodes=n[1-4]\nSwitchName=b Nodes=n[5-8]\nSwitchName=g Switches=a,b",
            {"topology": "dragonfly", "nodes per switch": 4, "groups": 1, "switches per group": 2},
        ),
        ("BlockName=b1 Nodes=n[1-4]\nBlockName=b2 Nodes=n[5-8]", {"topology": "fat-tree", "nodes per switch": 4}),
        ("SwitchName=s Nodes=other[1-9]", {}),
        ("TopologyPlugin=topology/3d_torus", {"topology": None}),
    ],
)
def test_trees_of_switches(tmp_path: Path, text: str, expected: dict[str, object]) -> None:
    found = slurm(tmp_path, f"{NODES}{text}\n")
    assert {key: value for key, value in found.items() if key not in ("nodes", "hosts", "CPUs", "cores")} == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("NodeName=n[1-3] CPUs=16", {"nodes": 3}),
        (
            "NodeName=n[1-2] RealMemory=64000\nNodeName=n3 RealMemory=32000",
            {"nodes": 3, "bytes of memory": 32000 * 2**20},
        ),
        ("NodeName=n[1-2] RealMemory=64000\nNodeName=n3 RealMemory=1", {"nodes": 3}),
        ("NodeName=n SocketsPerBoard=1 Boards=2 CoresPerSocket=4", {"nodes": 1, "CPUs": 2, "cores": 8}),
        ("nodename=n sockets=2 corespersocket=4", {"nodes": 1, "CPUs": 2, "cores": 8}),
        (
            "SlurmdParameters=numa_node_as_socket\nNodeName=n Sockets=8 CoresPerSocket=8",
            {"nodes": 1, "cores": 64, "memory domains": 8},
        ),
        ("SlurmdParameters=l3cache_as_socket\nNodeName=n Sockets=8 CoresPerSocket=8", {"nodes": 1, "cores": 64}),
        ("SwitchType=switch/hpe_slingshot\nNodeName=n CPUs=4", {"nodes": 1, "interconnect": "slingshot"}),
        ("NodeName=n CPUs=4 Feature=ib,big", {"nodes": 1, "interconnect": "infiniband-hdr"}),
        ("NodeName=n CPUs=4 Feature=hdr100", {"nodes": 1, "interconnect": "infiniband-hdr100", "Gbit/s": 100}),
        ("NodeName=n CPUs=4 Feature=edr", {"nodes": 1, "interconnect": "infiniband-edr", "Gbit/s": 100}),
        ("NodeName=n CPUs=4 Feature=ib,hdr100", {"nodes": 1, "interconnect": "infiniband-hdr100", "Gbit/s": 100}),
        ("NodeName=n CPUs=4 Feature=25gbe", {"nodes": 1, "interconnect": "tcp-25g", "Gbit/s": 25}),
        (
            "NodeName=n[1-2] CPUs=4 Feature=hdr\nNodeName=n3 CPUs=4",
            {"nodes": 3, "interconnect": "infiniband-hdr", "Gbit/s": 200},
        ),
        ("NodeName=n[1-2] CPUs=4 Feature=hdr\nNodeName=n[3-4] CPUs=4", {"nodes": 4}),
    ],
)
def test_nodes_of_slurm(tmp_path: Path, text: str, expected: dict[str, object]) -> None:
    found = slurm(tmp_path, text + "\n")
    assert {key: value for key, value in found.items() if key != "hosts"} == expected


SITE = """NodeName=DEFAULT Sockets=2 CoresPerSocket=16
NodeName=hn[001-064] Feature=icelake,hdr100,ib
NodeName=hgpu[01-02] Feature=icelake,a100
NodeName=hlogin[1-2] Feature=login
SwitchName=leaf1 Nodes=hn[001-032]
SwitchName=leaf2 Nodes=hn[033-064],hgpu[01-02],hlogin[1-2]
PartitionName=DEFAULT State=UP
PartitionName=gpu Nodes=hgpu[01-02]
PartitionName=batch Nodes=hn[001-064]"""


@pytest.mark.parametrize(
    ("more", "nodes", "per_switch", "rate"),
    [
        (" Default=YES", 64, 32, 100),
        # Without a default partition: the nodes of any, and the network that most of them name.
        ("", 66, 34, 100),
        # A default partition whose nodes are not known.
        ("\nPartitionName=other Nodes=elsewhere Default=YES", 66, 34, 100),
    ],
)
def test_nodes_are_those_of_the_default_partition(
    tmp_path: Path, more: str, nodes: int, per_switch: int, rate: int
) -> None:
    found = slurm(tmp_path, SITE + more + "\n")
    assert (found["nodes"], found["nodes per switch"]) == (nodes, per_switch)
    assert (found["interconnect"], found["Gbit/s"]) == ("infiniband-hdr100", rate)


def test_an_unknown_network_is_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "slurm.conf").write_text(NODES)
    words = ["describe", "mine", "-o", str(tmp_path / "mine.toml"), "--slurm", str(tmp_path)]
    warn.cache_clear()
    assert "no interconnect was found: tcp-10g is assumed" in CliRunner().invoke(platforms, words).stderr
    warn.cache_clear()
    known = CliRunner().invoke(platforms, [*words, "--interconnect", "omni-path", "--memory-gbytes", "40", "--force"])
    assert (known.exit_code, known.stderr) == (0, "")


def test_fewer_nodes_than_a_switch_has(tmp_path: Path) -> None:
    made, _ = describe(tmp_path, "--slurm", str(HDR), "--nodes", "4")
    assert made.topology is not None
    assert made.topology.nodes_per_switch == 4


def test_a_dragonfly_gets_estimated_rates(tmp_path: Path) -> None:
    switches = "".join(f"SwitchName=s{i} Nodes=n[{4 * i + 1}-{4 * i + 4}]\n" for i in range(6))
    groups = "".join(f"SwitchName=g{i} Switches=s[{2 * i}-{2 * i + 1}]\n" for i in range(3))
    text = f"TopologyParam=dragonfly\nNodeName=n[1-24] CPUs=4 Feature=ss11\n{switches}{groups}"
    (tmp_path / "slurm.conf").write_text(text)
    made, output = describe(tmp_path, "--slurm", str(tmp_path))
    assert made.topology is not None
    assert made.topology.kind == "dragonfly"
    assert made.topology.switches(24) == 6
    assert "as fast as the links of a switch's nodes; --topology dragonfly:local_gbits=N" in output


def test_live_slurm_asks_scontrol(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scontrol = tmp_path / "bin" / "scontrol"
    scontrol.parent.mkdir()
    # The real one has an error instead of an empty topology.
    parts = '[ "$2" = topology ] && exit 1; [ "$2" = nodes ] && cat "$RECORDED"; exit 0'
    scontrol.write_text(f"#!/bin/sh\n{parts}\n")
    scontrol.chmod(0o755)
    monkeypatch.setenv("RECORDED", str(OMNI_PATH))
    monkeypatch.setenv("PATH", f"{scontrol.parent}:/usr/bin:/bin")
    assert values(slurm_facts("live"))["nodes"] == 6
    scontrol.write_text("#!/bin/sh\necho 'slurm_load_ctl_conf error: Unable to contact slurm controller' >&2\nexit 1\n")
    with pytest.raises(
        UsageError, match=r"^--slurm live: no Slurm answers here \(scontrol .*Unable to contact.*slurm.conf"
    ):
        slurm_facts("live")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="scontrol not found on PATH"):
        slurm_facts("live")


def test_this_machine(tmp_path: Path) -> None:
    made, output = describe(tmp_path)
    assert made.nodes == 1
    assert re.search(rf"│ cores +│ {made.cores_per_node} +│ read +│", output)
    found = machine_facts()
    assert found["cores"].how == "read"
    # hwloc and /sys agree.
    if shutil.which("lstopo-no-graphics"):
        assert found["cores"].where == "lstopo"
        assert machine_facts(sys=Path("/sys"))["cores"].value == found["cores"].value


def test_questions_offer_what_is_known(tmp_path: Path) -> None:
    made, output = describe(tmp_path, "--ask", answers="8\n2\n32\n16\nomni-path\nfat-tree\n4\n2\n")
    assert (made.nodes, made.cpus_per_node, made.cores_per_node, made.default_processes_per_node) == (8, 2, 32, 16)
    assert made.topology == FatTree(4, 1.1e-07, 2.0)
    assert "Nodes (needed): " in output
    assert "Nodes at a switch (needed): " in output
    words = ("--slurm", str(HDR), "--ask", "--ppn", "8", "--force")
    known, output = describe(tmp_path, *words, answers="\n\n\n\n\n\n4\n")
    assert known.topology == FatTree(16, 1.3e-07, 4.0)
    assert "Nodes [64]: " in output
    assert "Processes" not in output
    assert re.search(r"│ nodes +│ 64 +│ read +│", output)


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ("8\n2\n32\n16\nhdr\n\nomnipath\n", "--ask: Interconnect: unknown interconnect 'omnipath'"),
        ("8\n2\n32\n16\n", "--ask: Interconnect: no answer"),
        ("none\n", "--ask: Nodes: 'none' is not a valid integer"),
        ("8\n2\n32\n16\nhdr\n", "--ask: Interconnect: unknown interconnect 'hdr'"),
    ],
)
def test_wrong_answers_and_none_end_the_questions(tmp_path: Path, answers: str, said: str) -> None:
    words = ["describe", "mine", "-o", str(tmp_path / "mine.toml"), "--ask"]
    problem = CliRunner().invoke(platforms, words, input=answers).exception
    assert isinstance(problem, UsageError)
    assert str(problem).startswith(said)
    assert ("; valid: " in str(problem)) == ("Interconnect" in said)
    assert not (tmp_path / "mine.toml").exists()


def test_a_file_is_overwritten_with_force_only(tmp_path: Path) -> None:
    describe(tmp_path)
    with pytest.raises(UsageError, match="already exists; name another file, or overwrite it with --force"):
        describe(tmp_path)


def test_hosts_that_begin_at_another_number_keep_their_names() -> None:
    made = replace(load_description("gros"), nodes=3)
    found = _with_hosts(made, Fact("hosts", "cn[3-5].local", READ, "Slurm"))
    assert found.hosts == ("cn3.local", "cn4.local", "cn5.local")
    assert _with_hosts(made, Fact("hosts", "cn[3-4,6]", READ, "Slurm")) == made
