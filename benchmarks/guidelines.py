"""Checks the performance guidelines of MPI libraries and of selections of ours; writes pages of the documentation.

    .venv/bin/python benchmarks/guidelines.py simulated|measured [NAME...] [--without NAME] [--folder FOLDER]
        [--launches N]

`simulated` writes docs/guidelines-results.md: the four selectors of SMPI, the libraries whose decisions are known, and
selections of our own algorithms by the schedule engine. `measured` writes docs/guidelines-measured.md: Open MPI and
MPICH on this machine, and Open MPI on a test bed of 8 nodes at 50 Mbit/s with long messages, where the network decides
and not the scheduler; nothing else should run meanwhile. From 12 launches on the rank test can find a violation that
stands alone.

Each check starts from an empty store, so that its time is that of everything. What a check found is kept in FOLDER, and
an interrupted command resumes with the next one; NAMEs are checks to make again. That of the test bed takes about
fifteen minutes, all others less than four.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import collwise
from collwise import Guidelines
from collwise.platforms import HostPlatform, load
from collwise.simulator.sweeps.context import SCHEDULE, SMPI_SELECTORS, SimulationContext
from collwise.simulator.sweeps.method import Method, Precision
from collwise.studies.figures.guidelines import guidelines_figure
from collwise.studies.figures.style import save
from collwise.studies.present import guidelines as report
from collwise.studies.reports.markdown import markdown_table
from collwise.validation.guidelines.checks import PATTERN, Call
from collwise.validation.guidelines.workflow import GuidelinesResult
from collwise.validation.testbed.bed import temporarily_up
from collwise.validation.testbed.shape import Shape
from collwise.validation.testbed.target import TestBed

DOCS = Path(__file__).resolve().parents[1] / "docs"
PLATFORM = load("gros")
SIMULATED_PROCS = (5, 7, 8, 12, 16, 32)
RECORDED_PROCS = (16, 32, 124)
RECORDED = ("openmpi-4.1", "mpich-4")
# A platform of one process on each node, and one of 32 cores in each, with its measured overheads.
OWN = {"own-gros": (PLATFORM, 16, 1), "own-dahu": (load("dahu"), 128, 32)}
OWN_SIZES = "8:256KiB:x8"
MEASURED_SIZES = "8:32KiB:x16"
MEASURED = {"openmpi-2": ("openmpi", 2), "openmpi-4": ("openmpi", 4), "mpich-2": ("mpich", 2)}
METHOD = Method(precision=Precision(10, 10), limit_seconds=0.1)
BED_SHAPE, BED_COLLECTIVES, BED_SIZES = Shape(8, 50e6), "bcast,scatter,allgather", "16KiB,128KiB"
BED_METHOD = Method(precision=Precision(3, 3), limit_seconds=1.0)
TITLE = "<!-- Written by benchmarks/guidelines.py; do not edit. -->\n# Guidelines: "


Check = dict[str, Any]
"""The findings of a check: its `section` of the page, and the library's `row` of the summary, empty without one."""
Make = Callable[[SimulationContext], Check]


def main() -> int:
    pages = {"simulated": simulated_checks, "measured": measured_checks}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", choices=pages)
    parser.add_argument("names", nargs="*", metavar="NAME", help="checks to make again")
    parser.add_argument("--without", action="append", default=[], metavar="NAME", help="leave a check out of the page")
    parser.add_argument("--folder", type=Path, help="where checks are kept; by default a new folder")
    parser.add_argument("--launches", type=int, default=12, help="launches of real libraries")
    options = parser.parse_args()
    checks = pages[options.page](options.launches)
    if unknown := [name for name in (*options.names, *options.without) if name not in checks]:
        parser.error(f"unknown check '{unknown[0]}'; valid: {', '.join(checks)}")
    checks = {name: make for name, make in checks.items() if name not in options.without}
    with tempfile.TemporaryDirectory() as temporary:
        found = checked(checks, options.folder or Path(temporary), options.names)
    if options.page == "simulated":
        (DOCS / "guidelines-results.md").write_text(simulated_page(found), encoding="utf-8")
    else:
        (DOCS / "guidelines-measured.md").write_text(measured_page(found, options.launches), encoding="utf-8")
    return 0


def checked(checks: Mapping[str, Make], folder: Path, again: Sequence[str]) -> dict[str, Check]:
    """The findings of all checks, by name; those that the folder has are not made again unless they are named."""
    folder.mkdir(parents=True, exist_ok=True)
    found = {}
    for name, make in checks.items():
        file = folder / f"{name}.json"
        if name in again or not file.exists():
            print(f"{name} ...", file=sys.stderr, flush=True)
            with tempfile.TemporaryDirectory() as temporary, collwise.session(Path(temporary, "t.sqlite")) as context:
                file.write_text(json.dumps(make(context)), encoding="utf-8")
        found[name] = json.loads(file.read_text(encoding="utf-8"))
    return found


def simulated_checks(launches: int) -> dict[str, Make]:
    """The checks of the page of simulated times."""

    def library(name: str, procs: Sequence[int]) -> Make:
        return lambda context: library_check(
            collwise.guidelines(PLATFORM, name, procs=procs, ppn=1, context=context), name
        )

    checks = {name: library(name, SIMULATED_PROCS) for name in SMPI_SELECTORS}
    checks |= {name: library(name, RECORDED_PROCS) for name in RECORDED}
    return checks | {name: own_check(*where) for name, where in OWN.items()}


def measured_checks(launches: int) -> dict[str, Make]:
    """The checks of the page of measured times."""

    def library(name: str, library: str, procs: int) -> Make:
        def make(context: SimulationContext) -> Check:
            how, store = replace(METHOD, launches=launches), context.store.path
            found = collwise.measured_guidelines(library, "all", procs, MEASURED_SIZES, method=how, store=store)
            return library_check(found, name, "this machine")

        return make

    def bed(context: SimulationContext) -> Check:
        with temporarily_up(BED_SHAPE, "guidelines") as made:
            how, store = replace(BED_METHOD, launches=launches), context.store.path
            found = collwise.measured_guidelines(
                TestBed(made), BED_COLLECTIVES, BED_SHAPE.nodes, BED_SIZES, method=how, store=store
            )
        return library_check(found, "testbed", f"test bed, {BED_SHAPE.title}")

    return {name: library(name, *of) for name, of in MEASURED.items()} | {"testbed": bed}


def library_check(found: Guidelines, name: str, place: str = "") -> Check:
    """The section of a library, and its figure; `place` stands for the name of this machine."""
    [result] = found.values()
    picture = f"guidelines-{'measured' if place else 'gros'}-{name}.png"
    save(guidelines_figure(result, max(result.plan.procs)), DOCS / "figures" / picture)
    row = list(report.summary_row(result))
    row[1] = place or row[1]
    title = result.library.title + (f", {row[1]}, P = {row[2]}" if place else "")
    parts = [f"\n## {title}\n\n", "".join(f"- {line}\n" for line in report.summary_lines(result))]
    left = [
        (*report.comparison_row(entry.violation), entry.reason) for entry in result.outcomes() if not entry.repaired
    ]
    for heading, rows in (("Not repaired", left), ("Violations of the repaired library only", report.new_rows(result))):
        if rows:
            parts.append(f"\n{heading}:\n\n" + markdown_table(report.LEFT_COLUMNS, rows))
    parts.append(f"\n{greatest_table(result)}\n![{title}](figures/{picture})\n")
    return {"section": "".join(parts), "row": row}


def own_check(platform: HostPlatform, procs: int, ppn: int) -> Make:
    """The check of what the schedule engine's times choose among all of our algorithms."""

    def make(context: SimulationContext) -> Check:
        simulations = replace(context, engine=SCHEDULE)
        started = time.monotonic()
        times = collwise.simulate(
            platform, "all", procs, OWN_SIZES, algorithms="all,by-node" if ppn > 1 else "all", ppn=ppn,
            margin=1, context=simulations,
        )  # fmt: skip
        decisions = collwise.select(times, one_choice=False)
        selected = time.monotonic() - started
        found = collwise.check_decisions(decisions, platform, context=simulations)
        took = time.monotonic() - started - selected
        rows = [report.combination_row(one) for one in found.combinations]
        others = [report.comparison_row(one) for one in found.checked.violations if one.kind != PATTERN]
        text = f"\n### {platform.title}: P = {procs}, {ppn} on a node\n\n"
        text += f"Choosing took {selected:.0f} s, the check {took:.1f} s.\n\n"
        text += "".join(f"- {line}\n" for line in report.combination_lines(found)) + "\n"
        text += markdown_table(report.COMBINATION_COLUMNS, rows) if rows else "No combination is faster.\n"
        text += "\n" + markdown_table(report.COLUMNS[:-2], others) if others else ""
        return {"section": text, "row": []}

    return make


def simulated_page(found: Mapping[str, Check]) -> str:
    """The text of docs/guidelines-results.md."""
    rows = [one["row"] for one in found.values() if one["row"]]
    return "".join(
        [
            TITLE + "results in simulation\n\n",
            "`benchmarks/guidelines.py simulated` writes this page: what [guidelines.md](guidelines.md) describes, for "
            "the four selectors of SMPI and, by the schedule engine, for libraries whose decisions are known. An exact "
            "time has to be 1 % shorter to be a violation. [guidelines-measured.md](guidelines-measured.md) has the "
            "installed libraries. The time of the check is that of everything from an empty store, repair and second "
            "run included, on two cores that other programs used as well.\n\n"
            "The overheads of Gros are estimates, those of TCP at 25 Gbit/s ([platforms.md](platforms.md)). Calls that "
            "failed are named with SimGrid's message; each takes one start of the simulator.\n\n",
            markdown_table(report.SUMMARY_COLUMNS, rows),
            *(one["section"] for one in found.values() if one["row"]),
            "\n## Selections of ours\n\n",
            "The choices that `select` makes by the schedule engine's times of all collectives from 8 B to 1 MiB, "
            "also among the algorithms by node where nodes have several processes, checked against the same "
            "guidelines by the same engine. Where one is broken, a combination of collectives is faster than every "
            "algorithm that it chose "
            "from: these lack it. Times of parts are added.\n",
            *(one["section"] for one in found.values() if not one["row"]),
        ]
    )


def measured_page(found: Mapping[str, Check], launches: int) -> str:
    """The text of docs/guidelines-measured.md."""
    return "".join(
        [
            TITLE + "results of installed libraries\n\n",
            "`benchmarks/guidelines.py measured` writes this page: what [guidelines.md](guidelines.md) describes, for "
            f"the installed Open MPI and MPICH with {launches} launches, by the rank test, and 10 repetitions in each, "
            "3 on the test bed. Processes of this machine share two cores and communicate through shared memory, which "
            "is no cluster: with 4 processes their times are mostly the scheduler's. The time of the check is that of "
            "everything, repair and second run included.\n\n",
            markdown_table(report.SUMMARY_COLUMNS, [one["row"] for one in found.values()]),
            *(one["section"] for one in found.values()),
        ]
    )


def greatest_table(result: GuidelinesResult) -> str:
    """The repair with the greatest gain of each collective."""
    best: dict[str, tuple[Call, float]] = {}
    for call in result.repairs:
        name, gain = call.collective, result.gain(call)
        if not math.isnan(gain) and (name not in best or gain > best[name][1]):
            best[name] = call, gain
    rows = [
        (name, call.procs, report.format_size(call.message_bytes), result.repairs[call].label, f"x {gain:.2f}")
        for name, (call, gain) in best.items()
    ]
    return markdown_table(("collective", "P", "m", "largest gain by", "gain"), rows) if rows else "No repairs.\n"


if __name__ == "__main__":
    sys.exit(main())
