"""Tools that the tests of the commands on models share: a folder with parameter files, and running commands in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from collwise.studies.cli.main import main
from tests.models.parameter_examples import EXAMPLES, fitted

Capture = pytest.CaptureFixture[str]


def prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with parameter files of every example and a store of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLLWISE_STORE", str(tmp_path / "timings.sqlite"))
    for example in EXAMPLES:
        fitted(example).save(tmp_path / f"{example.replace(' ', '-')}.toml")
    return tmp_path


def run(arguments: str, capsys: Capture) -> tuple[object, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(arguments.split())
    output = capsys.readouterr()
    return ended.value.code, output.out, output.err


def done(arguments: str, capsys: Capture) -> tuple[str, str]:
    """The output of a command on both streams; it has to succeed."""
    code, output, errors = run(arguments, capsys)
    assert code == 0, errors
    return output, errors
