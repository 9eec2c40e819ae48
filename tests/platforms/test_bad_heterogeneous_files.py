"""Each problem of a description of a heterogeneous cluster is reported in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from collwise.common.errors import UsageError
from collwise.platforms import check_file, load, load_description, write_description
from tests.platforms.test_keys import FORMS

_DIFFERENT = write_description(FORMS["node-types"])
_FAST_SLOW = '{ one = "fast", other = "slow", latency_seconds = 3e-05, bytes_per_second = 100000000.0 }'
_WIRES = "; give one for every two types, and one for each type of several nodes"


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        (
            "nodes = 2",
            "nodes = 1000",
            '[[node_types]]\nname = "fast"',
            "node_types: 1001 nodes in all (valid: up to 1000 in a heterogeneous cluster)",
        ),
        (
            "cpus_per_node = 1",
            "cpus_per_node = 3",
            "cores",
            "node_types[1].cores_per_node: 2 is fewer than the CPUs (va",
        ),
        ('name = "slow"', 'name = "fast"', "", "node_types[2].name: 'fast' is given twice; use each name once"),
        (
            'other = "slow"',
            'other = "slo"',
            '    { one = "fast", other = "slo"',
            "network.wires[2].other: unknown node type 'slo' (valid: fast, slow)",
        ),
        (
            'other = "slow"',
            'other = "fast"',
            '    { one = "fast", other = "fast", latency_seconds = 3',
            f"network.wires[2]: given twice: 'fast' and 'fast'{_WIRES}",
        ),
        (
            'one = "fast", other = "slow"',
            'one = "slow", other = "slow"',
            '    { one = "slow"',
            f"network.wires[2]: between a single node and itself: 'slow' and 'slow'{_WIRES}",
        ),
        (f"    {_FAST_SLOW},\n", "", "wires", f"network.wires: none between 'fast' and 'slow'{_WIRES}"),
        ('host_prefix = "n"', 'host_prefix = "n"\nnodes = 3', "nodes = 3", "cluster.nodes: unknown key"),
        ("[calibration]", "[calibration]\nos = []", "os =", "calibration.os: unknown key"),
        (
            "link_bytes_per_second = 12500000.0",
            "link_bytes_per_second = 1.25e5",
            "link_bytes_per_second = 1.25e5",
            "node_types[2].link_bytes_per_second: 125000 bytes per second is too slow for a link of a cl",
        ),
        (
            "latency_seconds = 3e-05, bytes_per_second = 100000000.0",
            "latency_seconds = 3.0, bytes_per_second = 100000000.0",
            '    { one = "fast", other = "slow"',
            "network.wires[2].latency_seconds: a route of 3 s makes SimGrid's TCP window the bottleneck; shorten it",
        ),
    ],
)
def test_broken_heterogeneous_descriptions(tmp_path: Path, old: str, new: str, line: str, message: str) -> None:
    assert old in _DIFFERENT
    file, text = tmp_path / "bad.toml", _DIFFERENT.replace(old, new, 1)
    file.write_text(text)
    problems = check_file(file)[0]
    assert not any("\n" in problem for problem in problems)
    before = text[: text.index(f"\n{line}") + 1] if line else text[: text.rindex('name = "fast"')]
    start = f"{file}:{before.count(chr(10)) + 1}: {message}"
    assert any(problem.startswith(start) for problem in problems), problems


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
