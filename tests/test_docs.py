"""The documentation: pages made from the catalogue, the site that Sphinx builds, and the commands on its pages."""

from __future__ import annotations

import importlib.util
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from collwise.studies.cli.main import collwise, main

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
_BLOCK = re.compile(r"^```(?:sh|text)?\n(.*?)^```", re.DOTALL | re.MULTILINE)
_COMMAND = re.compile(r"\s*(?:sudo )?(?:\./)?collwise (.*)")
# Files that commands on the pages read, and the short descriptions that they are made from here.
PLATFORMS = ("mine", "big", "bed", "faster", "mycluster")
# Words that stand for what a reader puts there.
_PLACEHOLDERS = ("FILE", "...")


def test_the_page_of_algorithms_is_the_catalogues() -> None:
    spec = importlib.util.spec_from_file_location("regenerate", DOCS / "regenerate.py")
    assert spec is not None
    assert spec.loader is not None
    regenerate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(regenerate)
    assert (DOCS / "algorithms.md").read_text(encoding="utf-8") == regenerate.algorithms_page()


@pytest.mark.parametrize("builder", ["html", "man"])
def test_the_site_is_built_without_a_warning(tmp_path: Path, builder: str) -> None:
    """Links between pages, to headings and to figures that lead nowhere are warnings."""
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", builder]
    done = subprocess.run([*command, DOCS, tmp_path], capture_output=True, text=True, cwd=ROOT, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    made = (tmp_path / ("index.html" if builder == "html" else "collwise.1")).read_text(encoding="utf-8")
    assert "collwise" in made


def commands(page: Path) -> Iterator[list[str]]:
    """The words of every collwise command in the blocks of code of a page."""
    for block in _BLOCK.findall(page.read_text(encoding="utf-8")):
        for line in re.sub(r"\\\n\s*", " ", block).splitlines():
            if found := _COMMAND.fullmatch(line):
                words = shlex.split(found.group(1), comments=True)
                if words[0] != "help" and "--help" not in words and not {*words} & {*_PLACEHOLDERS}:
                    yield words


def run(*arguments: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert not ended.value.code


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the platforms that commands on the pages name."""
    made = tmp_path_factory.mktemp("pages")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(made)
        for name in PLATFORMS:
            run("platforms", "new", name, "--nodes", "4", "--gbits", "1")
        (made / "results" / "validation").mkdir(parents=True)
        (made / "results" / "validation" / "testbed-8x100M.toml").write_bytes((made / "bed.toml").read_bytes())
        (made / "thresholds.toml").write_text("")
        (made / "new").mkdir()
    return made


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_on_the_pages_are_valid(page: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for words in commands(page):
        # `platforms new` refuses to overwrite a description.
        monkeypatch.chdir(folder / "new" if words[:2] == ["platforms", "new"] else folder)
        context = collwise.make_context("collwise", words)
        command: click.Command = collwise
        while isinstance(command, click.Group):
            remaining = [*context._protected_args, *context.args]
            found, inner, rest = command.resolve_command(context, remaining)
            assert inner is not None
            command, context = inner, inner.make_context(found, rest, parent=context)


def test_the_tutorial_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLLWISE_STORE", raising=False)
    text = (DOCS / "tutorial.md").read_text(encoding="utf-8")
    done = [words for words in commands(DOCS / "tutorial.md") if f"./collwise {words[0]}" in text.split("## 6.")[0]]
    for words in done:
        if "srun" not in words and "measured" not in " ".join(words):
            run(*words)
    assert (tmp_path / "mycluster.rules").exists()
    assert (tmp_path / "mine.table").exists()
    assert (tmp_path / "report" / "index.html").exists()
