"""Pages that are made from the catalogue are those of the catalogue."""

from __future__ import annotations

import importlib.util
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"


def test_the_page_of_algorithms_is_the_catalogues() -> None:
    spec = importlib.util.spec_from_file_location("regenerate", DOCS / "regenerate.py")
    assert spec is not None
    assert spec.loader is not None
    regenerate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(regenerate)
    assert (DOCS / "algorithms.md").read_text(encoding="utf-8") == regenerate.algorithms_page()
