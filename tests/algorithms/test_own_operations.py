"""Mock-ups of reductions with the program's own operations: they are right, or say why they do not apply."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from collwise.platforms import load
from collwise.simulator.execution.launchers import run_program
from tests.algorithms.compiling import compiled

SOURCE = Path(__file__).with_name("own_operations.c")
# MPICH's reduce-scatters stride by the true extent where P is a power of two.
PROCS = 4
GUIDELINES = {"GL5", "GL6", "GL7", "GL14", "GL15", "GL16", "GL17", "GL18", "GL19", "GL20"}
PADDING = {"GL6", "GL15"}
REDUCE_SCATTERS = {"GL6", "GL7", "GL15", "GL16", "GL18"}


def expected_objection(record: dict[str, Any], library: str) -> str | None:
    """The first of the known faults that a case would meet."""
    guideline, commutes = record["guideline"], record["operation"] == "sum"
    if record["type"] == "padded" and library == "smpi":
        return "needs elements whose data lies within their extent"
    if guideline == "GL20" and not commutes and library == "smpi":
        return "needs a commutative operation"
    if record["type"] == "padded" and not commutes and guideline in REDUCE_SCATTERS:
        return "needs elements without gaps between them"
    if guideline in PADDING and record["count"] % PROCS:
        return "needs a multiple of P elements, or a predefined operation"
    return None


@pytest.mark.parametrize("library", ["openmpi", "mpich", "smpi"])
def test_mock_ups_with_operations_of_the_program(library: str, yielding_mpich: None, tmp_path: Path) -> None:
    program = compiled(library, SOURCE, tmp_path / "own_operations")
    platform = load("grisou") if library == "smpi" else None
    run = run_program(library, str(program), PROCS, [], platform=platform, timeout_seconds=300)
    assert run.returncode == 0, run.error_text
    records = [json.loads(line) for line in run.output_lines if line.startswith("{")]
    assert {record["guideline"] for record in records} == GUIDELINES
    assert len(records) == 12 * len(GUIDELINES)
    for record in records:
        assert record["objection"] == expected_objection(record, library), record
    ran = [record for record in records if record["objection"] is None]
    assert [record for record in ran if not record["right"]] == []
    # An operation may have memory for just as many elements as the program reduces.
    for record in ran:
        in_all = record["count"] * (PROCS if record["guideline"] in ("GL17", "GL18", "GL19") else 1)
        assert 1 <= record["most"] <= in_all, record
