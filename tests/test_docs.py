"""The documentation: pages made from the catalogue, and the site that Sphinx builds."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import collwise
from tests.test_english import by_hand

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def regenerate() -> Any:
    """The module that writes pages."""
    spec = importlib.util.spec_from_file_location("regenerate", DOCS / "regenerate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_of_algorithms_is_the_catalogues(regenerate: Any) -> None:
    page = regenerate.folded(regenerate.algorithms_page())
    assert (DOCS / "algorithms.md").read_text(encoding="utf-8") == page


def test_pages_by_hand_are_no_book() -> None:
    words = [len(text.split()) for text in by_hand(DOCS)]
    assert len(words) <= 30
    assert sum(words) <= 40_000


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.stem)
def test_long_tables_are_folded(page: Path, regenerate: Any) -> None:
    text = page.read_text(encoding="utf-8")
    assert regenerate.folded(text) == text


def test_the_readme_says_of_trust_what_the_last_runs_found(regenerate: Any) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"<!-- trust: begin -->\n{regenerate.trust_block()}<!-- trust: end -->" in readme


def test_the_site_and_the_manual_page_are_built_without_a_warning(tmp_path: Path) -> None:
    """Links between pages, to headings and to figures that lead nowhere are warnings."""
    for builder, made in (("html", "index.html"), ("man", "collwise.1")):
        command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", builder, "-d", tmp_path / "parsed"]
        done = subprocess.run([*command, DOCS, tmp_path / builder], capture_output=True, text=True, cwd=ROOT)
        assert (done.returncode, done.stderr) == (0, "")
        assert "collwise" in (tmp_path / builder / made).read_text(encoding="utf-8")
    page = (tmp_path / "html/python.html").read_text(encoding="utf-8")
    assert all(f'id="collwise.{name}"' in page for name in collwise.__all__ if name.islower())
