"""The example at the end of each command's help: quick ones run, the others are parsed."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from collwise.studies.cli.main import collwise
from tests.command_line import read, run
from tests.needs import needs
from tests.once import made_once

# Examples that make what others read, in this order.
FIRST = ("platforms new", "fit", "predict", "select", "export")
QUICK = (
    *FIRST,
    *(
        "show algorithms",
        "show models",
        "compare",
        "simulate",
        "platforms ranks",
        "check recovery",
        "program run",
        "program apply",
        "platforms experiment",
    ),
    *("platforms", "platforms show"),
)
OSU = """# OSU MPI Broadcast Latency Test v7.1
# Size       Avg Latency(us)
8192                   42.10
"""


def every_command() -> dict[str, click.Command]:
    """All commands and subcommands by their words; the command line itself is ''."""
    context = click.Context(collwise, info_name="collwise")

    def below(group: click.Group, words: str) -> Iterator[tuple[str, click.Command]]:
        yield words, group
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            assert command is not None
            inner = f"{words} {name}".strip()
            if isinstance(command, click.Group):
                yield from below(command, inner)
            else:
                yield inner, command

    return dict(below(collwise, ""))


def test_the_command_line_stays_small() -> None:
    """A new command or option is first looked for among those that there are."""
    commands = [command for command in every_command().values() if not isinstance(command, click.Group)]
    options = [one for command in commands for one in command.params if isinstance(one, click.Option)]
    assert len(commands) <= 54
    assert len({option.help for option in options}) <= 160


COMMANDS = every_command()


def example_of(name: str) -> list[str]:
    """The words of a command's example, without `collwise`."""
    label, _, words = (COMMANDS[name].epilog or "").rpartition("Example: collwise ")
    assert label == "\b\n"
    return shlex.split(words)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with everything that examples read, made by examples as far as they do."""

    def make(folder: Path) -> None:
        (folder / "osu_bcast.txt").write_text(OSU)
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            patch.delenv("COLLWISE_STORE", raising=False)
            for name in FIRST:
                run(*example_of(name))

    return made_once(tmp_path_factory, "examples", make)


@pytest.fixture
def folder(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of that folder, in which the test runs."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLLWISE_STORE", raising=False)
    return tmp_path


@pytest.mark.parametrize("name", COMMANDS)
def test_every_help_ends_with_an_example_of_the_command(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(*name.split(), "--help")
    example = " ".join(shlex.quote(word) for word in example_of(name))
    assert capsys.readouterr().out.rstrip().rpartition("\n")[2] == f"  Example: collwise {example}"
    assert [*example_of(name)[: len(name.split())]] == name.split()


@needs("smpi")
@pytest.mark.parametrize("name", [name for name in QUICK if name not in FIRST])
def test_quick_examples_run(name: str, folder: Path) -> None:
    words = example_of(name)
    if name == "compare":  # whose figures tests/studies/cli/test_cli.py draws and lists
        del words[words.index("--figures") :]
    run(*words)


@needs("smpi")
def test_the_examples_follow_one_another(made: Path) -> None:
    assert {path.name for path in made.iterdir()} >= {
        "mine.toml",
        "mine.parameters.toml",
        "bcast.times",
        "bcast.json",
        "mine.rules",
    }


@needs("smpi")
@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in QUICK])
def test_the_other_examples_are_read(name: str, folder: Path) -> None:
    # Files that the example makes are here already.
    for path in folder.glob("*.*"):
        if path.name in example_of(name) and name in FIRST:
            path.unlink()
    command = read(example_of(name))
    assert command is COMMANDS[name] or not name or isinstance(COMMANDS[name], click.Group)


def test_every_quick_example_is_of_a_command() -> None:
    assert COMMANDS.keys() >= set(QUICK)
