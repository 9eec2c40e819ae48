"""Datatypes whose size or extent is 2 GiB and more, for which MPI_Type_size has no number, arrive whole.

SimGrid (3.32 to 4.1) cuts the size of a datatype to 32 bits when it makes one, so that there only extents are long. One
process alone sends nothing, and shows in little time whether its element's size is known.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from collwise.platforms import load
from collwise.simulator.execution.launchers import run_program
from tests.algorithms.compiling import COMPILERS, compiled

SOURCE = Path(__file__).with_name("large_elements.c")
REAL, LARGE = ("openmpi", "mpich"), ("contiguous", "gapped")


@pytest.mark.usefixtures("yielding_mpich")
@pytest.mark.parametrize(
    ("library", "kind", "procs"),
    [
        *((library, "sparse", 3) for library in COMPILERS),
        *((library, kind, 1) for library in REAL for kind in LARGE),
        *(pytest.param(library, kind, 2, marks=pytest.mark.slow) for library in REAL for kind in LARGE),
    ],
)
def test_large_elements(library: str, kind: str, procs: int, tmp_path: Path) -> None:
    program = compiled(library, SOURCE, tmp_path / "large_elements")
    platform = load("grisou") if library == "smpi" else None
    run = run_program(library, str(program), procs, [kind], platform=platform, timeout_seconds=300)
    assert run.returncode == 0, run.error_text
    records = sorted(json.loads(line)["rank"] for line in run.output_lines if line.startswith("{"))
    assert records == list(range(procs))
    assert [line for line in run.output_lines if line.startswith("{") and json.loads(line)["wrong"]] == []
