"""An unmodified program on a test bed: a table does not change what it prints, and the table's algorithms run."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from collwise.simulator.execution.interposed import preloadable
from collwise.simulator.execution.targets import LaunchRequest
from collwise.validation.testbed.bed import Bed
from collwise.validation.testbed.target import TestBed
from tests.needs import ROOT, needs

pytestmark = needs("testbed", "openmpi", "fortran")
RULES = "alltoall 2 1 0 bruck\nallgather 2 1 0 ring\nbarrier 2 1 0 default\n"


def test_a_fortran_program_with_and_without_a_table(make: Callable[..., Bed], tmp_path: Path) -> None:
    target = TestBed(make(nodes=4))
    source = ROOT / "benchmarks" / "programs" / "transposition.f90"
    compiler = shutil.which("mpifort.openmpi")
    assert compiler is not None
    subprocess.run([compiler, str(source), "-o", str(tmp_path / "program")], check=True, cwd=tmp_path)
    table, report = tmp_path / "table", tmp_path / "report.json"
    table.write_text(RULES)
    variables = {
        "LD_PRELOAD": preloadable(target.installation.program("libcollwise.so"), tmp_path),
        "COLLWISE_TABLE": str(table),
        "COLLWISE_REPORT": str(report),
    }
    outputs = []
    for environment in ({}, variables):
        run = target.launch(LaunchRequest(str(tmp_path / "program"), 4, (), 120.0, environment=environment))
        assert run.returncode == 0, run.problem
        outputs.append([line for line in run.output_lines if line.startswith("checksum ")])
    assert outputs[0] == outputs[1]
    assert len(outputs[0]) == 1
    ran = {(row["collective"], row.get("algorithm")) for row in json.loads(report.read_text())["rows"]}
    assert ran == {("alltoall", "bruck"), ("allgather", "ring"), ("barrier", None), ("bcast", None)}
