"""The time in which the schedule engine decides among all allreduce algorithms on many processes, over ports.

    .venv/bin/python benchmarks/allreduce_sweep.py [--all]

P = 2048 with 32 processes on each node of a Gros whose nodes have 32 cores, twelve sizes from 8 B to 16 MiB, segments
of 8 KiB, on all cores, with an empty store. All algorithms compete, as with `--algorithms all,by-node`: those
that are found to be slower than the best one by more than 1 % are not played to their end. With `--all` every case is,
for which there is no limit.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from collwise.algorithms.catalogue import Catalogue
from collwise.platforms import load_description
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import ENGINES, SimulationContext
from collwise.simulator.timing import Case
from collwise.validation.times.defaults import SEGMENT_BYTES

MAX_SECONDS, TOLERANCE = 10, 0.01
PROCS, PROCESSES_PER_NODE = 2048, 32
SIZES = [8, *(4**k for k in range(2, 12)), 2**24]


def main() -> int:
    """Prints the time; returns 1 if the limit is not met."""
    plays_all = "--all" in sys.argv[1:]
    nodes = PROCS // PROCESSES_PER_NODE
    platform = replace(load_description("gros"), nodes=nodes, cores_per_node=PROCESSES_PER_NODE)
    cases = [
        Case("allreduce", name, PROCS, size, SEGMENT_BYTES if algorithm.pipelined else 0, 0, PROCESSES_PER_NODE)
        for name, algorithm in Catalogue.load().collective("allreduce").algorithms.items()
        if not algorithm.real_mpi_only and not algorithm.guideline
        for size in SIZES
    ]
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder, "timings.sqlite")) as store:
        started, processor = time.perf_counter(), time.process_time()
        context = SimulationContext(
            store, ENGINES["schedule"], tolerances={} if plays_all else {"allreduce": TOLERANCE}
        )
        found = context.simulate(platform, cases).complete().timings
        seconds, processor = time.perf_counter() - started, time.process_time() - processor
    print(f"{len(cases)} cases of {PROCS} processes: {seconds:.1f} s, {processor:.1f} s of {os.cpu_count()} cores")
    print(f"{len(found)} of them to their end")
    if plays_all:
        return 0
    print(f"limit {MAX_SECONDS} s: {'met' if seconds <= MAX_SECONDS else 'not met'}")
    return 0 if seconds <= MAX_SECONDS else 1


if __name__ == "__main__":
    sys.exit(main())
