"""--json and --csv of every command: one form, the columns that the schema has, and the schema itself."""

from __future__ import annotations

import copy
import csv
import io
import json
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from collwise.platforms import load_description, write_description
from collwise.studies.cli.json_schema import COMMANDS, schema
from tests.command_line import printed
from tests.studies.cli.model_commands import Capture, run
from tests.studies.cli.test_examples import OSU, every_command

ENGINE = "--platform gros --engine schedule --store s.sqlite"
POINT = "--collective bcast --procs 4 --sizes 8KiB"
# Commands that take little time, in an order in which later ones find what earlier ones made.
QUICK = {
    "show algorithms": "show algorithms bcast",
    "show models": "show models --collective bcast",
    "show defaults": f"show defaults --baseline openmpi-4.1 {POINT}",
    "platforms show": "platforms show",
    "platforms describe": "platforms describe mine --nodes 4 --interconnect tcp-25g",
    "simulate": f"simulate {ENGINE} {POINT} --for openmpi-4.1 -o made.times --force",
    "show schedule": "show schedule --platform gros --collective bcast --algorithms binomial --procs 4 --sizes 8KiB",
    "select": "select made.times -o made.json --force",
    "tune": "tune gros --collective bcast --procs 4 --sizes 8KiB --store s.sqlite -o tuned",
    "export": "export made.json -o made.rules",
    "compare": "compare made.times openmpi-4.1 made.json made.rules made.times",
    "whatif change": f"whatif change --platform gros {POINT} --change bandwidth=x2",
    "whatif sweep": f"whatif sweep --platform gros {POINT} --factors bandwidth=x1:x2",
    "search tasks": "search tasks --platform stampede2 --nodes 2 --ppn 2 --sizes 64KiB --segments 32KiB "
    "--engine schedule --algorithms binary --search exhaustive,tasks --store s.sqlite",
    "times import": "times import osu_bcast.txt --platform other --procs 4 --store s.sqlite",
    "check machines": "check machines machine.times.csv --engine schedule --store s.sqlite --predictions p.csv",
    "times list": "times list --store s.sqlite",
    "times show": "times show --store s.sqlite --collective bcast",
    "times delete": "times delete --store s.sqlite --before 2001-01-01",
}
WITH_SMPI = {
    "platforms show --check": "platforms show checked.toml --check",
    "fit": "fit --platform exact --model hockney --procedure two-sizes --procs 2 -o h.toml --store s.sqlite",
    "predict": "predict --parameters h.toml --collective bcast --procs 2 --sizes 8KiB",
    "show message": "show message h.toml 0,1 --sizes 8KiB",
    "check recovery": "check recovery --platform exact --engine smpi --store s.sqlite",
}
# The test that reads what the other commands print.
ELSEWHERE = {
    "show tasks": "studies/cli/test_hierarchy.py",
    "program profile": "studies/cli/test_profile.py",
    "program apply": "studies/cli/test_application.py",
    "platforms calibrate": "validation/calibration/test_calibration.py",
    "testbed up": "studies/cli/test_testbed.py",
    "testbed status": "studies/cli/test_testbed.py",
    "platforms ranks": "studies/cli/test_rank_mapping.py",
    "measure": "studies/cli/test_input.py",
    "search algorithms": "studies/cli/test_adaptive.py",
    "platforms experiment": "studies/cli/test_experiment.py",
    "platforms thresholds": "studies/cli/test_irregular_regions_and_gain.py",
    "program gain": "studies/cli/test_irregular_regions_and_gain.py",
    "guidelines simulate": "studies/cli/test_guidelines.py",
    "guidelines measure": "studies/cli/test_guidelines.py",
    "guidelines decisions": "studies/cli/test_guidelines.py",
    "check algorithms": "algorithms/test_adding.py",
    "check others": "validation/correctness/test_crosscheck.py",
    "check three-way": "validation/three_way/test_on_cluster.py",
    "check study": "studies/papers/test_study.py",
}


MEASURED = """# machine: mare_nostrum
# library: Open MPI 4.1.5
collective,algorithm,procs,bytes,us
bcast,default,4,1024,9
bcast,binomial,4,1024,8
bcast,chain,4,1024,12
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("json")
    (made / "osu_bcast.txt").write_text(OSU)
    (made / "machine.times.csv").write_text(MEASURED)
    (made / "checked.toml").write_text(write_description(replace(load_description("gros"), name="checked")))
    return made


def command_of(form: str) -> str:
    return form.partition(" --")[0]


def test_every_command_with_json_has_columns_and_a_test() -> None:
    having = {
        name
        for name, command in every_command().items()
        if any("--json" in option.opts for option in command.params if name)
    }
    assert having == set(COMMANDS) == {command_of(form) for form in (*QUICK, *WITH_SMPI, *ELSEWHERE)}
    tests = Path(__file__).parents[2]
    for name, file in ELSEWHERE.items():
        text = (tests / file).read_text()
        assert "printed(" in text, file
        assert name.split()[-1] in text, file


def document_of(words: str, capsys: Capture) -> dict[str, Any]:
    code, shown, said = run(f"{words} --json", capsys)
    assert code == 0, said
    printed(shown)
    found: dict[str, Any] = json.loads(shown)
    return found


@pytest.mark.parametrize("commands", [QUICK, pytest.param(WITH_SMPI, marks=pytest.mark.needs("smpi"))])
def test_what_quick_commands_print(
    commands: dict[str, str], folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """One test runs them in their order, since later ones read what earlier ones wrote."""
    monkeypatch.chdir(folder)
    for form, words in commands.items():
        document = document_of(words, capsys)
        assert (document["command"], document["collwise"]) == (command_of(form), version("collwise"))
        assert document["rows"] or form.endswith("--check")
        jsonschema.Draft202012Validator(schema(command_of(form))).validate(document)


def test_csv_has_the_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.chdir(tmp_path)
    for words in ("platforms show gros", QUICK["simulate"], QUICK["show defaults"]):
        rows = document_of(words, capsys)["rows"]
        code, shown, _ = run(f"{words} --csv", capsys)
        assert code == 0
        table = list(csv.DictReader(io.StringIO(shown)))
        for row, cells in zip(rows, table, strict=True):
            for key, cell in cells.items():
                value = row.get(key)
                assert cell == (
                    "" if value is None else json.dumps(value) if isinstance(value, dict | list) else str(value)
                )


def test_the_schema_is_one_and_refuses_other_forms(capsys: Capture) -> None:
    jsonschema.Draft202012Validator.check_schema(schema())
    good = document_of("platforms show gros", capsys)
    check = jsonschema.Draft202012Validator(schema())
    assert check.is_valid(good)
    for change in (
        {"rows": None},
        {"facts": {"more": 1}},
        {"command": "platforms"},
        {"more": 1},
        {"rows": [{"name": "only"}]},
        {"rows": [good["rows"][0] | {"hosts": "many"}]},
        {"rows": [good["rows"][0] | {"unknown": 1}]},
    ):
        assert not check.is_valid(good | change), change
    for key in good:
        less = copy.copy(good)
        del less[key]
        assert not check.is_valid(less), key


def test_the_command_prints_the_schema(capsys: Capture) -> None:
    assert json.loads(run("setup schema", capsys)[1]) == schema()
    one = json.loads(run("setup schema platforms show", capsys)[1])
    assert one["properties"]["command"]["enum"] == ["platforms show"]
    code, shown, said = run("setup schema platfrms show", capsys)
    assert (code, shown) == (2, "")
    assert "did you mean platforms show" in said
