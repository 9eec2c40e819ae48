"""Broadcasts and reductions through the memory of a node, one after another, from and to changing roots."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from collwise.simulator.execution.launchers import run_program
from tests.algorithms.compiling import compiled

SOURCE = Path(__file__).with_name("changing_roots.c")
CALLS, SEED, KINDS = 100, 7, 6


@pytest.mark.usefixtures("yielding_mpich")
@pytest.mark.parametrize(("library", "procs"), [("openmpi", 5), ("mpich", 4)])
def test_calls_with_other_roots_do_not_mix(library: str, procs: int, tmp_path: Path) -> None:
    """No barrier keeps the calls apart: a root may still collect what others have left behind."""
    program = compiled(library, SOURCE, tmp_path / "changing_roots")
    run = run_program(library, str(program), procs, [str(CALLS), str(SEED)], timeout_seconds=120)
    assert run.returncode == 0, run.error_text
    records = [json.loads(line) for line in run.output_lines if line.startswith("{")]
    assert sorted(record["rank"] for record in records) == list(range(procs))
    assert [record["first"] for record in records if record["wrong"]] == []
    # Each reduction has one result; of the two kinds of broadcasts every process has one.
    assert sum(record["results"] for record in records) == CALLS * (KINDS - 2 + 2 * procs)
