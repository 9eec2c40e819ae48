"""Algorithms from tasks on the schedule engine: their times against SMPI's, and the time to record and play a message.

    .venv/bin/python benchmarks/tasks.py [--store FILE] [--no-smpi]

The first table has all algorithms from tasks, under SMPI's rules. On its last platform, of which nothing but rate and
latency counts, the leaders of a node share a slow port. SMPI takes about two minutes; its times are stored, by default
in results/timings.sqlite. The second table has processor time of one core, the least of three runs or more. Its limit
is for algorithms that send segments on; in the others each process copies a block for every process. `--no-smpi` leaves
out the first table.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from commands import min_seconds
from schedule_engine import model_tables

import collwise
from collwise.algorithms.catalogue import Catalogue
from collwise.common.project import default_store_path
from collwise.common.units import format_size
from collwise.platforms import Calibration, Platform, load_description
from collwise.simulator.schedule.library import Schedule
from collwise.simulator.schedule.networks import network_tables
from collwise.simulator.timing import Case
from collwise.studies.cli.output import print_table
from collwise.studies.present.progress import sweep_progress
from collwise.studies.present.shown import Table

PLACES = {"stampede2": (8, 6), "shaheen-ii": (8, 4), "grisou": (8, 2), "slow": (4, 4)}
SEGMENTS = {4 << 10: (16 << 10,), 64 << 10: (16 << 10,), 1 << 20: (16 << 10, 128 << 10)}
OF_BLOCKS, LARGEST_BLOCK = ("gather", "scatter", "allgather", "alltoall"), 64 << 10
ERRORS = ("platform", "collective", "leaders", "cases", "mean error", "largest")

MAX_NANOSECONDS = 300
PER_NODE = 16
RECORDED = [
    Case("bcast", "tasks_binary", 1024, 2**20, 2**14, processes_per_node=PER_NODE),
    Case("reduce", "tasks_chain", 1024, 2**20, 2**14, processes_per_node=PER_NODE),
    Case("allreduce", "tasks_binomial", 256, 2**20, 2**14, processes_per_node=PER_NODE),
    Case("allreduce", "tasks_binomial", 1024, 2**20, 2**14, processes_per_node=PER_NODE),
    Case("allreduce", "multi_leader_chain", 1024, 2**20, 2**14, 4, processes_per_node=PER_NODE),
    Case("allreduce", "tasks_ring", 256, 2**20, 2**17, processes_per_node=PER_NODE),
    Case("allgather", "tasks_ring", 256, 2**14, 2**12, processes_per_node=PER_NODE),
    Case("alltoall", "tasks_pairwise", 1024, 2**14, 2**12, processes_per_node=PER_NODE),
]
HEADS = ("algorithm", "P", "m", "messages", "recorded", "and played by a model", "or over ports", "MiB recorded")
min_of_three = partial(min_seconds, runs=3, together=0.1)


def main() -> int:
    """Prints the tables; returns 1 if the limit is not met."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--store", type=Path, default=default_store_path())
    parser.add_argument("--no-smpi", action="store_true")
    arguments = parser.parse_args()
    if not arguments.no_smpi:
        print_table(Table("schedule engine against SMPI", ERRORS, error_rows(arguments.store)))
    timed = [speeds(case) for case in RECORDED]
    print_table(Table("nanoseconds of one core for each message", HEADS, [row for _, row in timed]))
    is_met = all(
        found <= MAX_NANOSECONDS
        for case, (found, _) in zip(RECORDED, timed, strict=True)
        if case.collective not in OF_BLOCKS
    )
    print(f"limit {MAX_NANOSECONDS} to record: {'met' if is_met else 'not met'}")
    return 0 if is_met else 1


def error_rows(store: Path) -> list[tuple[object, ...]]:
    """The rows of the first table."""
    rows: list[tuple[object, ...]] = []
    with collwise.session(store, progress=sweep_progress) as context:
        for name, (nodes, per_node) in PLACES.items():
            platform = platform_of(name)
            errors: dict[tuple[str, str], list[float]] = {}
            simulated = context.simulate(platform, list(cases(nodes * per_node, per_node))).complete()
            for case, timing in simulated.timings.items():
                leaders = "several" if case.algorithm.startswith("multi_leader") else "one"
                error = played(platform, case) / timing.seconds - 1
                errors.setdefault((case.collective, leaders), []).append(error)
            rows += [(name, *which, len(found), *cells(found)) for which, found in sorted(errors.items())]
            every = [one for found in errors.values() for one in found]
            rows.append((name, "all", "", len(every), *cells(every)))
    return rows


def platform_of(name: str) -> Platform:
    """The platform of that name, or the one with slow ports."""
    if name != "slow":
        return load_description(name)
    plain = Calibration(crosstraffic=False, tcp_window=False)
    return replace(load_description("exact"), link_bytes_per_second=6e6, calibration=plain)


def cases(procs: int, per_node: int) -> Iterator[Case]:
    """The cases of the first table."""
    for entry in Catalogue.load().algorithms():
        if not entry.does_several_at_once or entry.real_mpi_only or entry.objection(procs):
            continue
        counts = (2, per_node) if entry.count_parameter == "leaders" and per_node > 2 else (entry.default_count,)
        if entry.collective == "barrier":
            yield Case("barrier", entry.name, procs, 0, processes_per_node=per_node)
            continue
        for size, segments in SEGMENTS.items():
            if entry.collective in OF_BLOCKS and size > LARGEST_BLOCK:
                continue
            for cut in segments if entry.part_parameter == "segment_bytes" else (0,):
                for count in counts:
                    yield Case(entry.collective, entry.name, procs, size, cut, count, per_node)


def played(platform: Platform, case: Case) -> float:
    """The seconds by the schedule engine under SMPI's rules."""
    schedule = Schedule(case, platform.places(case.procs, case.processes_per_node))
    tables = network_tables(platform, case.procs, case.processes_per_node, schedule.sizes, like_smpi=True)
    return schedule.play(tables).seconds


def cells(errors: list[float]) -> tuple[str, str]:
    """The mean and the largest error."""
    return f"{100 * np.mean(np.abs(errors)):.1f} %", f"{100 * max(errors, key=abs):+.1f} %"


def speeds(case: Case) -> tuple[float, tuple[object, ...]]:
    """The nanoseconds to record a message, and the row of the second table."""
    schedule = Schedule(case)
    models = replace(model_tables(schedule), node_of=np.arange(case.procs) // PER_NODE)
    models = replace(models, class_of=np.zeros(case.procs // PER_NODE, dtype=np.int32))
    tables = network_tables(replace(load_description("gros"), nodes=1024), case.procs, PER_NODE, schedule.sizes)
    seconds = [
        min_of_three(one)
        for one in (partial(Schedule, case), *(partial(schedule.play, one) for one in (models, tables)))
    ]
    record, model, port = (1e9 * one / schedule.messages for one in seconds)
    return record, (
        *(f"{case.collective} {case.algorithm}", case.procs, format_size(case.message_bytes), schedule.messages),
        *(f"{record:.0f}", f"{record + model:.0f}", f"{record + port:.0f}", f"{schedule.memory_bytes / 2**20:.1f}"),
    )


if __name__ == "__main__":
    sys.exit(main())
