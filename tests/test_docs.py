"""The documentation: pages made from the catalogue, the site that Sphinx builds, and the commands on its pages."""

from __future__ import annotations

import importlib.util
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.command_line import read, run

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
_BLOCK = re.compile(r"^```(.*?)\n(.*?)^```", re.DOTALL | re.MULTILINE)
_COMMAND = re.compile(r"\s*(?:sudo |salloc .*? )?(?:\./)?collwise ([a-z].*)")
_INDENTED = re.compile(r"^    (?:\./)?collwise [a-z]+ -", re.MULTILINE)
# Files that commands on the pages read, and the short descriptions that they are made from here.
PLATFORMS = ("big", "bed", "faster", "mycluster", "my_cluster", "two-sockets")
# Words that stand for what a reader puts there.
_PLACEHOLDERS = ("FILE", "...")


def test_the_page_of_algorithms_is_the_catalogues() -> None:
    spec = importlib.util.spec_from_file_location("regenerate", DOCS / "regenerate.py")
    assert spec is not None
    assert spec.loader is not None
    regenerate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(regenerate)
    assert (DOCS / "algorithms.md").read_text(encoding="utf-8") == regenerate.algorithms_page()


def test_the_site_and_the_manual_page_are_built_without_a_warning(tmp_path: Path) -> None:
    """Links between pages, to headings and to figures that lead nowhere are warnings."""
    for builder, made in (("html", "index.html"), ("man", "collwise.1")):
        command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", builder, "-d", tmp_path / "parsed"]
        done = subprocess.run([*command, DOCS, tmp_path / builder], capture_output=True, text=True, cwd=ROOT)
        assert (done.returncode, done.stderr) == (0, "")
        assert "collwise" in (tmp_path / builder / made).read_text(encoding="utf-8")


def commands(page: Path) -> Iterator[list[str]]:
    """The words of every collwise command in the shell's blocks of code on a page."""
    for language, block in _BLOCK.findall(page.read_text(encoding="utf-8")):
        for line in re.sub(r"\\\n\s*", " ", block).splitlines() if language in ("", "sh") else ():
            if found := _COMMAND.fullmatch(line):
                words = shlex.split(found.group(1), comments=True)
                if words[0] != "help" and "--help" not in words and not {*words} & {*_PLACEHOLDERS}:
                    yield words


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the platforms that commands on the pages name."""
    made = tmp_path_factory.mktemp("pages")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(made)
        run("platforms", "new", "mine", "--nodes", "4", "--gbits", "1", "--latency-us", "10")
        for name in PLATFORMS:
            (made / f"{name}.toml").write_bytes((made / "mine.toml").read_bytes())
        (made / "results" / "validation").mkdir(parents=True)
        (made / "results" / "validation" / "testbed-8x100M.toml").write_bytes((made / "bed.toml").read_bytes())
        (made / "thresholds.toml").write_text("")
    return made


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_on_the_pages_are_valid(page: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert not _INDENTED.search(page.read_text(encoding="utf-8")), "commands stand between fences"
    for words in commands(page):
        assert read(words).name in words


def _is_quick(words: list[str]) -> bool:
    """Whether a command needs nothing but the schedule engine, nor takes longer than a second."""
    if words[0] == "platforms":
        return words[1] in ("new", "draw", "list", "show")
    if words[0] in ("whatif", "simulate"):
        many = {"--sweep", "--application", "--rules", "all", "gather"}
        return not many & {*words} and (words[0] == "whatif" or "schedule" in words)
    return words[0] in ("schedule", "models", "schema", "init") or (words[0] == "defaults" and "--check" not in words)


QUICK = [page for page in PAGES if any(map(_is_quick, commands(page))) and page.stem != "tutorial"]


@pytest.mark.parametrize("page", QUICK, ids=lambda page: page.stem)
def test_quick_commands_on_the_pages_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLLWISE_STORE", raising=False)
    for words in filter(_is_quick, commands(page)):
        run(*words, *(["--force"] if "--save" in words else []))  # Two examples save the same description.


def test_the_tutorial_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLLWISE_STORE", raising=False)
    for words in commands(DOCS / "tutorial.md"):
        run(*words)
    assert (tmp_path / "mycluster.rules").exists()
    assert (tmp_path / "mine.table").exists()
    assert (tmp_path / "report" / "report.html").exists()
