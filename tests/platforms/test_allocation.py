"""Allocations: hosts of a job read from files, and the nodes of a description that stand for them."""

from __future__ import annotations

import subprocess
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from collwise.common.errors import UsageError
from collwise.platforms import AllocatedPlatform, Platform, allocated, load
from collwise.platforms.allocation import Allocation, NodeMap, read_node_map
from collwise.platforms.changes import changed, parse_change
from tests.needs import needs

LEONARDO = load("leonardo")  # 20 groups of 18 switches with 10 nodes
MARENOSTRUM = load("marenostrum5")  # pods of 10 switches with 16 nodes
# Hosts that do not exist, in the forms of PICO's files: two cells, of which one has two switches.
RANKS = "MPI_Rank,allocation,xname\n1,vega0012.vega.local,x1\n0,vega0003.vega.local,x0\n2,vega0181.vega.local,x2\n"
CELLS = """NODE 0003 RACK 1 CELL 1 ROW 1 PARTITION 1  SWITCH 10100
NODE 0012 RACK 1 CELL 1 ROW 1 PARTITION 1  SWITCH 10102
NODE 0181 RACK 4 CELL 2 ROW 1 PARTITION 1  SWITCH 10400
"""
TREE = """# three levels
SwitchName=s1 Nodes=vega[0001-0010] LinkSpeed=1
SwitchName=s2 Nodes=vega[0011-0020]
SwitchName=s3 \\
    Nodes=vega0181
SwitchName=cell1 Switches=s[1-2]
SwitchName=cell2 Switches=s3
SwitchName=top Switches=cell[1-2]
"""
TABLE = "host,group,switch\nvega0003,a,1\nvega0012,a,2\nvega0181,b,1\n"


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def switches_and_groups(platform: AllocatedPlatform, procs: int) -> list[tuple[int, int]]:
    base = platform.base
    assert isinstance(base, Platform)
    assert base.topology is not None
    switches = [base.topology.switch_of(node) for node in platform.positions(procs, platform.per_node or 1)]
    return [(switch, switch // (base.topology.group_switches or 1)) for switch in switches]


@pytest.mark.parametrize("node_map", [CELLS, TREE, TABLE])
@pytest.mark.parametrize("description", ["leonardo", "marenostrum5"])
def test_ranks_share_switches_and_groups_as_their_hosts_do(tmp_path: Path, node_map: str, description: str) -> None:
    ranks, where = write(tmp_path, "alloc.csv", RANKS), write(tmp_path, "map", node_map)
    platform = allocated(load(description), ranks, where)
    (one, group), (other, same), (third, far) = switches_and_groups(platform, 3)
    assert group == same != far
    assert len({one, other, third}) == 3
    assert platform.default_processes_per_node == 1
    assert platform.title.endswith("allocation alloc.csv")


@pytest.fixture(scope="module")
def every_host(tmp_path_factory: pytest.TempPathFactory) -> NodeMap:
    """A map of 20 groups of 18 switches with 10 hosts."""
    lines = [f"h{place},{place // 10},{place // 180}" for place in range(3600)]
    return read_node_map(write(tmp_path_factory.mktemp("map"), "map.csv", "\n".join(["host,switch,group", *lines, ""])))


@given(st.lists(st.integers(0, 3599), min_size=1, max_size=300, unique=True), st.integers(1, 3))
def test_what_is_shared_is_what_the_map_says(every_host: NodeMap, places: list[int], per_node: int) -> None:
    rows = {rank: f"h{place}.x" for rank, place in enumerate(place for place in places for _ in range(per_node))}
    allocation = Allocation("ranks.csv", tuple(rows.values()), True, {host: "ranks.csv" for host in rows.values()})
    platform = allocated(LEONARDO, allocation, every_host)
    nodes = platform.positions(len(rows), per_node)
    found = switches_and_groups(platform, len(rows))
    for one, other in combinations(range(0, len(rows), max(1, len(rows) // 25)), 2):
        left, right = places[one // per_node], places[other // per_node]
        assert (nodes[one] == nodes[other]) == (left == right)
        assert (found[one][0] == found[other][0]) == (left // 10 == right // 10)
        assert (found[one][1] == found[other][1]) == (left // 180 == right // 180)


def test_fewer_processes_are_its_first_ranks_and_other_numbers_fill_its_nodes(tmp_path: Path) -> None:
    ranks = write(tmp_path, "ranks.csv", "rank,host\n0,a\n1,b\n2,a\n3,b\n")
    platform = allocated(load("exact"), ranks)
    assert (platform.per_node, platform.max_procs(2), platform.max_procs(3)) == (2, 4, 6)
    assert platform.positions(3, 2) == (0, 1, 0)
    assert platform.positions(6, 3) == (0, 0, 0, 1, 1, 1)
    with pytest.raises(
        UsageError, match=r"--allocation: ranks.csv has no room for P = 5 with 2 per node \(valid: 1 to 4"
    ):
        platform.positions(5, 2)
    slower = changed(platform, [parse_change("bandwidth=x0.5")]).platform
    assert slower.positions(3, 2) == (0, 1, 0)
    assert len({platform.digest(), slower.digest(), load("exact").digest()}) == 3


def test_lists_of_nodes_have_no_ranks(tmp_path: Path) -> None:
    listed = allocated(load("exact"), "n[001-002,7]")
    assert listed.default_processes_per_node == load("exact").default_processes_per_node
    assert listed.positions(3, 1) == (0, 1, 2)
    assert listed.positions(4, 2) == (0, 0, 1, 1)
    assert allocated(load("exact"), ",".join(letter * 100 for letter in "abc")).max_procs(1) == 3
    lines = allocated(load("exact"), write(tmp_path, "nodes", "# a job\nn[001-002]\nn7,n9\n"))
    assert lines.max_procs(2) == 8
    assert lines.digest() != listed.digest()


def test_all_messages_quote_long_lines_to_the_same_length(tmp_path: Path) -> None:
    long = "y" * 200
    quoted = set[int]()
    for ranks, node_map in (
        (f"rank,host\n0,vega3\n{long}\n", CELLS),
        (f"rank,{long}\n", CELLS),
        (f"n[{long}\n", CELLS),
        (f"n {long}\n", CELLS),
        (RANKS, f"{CELLS}NODE {long}\n"),
        (RANKS, f"SwitchName=s1 None={long}\n"),
        (RANKS, f"{TABLE}{long}\n"),
    ):
        with pytest.raises(UsageError) as problem:
            allocated(LEONARDO, write(tmp_path, "ranks", ranks), write(tmp_path, "map", node_map))
        quoted |= {len(words) for words in str(problem.value).split("'") if "yyy" in words}
    assert len(quoted) == 1, quoted
    assert quoted.pop() < 120


def test_hosts_of_the_platform_need_no_map(tmp_path: Path) -> None:
    gros = load("gros")
    assert allocated(gros, "gros-[3,1]").positions(2, 1) == (2, 0)
    with pytest.raises(UsageError, match=r"nodes:2: 'leonardo' has no host 'a'.*--node-map FILE"):
        allocated(LEONARDO, write(tmp_path, "nodes", "\na\nleonardo-1\n"))


def test_nodes_that_differ_need_their_names(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--allocation: 'hcl16' has no host 'n1', and its nodes differ; name its own"):
        allocated(load("hcl16"), "n[1-2]")
    with pytest.raises(UsageError, match="its nodes differ"):
        allocated(load("hcl16"), "n[1-2]", write(tmp_path, "map.csv", "host,switch\nn1,a\nn2,a\n"))
    own = load("hcl16").hosts
    assert allocated(load("hcl16"), f"{own[3]},{own[1]}").positions(2, 1) == (3, 1)
    with pytest.raises(UsageError, match=r"host 'n2' is not in .*one.csv"):
        allocated(load("gros"), "n[1-2]", write(tmp_path, "one.csv", "host,switch\nn1,a\n"))


def test_files_as_other_programs_write_them(tmp_path: Path) -> None:
    """A mark of the byte order, quotes, carriage returns, and names with or without the domain."""
    ranks = write(tmp_path, "ranks.csv", '\ufeff"host","rank"\r\n"n2","1"\r\n"n1.site","0"\r\n')
    node_map = write(tmp_path, "map.csv", '"Host","Switch"\r\n"n1","a"\r\n"n2.site","a"\r\n')
    platform = allocated(load("fat-tree-1024"), ranks, node_map)
    assert platform.positions(2, 1) == (0, 1)
    blocks = write(tmp_path, "topology.conf", "BlockName=b1 Nodes=n[1-2]\nBlockSizes=2\n")
    assert read_node_map(blocks) == {"n1": ("b1", ""), "n2": ("b1", "")}
    # Names that differ by the domain only are different hosts.
    twins = write(tmp_path, "twins.csv", "host,switch\nn1.one,a\nn1.other,b\n")
    nodes = allocated(load("fat-tree-1024"), "n1.one,n1.other", twins).positions(2, 1)
    assert nodes[1] >= 16
    with pytest.raises(UsageError, match=r"host 'n1' is not in .*twins.csv"):
        allocated(load("fat-tree-1024"), "n[1]", twins)


def test_a_map_without_groups_fills_them_in_order(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hosts = [f"h{number}" for number in range(60)]
    rows = [f"{host},s{number // 2}" for number, host in enumerate(hosts)]
    node_map = write(tmp_path, "flat.csv", "\n".join(["host,switch", *rows]))
    platform = allocated(LEONARDO, ",".join(hosts), node_map)
    found = switches_and_groups(platform, 60)
    assert [switch for switch, _ in found] == [number // 2 for number in range(60)]
    assert {group for _, group in found} == {0, 1}
    assert "flat.csv has no groups of switches" in capsys.readouterr().err
    two_levels = write(
        tmp_path, "two", "SwitchName=a Nodes=n[1-2]\nSwitchName=b Nodes=n3\nSwitchName=top Switches=a,b\n"
    )
    assert read_node_map(two_levels) == {"n1": ("a", ""), "n2": ("a", ""), "n3": ("b", "")}


def test_lists_of_hosts_in_a_csv_are_expanded(tmp_path: Path) -> None:
    where = write(tmp_path, "map.csv", 'switch,host,group\ns1,n[001-032],a\ns2,"n[040,042-043]",b\ns3,login,b\n')
    found = read_node_map(where)
    assert len(found) == 36
    assert (found["n032"], found["n042"], found["login"]) == (("s1", "a"), ("s2", "b"), ("s3", "b"))
    with pytest.raises(UsageError, match=r"bad.csv:2: malformed list 'n\[3-1\]'"):
        read_node_map(write(tmp_path, "bad.csv", "host,switch\nn[3-1],s1\n"))


def test_a_map_of_one_switch_changes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = write(tmp_path, "map.csv", "host,switch\nn1,a\nn2,b\n")
    with_map = allocated(load("grisou"), "n[1-2]", where)
    said = "collwise: n[1-2]: which nodes these are does not matter: all of 'grisou' are at one switch\n"
    assert capsys.readouterr().err == said
    assert with_map.digest() == allocated(load("grisou"), "n[1-2]").digest()
    assert capsys.readouterr().err == said
    own = "grisou-[1-2].nancy.grid5000.fr"
    allocated(load("grisou"), own)
    assert capsys.readouterr().err == said.replace("n[1-2]", own)


@pytest.mark.parametrize(
    "line", ["SLURM_JOB_NODELIST=n[3-4,9]", 'export SLURM_NODELIST="n[3-4,9]"', "   NodeList=n[3-4,9]"]
)
def test_slurm_s_own_lines_name_the_hosts(tmp_path: Path, line: str) -> None:
    found = allocated(load("grisou"), write(tmp_path, "job.txt", f"{line}\n"))
    assert found.ranks == (0, 1, 2)
    assert allocated(load("grisou"), line.strip()).ranks == found.ranks


def test_switches_that_a_description_does_not_fill_count_as_whole(tmp_path: Path) -> None:
    # 3,456 nodes do not fill 20 groups of 180; the job has a node in each group.
    rows = [f"h{number},{number % 7},{number}" for number in range(20)]
    node_map = write(tmp_path, "map.csv", "\n".join(["host,switch,group", *rows]))
    platform = allocated(LEONARDO, ",".join(f"h{number}" for number in range(20)), node_map)
    assert len({group for _, group in switches_and_groups(platform, 20)}) == 20
    assert len(platform.hosts_for(20, 1)) == 20


@pytest.mark.parametrize(
    ("ranks", "node_map", "message"),
    [
        ("rank,host\n0,vega3\n0,vega3\n", CELLS, r"ranks:3: expected a rank and its host, each rank once, not"),
        (
            "rank,host\n0,vega3\n2,vega3\n",
            CELLS,
            r"expected all ranks, starting at 0; found 2 ranks, up to 2, but not rank 1",
        ),
        ("rank,host\n0,vega3\n1,", CELLS, r"ranks:3: expected a rank and its host, each rank once, not '1,'"),
        ("rank,host\n0,vega0003\n1,vega4\n", CELLS, r"ranks:3: host 'vega4' is not in .*map"),
        ("rank,name\n0,a\n", CELLS, r"ranks:1: expected the columns .*rank,host; no host in 'rank,name'"),
        ("vega[4-1]\n", CELLS, r"ranks:1: malformed list 'vega\[4-1\]': start > stop \(expected CSV .*n\[001-004,7\]"),
        ("vega[001-0", CELLS, r"ranks:1: malformed list 'vega\[001-0': unbalanced brackets"),
        ("a\nb\na\n", CELLS, r"ranks:3: host 'a' appears twice"),
        ("a b\n", CELLS, r"ranks:1: 'a b' is not a host"),
        ("# nobody\n", CELLS, r"ranks: contains no hosts \(expected "),
        ("x[1-9999]", CELLS, r"ranks: 9999 hosts, but 'leonardo' has 3456 nodes"),
        (RANKS, "host,rack\na,1\n", r"map:1: not a map of hosts to switches \(expected SLURM's topology.conf"),
        (RANKS, "host,switch\nvega0003\n", r"map:2: expected host,switch, not 'vega0003'"),
        (RANKS, TABLE + "vega0012,b,2\n", r"map:5: host 'vega0012' is at switch 2 of group b, but earlier at 2 of"),
        (RANKS, "SwitchName=s1\n", r"map:1: expected SwitchName with Nodes or Switches"),
        (RANKS, "SwitchName=s1 Nodes=n[1-\n", r"map:1: malformed list 'n\[1-'"),
        (RANKS, "SwitchName=s1 \\", r"map:1: the file ends in the middle of a continued line"),
        (RANKS, CELLS + "NODE 0004 RACK 1", r"map:4: expected NODE, CELL and SWITCH"),
        (RANKS, "", r"map: contains no hosts \(expected SLURM's topology.conf"),
        ("a[1-11]", "SwitchName=s Nodes=a[1-11]", r"ranks: the job has 11 hosts at switch s, more than .*up to 10\)"),
        ("a[1-21]", "host,switch,group\n" + "".join(f"a{n},1,{n}\n" for n in range(1, 22)), r"21 groups of switches"),
        ("a[1-19]", "host,switch,group\n" + "".join(f"a{n},{n},1\n" for n in range(1, 20)), r"19 switches in group 1"),
    ],
)  # fmt: skip
def test_wrong_files(tmp_path: Path, ranks: str, node_map: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as error:
        allocated(LEONARDO, write(tmp_path, "ranks", ranks), write(tmp_path, "map", node_map))
    assert "\n" not in str(error.value)


def test_a_map_is_not_for_a_torus(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="on the torus 'fugaku' it matters which switches are neighbours"):
        allocated(load("fugaku"), write(tmp_path, "ranks", RANKS), write(tmp_path, "map", TABLE))


@needs("slurm")
@pytest.mark.parametrize("nodes", ["n[001-004,7],login", "n[1-2]x[1-2]", "a[08-11],b3", "tux[1-3,8],tux9"])
def test_lists_are_those_of_scontrol(tmp_path: Path, nodes: str) -> None:
    conf = write(tmp_path, "slurm.conf", "ClusterName=x\nSlurmctldHost=localhost\nNodeName=n[1-4]\n")
    said = subprocess.run(
        ["scontrol", "show", "hostnames", nodes], env={"SLURM_CONF": str(conf), "PATH": "/usr/bin:/bin"},
        capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    ranks = "\n".join(f"{rank},{host}" for rank, host in enumerate(said))
    by_rank = allocated(load("gros"), write(tmp_path, "ranks", ranks))
    assert allocated(load("gros"), nodes).ranks == by_rank.ranks
    node_map = write(tmp_path, "map", f"SwitchName=s Nodes={nodes}\n")
    assert list(read_node_map(node_map)) == said
