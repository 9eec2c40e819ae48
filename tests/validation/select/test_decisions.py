"""Decision tables as files."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import arrays

from collwise.common.errors import UsageError
from collwise.validation.libraries.openmpi_rules import openmpi_rules
from collwise.validation.libraries.sayable import left_to_library
from collwise.validation.select.decisions import (
    DecisionTable,
    all_at_once_text,
    decisions_document,
    decisions_from,
    decisions_text,
    wide_steps_texts,
)
from collwise.validation.select.select import select
from collwise.validation.times.choice import LIBRARY_DECIDES, Choice
from collwise.validation.times.times import State
from tests.validation.times_of import times_of

NAMES = ("linear", "chain", "binary", "scatter_allgather")
choices = st.builds(Choice, st.sampled_from(NAMES), st.integers(0, 2**20), st.integers(0, 9), st.integers(0, 9))


@st.composite
def tables(draw: st.DrawFn) -> DecisionTable:
    """Tables of any rules, most of them with times, some of which are measured, and some of these filled."""
    rows = st.dictionaries(st.integers(0, 10**9), choices, max_size=3).map(lambda row: tuple(sorted(row.items())))
    rules = draw(st.dictionaries(st.integers(1, 10**4), rows, min_size=1, max_size=3))
    source = draw(st.sampled_from(("simulated", "measured", "predicted")))
    times = None
    if draw(st.booleans()):
        timed = draw(st.lists(choices, min_size=1, max_size=3, unique=True))
        procs, sizes = (sorted(draw(st.sets(st.integers(1, 10**4), min_size=1, max_size=3))) for _ in range(2))
        values = st.one_of(st.just(math.nan), st.floats(1e-9, 10).map(lambda one: float(f"{one:.4g}")))
        shape = (len(timed), len(procs), len(sizes))
        seconds = draw(arrays(float, shape, elements=values))
        widths = (
            draw(arrays(float, shape, elements=st.sampled_from((0.0, 1e-3, 0.25)))) if source == "measured" else 0.0
        )
        times = times_of("bcast", timed, procs, sizes, seconds, source, widths)
        known = np.argwhere(~np.isnan(seconds)).tolist()
        if source == "measured" and known and draw(st.booleans()):
            times.state.values[tuple(draw(st.sampled_from(known)))] = State.FILLED
            times = replace(times, filled_by="SimGrid")
    maker = {"simulated": "SMPI", "measured": "times measured under Open MPI 4.1", "predicted": "model lmo"}[source]
    most = draw(st.none() | st.integers(1, 10**6))
    return DecisionTable("bcast", draw(st.text()), draw(st.integers(1, 64)), source, maker, rules, times, None, most)


@given(made=st.lists(tables(), max_size=3))
def test_a_file_says_what_was_written(made: list[DecisionTable], tmp_path_factory: pytest.TempPathFactory) -> None:
    """Also the times, of which it keeps four digits."""
    path = tmp_path_factory.mktemp("decisions") / "x.json"
    path.write_text(decisions_text(made), encoding="utf-8")
    found = decisions_from(path)
    assert found == made
    assert decisions_document(found) == decisions_document(made)
    for one, again in zip(made, found, strict=True):
        assert again.platform_procs == one.platform_procs
        if one.times is None:
            assert again.times is None
            continue
        assert again.times is not None
        for name in ("seconds", "half_width_seconds", "state"):
            np.testing.assert_array_equal(again.times.data[name].values, one.times.data[name].values)
        with pytest.raises(UsageError, match="rounded to 4 digits"):
            select(again.times)


CHAIN, RING, LINEAR = Choice("chain", 8192), Choice("scatter_ring_allgather"), Choice("linear")
TIMED = DecisionTable(
    *("bcast", "gros", 1, "measured", "times measured under Open MPI 4.1.4"),
    {4: ((0, CHAIN),)},
    times_of("bcast", (CHAIN, LINEAR), (4, 8), (1024, 4096), [[[1.0, 2.0], [3.0, math.nan]]] * 2, "measured", 0.5),
)


def timed(table: DecisionTable, procs: tuple[int, ...], sizes: tuple[int, ...]) -> DecisionTable:
    """The table with times of all of its choices, which are equal, at these points."""
    return replace(table, times=times_of(table.collective, table.choices, procs, sizes, 1.0, table.source))


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


SHORT = decisions_document([TIMED])
SHORT[0]["times"]["seconds"].pop()


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("{}", "not a decision table, or one of another version; make one with 'collwise select -o FILE'"),
        ("[3]", "not a decision table"),
        ('[{"format": "collwise decisions 2"}]', "not a decision table, or one of another version"),
        ('[{"format": "collwise decisions 3"}]', "not a decision table .'rules'"),
        ("[", "not a decision table"),
        (json.dumps(SHORT), "not a decision table .the number of its times does not match its process counts and si"),
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
    table = DecisionTable("bcast", "gros", 1, "simulated", "x", {16: row, 64: row})
    assert table.decided_procs == (16, 64)
    assert table.between_procs == "bcast: decided for P = 16, 64; others take the row of the next smaller P"
    many = DecisionTable("bcast", "gros", 1, "simulated", "x", {procs: row for procs in range(2, 31)})
    assert "P = 2, 3, ..., 30;" in many.between_procs
    followed = timed(replace(table, rules={16: row, 17: ((0, LINEAR),)}), (16,), (8,))
    assert followed.between_procs.endswith(
        "or, if that row's choices do not run on every P, the row that starts at the following P"
    )


def test_choices_with_very_many_messages_at_once_are_named() -> None:
    rules = {8: ((0, Choice("linear")),), 2048: ((0, Choice("bruck")), (64, Choice("linear")))}
    table = DecisionTable("alltoall", "bed", 1, "simulated", "schedule engine", rules)
    assert all_at_once_text([table]).startswith("alltoall linear at P = 2048: every process has P - 1 messages")
    two = replace(table, rules={p: ((0, Choice("linear")),) for p in (1024, 128)})
    assert all_at_once_text([table, two]).startswith("alltoall linear at P = 128, 1024, 2048: every")
    assert all_at_once_text([replace(table, source="measured")]) == ""
    assert all_at_once_text([replace(table, collective="bcast")]) == ""


def test_wide_steps_are_named_with_the_process_counts_to_add() -> None:
    """A step of 4 times is none; tables by formulas have none."""
    choice = Choice("linear")
    table = DecisionTable("bcast", "bed", 1, "simulated", "schedule engine", {4: ((0, choice),)})
    table = timed(table, (4, 16, 64, 2048), (8,))
    assert table.wide_steps() == [(64, 2048)]
    assert wide_steps_texts([table]) == [
        "nothing was decided from P = 65 to 2047, where the choices for fewer processes hold; to decide there, "
        "add 256,1024 to --procs"
    ]
    assert wide_steps_texts([replace(table, source="predicted")]) == []
    header = " ".join(openmpi_rules([table], "4.1").replace("\n# ", " ").split())
    assert (
        "WARNING: nothing was decided from P = 65 to 2047: the choices for fewer processes hold for up to 4" in header
    )


def test_calls_of_wide_steps_are_left_to_the_library_where_both_ends_do_not_agree() -> None:
    """They are left from P = 257 on, above four times 64, up to 2048; both ends have the ring from 4096 B on."""
    rules = {16: ((0, LINEAR),), 64: ((0, CHAIN), (4096, RING)), 2048: ((0, LINEAR), (1024, RING))}
    table = DecisionTable("bcast", "bed", 1, "simulated", "schedule engine", rules)
    near, table = timed(table, (16, 64, 256), (8,)), timed(table, (16, 64, 2048), (8,))
    left = left_to_library(table, by_size=True)
    assert left.rules == {**rules, 257: ((0, LIBRARY_DECIDES), (4096, RING))}
    for other in (near, replace(table, source="predicted"), replace(table, times=None)):
        assert left_to_library(other, by_size=True).rules == rules


def test_a_row_of_one_choice_stays_one_where_it_is_left_to_the_library() -> None:
    rules = {8: ((0, CHAIN),), 1024: ((0, RING),)}
    table = timed(DecisionTable("bcast", "bed", 1, "simulated", "schedule engine", rules), (8, 64, 1024), (8,))
    left = left_to_library(table, by_size=False)
    assert left.rules == {8: ((0, CHAIN),), 257: ((0, LIBRARY_DECIDES),), 1024: ((0, RING),)}


def test_wide_steps_between_sizes_are_named_with_the_sizes_to_add() -> None:
    """A step of 4 times is none; an empty message is no size to multiply; tables by formulas have none."""
    choice, sizes = Choice("linear"), (0, 8, 32, 1000, 16 * 1024, 64 * 1024)
    table = timed(DecisionTable("bcast", "bed", 1, "simulated", "schedule engine", {4: ((0, choice),)}), (4,), sizes)
    assert table.wide_size_steps() == [(32, 1000), (1000, 16 * 1024)]
    assert wide_steps_texts([table]) == [
        "nothing was decided between 32 B and 1000 B and between 1000 B and 16 KiB, where the choices for smaller "
        "messages hold; to decide there, add 128B,512B,4000B,16000B to --sizes"
    ]
    assert wide_steps_texts([replace(table, source="predicted")]) == []
    assert wide_steps_texts([replace(table, times=None)]) == []
    header = " ".join(openmpi_rules([table], "4.1").replace("\n# ", " ").split())
    assert "WARNING: nothing was decided between 32 B and 1000 B" in header
