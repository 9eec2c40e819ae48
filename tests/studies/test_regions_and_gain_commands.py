from __future__ import annotations

import json
from pathlib import Path

import pytest

from collwise.studies.cli import main
from collwise.validation.decisions import DecisionTable, decisions_document
from collwise.validation.openmpi import Choice


def problem(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    return capsys.readouterr().err


@pytest.fixture
def decisions(tmp_path: Path) -> str:
    file = tmp_path / "decisions.json"
    table = DecisionTable("bcast", "made up", 1, "hand", {2: ((1024, Choice("chain", 8192)),)})
    file.write_text(json.dumps(decisions_document([table])))
    return str(file)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--testbed", "a", "--library", "openmpi"], "name one of --testbed and --library"),
        (["--tcp", "renno"], "unknown TCP variant 'renno'"),
        (["--rate", "fast"], "--rate: malformed rate 'fast'"),
        (["--nodes", "2"], "2 processes; a gather"),
        (["--stride", "64KiB"], "12 sizes or more"),
        (["--stride", "64", "--largest", "1000"], "up to 1000 bytes; algorithms are compared from 1024 on"),
        (["--buffer", "16KB,32KB", "-o", "t.toml"], "--output: thresholds are of one place; these are 2"),
    ],
)
def test_bad_input_of_regions(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str],
    message: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert message in problem(capsys, "regions", *arguments, "--store", str(tmp_path / "s.sqlite"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name one of --decisions and --platform"),
        (["--decisions", "{file}", "--collective", "gather"], "no decisions for gather; there are some for bcast"),
        (["--decisions", "{file}", "--sizes", "8"], "no entry for 8 bytes"),
        (["--decisions", "missing.json"], "cannot read missing.json"),
        (["--decisions", "{file}", "--testbed", "nosuchbed"], "test bed 'nosuchbed'"),
    ],
)
def test_bad_input_of_gain(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, decisions: str, arguments: list[str], message: str
) -> None:
    words = [word.format(file=decisions) for word in arguments]
    assert message in problem(capsys, "gain", "--procs", "2", *words, "--store", str(tmp_path / "s.sqlite"))
