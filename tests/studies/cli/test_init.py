"""Projects: one store and results for a folder and all below it, and defaults of options."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest

import collwise
from collwise.common.project import HOME, default_store_path, find_project, results_folder
from collwise.studies.cli.check import three_way
from collwise.studies.cli.main import main
from collwise.studies.cli.tune import demo
from tests.command_line import run


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, without a project."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLLWISE_STORE", raising=False)
    monkeypatch.delenv(HOME, raising=False)
    return tmp_path


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The one line on stderr of a command that is wrong."""
    with pytest.raises(SystemExit) as ended:
        main(words)
    out, error = capsys.readouterr()
    assert (ended.value.code, out, error.count("\n")) == (2, "", 1)
    return error


def times(capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, object]]:
    """Simulated times by the engine, which needs no simulator."""
    points = ("--collective", "bcast", "--algorithms", "chain", "--segments", "8KiB", "--sizes", "8KiB")
    run("simulate", *points, "--engine", "schedule", "--json", *words)
    made: list[dict[str, object]] = json.loads(capsys.readouterr().out)["rows"]
    return made


def test_any_folder_below_uses_the_projects_store_and_defaults(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run("platforms", "new", "mine", "--nodes", "4", "--gbits", "1", "--latency-us", "10")
    (folder / "study/deep/below").mkdir(parents=True)
    run("setup", "project", "study", "--platform", "mine.toml", "--procs", "2,3")
    assert str(folder / "study/results/timings.sqlite") in capsys.readouterr().out
    monkeypatch.chdir("study/deep/below")
    assert [time["procs"] for time in times(capsys)] == [2, 3]
    assert [time["procs"] for time in times(capsys, "--procs", "4", "--platform", "exact")] == [4]
    assert not Path("results").exists()
    run("times", "list")
    listed = capsys.readouterr().out
    assert str(folder / "study/results/timings.sqlite") in listed
    assert {*collwise.results().platform} == {"mine", "exact"}
    assert results_folder() == folder / "study/results"


def test_the_nearest_project_counts_and_the_environment_before_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert default_store_path() == Path("results/timings.sqlite")
    run("setup", "project")
    assert default_store_path() == Path("results/timings.sqlite")
    run("setup", "project", "inner")
    monkeypatch.chdir("inner")
    assert default_store_path() == Path("results/timings.sqlite")
    Path("below").mkdir()
    monkeypatch.chdir("below")
    assert default_store_path() == folder / "inner/results/timings.sqlite"
    monkeypatch.setenv(HOME, str(folder))
    assert default_store_path() == folder / "results/timings.sqlite"
    monkeypatch.setenv("COLLWISE_STORE", "named.sqlite")
    assert collwise.arguments.store_path() == Path("named.sqlite")


def test_a_folder_without_the_file_is_a_project_if_the_environment_names_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "bare").mkdir()
    monkeypatch.setenv(HOME, "bare")
    times(capsys, "--platform", "exact", "--procs", "2")
    assert (folder / "bare/results/timings.sqlite").exists()
    monkeypatch.setenv(HOME, "nowhere")
    assert "COLLWISE_HOME: there is no folder nowhere" in refused(capsys, "times", "list")


@pytest.mark.parametrize(("name", "called"), [("demo", demo), ("validation", three_way)])
def test_results_of_commands_go_to_the_project(
    name: str, called: click.Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert called.make_context(name, []).params["output"] == Path("results", name)
    run("setup", "project")
    (folder / "below").mkdir()
    monkeypatch.chdir("below")
    assert called.make_context(name, []).params["output"] == folder / "results" / name


def test_platforms_are_found_from_anywhere(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("platforms", "new", "mine", "--nodes", "4", "--gbits", "1", "--latency-us", "10")
    (folder / "inside").mkdir()
    for name, given, written in (
        ("inside", "./inside/../mine.toml", str(folder / "mine.toml")),
        ("outside", "mine.toml", str(folder / "mine.toml")),
        (".", "mine.toml", "./mine.toml"),
        ("known", "gros", "gros"),
    ):
        run("setup", "project", name, "--platform", given)
        assert f'platform = "{written}"' in Path(name, "collwise.toml").read_text()
        monkeypatch.setenv(HOME, name)
        project = find_project()
        assert project is not None
        assert project.platform is not None
        collwise.platform(project.platform)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('platfrom = "gros"', "unknown key 'platfrom'; did you mean platform? Valid: platform, procs"),
        ("procs = 16", 'procs must be text as on the command line: procs = "..."'),
        ('platform = ""', "platform must be text"),
        ("platform = [", "broken TOML"),
        ('platform = "absent.toml"', "--platform: platform file"),
        ('platform = "grus"', "unknown platform 'grus'; did you mean gros"),
        ('platform = "gros"\nprocs = "4,x"', "--procs: malformed"),
    ],
)
def test_errors_in_the_projects_file_name_it(
    text: str, told: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "collwise.toml").write_text(text)
    error = refused(capsys, "simulate", "--collective", "bcast", "--engine", "schedule")
    assert error.startswith(f"collwise: {folder / 'collwise.toml'}: ")
    assert told in error


def test_a_project_is_made_once_with_values_that_are_right(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "unknown platform 'grus'" in refused(capsys, "setup", "project", "--platform", "grus")
    assert "--procs: malformed" in refused(capsys, "setup", "project", "--procs", "many")
    assert not (folder / "collwise.toml").exists()
    run("setup", "project")
    before = (folder / "collwise.toml").read_text()
    capsys.readouterr()
    assert "already exists" in refused(capsys, "setup", "project", "--platform", "gros")
    assert (folder / "collwise.toml").read_text() == before
    assert "--platform" in refused(capsys, "simulate", "--collective", "bcast", "--procs", "4")
