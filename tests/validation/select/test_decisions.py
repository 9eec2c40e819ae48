"""Decision tables as files."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collwise.common.errors import UsageError
from collwise.validation.openmpi.rules import openmpi_rules
from collwise.validation.select.decisions import (
    DecisionTable,
    Evidence,
    all_at_once_text,
    decisions_document,
    decisions_from,
    left_to_library,
    wide_steps_texts,
)
from collwise.validation.times.choice import LIBRARY_DECIDES, Choice

rows = st.dictionaries(st.integers(0, 10**9), st.builds(Choice, st.text(min_size=1), *[st.integers(0)] * 3), max_size=3)
tables = st.builds(
    DecisionTable,
    st.text(min_size=1),
    st.text(),
    st.integers(1),
    st.text(),
    st.dictionaries(st.integers(1), rows.map(lambda row: tuple(sorted(row.items()))), min_size=1, max_size=3),
)


@given(made=st.lists(tables, max_size=3))
def test_a_file_says_what_was_written(made: list[DecisionTable], tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("decisions") / "x.json"
    path.write_text(json.dumps(decisions_document(made)), encoding="utf-8")
    assert decisions_from(path) == made


TIMED = DecisionTable(
    "bcast",
    "gros",
    1,
    "test",
    {4: ((0, Choice("chain", 8192)),)},
    Evidence(
        (Choice("chain", 8192), Choice("linear")),
        (4, 8),
        (1024, 4096),
        (((1e-3, 2e-3), (1.5e-3, math.nan)), ((2e-3, 3e-3), (2.5e-3, 4e-3))),
        frozenset({(1, 0, 1)}),
        "SimGrid",
    ),
)


@settings(max_examples=300)
@given(data=st.data())
def test_a_damaged_file_is_an_error_that_names_it_or_another_table(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    text = json.dumps(decisions_document([TIMED]))
    start = data.draw(st.integers(0, len(text)))
    end = min(len(text), start + data.draw(st.integers(0, 12)))
    part = st.sampled_from(("", "null", "1e999", "-1", "[]", "{}", '"x"', "[[0]]", ",", "Infinity"))
    path = tmp_path_factory.mktemp("decisions") / "x.json"
    path.write_text(text[:start] + data.draw(part) + text[end:], encoding="utf-8")
    problem = ""
    try:
        decisions_from(path)
    except UsageError as caught:
        problem = str(caught)
    assert problem == "" or problem.startswith(str(path))


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("{}", "not a decision table of this version; make one with: collwise select -o FILE"),
        ("[3]", "not a decision table"),
        ('[{"format": "collwise decisions 2"}]', "not a decision table of this version"),
        ('[{"format": "collwise decisions 3"}]', "not a decision table .'rules'"),
        ("[", "not a decision table"),
    ],
)
def test_other_files(tmp_path: Path, text: str, error: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=rf"x\.json: {error}"):
        decisions_from(path)
    with pytest.raises(UsageError, match=r"cannot read .*none\.json: No such file"):
        decisions_from(tmp_path / "none.json")


def test_a_table_says_for_which_process_counts_it_was_decided() -> None:
    row = ((0, Choice("chain")),)
    table = DecisionTable("bcast", "gros", 1, "x", {16: row, 64: row})
    assert table.decided_procs == (16, 64)
    assert table.between_procs == "bcast: decided for P = 16, 64; others take the row of the next smaller one"
    many = DecisionTable("bcast", "gros", 1, "x", {procs: row for procs in range(2, 31)})
    assert "P = 2, 3, ..., 30;" in many.between_procs
    evidence = Evidence((Choice("chain"),), (16,), (8,), (((1.0,),),))
    followed = replace(table, rules={16: row, 17: ((0, Choice("ring")),)}, evidence=evidence)
    assert followed.between_procs.endswith("or one after it where the choices do not run on every P")


def test_choices_with_very_many_messages_at_once_are_named() -> None:
    rules = {8: ((0, Choice("linear")),), 2048: ((0, Choice("bruck")), (64, Choice("linear")))}
    table = DecisionTable("alltoall", "bed", 1, "schedule engine", rules)
    assert all_at_once_text([table]).startswith("alltoall linear at P = 2048: every process has P - 1 messages")
    two = replace(table, rules={p: ((0, Choice("linear")),) for p in (1024, 128)})
    assert all_at_once_text([table, two]).startswith("alltoall linear at P = 128, 1024, 2048: every")
    assert all_at_once_text([replace(table, made_by="times measured under Open MPI 4.1.4")]) == ""
    assert all_at_once_text([replace(table, collective="bcast")]) == ""


def test_wide_steps_are_named_with_the_process_counts_to_add() -> None:
    """A step of 4 times is none; tables by formulas have none."""
    choice = Choice("linear")
    evidence = Evidence((choice,), (4, 16, 64, 2048), (8,), (((1.0,),) * 4,))
    table = DecisionTable("bcast", "bed", 1, "schedule engine", {4: ((0, choice),)}, evidence)
    assert table.wide_steps() == [(64, 2048)]
    assert wide_steps_texts([table]) == [
        "nothing was decided from P = 65 to 2047, where the choices for fewer processes hold; --procs with 256,1024 "
        "as well decides there, too"
    ]
    assert wide_steps_texts([replace(table, made_by="model hockney")]) == []
    header = " ".join(openmpi_rules([table], "4.1").replace("\n# ", " ").split())
    assert (
        "WARNING: nothing was decided from P = 65 to 2047: the choices for fewer processes hold for up to 4" in header
    )


def test_calls_of_wide_steps_are_left_to_the_library_where_both_ends_do_not_agree() -> None:
    """They are left from P = 257 on, above four times 64, up to 2048; both ends have the ring from 4096 B on."""
    chain, ring, linear = Choice("chain", 8192), Choice("ring"), Choice("linear")
    rules = {16: ((0, linear),), 64: ((0, chain), (4096, ring)), 2048: ((0, linear), (1024, ring))}
    evidence = Evidence((chain, ring, linear), (16, 64, 2048), (8,), (((1.0,),) * 3,) * 3)
    table = DecisionTable("bcast", "bed", 1, "schedule engine", rules, evidence)
    left = left_to_library(table, by_size=True)
    assert left.rules == {**rules, 257: ((0, LIBRARY_DECIDES), (4096, ring))}
    near = replace(table, evidence=replace(evidence, procs=(16, 64, 256)))
    for other in (near, replace(table, made_by="model hockney"), replace(table, evidence=None)):
        assert left_to_library(other, by_size=True).rules == rules


def test_a_row_of_one_choice_stays_one_where_it_is_left_to_the_library() -> None:
    chain, ring = Choice("chain", 8192), Choice("ring")
    evidence = Evidence((chain, ring), (8, 64, 1024), (8,), (((1.0,),) * 3,) * 2)
    table = DecisionTable("bcast", "bed", 1, "schedule engine", {8: ((0, chain),), 1024: ((0, ring),)}, evidence)
    left = left_to_library(table, by_size=False)
    assert left.rules == {8: ((0, chain),), 257: ((0, LIBRARY_DECIDES),), 1024: ((0, ring),)}


def test_wide_steps_between_sizes_are_named_with_the_sizes_to_add() -> None:
    """A step of 4 times is none; an empty message is no size to multiply; tables by formulas have none."""
    choice, sizes = Choice("linear"), (0, 8, 32, 1000, 16 * 1024, 64 * 1024)
    evidence = Evidence((choice,), (4,), sizes, (((1.0,) * len(sizes),),))
    table = DecisionTable("bcast", "bed", 1, "schedule engine", {4: ((0, choice),)}, evidence)
    assert table.wide_size_steps() == [(32, 1000), (1000, 16 * 1024)]
    assert wide_steps_texts([table]) == [
        "nothing was decided between 32 B and 1000 B and between 1000 B and 16 KiB, where the choices for smaller "
        "messages hold; --sizes with 128B,512B,4000B,16000B as well decides there, too"
    ]
    assert wide_steps_texts([replace(table, made_by="model hockney")]) == []
    assert wide_steps_texts([replace(table, evidence=None)]) == []
    header = " ".join(openmpi_rules([table], "4.1").replace("\n# ", " ").split())
    assert "WARNING: nothing was decided between 32 B and 1000 B" in header
