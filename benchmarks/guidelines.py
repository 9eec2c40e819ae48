"""Checks the performance guidelines of MPI libraries and of a selection of ours; writes docs/guidelines-results.md.

    .venv/bin/python benchmarks/guidelines.py [--store FILE] [--launches N] [--bed]

The four selectors of SMPI are simulated on Gros with estimated overheads, Open MPI and MPICH are measured on this
machine, which nothing else should use meanwhile; with --bed Open MPI also on a test bed of 8 nodes at 50 Mbit/s, with
long messages, where the network decides and not the scheduler. From 12 launches on the test can find a violation that
stands alone. What the store has is not made again, and the times of the checks are then shorter.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import collwise
from collwise.guideline_checks import LibraryGuidelines, Measuring
from collwise.platforms import load, with_overheads
from collwise.simulator.sweeps.context import SMPI_SELECTORS, SimulationContext
from collwise.simulator.sweeps.method import Method, Precision
from collwise.studies.figures.style import save
from collwise.studies.reports import guidelines as report
from collwise.studies.reports.markdown import markdown_table
from collwise.validation.guidelines.checks import PATTERN
from collwise.validation.testbed.bed import temporarily_up
from collwise.validation.testbed.shape import Shape
from collwise.validation.testbed.target import TestBed

DOCS = Path(__file__).resolve().parents[1] / "docs"
# Gros as it is has no overheads, so that a linear algorithm would repair many violations that no cluster has.
PLATFORM = with_overheads(load("gros"), "tcp-25g")
SIMULATED_PROCS = 16
MEASURED_SIZES = "8:32KiB:x16"
REAL = (("openmpi", 2), ("openmpi", 4), ("mpich", 4))
METHOD = Method(precision=Precision(10, 10), limit_seconds=0.1)
BED_SHAPE, BED_COLLECTIVES, BED_SIZES = Shape(8, 50e6), "bcast,scatter,allgather", "64KiB,256KiB"
BED_METHOD = Method(precision=Precision(3, 3), limit_seconds=1.0)
TABLED = "bcast,gather,scatter,allgather,alltoall,reduce,allreduce,reduce_scatter_block,scan"
TABLED_SIZES = "8KiB:512KiB:x8"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", type=Path, help="the SQLite file of timings; by default a new one")
    parser.add_argument("--launches", type=int, default=6, help="launches of real libraries")
    parser.add_argument("--bed", action="store_true", help="measure on a test bed, too")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        collwise.session(options.store or Path(folder, "t.sqlite")) as context,
    ):
        found = checked(context, options.launches, options.bed)
        own = own_algorithms(context)
    for one in found:
        save(one.figure(), DOCS / "figures" / f"guidelines-{stem(one)}.png")
    (DOCS / "guidelines-results.md").write_text(page(found, own, options.launches), encoding="utf-8")


def progress(done: int, of: int) -> None:
    print(f"{done} of {of} launches", flush=True)


def checked(context: SimulationContext, launches: int, bed: bool) -> list[LibraryGuidelines]:
    """All libraries, one after another."""
    measuring = Measuring(METHOD, launches, progress)
    found = [
        collwise.guidelines(selector, procs=SIMULATED_PROCS, platform=PLATFORM, context=context)
        for selector in SMPI_SELECTORS
    ]
    for library, procs in REAL:
        found.append(collwise.guidelines(library, "all", procs, MEASURED_SIZES, measuring=measuring, context=context))
    if bed:
        measuring = Measuring(BED_METHOD, launches, progress)
        with temporarily_up(BED_SHAPE, "guidelines") as made:
            found.append(
                collwise.guidelines(
                    TestBed(made), BED_COLLECTIVES, BED_SHAPE.nodes, BED_SIZES, measuring=measuring, context=context
                )
            )
    return found


def own_algorithms(context: SimulationContext) -> str:
    """The check of a selection by simulation on the same platform."""
    started = time.monotonic()
    decisions = collwise.select(
        TABLED, platform=PLATFORM, by="simulated", procs=SIMULATED_PROCS, sizes=TABLED_SIZES, one_choice=False, ppn=1,
        context=context,
    )  # fmt: skip
    selected = time.monotonic() - started
    found = collwise.check_decisions(decisions.tables, PLATFORM, context=context)
    rows = [report.combination_row(one) for one in found.combinations]
    others = [report.comparison_row(one) for one in found.checked.violations if one.kind != PATTERN]
    lines = "".join(f"- {line}\n" for line in report.own_lines(found))
    text = (
        f"`select --by simulated` took {selected:.0f} s, the check {time.monotonic() - started - selected:.0f} s.\n\n"
    )
    if rows:
        text += markdown_table(report.COMBINATION_COLUMNS, rows) + "\n"
    if others:
        text += markdown_table(report.COLUMNS[:-2], others) + "\n"
    return text + lines


def stem(one: LibraryGuidelines) -> str:
    """The part of a file name that says which library it is; that of this machine has no name of the machine."""
    library, (procs, *_) = one.result.library, one.result.plan.procs
    if library.exact:
        return library.name
    return f"{library.title.split()[0].lower()}-{'testbed-' if is_on_bed(one) else ''}{procs}"


def is_on_bed(one: LibraryGuidelines) -> bool:
    """Whether the library ran on the test bed."""
    return one.result.library.place.startswith("testbed")


def page(found: Sequence[LibraryGuidelines], own: str, launches: int) -> str:
    """The text of the page."""
    rows = [list(report.summary_row(one.result)) for one in found]
    for row, one in zip(rows, found, strict=True):
        if not one.result.library.exact:
            row[1] = f"test bed, {BED_SHAPE.title}" if is_on_bed(one) else "this machine"
    parts = [
        "<!-- Written by benchmarks/guidelines.py; do not edit. -->\n# Guidelines: results\n\n",
        "What [guidelines.md](guidelines.md) describes, run on the four selectors of SMPI on Gros, where an exact time "
        "has to be 1 % shorter to be a violation, and on the installed Open MPI and MPICH with "
        f"2 or 4 processes and {launches} launches of 10 repetitions, by the rank test. The latter share two "
        "cores and communicate through shared memory, which is no cluster: with 4 processes their times are mostly the "
        "scheduler's, and MPICH takes whole time slices of 8 ms for a call. The time of the check is "
        "that of everything, repair and second run included.\n\n"
        "Gros has the estimated overheads of TCP at 25 Gbit/s here (`platforms show gros --overheads tcp-25g`), since "
        "without any, sends of short messages cost nothing and linear algorithms would look best.\n\n",
        markdown_table(report.SUMMARY_COLUMNS, rows),
        "\n",
    ]
    for one in found:
        result = one.result
        place = "" if result.library.exact else f", {' and '.join(map(str, result.plan.procs))} processes"
        parts.append(f"\n## {result.library.title}{place}{' on the test bed' if is_on_bed(one) else ''}\n\n")
        parts.append("".join(f"- {line}\n" for line in one.summary()))
        left = [
            (*report.comparison_row(entry.violation), entry.reason) for entry in result.outcomes() if not entry.repaired
        ]
        if left:
            parts.append("\nNot repaired:\n\n" + markdown_table((*report.COLUMNS[:-2], "reason"), left))
        parts.append("\n" + greatest_table(one))
        parts.append(f"\n![{result.library.title}](figures/guidelines-{stem(one)}.png)\n")
    parts.append("\n## A selection of ours\n\n")
    parts.append(
        "The choices that `select --by simulated` makes among our algorithms on the same platform, checked against the "
        "same guidelines. Where one is broken, a combination of collectives is faster than every algorithm that it "
        "chose from: these lack it. Times of parts are added.\n\n"
    )
    parts.append(own)
    return "".join(parts)


def greatest_table(one: LibraryGuidelines) -> str:
    """The repair with the greatest gain of each collective."""
    result = one.result
    best = {}
    for repair in result.repairs:
        gain = result.gain(repair.call)
        if repair.call.collective not in best or gain > best[repair.call.collective][1]:
            best[repair.call.collective] = repair, gain
    rows = [
        (
            name,
            repair.call.procs,
            report.format_size(repair.call.message_bytes),
            repair.guideline.label,
            f"x {gain:.2f}",
        )
        for name, (repair, gain) in best.items()
    ]
    return markdown_table(("collective", "P", "m", "largest gain by", "gain"), rows) if rows else "No repairs.\n"


if __name__ == "__main__":
    main()
