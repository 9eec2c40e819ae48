"""The schedule engine against SMPI on described platforms: how far their times are apart, and what its picks cost.

    .venv/bin/python benchmarks/engines.py [--procs 8,32] [PLATFORM...]

By collective: the mean and the largest |engine / SMPI - 1| with SMPI's own rules (docs/engine.md) and with the
engine's, and the slowdown of the engine's picks against the best ones in SMPI's times. SMPI's times are stored in
results/timings.sqlite, so that a second run takes seconds.
"""

from __future__ import annotations

import argparse
import collections

import numpy as np

from collwise.algorithms.catalogue import Catalogue
from collwise.platforms import load
from collwise.simulator.schedule.library import Schedule
from collwise.simulator.schedule.networks import network_tables
from collwise.simulator.store import Store, default_store_path
from collwise.simulator.sweeps.context import SimulationContext
from collwise.simulator.timing import Case
from collwise.studies.cli.output import print_table
from collwise.validation.selection.cases import candidates, cases
from collwise.validation.selection.slowdown import slowdown

SIZES = (1024, 8192, 65536, 1048576)
SEGMENTS = (8192, 65536)


def all_cases(collective: str, procs: list[int]) -> list[Case]:
    """Every algorithm with every segment size at every P and m; a barrier has no sizes."""
    sizes = SIZES if collective != "barrier" else (0,)
    return cases(collective, candidates(collective, SEGMENTS), procs, sizes)


def main() -> None:
    """Prints one table a platform."""
    parser = argparse.ArgumentParser()
    parser.add_argument("platforms", nargs="*", default=["grisou", "gros", "boba", "frodo", "dahu"])
    parser.add_argument("--procs", default="8,32")
    given = parser.parse_args()
    procs = [int(count) for count in given.procs.split(",")]
    for name in given.platforms:
        platform = load(name)
        rows = []
        with Store(default_store_path()) as store:
            for collective in Catalogue.load().collectives:
                wanted = all_cases(collective, procs)
                smpi = SimulationContext(store).simulate(platform, wanted, f"{name}, {collective}").complete().timings
                rows.append((collective, *compared(platform, {case: one.seconds for case, one in smpi.items()})))
        heads = (
            "collective",
            "cases",
            "SMPI's rules: mean",
            "worst",
            "own rules: mean",
            "worst",
            "slowdown of picks",
            "worst",
        )
        print_table(f"the schedule engine against SMPI on {platform.title}, P = {given.procs}", heads, rows)


def compared(platform: object, smpi: dict[Case, float]) -> tuple[str, ...]:
    """The cells of a collective."""
    apart: dict[bool, list[float]] = {True: [], False: []}
    points = collections.defaultdict(list)
    for case, seconds in smpi.items():
        schedule = Schedule(case)
        for like_smpi in (True, False):
            tables = network_tables(platform, case.procs, 1, schedule.sizes, like_smpi)  # type: ignore[arg-type]
            played = schedule.play(tables).seconds
            apart[like_smpi].append(abs(played / seconds - 1))
        points[case.procs, case.message_bytes].append((played, seconds))
    picks = [slowdown(min(times)[1], min(seconds for _, seconds in times)) for times in points.values()]
    percents = [
        f"{100 * value:.1f} %" for found in (apart[True], apart[False], picks) for value in (np.mean(found), max(found))
    ]
    return str(len(smpi)), *percents


if __name__ == "__main__":
    main()
