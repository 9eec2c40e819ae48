"""`collwise --help` and `collwise help`."""

from __future__ import annotations

import re

import pytest

from collwise.studies.cli.commands import COMMANDS
from collwise.studies.cli.main import main


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    out, error = capsys.readouterr()
    assert isinstance(ended.value.code, int)
    return ended.value.code, out, error


def test_the_help_lists_every_command_once_in_sections(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = said(capsys, "--help")
    assert code == 0
    sections = re.findall(r"^(\w[\w ]*):$", out.partition("Options:")[2], flags=re.MULTILINE)
    assert sections == ["Main path", "Platforms", "Models", "Measuring", "Checking", "Maintenance"]
    listed = re.findall(r"^  ([a-z-]+)  +\S", out.partition("Main path:")[2], flags=re.MULTILINE)
    assert listed == list(COMMANDS)


@pytest.mark.parametrize("words", [(), ("simulate",), ("test",), ("platforms",), ("platforms", "check")])
def test_help_says_what_the_option_says(capsys: pytest.CaptureFixture[str], words: tuple[str, ...]) -> None:
    assert said(capsys, "help", *words) == said(capsys, *words, "--help")
