"""collwise compare and select by times of several sources."""

from __future__ import annotations

from math import nan
from pathlib import Path

import numpy as np
import pytest

from collwise.simulator.store import Store
from collwise.simulator.timing import Case, Configuration, Timing
from collwise.studies.cli.main import main
from collwise.validation.compare.scores import compare
from collwise.validation.times.choice import Choice
from collwise.validation.times.grid import Grid
from collwise.validation.times.times import State, Times
from tests.command_line import printed

GRID = Grid.of("gather", (4,), (1024, 2048), 1, (0,), ("linear", "binomial"))


def times(seconds: list[list[list[float]]], maker: str) -> Times:
    return Times.of_seconds(GRID, np.array(seconds), "gros", "simulated", maker, State.NOT_ASKED)


def test_each_source_chooses_by_its_own_times_and_the_judge_says_what_it_costs() -> None:
    measured, simulated = times([[[1.0, 2.0]], [[1.5, 1.0]]], "a"), times([[[1.0, 1.0]], [[2.0, 3.0]]], "b")
    scores = compare(measured, measured, simulated)
    assert [scores.pick("a", 0, j).name for j in (0, 1)] == ["linear", "binomial"]
    assert [scores.pick("b", 0, j)[1:] for j in (0, 1)] == [(1.0, 0.0), (2.0, 1.0)]
    assert (scores.summary("b").mean, scores.summary("a").best_chosen) == (0.5, 2)


def test_only_choices_that_both_know_are_compared() -> None:
    measured, simulated = times([[[1.0, nan]], [[1.5, nan]]], "a"), times([[[nan, 1.0]], [[2.0, 3.0]]], "b")
    scores = compare(measured.known_to(simulated), measured, simulated)
    assert scores.places() == [(0, 0)]
    assert {scores.pick(title, 0, 0) for title in (None, "a", "b")} == {(Choice("binomial"), 1.5, 0.0)}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "s.sqlite"
    with Store(path) as opened:
        rows = [
            Timing(Case("gather", name, 4, size), seconds)
            for name, seconds in (("linear", 1e-3), ("binomial", 2e-3))
            for size in (65536, 131072)
        ]
        opened.add(Configuration("measured", "gros", "Open MPI 4.1.4"), rows)
    return path


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main([*words])
    out, err = capsys.readouterr()
    return int(ended.value.code or 0), out, err


def test_measured_times_judge_simulated_choices(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    simulate = (
        "simulate --platform gros --collective gather --procs 4 --sizes 64KiB,128KiB --engine schedule -o s.times"
    )
    assert run(capsys, *simulate.split())[0] == 0
    words = ("compare", f"store:file={store.name},platform=gros,source=measured", "s.times")
    code, out, _ = run(capsys, *words)
    assert code == 0
    assert "gather on gros, measured by Open MPI 4.1.4" in out
    document = printed(run(capsys, *words, "--json")[1])
    assert [(row["procs"], row["message_bytes"]) for row in document.rows] == [(4, 65536), (4, 131072)]
    assert {row["best"]["algorithm"] for row in document.rows} == {"linear"}
    (score,) = document.facts["scores"]
    assert (score["model"], score["predictions"], score["picks"]) == ("schedule engine", 4, 2)


def test_a_store_with_several_platforms_needs_a_name(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Store(store) as opened:
        opened.add(Configuration("measured", "boba", "Open MPI 4.1.4"), [Timing(Case("gather", "linear", 4, 8), 1.0)])
    code, _, err = run(capsys, "select", f"store:file={store}")
    assert (code, err.count("\n")) == (2, 1)
    assert "say which: platform=" in err
    code, _, err = run(capsys, "select", f"store:file={store},platform=grosss")
    assert (code, "did you mean gros" in err) == (2, True), err


def test_no_store_is_made_for_measured_times(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = tmp_path / "folder" / "times.sqlite"
    code, _, err = run(capsys, "select", f"store:file={missing}")
    assert (code, f"there is no store {missing}" in err) == (2, True), err
    assert not missing.parent.exists()


def test_rules_and_decisions_of_the_same_choices_cost_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for words in (
        "simulate --platform boba --collective bcast --procs 8,16 --sizes 64KiB,1MiB --engine schedule "
        "--for openmpi-4.1 -o s.times",
        "select s.times --for openmpi-4.1 -o d.json",
        "export d.json -o d.rules",
    ):
        code, _, err = run(capsys, *words.split())
        assert code == 0, err
    rows = printed(run(capsys, "compare", "s.times", "d.json", "d.rules", "--json")[1]).rows
    assert len(rows) == 4
    assert all(row["picks"]["d.json"] == row["picks"]["d.rules"] for row in rows)


def test_filled_gaps_are_named(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    simulate = "simulate --platform gros --collective gather --procs 4 --sizes 64KiB:256KiB:x2 --engine schedule"
    assert run(capsys, *simulate.split(), "-o", "s.times")[0] == 0
    code, _, err = run(capsys, "select", f"store:file={store}", "--fill", "s.times", "--agreement", "99")
    assert (code, "gaps filled by simulated times" in err) == (0, True), err
    code, _, err = run(capsys, "select", f"store:file={store}", "--fill", "s.times", "--agreement", "100")
    assert (code, "at least 0, below 100" in err) == (2, True)
