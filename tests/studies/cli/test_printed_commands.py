"""The commands that commands print run as they are printed, with a number for P and a program for PROGRAM."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from collwise.validation.libraries.formats import FORMATS, how_to_use
from tests.command_line import read, run

COUNT, PROGRAM = "4", "latency"


def words_of(command: str) -> list[str]:
    """The words of a printed command of ours, without what starts it."""
    words = [{"P": COUNT, "PROGRAM": PROGRAM}.get(word, word) for word in shlex.split(command)]
    return words[words.index("collwise") + 1 :]


def read_all(text: str) -> int:
    """Reads every command of ours that stands in a line of its own; returns how many there are.

    The description that `platforms calibrate` would write is a copy of the nominal one.
    """
    commands = re.findall(r"^[ -]*((?:salloc .*? )?collwise .*)$", text, re.MULTILINE)
    for command in commands:
        words = words_of(command)
        read(words)
        if words[:2] == ["platforms", "calibrate"]:
            shutil.copy(words[words.index("--nominal") + 1], words[words.index("-o") + 1])
    return len(commands)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLLWISE_STORE", raising=False)
    return tmp_path


def test_what_tune_and_export_print_is_read(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--procs", "4", "--segments", "8KiB", "--engine", "schedule")
    run("tune", "exact", *options, "--collective", "allreduce", "--sizes", "1KiB,64KiB", "-o", "page")
    text = (here / "page" / "exact.md").read_text(encoding="utf-8")
    assert read_all(text.partition("## How it was made")[0]) == 2  # gain and run
    assert "1 KiB" in text
    options = ("--platform", "exact", *options)
    run("simulate", *options, "--collective", "allreduce", "--sizes", "1KiB", "-o", "a.times")
    run("select", "a.times", "-o", "a.json")
    capsys.readouterr()
    run("export", "a.json", "--format", "collwise", "-o", "a.table")
    assert read_all(capsys.readouterr().out) == 1


def test_next_steps_of_a_description_are_read(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ("--nodes", "4", "--interconnect", "infiniband-hdr", "--cpus", "2", "--cores", "8", "--ppn", "8")
    run("platforms", "describe", "mine", *given)
    steps = capsys.readouterr().out.partition("Next:")[2]
    assert read_all(steps) == 6
    assert "--sizes 8:" in steps


def test_every_use_of_a_format_is_a_whole_command_with_the_files_path(here: Path) -> None:
    for name in FORMATS:
        command = how_to_use(name, Path("my rules"))
        assert shlex.quote(str(here / "my rules")) in command
        assert "PROGRAM" in shlex.split(command)
        assert re.search(r"-n P |-np P |--procs P ", command)
