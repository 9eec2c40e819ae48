"""User buffers: contiguous blocks are copied whole, and datatypes come out of a call as they went in."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from collwise.platforms import load
from collwise.simulator.execution.launchers import run_program
from tests.algorithms.compiling import COMPILERS, compiled

SOURCE = Path(__file__).with_name("layouts.c")
PROCS, FEW, MANY = 5, 10, 1000


@pytest.mark.parametrize("library", COMPILERS)
def test_blocks_with_gaps_are_copied_whole_and_types_stay(library: str, tmp_path: Path) -> None:
    program = compiled(library, SOURCE, tmp_path / "layouts", "-Wl,--wrap=collwise_copy")
    platform = load("grisou") if library == "smpi" else None
    run = run_program(library, str(program), PROCS, [str(FEW), str(MANY)], platform=platform, timeout_seconds=300)
    assert run.returncode == 0, run.error_text
    records = [json.loads(line) for line in run.output_lines if line.startswith("{")]
    assert sorted(record["rank"] for record in records) == list(range(PROCS))
    assert [record["wrong"] for record in records if record["wrong"]] == []
    for record in records:
        # At least its own block into the copy and all blocks out of it, however long they are.
        assert record["many"] == record["few"] >= 1 + PROCS
