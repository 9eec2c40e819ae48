"""Decisions between sampled inputs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from collwise.common.errors import UsageError
from collwise.validation.hierarchy.space import EXHAUSTIVE, Input, Space
from collwise.validation.hierarchy.tuning import (
    Billed,
    Found,
    at_size,
    decision_tables,
    row_between,
    starts,
    tune,
    usual_choice,
)
from collwise.validation.libraries.collwise_table import collwise_rules
from collwise.validation.select.decisions import DecisionTable, decisions_document
from collwise.validation.times.choice import Choice
from collwise.validation.times.grid import case_of
from tests.validation.hierarchy.synthetic import SPACE, SyntheticMachine

TUNING = tune(SPACE, [EXHAUSTIVE], SyntheticMachine())
FOUND = TUNING.last
TABLES = decision_tables(replace(TUNING, platform="synthetic", maker="nobody"))


def choose(tables: Sequence[DecisionTable], one: Input) -> Choice:
    """The decision for any input. Raises UsageError where nothing is decided."""
    ordered = sorted(tables, key=lambda table: table.processes_per_node)
    below = [table for table in ordered if table.processes_per_node <= one.processes_per_node]
    return (below or ordered)[-1 if below else 0].choose(one.procs, one.message_bytes)


@given(st.sampled_from(SPACE.nodes), st.sampled_from(SPACE.processes_per_node), st.integers(12, 22) | st.floats(12, 22))
def test_between_sizes_one_of_the_neighbours_decides(nodes: int, per_node: int, exponent: float) -> None:
    """At a sampled size, what was found for it."""
    size = int(2**exponent)
    low = max(one for one in SPACE.message_bytes if one <= size)
    high = min(one for one in SPACE.message_bytes if one >= size)
    neighbours = [FOUND.best[Input(nodes, per_node, one)] for one in (low, high)]
    chosen = choose(TABLES, Input(nodes, per_node, size))
    assert chosen in neighbours
    # The lower neighbour's choice never follows the upper one's.
    assert chosen == neighbours[0] or choose(TABLES, Input(nodes, per_node, min(size + 1, high))) == neighbours[1]


@given(st.lists(st.integers(1, 5000), min_size=1, max_size=6, unique=True), st.integers(1, 6000))
def test_the_nearer_count_in_proportion_decides(sampled: list[int], asked: int) -> None:
    ordered = starts(sampled)
    chosen = [number for start, number in ordered if start <= asked] or [min(sampled)]
    best = min(abs(math.log(number / asked)) for number in sampled)
    assert abs(math.log(chosen[-1] / asked)) <= best + 1 / asked
    assert all(dict((number, start) for start, number in ordered)[one] <= one for one in sampled)


def crossing(one: tuple[float, float], other: tuple[float, float]) -> int:
    """The size at which the second of two choices takes over, by their times for 1 KiB and 64 KiB."""
    space = Space("bcast", (4,), (2,), (1024, 65536), (1024,), ("chain", "binary"))
    chain, binary = Choice("tasks_chain", 1024), Choice("tasks_binary", 1024)
    inputs = space.inputs
    seconds = {
        case_of("bcast", choice, 8, inputs[number].message_bytes, 2): values[number]
        for choice, values in ((chain, one), (binary, other))
        for number in range(2)
    }
    found = Found("exhaustive", seconds, Billed(SyntheticMachine()))
    row = row_between(space, found, (4, 2))
    assert [choice for _, choice in row] == [chain, binary]
    return row[1][0]


def test_the_choice_changes_where_both_take_equally_long() -> None:
    # On logarithmic scales the lines cross in the middle: 8 KiB.
    assert crossing((1.0, 16.0), (2.0, 8.0)) == 8192
    assert crossing((1.0, 16.0), (1.0, 8.0)) == 1025
    assert crossing((1.0, 8.0), (2.0, 7.999999)) == pytest.approx(65536, rel=1e-5)
    assert crossing((1.0, 16.0), (8.0, 15.999)) == pytest.approx(65536, rel=1e-3)


def test_nothing_is_decided_below_the_least_sizes() -> None:
    with pytest.raises(UsageError, match="no entry for 4095 bytes"):
        choose(TABLES, Input(4, 2, 4095))
    assert choose(TABLES, Input(4, 2, 2**25)) == choose(TABLES, Input(4, 2, 2**22))


def test_tables_are_those_that_libcollwise_and_export_read() -> None:
    text = collwise_rules(TABLES)
    assert "bcast 8 2 4096 tasks_" in text
    # 16 nodes decide from more than the geometric mean of 4 and 16 on, and p = 8 from more than that of 2 and 8.
    assert "bcast 18 2 4096 tasks_" in text
    assert "bcast 72 5 4096 tasks_" in text
    assert {one["processes_per_node"] for one in decisions_document(TABLES)} == {2, 5}


def test_a_choice_at_another_size_is_the_most_similar() -> None:
    large = Choice("tasks_chain", 2**18, 0, 2**14)

    def at(choice: Choice, size: int) -> Choice:
        return at_size(SPACE.choices(size), choice, size)

    assert at(large, 2**18) == large
    assert at(large, 2**16) == Choice("tasks_chain", 2**16, 0, 2**14)
    assert at(large, 2**12) == Choice("tasks_chain", 2**14)
    assert at(Choice("tasks_binary", 2**18), 2**15) == Choice("tasks_binary", 2**14)


def test_the_usual_choice_is_slower_by_least() -> None:
    space = replace(SPACE, nodes=(16,), processes_per_node=(8,))
    tuning = tune(space, [EXHAUSTIVE], SyntheticMachine())
    usual = usual_choice(decision_tables(tuning))
    assert usual in space.choices(2**22)

    def cost(choice: Choice) -> float:
        return sum(
            seconds[at_size(space.choices(one.message_bytes), choice, one.message_bytes)] / min(seconds.values())
            for one, seconds in tuning.last.by_input.items()
        )

    assert cost(usual) == pytest.approx(min(map(cost, space.choices(2**22))))
    with pytest.raises(UsageError, match="include no times"):
        usual_choice([replace(table, times=None) for table in decision_tables(tuning)])
