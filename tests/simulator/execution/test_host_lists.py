from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from collwise.common.errors import UsageError
from collwise.simulator.execution.cluster import (
    common_name,
    expand_node_list,
    expand_task_counts,
    format_hosts,
    hosts_in,
    mapped_by_blocks,
    read_hosts,
)
from collwise.simulator.execution.launchers import slots_of_job, slots_of_reservation


@pytest.mark.parametrize(
    ("text", "slots"),
    [
        ("n1,n2", {"n1": 1, "n2": 1}),
        ("n2,n1,n2", {"n2": 2, "n1": 1}),
        ("n1:4,n2 slots=2", {"n1": 4, "n2": 2}),
        ("10.0.0.1", {"10.0.0.1": 1}),
    ],
)
def test_hosts_by_commas(text: str, slots: dict[str, int]) -> None:
    found = read_hosts(text)
    assert found == slots
    assert list(found) == list(slots)


def test_a_host_file_of_either_library(tmp_path: Path) -> None:
    file = tmp_path / "hosts"
    file.write_text("# the big ones\nn1 slots=4 max_slots=8\n\nn2:2  # mpich's way\nn3\n")
    assert read_hosts(str(file)) == {"n1": 4, "n2": 2, "n3": 1}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("n1\nn2 slot=3\n", r"hosts:2: not a host; write NAME, NAME slots=N or NAME:N"),
        ("n1 slots=0\n", r"hosts:1: 0 processes; valid: 1 to"),
        ("# nothing\n", "contains no hosts"),
    ],
)
def test_a_bad_host_file_names_the_line(tmp_path: Path, content: str, message: str) -> None:
    file = tmp_path / "hosts"
    file.write_text(content)
    with pytest.raises(UsageError, match=message):
        read_hosts(str(file))


@pytest.mark.parametrize("text", ["no/such/file", "n1,,n2", "n 1"])
def test_bad_hosts_name_the_option(text: str) -> None:
    with pytest.raises(UsageError, match="--hosts"):
        read_hosts(text)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("n1", ["n1"]),
        ("n[1-3]", ["n1", "n2", "n3"]),
        ("n[08-10,12]-ib,login", ["n08-ib", "n09-ib", "n10-ib", "n12-ib", "login"]),
        ("r[1-2]n[1-2]", ["r1n1", "r1n2", "r2n1", "r2n2"]),
    ],
)
def test_slurms_node_lists(text: str, names: list[str]) -> None:
    assert expand_node_list(text) == names


@pytest.mark.parametrize("text", ["n[1-", "n[3-1]", "n[a]", ""])
def test_what_is_no_node_list_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="SLURM_JOB_NODELIST"):
        expand_node_list(text)


def test_slurms_tasks() -> None:
    assert expand_task_counts("2(x3),1") == [2, 2, 2, 1]
    with pytest.raises(UsageError, match="SLURM_TASKS_PER_NODE"):
        expand_task_counts("2x3")


def test_a_job_and_a_reservation(tmp_path: Path) -> None:
    assert slots_of_job({"SLURM_JOB_NODELIST": "n[1-3]", "SLURM_TASKS_PER_NODE": "2(x3)"}) == dict.fromkeys(
        ("n1", "n2", "n3"), 2
    )
    assert slots_of_job({"SLURM_JOB_NODELIST": "n[1-2]"}) == {"n1": 1, "n2": 1}
    nodes = tmp_path / "nodes"
    nodes.write_text("dahu-1.grid\n" * 3 + "dahu-2.grid\n" * 3)
    assert slots_of_reservation({"OAR_NODE_FILE": str(nodes)}) == {"dahu-1.grid": 3, "dahu-2.grid": 3}
    for read in (slots_of_job, slots_of_reservation):
        with pytest.raises(UsageError, match="is not set; run within"):
            read({})


@given(st.lists(st.tuples(st.from_regex(r"[a-z]{1,3}", fullmatch=True), st.integers(1, 9)), min_size=1, max_size=5))
def test_hosts_of_processes_are_written_and_read_back(blocks: list[tuple[str, int]]) -> None:
    hosts = [host for host, count in dict(blocks).items() for _ in range(count)]
    assert list(hosts_in(format_hosts(hosts))) == hosts
    per_node = blocks[0][1]
    alike = [host for host in dict(blocks) for _ in range(per_node)]
    assert mapped_by_blocks(alike, per_node)
    assert mapped_by_blocks(alike[1:] + alike[:1], per_node) == (per_node == 1 or len(dict(blocks)) == 1)


def test_names_of_sets_of_hosts() -> None:
    assert common_name(["dahu-1.site", "dahu-12.site"]) == "dahu"
    assert common_name(["n1", "n1"]) == "n1"
    assert common_name(["a", "b"]) == "a"
