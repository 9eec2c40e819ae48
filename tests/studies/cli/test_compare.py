"""collwise compare and select by times of several sources."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from collwise.simulator.store import Store
from collwise.simulator.timing import Case, Configuration, Timing
from collwise.studies.cli.main import main
from collwise.validation.times.choice import Choice
from collwise.validation.times.files import AllTimes
from collwise.validation.times.grid import BUILTIN
from tests.command_line import printed


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


def test_points_with_one_choice_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "s.sqlite"
    with Store(path) as opened:
        rows = [Timing(Case("gather", "linear", 4, 65536), 1e-3), Timing(Case("gather", "linear", 4, 131072), 2e-3)]
        rows.append(Timing(Case("gather", "binomial", 4, 131072), 3e-3))
        opened.add(Configuration("measured", "gros", "Open MPI 4.1.4"), rows)
    code, out, err = run(capsys, "compare", f"store:file={path}", "openmpi-4.1")
    assert (code, "at 1 of 2 points only one choice has a time" in " ".join(out.split())) == (0, True), (out, err)
    with Store(path) as opened:
        own = [Timing(Case("gather", "-", 4, size, experiment=BUILTIN), 1e-3) for size in (65536, 131072)]
        opened.add(Configuration("measured", "gros", "Open MPI 4.1.4"), own)
    out = " ".join(run(capsys, "compare", f"store:file={path}", "openmpi-4.1")[1].split())
    assert "at 1 of 2 points only one choice has a time besides the library's own decision" in out


def test_times_of_a_single_choice_stand_beside_the_expected_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    simulated = "simulate --platform gros --collective gather --algorithms linear --procs 4 --sizes 64KiB,128KiB"
    code, _, err = run(capsys, *f"{simulated} --engine schedule -o s.times".split())
    assert code == 0, err
    (expected,) = AllTimes.load("s.times").values()
    seconds = [expected.seconds_of(Choice("linear"), 4, size) for size in (65536, 131072)]
    cases = [Case("gather", "linear", 4, size) for size in (65536, 131072)]
    with Store(Path("m.sqlite")) as opened:
        rows = [Timing(case, one / factor) for case, one, factor in zip(cases, seconds, (1.25, 0.5), strict=True)]
        opened.add(Configuration("measured", "gros", "Open MPI 4.1.4"), rows)
    code, out, err = run(capsys, "compare", "store:file=m.sqlite,source=measured", "s.times", "--json")
    assert code == 0, err
    (record,) = json.loads(out)["facts"]["scores"]
    assert (record["picks"], record["mean_slowdown"], record["predictions"]) == (0, None, 2)
    code, out, err = run(capsys, "compare", "store:file=m.sqlite,source=measured", "s.times")
    assert [re.search(r"s \(([+-]\d+)\)", line)[1] for line in out.splitlines() if " linear " in line] == ["+25", "-50"]


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
