"""The LMO model's gather and scatter: pieces stay below their bound, are no more than needed, and carry the data."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from collwise.algorithms.catalogue import Catalogue
from collwise.platforms import load
from collwise.simulator.execution.launchers import run_program
from tests.algorithms.compiling import compiled

SOURCE = Path(__file__).with_name("pieces.c")
MAX_BYTES, PROCS = 9, 7


@pytest.mark.parametrize("library", ["smpi", "openmpi"])
def test_pieces(library: str, tmp_path: Path) -> None:
    program, most = compiled(library, SOURCE, tmp_path / "pieces"), MAX_BYTES
    platform = load("grisou") if library == "smpi" else None
    run = run_program(library, str(program), PROCS, [str(most)], platform=platform, timeout_seconds=900)
    assert run.returncode == 0, run.error_text
    records = [json.loads(line) for line in run.output_lines if line.startswith("{")]
    assert sorted(record["rank"] for record in records) == list(range(PROCS))
    assert [record["wrong"] for record in records if record["wrong"]] == []
    for record in records:
        communicators = PROCS - record["rank"]
        assert record["calls"] == communicators * most * (most + 2) * 5
        # Bounds from 2 up to the message cut it: one scatter, and the gathers whose limit is 0, m and m + 1.
        longer = [sum(2 <= bound <= m for bound in range(most + 2)) for m in range(1, most + 1)]
        assert record["cuts"] == communicators * 4 * sum(longer)


def test_they_are_not_offered_as_choices() -> None:
    for collective in ("gather", "scatter"):
        lmo = Catalogue.load().algorithm(collective, "lmo")
        assert (lmo.part_parameter, lmo.pipelined, lmo.selectable) == ("bound_bytes", False, False)
