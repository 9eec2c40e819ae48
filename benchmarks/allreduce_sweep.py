"""The time of all allreduce algorithms on many processes by the schedule engine, over ports.

    .venv/bin/python benchmarks/allreduce_sweep.py

P = 2048 with 32 processes on each node of Gros, twelve sizes from 8 B to 16 MiB, on all cores, with an empty store.
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
from collwise.validation.selection.defaults import SEGMENT_BYTES

MOST_SECONDS = 10
PROCS, PROCESSES_PER_NODE = 2048, 32
SIZES = [8, *(4**k for k in range(2, 12)), 2**24]


def main() -> int:
    """Prints the time; returns 1 if the limit is not met."""
    platform = replace(load_description("gros"), nodes=PROCS // PROCESSES_PER_NODE)
    cases = [
        Case("allreduce", name, PROCS, size, SEGMENT_BYTES if algorithm.pipelined else 0, 0, PROCESSES_PER_NODE)
        for name, algorithm in Catalogue.load().collective("allreduce").algorithms.items()
        if not algorithm.real_mpi_only and not algorithm.guideline
        for size in SIZES
    ]
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder, "timings.sqlite")) as store:
        started, processor = time.perf_counter(), time.process_time()
        SimulationContext(store, engine=ENGINES["schedule"]).simulate(platform, cases).complete()
        seconds, processor = time.perf_counter() - started, time.process_time() - processor
    print(f"{len(cases)} cases of {PROCS} processes: {seconds:.1f} s, {processor:.1f} s of {os.cpu_count()} cores")
    print(f"limit {MOST_SECONDS} s: {'met' if seconds <= MOST_SECONDS else 'not met'}")
    return 0 if seconds <= MOST_SECONDS else 1


if __name__ == "__main__":
    sys.exit(main())
