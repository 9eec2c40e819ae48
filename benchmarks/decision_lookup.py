"""Time of one look-up in decision tables of growing size, for random queries; medians of 101 blocks.

.venv/bin/python benchmarks/decision_lookup.py

"row" is the look-up of a usual call, by message size in the rules that are stored with its communicator. "table" first
finds collective, process count and processes per node, as the first call on a communicator does.
"""

from __future__ import annotations

import json
import subprocess
import sys

from collwise.simulator.execution.installations import MPI_LIBRARIES, mpi_installation

# (collectives, process counts, message sizes)
TABLES = [(10, 30, 30), (10, 300, 30), (10, 30, 300), (16, 30, 3000)]
LIMIT_NANOSECONDS = 20


def main() -> int:
    program = mpi_installation(MPI_LIBRARIES[0]).program("decision_lookup")
    print(f"{'collectives':>11} {'processes':>10} {'sizes':>6} {'rules':>8} {'row (ns)':>9} {'table (ns)':>11}")
    slowest = 0.0
    for shape in TABLES:
        done = subprocess.run([str(program), *map(str, shape)], capture_output=True, text=True, check=True)
        took = json.loads(done.stdout)
        slowest = max(slowest, took["row"])
        print("{:>11} {:>10} {:>6}".format(*shape) + f" {took['rules']:>8} {took['row']:>9.1f} {took['table']:>11.1f}")
    print(f"slowest look-up of a call: {slowest:.1f} ns; the limit is {LIMIT_NANOSECONDS} ns")
    return 0 if slowest < LIMIT_NANOSECONDS else 1


if __name__ == "__main__":
    sys.exit(main())
