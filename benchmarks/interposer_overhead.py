"""Time that libcollwise.so adds to an MPI_Allreduce of 8 bytes between two processes, against PMPI_Allreduce.

.venv/bin/python benchmarks/interposer_overhead.py [openmpi|mpich]

In one run, blocks of 2000 calls of both alternate; times are medians of 400 such pairs. Processes are bound to cores.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from collwise.algorithms.catalogue import Catalogue
from collwise.simulator.execution.installations import Installation, mpi_installation

LIMIT_PERCENT = 3.0
# Rules for 29 message sizes, all of which leave the call to MPI.
SOME_RULES = "".join(f"allreduce 2 1 {2**bits if bits else 0} default\n" for bits in range(29))


def tables() -> dict[str, str]:
    """Decision tables by title."""
    known = Catalogue.load().collectives
    made = {
        "no table": "",
        "a table without allreduce": "bcast 2 1 0 binomial\n",
        "a table, default for allreduce": SOME_RULES,
    }
    if "allreduce" in known:
        ours = known["allreduce"].selectable[0]
        made["a table, default for 8 bytes"] = SOME_RULES + f"allreduce 2 1 {2**29} {ours}\n"
        made |= {f"ours: {name}": f"allreduce 2 1 0 {name}\n" for name in known["allreduce"].selectable}
    return made


def measure(mpi: Installation, table: str, directory: Path) -> dict[str, float]:
    variables = {"LD_PRELOAD": str(mpi.program("libcollwise.so"))}
    if table:
        (directory / "table").write_text(table)
        variables["COLLWISE_TABLE"] = str(directory / "table")
    command = [str(mpi.launcher), "-np", "2"]
    for name, value in variables.items():
        command += ["-x", f"{name}={value}"] if mpi.library == "openmpi" else ["-genv", name, value]
    command += ["--bind-to", "core"] if mpi.library == "openmpi" else ["-bind-to", "core"]
    environment = os.environ | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    command.append(str(mpi.program("interposer_overhead")))
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return json.loads(done.stdout)


def main() -> int:
    mpi = mpi_installation(sys.argv[1] if len(sys.argv) > 1 else "openmpi")
    print(mpi.label)
    print(f"{'':<34} {'PMPI (ns)':>10} {'MPI (ns)':>10} {'added (ns)':>11} {'quartiles':>17} {'added (%)':>10}")
    worst = 0.0
    with tempfile.TemporaryDirectory(prefix="collwise-") as directory:
        for title, table in tables().items():
            took = measure(mpi, table, Path(directory))
            percent = 100 * took["added"] / took["plain"]
            worst = worst if title.startswith("ours") else max(worst, percent)
            quartiles = f"{took['added_low']:.1f} to {took['added_high']:.1f}"
            print(
                f"{title:<34} {took['plain']:>10.1f} {took['through']:>10.1f} {took['added']:>11.1f} {quartiles:>17} "
                f"{percent:>10.1f}"
            )
    print(f"most added where MPI's own runs: {worst:.1f} %; the limit is {LIMIT_PERCENT:.0f} %")
    return 0 if worst < LIMIT_PERCENT else 1


if __name__ == "__main__":
    sys.exit(main())
