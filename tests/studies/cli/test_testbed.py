"""collwise testbed: bad input in one line, and a bed from up to down."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from collwise.studies.cli.main import main
from collwise.validation.testbed import bed as beds, namespaces
from tests.command_line import printed
from tests.needs import need


def call(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(["testbed", *words])
    printed = capsys.readouterr()
    return int(ended.value.code or 0), printed.out, printed.err


def test_without_the_right_to_make_namespaces_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(namespaces.os, "geteuid", lambda: 1000)
    with pytest.raises(SystemExit) as ended:
        main(["check", "three-way", "--testbed", "--output", str(tmp_path), "--store", str(tmp_path / "store.sqlite")])
    said = capsys.readouterr().err
    assert (ended.value.code, said.count("\n")) == (2, 1)
    assert "the right to make network namespaces" in said


@pytest.fixture
def name() -> Iterator[str]:
    need("testbed", "openmpi")
    own = f"test-command-{os.getpid()}"
    yield own
    beds.down(own)


def test_from_up_to_down(capsys: pytest.CaptureFixture[str], name: str) -> None:
    code, output, _ = call(capsys, "up", "--name", name, "--nodes", "2", "--rate", "50Mbit", "--json")
    assert code == 0
    assert printed(output).rows[0]["shape"]["bits_per_second"] == 5e7
    code, output, _ = call(capsys, "status", "--name", name, "--json")
    assert code == 0
    assert [(bed["name"], bed["processes"]) for bed in printed(output).rows] == [(name, 0)]
    assert call(capsys, "run", "--name", name, "--procs", "1", "--", "sh", "-c", "echo here")[:2] == (0, "here\n")
    assert call(capsys, "run", "--name", name, "--", "sh", "-c", "exit 3")[0] == 1
    assert call(capsys, "down", "--name", name)[:2] == (0, "3 namespaces removed\n")
    code, output, _ = call(capsys, "down", "--name", name)
    assert code == 0
    assert re.fullmatch(r"nothing to remove(; up: .+)?\n", output)  # others may have beds of their own
