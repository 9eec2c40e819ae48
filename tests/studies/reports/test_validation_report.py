"""The report of made-up times can be read; tests/golden has what it says."""

from __future__ import annotations

import json
from pathlib import Path

from collwise.studies.reports.shared_nodes import shared_node_sections
from collwise.studies.reports.validation_report import document, write_validation
from collwise.validation.three_way.disagreements import NOT_FOUND
from tests.golden.made_up import validation


def test_the_page_holds_its_figures_and_escapes_text(tmp_path: Path) -> None:
    page, _ = write_validation(validation(), tmp_path)
    assert len(list(tmp_path.glob("*.svg"))) == 4
    text = page.read_text(encoding="utf-8")
    assert text.count("data:image/svg+xml;base64,") == 4
    assert "token bucket&#39;s burst" in text
    assert NOT_FOUND in text


def test_the_document_is_json_and_one_process_on_each_node_adds_no_section() -> None:
    found = json.loads(json.dumps(document(validation())))
    assert [one["within_limit"] for one in found["verdicts"]] == [False] * 9
    assert len(found["rows"]) == 8
    assert shared_node_sections(validation()) == []
