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


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    run(*words, code=2)
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    return error


def test_tasks(in_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(*SHOW, *SMALL, "--collective", "bcast", "--json", "--figures", "drawn")
    studies = printed(capsys.readouterr().out).rows
    assert [one["algorithm"] for one in studies] == ["tasks_chain", "tasks_binary", "tasks_binomial"]
    for one in studies:
        assert one["tasks"][:2] == ["ib(0)", "sbib(1)"]
        assert len(one["tasks"]) == 9
        assert [len(seconds) for seconds in one["seconds"]] == [9] * 4
        assert len(one["stabilised_seconds"]) == 4
        assert -0.01 <= one["overlap"] <= 1.01
        assert set(one["alone_and_at_once"]) >= {"ib(0)", "sb(0)", "sb(0) and ib(1) at once", "sbib(1) after ib(0)"}
    assert all((in_folder / name).stat().st_size > 1000 for name in ("drawn/trend.png", "drawn/overlap.png"))
    run(*SHOW, *SMALL, "--collective", "allreduce", "--algorithms", "binary")
    text = capsys.readouterr().out
    assert "ibirsr(2)" in text
    assert "stable from" in text
    run(*SHOW, *SMALL, "--collective", "reduce", "--algorithms", "binary")
    assert "irsr(1)" in capsys.readouterr().out


def test_model(in_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    searches = ("--search", "exhaustive,tasks", "--collective", "allreduce")
    run(*SEARCH, *SMALL, *GRID, *searches, "--json", "--figures", "drawn")
    [document] = printed(capsys.readouterr().out).rows
    assert document["searches"][1]["median_error"] < 0.1
    assert document["searches"][1]["machine_seconds"] > 0
    assert len(document["configurations"]) == 2 + 4 + 4
    for one in document["configurations"]:
        if one["message_bytes"] <= 2 * one["segment_bytes"]:
            assert one["seconds"]["tasks"] == pytest.approx(one["seconds"]["exhaustive"])
    assert (in_folder / "drawn/tasks-allreduce.png").stat().st_size > 1000
    run(*SEARCH, *SMALL, *GRID, *searches)
    assert " error " in capsys.readouterr().out


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


def test_a_third_level_needs_sockets(capsys: pytest.CaptureFixture[str]) -> None:
    one_socket = ("--platform", "exact", "--nodes", "4", "--ppn", "2", "--engine", "schedule")
    assert "platform 'exact' have one socket" in refused(
        capsys, *SEARCH, *one_socket, "--search", "tasks", "--within", "by-socket"
    )
    ways = ("--within", "by-socket,point-to-point")
    assert "by-socket cannot be combined with others" in refused(capsys, *SHOW, *SMALL, *ways)


def test_tune_and_what_it_writes(in_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    searches = ("--search", "exhaustive,tasks")
    run(*SEARCH, *SMALL, *GRID, *searches, "-o", "bcast.json", "--figures", "drawn", "--json")
    [document] = printed(capsys.readouterr().out).rows
    assert [one["search"] for one in document["searches"]] == searches[1].split(",")
    assert document["searches"][0]["cost"] == 1
    assert not document["exhaustive_is_estimate"]
    best = document["decisions"]["exhaustive"]
    assert [one["message_bytes"] for one in best] == [16384, 131072, 1048576]
    assert {"fs", "imod", "smod", "ibalg", "iralg", "ibs", "irs"} <= set(best[0])
    drawn = {path.name for path in (in_folder / "drawn").iterdir() if path.stat().st_size > 1000}
    assert drawn == {"search-costs.png", "search-bcast.png", "tasks-bcast.png"}
    run("export", "bcast.json", "--format", "collwise", "-o", "bcast.table")
    lines = (in_folder / "bcast.table").read_text().splitlines()
    assert any(line.startswith("# bcast on stampede2, chosen by search tasks, tasks, schedule") for line in lines)
    assert "bcast 8 2 0 default" in lines
    assert any(line.startswith("bcast 8 2 16384 tasks_") for line in lines)
    run("export", "bcast.json", "--format", "han", "-o", "han.rules")
    rules = (in_folder / "han.rules").read_text()
    assert "#   coll_han_bcast_segsize = " in rules
    assert rules.endswith("8 2\n0 tuned\n16384 han\n")


def test_excluded_algorithms_are_never_chosen(capsys: pytest.CaptureFixture[str]) -> None:
    search = (*SEARCH, *SMALL, *GRID, "--search", "exhaustive", "--exclude")
    run(*search, "tasks_chain", "--json")
    [document] = printed(capsys.readouterr().out).rows
    assert {one["ibalg"] for one in document["decisions"]["exhaustive"]} == {"binary"}
    assert document["searches"][0]["benchmarks"] == 5
    assert "'binry'; did you mean binary?" in refused(capsys, *search, "binry")
    assert "no algorithm between nodes is left" in refused(capsys, *search, "chain,binary")


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


@needs("openmpi")
def test_a_target(capsys: pytest.CaptureFixture[str]) -> None:
    error = refused(capsys, *SEARCH, "--library", "openmpi", "--search", "tasks")
    assert "at least 2 nodes" in error
