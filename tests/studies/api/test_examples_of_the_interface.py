"""The examples of docs/python.md and of the public functions' docstrings run as they are written."""

from __future__ import annotations

import doctest
import io
from pathlib import Path

import pytest

import collwise
from tests.needs import need, needs

PAGE = Path(__file__).resolve().parents[3] / "docs" / "python.md"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL
FUNCTIONS = [name for name in collwise.__all__ if name.islower()]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLLWISE_STORE", raising=False)


def run(text: str, name: str) -> None:
    found = doctest.DocTestParser().get_doctest(text.replace("```", "\n"), {}, name, name, 0)
    assert found.examples
    said = io.StringIO()
    result = doctest.DocTestRunner(optionflags=FLAGS, verbose=False).run(found, out=said.write)
    assert result.failed == 0, said.getvalue()


@needs("smpi")
def test_the_page() -> None:
    run(PAGE.read_text(encoding="utf-8"), "python.md")


@needs("smpi")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_example_in_a_docstring(name: str) -> None:
    if name == "measure":
        need("openmpi")
    run(getattr(collwise, name).__doc__, name)


def test_the_package_names_every_function_for_help_and_for_the_page() -> None:
    assert ".. automodule:: collwise\n" in PAGE.read_text(encoding="utf-8")
    for name in FUNCTIONS:
        assert f"{name}(" in (collwise.__doc__ or "")
