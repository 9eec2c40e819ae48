"""collwise program apply from the command line: tables, JSON, figures, and bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from collwise.validation.select.decisions import DecisionTable, decisions_document
from collwise.validation.times.choice import Choice
from tests.command_line import printed
from tests.needs import needs
from tests.studies.cli.model_commands import Capture, done, run

ASKED = "program apply asp --platform stampede2 --ppn 4 --procs 8 --set size=32768,rows=8,iterations=2"


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLLWISE_STORE", str(tmp_path / "timings.sqlite"))


@needs("smpi")
def test_table_json_and_figures(capsys: Capture) -> None:
    words = f"{ASKED} --collectives ompi,flat --segments 64KiB"
    shown, _ = done(f"{words} --figures one", capsys)
    assert "asp on Stampede2" in shown
    assert "--iterations 2" in shown
    assert Path("one/stampede2-asp.png").stat().st_size > 10_000

    code, shown, _ = run(f"{words} --json", capsys)
    ompi, flat = printed(shown).rows
    assert code == 0
    assert (ompi["collectives"], flat["collectives"]) == ("ompi", "flat")
    assert ompi["speedup"] == 1
    assert flat["mean_share"] == flat["mean_seconds"] / flat["seconds"] <= flat["max_share"]

    shown, _ = done(f"{ASKED} --procs 4,8 --collectives ompi,mpich --rate 2e9 --figures two", capsys)
    assert Path("two/stampede2-asp.png").stat().st_size > 10_000


@needs("smpi")
def test_a_failed_execution_is_a_row_and_the_exit_code(capsys: Capture) -> None:
    code, shown, error = run(
        "program apply matmul --platform gros --procs 2 --collectives ompi --set size=99999", capsys
    )
    assert code == 1
    assert "failed" in shown
    assert "1 of 1 executions failed; first: SimGrid" in error
    assert "usage: matmul" in error


@needs("smpi")
def test_a_table_that_was_not_decided_for_these_processes_is_warned_of(capsys: Capture) -> None:
    row = ((0, Choice("chain")),)
    table = DecisionTable("bcast", "stampede2", 4, "simulated", "somebody", {4: row, 64: row})
    Path("b.json").write_text(json.dumps(decisions_document([table])))
    _, said = done(f"{ASKED} --collectives b.json", capsys)
    assert "b.json: P = 8 was not decided; bcast: decided for P = 4, 64; others take the row of the next" in said
