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


@pytest.mark.parametrize("words", [(), ("simulate",), ("test",), ("platforms",), ("platforms", "show")])
def test_help_says_what_the_option_says(capsys: pytest.CaptureFixture[str], words: tuple[str, ...]) -> None:
    assert said(capsys, "help", *words) == said(capsys, *words, "--help")


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_whole_sentences_and_the_names_of_the_command_line(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On 80 columns no line of a list of subcommands is cut; parameters of functions appear as options, without `."""
    monkeypatch.setenv("COLUMNS", "80")
    listed = said(capsys, name, "--help")[1].partition("\nCommands:\n")[2].partition("\n\n")[0].splitlines()
    assert not [line for line in listed if line.endswith("...")]
    for words in [[], *([line.split()[0]] for line in listed)]:
        assert "`" not in said(capsys, name, *words, "--help")[1]
