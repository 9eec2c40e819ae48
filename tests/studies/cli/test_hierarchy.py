"""collwise show tasks and search tasks: end to end on the schedule engine and a small platform, and their errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from collwise.studies.cli.main import main
from tests.command_line import printed
from tests.needs import needs

PLACE = ("--platform", "stampede2", "--nodes", "4", "--ppn", "2")
SMALL = (*PLACE, "--engine", "schedule")
GRID = ("--sizes", "16KiB:1MiB:x8", "--segments", "16KiB,128KiB", "--algorithms", "chain,binary")


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


SHOW, SEARCH = ("show", "tasks"), ("search", "tasks")


def run(*words: str, code: int = 0) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*words])
    assert (ended.value.code or 0) == code


def test_model(capsys: pytest.CaptureFixture[str]) -> None:
    searches = ("--search", "exhaustive,tasks", "--collective", "allreduce")
    run(*SEARCH, *SMALL, *GRID, *searches, "--json")
    [document] = printed(capsys.readouterr().out).rows
    assert document["searches"][1]["median_error"] < 0.1
    assert document["searches"][1]["machine_seconds"] > 0
    assert len(document["configurations"]) == 2 + 4 + 4
    for one in document["configurations"]:
        if one["message_bytes"] <= 2 * one["segment_bytes"]:
            assert one["seconds"]["tasks"] == pytest.approx(one["seconds"]["exhaustive"])


def test_a_third_level(capsys: pytest.CaptureFixture[str]) -> None:
    """By socket there are other tasks; the model is as near, and the search may choose it."""
    place = (*SMALL[:5], "8", *SMALL[6:], "--within")
    run(*SHOW, *place, "by-socket", "--collective", "allreduce", "--algorithms", "chain", "--json")
    [study] = printed(capsys.readouterr().out).rows
    assert study["tasks"][:4] == ["sr(0)", "nrsr(1)", "irnrsr(2)", "ibirnrsr(3)"]
    assert len(study["tasks"]) == 13
    assert -0.01 <= study["overlap"] <= 1.01
    run(*SHOW, *place, "by-socket", "--algorithms", "chain", "--json")
    [study] = printed(capsys.readouterr().out).rows
    assert list(study["alone_and_at_once"])[1:3] == ["nb(0)", "nb(0) and ib(1) at once"]
    run(*SEARCH, *place, "by-socket", *GRID, "--search", "exhaustive,tasks", "--collective", "bcast", "--json")
    assert printed(capsys.readouterr().out).rows[0]["searches"][1]["median_error"] < 0.1
    both = ("point-to-point,by-socket", *GRID, "--collective", "allreduce", "--search", "exhaustive", "--json")
    run(*SEARCH, *place, *both, "-o", "allreduce.json")
    [document] = printed(capsys.readouterr().out).rows
    assert document["searches"][0]["benchmarks"] == 2 * 10
    assert "by socket" in {one["smod"] for one in document["decisions"]["exhaustive"]}
    run("export", "allreduce.json", "--format", "collwise")
    assert "within=3" in capsys.readouterr().out


def test_excluded_algorithms_are_never_chosen(capsys: pytest.CaptureFixture[str]) -> None:
    search = (*SEARCH, *SMALL, *GRID, "--search", "exhaustive", "--exclude")
    run(*search, "tasks_chain", "--json")
    [document] = printed(capsys.readouterr().out).rows
    assert {one["ibalg"] for one in document["decisions"]["exhaustive"]} == {"binary"}
    assert document["searches"][0]["benchmarks"] == 5


def test_several_numbers_of_processes_per_node_are_exported(in_folder: Path) -> None:
    run(*SEARCH, *SMALL[:-3], "2,4", "--engine", "schedule", *GRID, "--search", "tasks", "-o", "bcast.json")
    for name, where in (("collwise", ("bcast 8 2 ", "bcast 12 3 ")), ("han", ("8 2\n", "12 2\n"))):
        run("export", "bcast.json", "--format", name, "-o", name)
        assert all(one in (in_folder / name).read_text() for one in where)
    run("export", "bcast.json", "--format", "openmpi", code=2)


def test_tune_resumes(capsys: pytest.CaptureFixture[str]) -> None:
    run(*SEARCH, *SMALL, *GRID, "--search", "tasks", "--collective", "bcast,allreduce")
    first = capsys.readouterr().out
    assert "The exhaustive search was not made" in first
    run(*SEARCH, *SMALL, *GRID, "--search", "tasks", "--collective", "bcast,allreduce")
    assert capsys.readouterr().out == first


def test_searches_on_drawn_machines(capsys: pytest.CaptureFixture[str]) -> None:
    """The machine is not what the search predicts with, so that the schedule engine can be both."""
    found = {}
    for seed in ("1", "2"):
        run(*SEARCH, *SMALL, *GRID, "--search", "exhaustive,tasks,predict", "--budget", "20", "--drawn", seed, "--json")
        [document] = printed(capsys.readouterr().out).rows
        [exhaustive, _, predict] = document["searches"]
        assert exhaustive["benchmarks"] > predict["benchmarks"] > 0
        assert predict["cost"] <= 0.2
        assert predict["mean"] < 0.1
        found[seed] = exhaustive["machine_seconds"]
    assert found["1"] != found["2"]
    run(*SEARCH, *SMALL, *GRID, "--drawn", "1", "-o", "bcast.json")
    assert "drawn by seed 1" in Path("bcast.json").read_text()


@needs("smpi")
def test_predict_keeps_to_its_budget(capsys: pytest.CaptureFixture[str]) -> None:
    run(*SEARCH, *PLACE, *GRID, "--search", "exhaustive,predict", "--budget", "20", "--json")
    [document] = printed(capsys.readouterr().out).rows
    [exhaustive, predict] = document["searches"]
    assert exhaustive["benchmarks"] > predict["benchmarks"] > 0
    assert predict["cost"] <= 0.25
    assert predict["mean"] < 0.1
