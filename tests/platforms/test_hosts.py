"""Radicals and rank placement."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collwise.common.errors import UsageError
from collwise.platforms import load, parse_radical


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("1-3,5,7-9", (1, 2, 3, 5, 7, 8, 9)), ("0", (0,)), ("4-4", (4,)), (" 2 , 1 ", (2, 1)), ("9,1-2", (9, 1, 2))],
)
def test_radical_examples(text: str, numbers: tuple[int, ...]) -> None:
    assert parse_radical(text) == numbers


@given(st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 40)), min_size=1, max_size=8))
def test_radical_of_any_ranges(ranges: list[tuple[int, int]]) -> None:
    text = ",".join(f"{first}-{first + more}" if more else f"{first}" for first, more in ranges)
    assert list(parse_radical(text)) == [n for first, more in ranges for n in range(first, first + more + 1)]


@pytest.mark.parametrize("text", ["", "1-", "-3", "1--3", "a", "1;2", "1-2-3", "1,,2"])
def test_malformed_radical(text: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_radical(text)
    assert str(error.value) == f"malformed radical '{text}' (valid: numbers and ranges, for example 1-3,5,7-9)"


def test_backward_and_endless_radicals() -> None:
    with pytest.raises(UsageError) as error:
        parse_radical("1,9-3")
    assert str(error.value) == "radical '1,9-3' runs backwards in '9-3' (valid: 3-9)"
    with pytest.raises(UsageError, match=r"^radical '0-999999999' names more hosts .* \(valid: up to 1000000\)$"):
        parse_radical("0-999999999")


def test_ranks_fill_nodes_in_blocks() -> None:
    grisou = load("grisou")
    assert grisou.hosts_for(5, 2) == tuple(f"grisou-{n}.nancy.grid5000.fr" for n in (1, 1, 2, 2, 3))
    assert grisou.hosts_for(51, 1) == grisou.hosts
    assert grisou.max_procs(2) == 102
    assert len(grisou.hosts_for(102, 2)) == 102


@given(st.integers(1, 124 * 3), st.integers(1, 3))
def test_every_node_holds_at_most_its_share(procs: int, per_node: int) -> None:
    gros = load("gros")
    if procs > gros.max_procs(per_node):
        return
    placed = gros.hosts_for(procs, per_node)
    assert [gros.hosts.index(host) for host in placed] == [rank // per_node for rank in range(procs)]


@pytest.mark.parametrize(("procs", "per_node", "largest"), [(52, 1, 51), (103, 2, 102), (0, 1, 51), (-1, 2, 102)])
def test_too_many_or_too_few_processes(procs: int, per_node: int, largest: int) -> None:
    with pytest.raises(UsageError) as error:
        load("grisou").hosts_for(procs, per_node)
    assert str(error.value) == (
        f"platform 'grisou' cannot hold P = {procs} with {per_node} per node; valid: 1 to {largest} (51 nodes)"
    )


def test_no_processes_per_node() -> None:
    with pytest.raises(UsageError, match=r"^0 processes per node on platform 'grisou': the least is 1$"):
        load("grisou").hosts_for(1, 0)
