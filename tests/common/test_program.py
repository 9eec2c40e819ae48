"""Messages name commands as the running one was called."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from collwise.common.errors import note
from collwise.common.program import CALLED, as_called
from collwise.studies.cli.main import main


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("see 'collwise platforms show'", "see '../a\\ clone/collwise platforms show'"),
        ("make one: collwise fit", "make one: ../a\\ clone/collwise fit"),
        ("(collwise select -o FILE)", "(../a\\ clone/collwise select -o FILE)"),
        ("a network namespace that collwise did not make", "a network namespace that collwise did not make"),
        ("the table of libcollwise (collwise.table)", "the table of libcollwise (collwise.table)"),
    ],
)
def test_hints_begin_as_the_command_was_typed(message: str, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert as_called(message) == message
    monkeypatch.setenv(CALLED, "../a\\ clone/collwise")
    assert as_called(message) == shown


def test_notes_and_errors_name_the_command_as_typed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(CALLED, "./collwise")
    note("'collwise setup' builds it")
    with pytest.raises(SystemExit):
        main(["platforms", "show", "groos"])
    assert capsys.readouterr().err.startswith("collwise: './collwise setup' builds it\n")
    with pytest.raises(SystemExit):
        main(["platforms", "nonsense"])
    assert "(see './collwise platforms --help')" in capsys.readouterr().err


def test_a_question_without_an_answer_says_nothing_of_a_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.StringIO("8\n"))
    with pytest.raises(SystemExit) as ended:
        main(["platforms", "describe", "mine", "--ask"])
    assert ended.value.code == 2
    err = capsys.readouterr().err
    assert err.endswith("collwise: --ask: CPUs (sockets) of a node: no answer\n")
