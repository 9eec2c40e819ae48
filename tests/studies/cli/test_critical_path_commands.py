"""The model by critical paths on the command line: fitted once, it serves every command that takes a model."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.command_line import printed
from tests.needs import needs
from tests.studies.cli.model_commands import Capture, done, run

pytestmark = needs("smpi")

FILE = "path.toml"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("store") / "timings.sqlite"


@pytest.fixture
def here(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> Path:
    """A folder with a parameter file of two collectives."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLLWISE_STORE", str(store))
    fit = "fit --platform boba --model critical_path --procs 4,9 --collective allgather,gather --segments 0,8KiB"
    output, _ = done(f"{fit} -o {FILE}", capsys)
    assert "eager messages leave when their receive is posted" in output
    assert re.search(r"critical_path +│ allgather +│ ring +│ eager", output)
    return tmp_path


def test_predict_select_and_compare_by_the_file(here: Path, capsys: Capture) -> None:
    output, _ = done(f"predict --parameters {FILE} --collective allgather --procs 4,32 --json", capsys)
    predicted = printed(output)
    assert predicted.facts["model"] == "critical_path"
    assert {row["algorithm"] for row in predicted.rows} >= {"ring", "bruck", "linear"}
    asked = f"predict --parameters {FILE} --collective allgather --procs 4,8,16 --sizes 64,64KiB --margin 1 -o p.times"
    done(asked, capsys)
    output, _ = done("select p.times -o t.json", capsys)
    assert "allgather on boba by model critical_path" in output
    grid = "--collective allgather,gather --procs 8 --sizes 64,64KiB"
    for made in (f"predict --parameters {FILE} {grid} -o q.times", f"simulate --platform boba {grid} -o s.times"):
        done(made, capsys)
    output, _ = done("compare s.times q.times --json", capsys)
    for score in printed(output).facts["scores"]:
        assert (score["model"], score["left_out"]) == ("critical_path", [])
        assert score["worst_error"] < 0.05
    allgather, _ = printed(output).facts["scores"]
    assert allgather["best_picks"] == allgather["picks"] == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            f"predict --parameters {FILE} --collective scan --procs 4",
            "has no parameters for scan; fit them: collwise fit --model",
        ),
        (
            f"predict --parameters {FILE} --by-schedule --collective gather --procs 4",
            "no parameters of single messages",
        ),
    ],
)
def test_wrong_input_is_one_line(arguments: str, message: str, here: Path, capsys: Capture) -> None:
    code, _, errors = run(arguments, capsys)
    assert code == 2
    (line,) = errors.splitlines()
    assert message in line
