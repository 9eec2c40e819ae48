"""The progress of long work where there is no terminal."""

from __future__ import annotations

import re

import pytest

from collwise.simulator.timing import Case, Timing
from collwise.studies.present import progress


def test_a_log_says_how_much_is_done_and_how_long_the_rest_takes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "_TELL_EVERY_SECONDS", -1.0)
    with progress.sweep_progress("gros") as advance:
        advance(Timing(Case("bcast", "chain", 4, 8), 1e-3), 0.25, 8)
        advance(None, 0.0)
    first, second = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r"collwise: gros: 25 %, 1 of 8 cases, about \d+ min left", first)
    assert second.startswith("collwise: gros: 0 %")
