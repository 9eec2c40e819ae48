from __future__ import annotations

from pathlib import Path

import pytest

from collwise.studies.cli.main import main
from collwise.validation.testbed import namespaces


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as ended:
        main(["check", "three-way", *arguments])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    return said


def test_without_the_right_to_make_namespaces_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(namespaces.os, "geteuid", lambda: 1000)
    where = ["--output", str(tmp_path), "--store", str(tmp_path / "store.sqlite")]
    assert "the right to make network namespaces" in refused(["--testbed", *where], capsys)


def test_an_output_folder_that_cannot_be_is_found_out_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert "cannot write into" in refused(["--testbed", "--output", str(tmp_path / "file")], capsys)
