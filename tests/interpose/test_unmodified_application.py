"""The HPC Challenge benchmark as Debian packages it: its own checks pass with our algorithms in it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.needs import needs

ALGORITHMS = {
    "bcast": "binomial",
    "allreduce": "recursive_doubling",
    "alltoall": "pairwise",
    "reduce": "binomial",
    "barrier": "bruck",
}
# The lines of the packaged _hpccinf.txt, with a small problem.
INPUT = """HPLinpack benchmark input file
Innovative Computing Laboratory, University of Tennessee
HPL.out
8
1
160
1
80
0
1
2
2
16.0
1
2
1
4
1
2
1
1
1
1
1
1
2
64
0
0
1
8
#####
0
1200 10000 30000
0
40 9 8 13 13 20 16 32 64
"""


@needs("openmpi", "hpcc")
def test_hpc_challenge_passes_its_checks(tmp_path: Path) -> None:
    (tmp_path / "hpccinf.txt").write_text(INPUT)
    entries = ";".join(f"{collective}={algorithm}" for collective, algorithm in ALGORITHMS.items())
    command = [sys.executable, "-P", "-m", "collwise.studies", "program", "run", "--library", "openmpi", "--procs", "4"]
    program = shutil.which("hpcc")
    assert program is not None
    done = subprocess.run(
        [*command, "--report", "-", "--algorithms", entries, "--", program],
        cwd=tmp_path,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    for collective, algorithm in ALGORITHMS.items():
        assert re.search(rf"^{collective} +4  {algorithm} ", done.stderr, re.MULTILINE), done.stderr
    shown = (tmp_path / "hpccoutf.txt").read_text()
    assert "0 tests completed and failed residual checks" in shown
    assert re.search(r"[1-9]\d* tests completed and passed residual checks", shown)
    assert shown.count("(passed)") >= 2
    assert "FAILED" not in shown
