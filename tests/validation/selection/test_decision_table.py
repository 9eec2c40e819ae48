"""Decision tables as files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collwise.common.errors import UsageError
from collwise.validation.selection.choice import Choice
from collwise.validation.selection.decision_table import DecisionTable, decisions_document, decisions_from

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
