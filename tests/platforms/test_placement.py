"""Placements of ranks on nodes: blocks, cyclic, by file."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from collwise.common.errors import UsageError
from collwise.platforms import PlacedPlatform, load, placed

GROS = load("gros")


@given(st.integers(1, 400), st.integers(1, 8))
def test_cyclic_uses_the_nodes_of_blocks_evenly_in_turn(procs: int, per_node: int) -> None:
    blocks = GROS.positions(min(procs, 124 * per_node), per_node)
    cyclic = placed(GROS, "cyclic").positions(min(procs, 124 * per_node), per_node)
    assert set(cyclic) == set(blocks)
    counts = Counter(cyclic)
    assert max(counts.values()) - min(counts.values()) <= 1
    assert max(counts.values()) <= per_node
    nodes = len(counts)
    assert all(cyclic[rank] == cyclic[rank - nodes] for rank in range(nodes, len(cyclic)))


@pytest.mark.parametrize("placement", ["block", "cyclic"])
def test_the_ranks_of_a_node_lie_on_its_sockets_in_even_blocks(placement: str) -> None:
    platform = placed(load("grisou"), placement)  # of two sockets
    places = platform.places(17, 5)
    assert tuple(node for node, _ in places) == platform.positions(17, 5)
    of_node: dict[int, list[int]] = {}
    for node, socket in places:
        of_node.setdefault(node, []).append(socket)
    expected = {2: [0, 1], 4: [0, 0, 1, 1], 5: [0, 0, 0, 1, 1]}
    assert all(sockets == expected[len(sockets)] for sockets in of_node.values())
    assert load("exact").places(3, 3) == ((0, 0), (0, 0), (0, 0))


@given(st.lists(st.integers(0, 123), min_size=1, max_size=60))
def test_a_placement_of_any_hosts_is_kept(ranks: list[int]) -> None:
    platform = PlacedPlatform(GROS, tuple(ranks), "file")
    most = max(Counter(ranks).values())
    assert platform.positions(len(ranks), most) == tuple(ranks)
    assert platform.hosts_for(len(ranks), most) == tuple(GROS.hosts[rank] for rank in ranks)
    if most > 1:
        with pytest.raises(UsageError, match=f"valid: up to {most - 1}"):
            platform.positions(len(ranks), most - 1)


def test_a_file_names_hosts_by_name_or_number(tmp_path: Path) -> None:
    file = tmp_path / "ranks.txt"
    file.write_text(f"{GROS.hosts[3]}  # the root\n\n0\n{GROS.hosts[3]}\n")
    platform = placed(GROS, str(file))
    assert platform.positions(3, 2) == (3, 0, 3)
    with pytest.raises(UsageError, match="places 3 ranks, not P = 4"):
        platform.positions(4, 2)


def test_every_placement_has_results_of_its_own() -> None:
    digests = {GROS.digest(), placed(GROS, "cyclic").digest(), PlacedPlatform(GROS, (1, 0)).digest()}
    digests.add(PlacedPlatform(GROS, (0, 1)).digest())
    assert len(digests) == 4
    assert placed(GROS, "block") is GROS


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "0\ngros-1.nancy.grid500.fr\n",
            r"ranks:2: no host .*did you mean gros-1\b.*valid: gros-1",
        ),
        ("124\n", "valid: gros-1.nancy.grid5000.fr to gros-124.nancy.grid5000.fr, or 0 to 123"),
        ("# nobody\n", "places no rank"),
    ],
)
def test_wrong_files(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "ranks"
    file.write_text(text)
    with pytest.raises(UsageError, match=message) as error:
        placed(GROS, str(file))
    assert "\n" not in str(error.value)


def test_wrong_names() -> None:
    with pytest.raises(UsageError, match=r"unknown placement 'cylic'; did you mean cyclic"):
        placed(GROS, "cylic")
    with pytest.raises(UsageError, match="cannot read"):
        placed(GROS, "missing/ranks.txt")
