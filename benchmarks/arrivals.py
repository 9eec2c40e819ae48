"""The order in which messages of tasks arrive: the schedule engine's times of algorithms from tasks against SMPI's.

    .venv/bin/python benchmarks/arrivals.py [--store FILE]

All algorithms whose processes take what comes first, under SMPI's rules, with recordings for the network that is played
and with those for a usual one. On the last platform, of which nothing but rate and latency counts, the leaders of a
node share a slow port. SMPI takes about two minutes; its times are stored, by default in results/timings.sqlite.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

import collwise
from collwise.algorithms.catalogue import Catalogue
from collwise.common.project import default_store_path
from collwise.platforms import Calibration, Platform, load_description
from collwise.simulator.schedule.library import Schedule
from collwise.simulator.schedule.networks import network_tables
from collwise.simulator.schedule.shared import proportions_for
from collwise.simulator.timing import Case
from collwise.studies.cli.output import print_table, sweep_progress
from collwise.studies.present.shown import Table

PLACES = {"stampede2": (8, 6), "shaheen-ii": (8, 4), "grisou": (8, 2), "slow": (4, 4)}
SEGMENTS = {4 << 10: (16 << 10,), 64 << 10: (16 << 10,), 1 << 20: (16 << 10, 128 << 10)}
OF_BLOCKS, LARGEST_BLOCK = ("gather", "scatter", "allgather", "alltoall"), 64 << 10
HEADS = ("platform", "collective", "leaders", "cases", "mean error", "largest", "usual order: mean", "largest")

Errors = list[tuple[float, float]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--store", type=Path, default=default_store_path())
    rows: list[tuple[object, ...]] = []
    with collwise.session(parser.parse_args().store, progress=sweep_progress) as context:
        for name, (nodes, per_node) in PLACES.items():
            platform = platform_of(name)
            errors: dict[tuple[str, str], Errors] = {}
            simulated = context.simulate(platform, list(cases(nodes * per_node, per_node))).complete()
            for case, timing in simulated.timings.items():
                leaders = "several" if case.algorithm.startswith("multi_leader") else "one"
                own, usual = played(platform, case)
                errors.setdefault((case.collective, leaders), []).append(
                    (own / timing.seconds - 1, usual / timing.seconds - 1)
                )
            rows += [(name, *which, len(found), *cells(found)) for which, found in sorted(errors.items())]
            every = [one for found in errors.values() for one in found]
            rows.append((name, "all", "", len(every), *cells(every)))
    print_table(Table("schedule engine against SMPI", HEADS, rows))


def platform_of(name: str) -> Platform:
    if name != "slow":
        return load_description(name)
    plain = Calibration(crosstraffic=False, tcp_window=False)
    return replace(load_description("exact"), link_bytes_per_second=6e6, calibration=plain)


def cases(procs: int, per_node: int) -> Iterator[Case]:
    for entry in (one for each in Catalogue.load().collectives.values() for one in each.algorithms.values()):
        if not entry.takes_what_comes_first or entry.real_mpi_only or entry.objection(procs):
            continue
        counts = (2, per_node) if entry.count_parameter == "leaders" and per_node > 2 else (entry.default_count,)
        for size, segments in SEGMENTS.items():
            if entry.collective in OF_BLOCKS and size > LARGEST_BLOCK:
                continue
            for cut in segments if entry.part_parameter == "segment_bytes" else (0,):
                for count in counts:
                    yield Case(entry.collective, entry.name, procs, size, cut, count, per_node)


def played(platform: Platform, case: Case) -> tuple[float, float]:
    """The seconds with the recording for this network, and with that for a usual one."""
    tables_of = partial(network_tables, platform, case.procs, case.processes_per_node, like_smpi=True)
    places = platform.places(case.procs, case.processes_per_node)
    own, usual = (Schedule(case, places, proportions=one) for one in (proportions_for(case, tables_of), None))
    return own.play(tables_of(own.sizes)).seconds, usual.play(tables_of(usual.sizes)).seconds


def cells(found: Errors) -> list[str]:
    """The mean and the largest error of each kind of recording."""
    texts = []
    for errors in zip(*found, strict=True):
        texts += [f"{100 * np.mean(np.abs(errors)):.1f} %", f"{100 * max(errors, key=abs):+.1f} %"]
    return texts


if __name__ == "__main__":
    main()
