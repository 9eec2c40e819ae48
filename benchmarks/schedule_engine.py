"""Time a message that the schedule engine needs to record and to play schedules, and SMPI for the same cases.

    .venv/bin/python benchmarks/schedule_engine.py [--quick] [--no-smpi]

Point-to-point models are played one alone, and 64 sets of parameters in one pass, of which the table has the share of
each, without the recording. Processor time of one core, the least of three runs or more; SMPI's includes its start, of
about 0.1 s. `--quick` leaves out P = 16384 and SMPI's largest cases, `--no-smpi` leaves out SMPI.
"""

from __future__ import annotations

import resource
import sys
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from commands import min_seconds

from collwise.common.units import format_size
from collwise.platforms import HostPlatform, load_description
from collwise.simulator.schedule.library import Schedule
from collwise.simulator.schedule.networks import network_tables
from collwise.simulator.schedule.tables import NetworkTables
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import SimulationContext
from collwise.simulator.timing import Case
from collwise.studies.cli.output import print_table
from collwise.studies.present.shown import Table

MAX_NANOSECONDS = {"models": 100, "ports": 400}
SETS = 64
min_of_three = partial(min_seconds, runs=3, together=0.1)
SMPI_MAX_MESSAGES = 600_000
CASES = [
    Case("bcast", "binomial", 64, 2**20, 8192),
    Case("bcast", "chain", 1024, 2**22, 8192),
    Case("bcast", "binomial", 16384, 2**20, 8192),
    Case("gather", "linear", 1024, 1024),
    Case("gather", "linear", 16384, 1024),
    Case("reduce", "binary", 1024, 2**20, 8192),
    Case("allreduce", "recursive_doubling", 64, 1024),
    Case("allreduce", "recursive_doubling", 1024, 1024),
    Case("allreduce", "recursive_doubling", 16384, 1024),
    Case("allreduce", "ring", 1024, 2**20),
    Case("allgather", "bruck", 1024, 1024),
    Case("allgather", "ring", 1024, 1024),
    Case("alltoall", "linear", 256, 1024),
    Case("alltoall", "pairwise", 1024, 1024),
    Case("alltoall", "linear", 1024, 1024),
    Case("barrier", "bruck", 16384, 0),
]


def model_tables(schedule: Schedule) -> NetworkTables:
    """A LogGP network: latency, overheads and gaps, no ports."""
    return NetworkTables.of_model(schedule.procs, schedule.sizes, 1e-6, 1e-9, overhead_seconds=1e-6)


def smpi_seconds(platform: HostPlatform, case: Case) -> float:
    """Processor time of SMPI for one case that no store has."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder, "timings.sqlite")) as store:
        SimulationContext(store, jobs=1).simulate(platform, [case]).complete()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    """Prints the table; returns 1 if a limit is not met."""
    quick, with_smpi = "--quick" in sys.argv[1:], "--no-smpi" not in sys.argv[1:]
    platform = replace(load_description("gros"), nodes=16384)
    rows, within = [], True
    for case in CASES:
        if quick and case.procs > 1024:
            continue
        schedule = Schedule(case)
        messages = schedule.messages
        record = min_of_three(partial(Schedule, case)) / messages
        models = model_tables(schedule)
        model = min_of_three(partial(schedule.play, models)) / messages
        many = [replace(models, latency_seconds=models.latency_seconds * (1 + i / SETS)) for i in range(SETS)]
        of_many = min_of_three(partial(schedule.play_many, many)) / messages / SETS
        tables = network_tables(platform, case.procs, 1, schedule.sizes)
        port = min_of_three(partial(schedule.play, tables)) / messages
        few = messages <= SMPI_MAX_MESSAGES / (4 if quick else 1) and case.procs <= 1024
        smpi = smpi_seconds(platform, case) / messages if with_smpi and few else float("nan")
        found = {"models": (record + model) * 1e9, "ports": (record + port) * 1e9}
        within &= all(found[name] <= most for name, most in MAX_NANOSECONDS.items())
        rows.append(
            (
                f"{case.collective} {case.algorithm}",
                case.procs,
                format_size(case.message_bytes),
                messages,
                f"{record * 1e9:.0f}",
                f"{found['models']:.0f}",
                f"{of_many * 1e9:.0f}",
                f"{found['ports']:.0f}",
                "-" if np.isnan(smpi) else f"{smpi * 1e9:.0f}",
                "-" if np.isnan(smpi) else f"{smpi * 1e9 / found['ports']:.0f}",
                f"{schedule.memory_bytes / 2**20:.1f}",
            )
        )
    heads = ["algorithm", "P", "m", "messages", "recorded", "and played by a model", f"each of {SETS} played",
             "or over ports", "SMPI", "SMPI / ports", "MiB recorded"]  # fmt: skip
    print_table(Table("nanoseconds of one core for each message", heads, rows))
    print(f"most memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10:.0f} MiB")
    print(f"limits {MAX_NANOSECONDS}: {'met' if within else 'not met'}")
    return 0 if within else 1


if __name__ == "__main__":
    sys.exit(main())
