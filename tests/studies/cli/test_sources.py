"""collwise compare --sources: the choices by two sources of times side by side."""

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
from tests.needs import needs

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


def run(capsys: pytest.CaptureFixture[str], store: Path, *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(["compare", "--collective", "gather", "--store", str(store), *words])
    out, err = capsys.readouterr()
    return int(ended.value.code or 0), out, err


@needs("smpi")
def test_measured_times_judge_simulated_choices(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--platform", "gros", "--sources", "measured,simulated")
    code, out, _ = run(capsys, store, *words)
    assert code == 0
    for said in ("judged by measured times", "choices by simulated times", "in the median"):
        assert said in out
    rows = printed(run(capsys, store, *words, "--json")[1]).rows
    assert [(row["procs"], row["message_bytes"]) for row in rows] == [(4, 65536), (4, 131072)]
    assert {row["measured"]["algorithm"] for row in rows} == {"linear"}
    assert all(row["measured"]["slowdown"] == 0 for row in rows)
    assert all(set(row["ratios"]) == {"linear", "binomial"} for row in rows)


def test_a_description_need_not_have_the_name_of_the_hosts(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--platform", "grisou", "--sources", "measured,schedule")
    code, out, err = run(capsys, store, *words)
    assert (code, err) == (0, "collwise: measured times are those of gros, the only ones that the store has\n")
    assert "gather on gros, judged by measured times" in out
    with Store(store) as opened:
        opened.add(Configuration("measured", "boba", "Open MPI 4.1.4"), [Timing(Case("gather", "linear", 4, 8), 1.0)])
    code, _, err = run(capsys, store, *words)
    assert code == 2
    assert "unknown platform with measured times 'grisou'" in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--platform", "gros", "--sources", "measured"), "name two"),
        (("--platform", "gros", "--sources", "measured,simulatd"), "simulated"),
        (("--platform", "grosss", "--sources", "measured,simulated"), "gros"),
        (("--platform", "grosss", "--procs", "4"), "gros"),
        (("--platform", "gros"), "--procs"),
        (("--platform", "gros", "--sources", "smpi,schedule"), "--procs is needed"),
        (("--platform", "gros", "--sources", "measured,simulated", "--figures", "f"), "--figures"),
    ],
)
def test_bad_input_is_one_line(
    store: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    code, _, err = run(capsys, store, *words)
    assert (code, err.count("\n"), said in err) == (2, 1, True), err


def test_no_store_is_made_for_measured_times(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = tmp_path / "folder" / "times.sqlite"
    code, _, err = run(capsys, missing, "--platform", "gros", "--sources", "measured,schedule")
    assert (code, err) == (2, f"collwise: there is no store {missing}; fill one with 'collwise measure' or "
                              "'collwise times import'\n")  # fmt: skip
    assert not missing.parent.exists()


@pytest.mark.parametrize("baseline", ["openmpi-4.1", "openmpi-3.1"])
def test_times_of_the_schedule_engine_take_no_fit(
    baseline: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("collwise.validation.fitting.models_by_name.model_of", None)
    words = ("--platform", "grisou", "--procs", "8", "--sizes", "64KiB", "--segments", "8KiB", "--engine", "schedule")
    words = (*words, "--baseline", baseline)
    code, out, err = run(capsys, tmp_path / "s.sqlite", *words, "--figures", str(tmp_path))
    assert code == 0, err
    assert "model" not in out
    assert "Slowdown against the best: Open MPI" in out
    (row,) = printed(run(capsys, tmp_path / "s.sqlite", *words, "--json")[1]).rows
    assert (row["model"], row["predicted_seconds"]) == (None, {})
