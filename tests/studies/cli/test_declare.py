"""Commands made of functions whose default values are options, which options.toml describes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from collwise.studies.cli import option_texts
from collwise.studies.cli.declare import argument, flag, group, option
from collwise.studies.cli.derive import command
from collwise.studies.cli.main import collwise
from collwise.studies.cli.types import FOLDER, NEW_FILE, SIZES


@pytest.fixture(autouse=True)
def _texts(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {"level": {"names": "-l --level"}, "both": {"names": "--both/--one"}, "last": "From {one} to {more}."}
    monkeypatch.setitem(option_texts._TEXTS, "made", texts)


def called(words: list[str]) -> dict[str, Any]:
    """The arguments with which the function of a command is called."""
    found: dict[str, Any] = {}

    @command("made 1")
    def made(
        numbers: tuple[int, ...] = argument(click.INT, nargs=-1),
        sizes: tuple[int, ...] | None = option(SIZES),
        level: int = option(int, 3),
        both: bool = option(default=True),
        pair: dict[str, int] = group(dict, left_hand=option(type=int), inner=group(dict, right=option(type=int))),
        quick: bool = flag(),
        output: Path | None = option(NEW_FILE),
        needed: str = option(required=True),
        last: Path | None = option(FOLDER, said={"one": "1", "more": ("2", "3")}),
    ) -> None:
        found.update(locals())

    assert [one.name for one in made.params] == [
        *("numbers", "sizes", "level", "both", "left_hand", "right", "quick", "output", "force", "needed", "last")
    ]
    (last,) = (one for one in made.params if one.name == "last")
    assert isinstance(last, click.Option)
    assert last.help == "From 1 to 2, 3."
    made.main(words, standalone_mode=False)
    return found


def test_each_parameter_gets_the_value_of_its_option() -> None:
    found = called(["--needed", "x", "1", "2", "--sizes", "1KiB", "-l", "5", "--one", "--right", "7", "--quick"])
    assert (found["numbers"], found["sizes"], found["level"], found["both"]) == ((1, 2), (1024,), 5, False)
    assert found["pair"] == {"left_hand": None, "inner": {"right": 7}}
    assert (found["quick"], found["output"], found["needed"], found["last"]) == (True, None, "x", None)


def test_what_is_not_given_has_its_default() -> None:
    found = called(["--needed", "x"])
    assert (found["numbers"], found["sizes"], found["level"], found["both"]) == ((), None, 3, True)
    assert found["quick"] is False


def test_an_option_that_is_required_is_missed() -> None:
    with pytest.raises(click.MissingParameter):
        called([])


@pytest.mark.parametrize("name", ["simulate", "measure", "whatif change", "platforms ranks"])
def test_commands_miss_what_they_need(name: str) -> None:
    done = CliRunner().invoke(collwise, name.split())
    assert done.exit_code == 2
    assert "Missing option" in done.output


def test_options_are_read_before_files_that_exist_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.touch()
    for words, said in (
        (["-o", str(file), "--collective", "bcst"], "unknown collective 'bcst'"),
        (["-o", str(file)], "Missing option"),
        (["-o", str(file), "--collective", "bcast"], "already exists"),
    ):
        done = CliRunner().invoke(collwise, ["simulate", "--platform", "gros", "--procs", "4", *words])
        assert said in f"{done.output}{done.exception}"


def test_every_text_is_that_of_an_option_and_every_option_has_one() -> None:
    known: dict[str, set[str]] = {}
    silent: set[str] = set()

    def walk(entry: click.Command, words: tuple[str, ...]) -> None:
        names = {one.name for one in entry.params if one.name is not None}
        names |= {word.strip("-").replace("-", "_") for one in entry.params for word in one.opts}
        for section in ("every", " ".join(words[:1]), " ".join(words)):
            known.setdefault(section, set()).update(names)
        options = (one for one in entry.params if isinstance(one, click.Option))
        silent.update(f"{' '.join(words)} {one.name}" for one in options if not one.help)
        if isinstance(entry, click.Group):
            context = click.Context(entry)
            for name in entry.list_commands(context):
                inner = entry.get_command(context, name)
                assert inner is not None
                walk(inner, (*words, name))

    walk(collwise, ())
    for section, texts in option_texts._TEXTS.items():
        if section not in ("functions", "made", "python"):
            typed = {name: option_texts.text_of(section, name).get("names", name).split()[-1] for name in texts}
            words = {name: word.partition("/")[0].strip("-").replace("-", "_") for name, word in typed.items()}
            assert {name for name in texts if not {name, words[name]} & known[section]} == set(), section
    assert not silent
