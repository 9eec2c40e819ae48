"""Radicals and rank placement."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from collwise.common.errors import UsageError
from collwise.platforms import HostPlatform, load
from collwise.platforms.hosts import parse_radical


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
    assert str(error.value) == f"malformed radical '{text}'; write numbers and ranges, for example 1-3,5,7-9"


def test_backward_and_endless_radicals() -> None:
    with pytest.raises(UsageError) as error:
        parse_radical("1,9-3")
    assert str(error.value) == "radical '1,9-3' runs backwards in '9-3'; write 3-9"
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
    with pytest.raises(UsageError, match=r"^0 processes per node on platform 'grisou': at least 1 is needed$"):
        load("grisou").hosts_for(1, 0)


@given(st.permutations(range(16)), st.permutations(range(16)))
def test_an_order_places_ranks_and_orders_follow_one_another(first: list[int], second: list[int]) -> None:
    platform = load("hcl16")
    moved = platform.reordered(first)
    assert moved.hosts == tuple(platform.hosts[position] for position in first)
    assert moved.hosts_for(3, 1) == moved.hosts[:3]
    assert (moved.name, moved.title, moved.xml_text()) == (platform.name, platform.title, platform.xml_text())
    assert moved.smpi_options() == platform.smpi_options()
    assert moved.default_processes_per_node == platform.default_processes_per_node
    again = moved.reordered(second)
    assert again.hosts == tuple(moved.hosts[position] for position in second)
    assert again == platform.reordered([first[position] for position in second])


def test_another_order_is_another_platform_and_the_same_is_the_same() -> None:
    platform = load("gros")
    count = len(platform.hosts)
    orders = [[*range(start, count), *range(start)] for start in range(4)]
    assert platform.reordered(orders[0]).digest() == platform.digest()
    assert len({platform.reordered(order).digest() for order in orders}) == 4
    backwards = platform.reordered(range(count - 1, -1, -1))
    assert backwards.reordered(range(count - 1, -1, -1)).digest() == platform.digest()


@pytest.mark.parametrize("order", [[], [0, 1], [*range(15), 14], [*range(1, 17)], [*range(17)]])
@pytest.mark.parametrize("platform", [load("hcl16"), load("hcl16").reordered(range(15, -1, -1))])
def test_orders_that_are_none(platform: HostPlatform, order: list[int]) -> None:
    with pytest.raises(UsageError) as error:
        platform.reordered(order)
    assert str(error.value) == (
        f"platform 'hcl16': an order of {len(order)} hosts is not a permutation; name each of 0 to 15 once"
    )
