"""The gain over Open MPI's own decisions on a test bed, for seven collectives; writes docs/gain-results.md.

    .venv/bin/python benchmarks/gain.py [--launches N] [-o docs/gain-results.md] [--figure docs/figures/gain.png]

On a test bed of 8 nodes at 100 Mbit/s all algorithms and Open MPI's own collectives are measured in three launches, and
`select` chooses among them. Calls for which none is faster beyond the intervals are left to Open MPI.
It then runs as it is, by rules, which have the second best choices where they cannot express the best, and with
libcollwise, in turn in N launches of each. Three cases with large gains are looked at more closely: if our form of what
Open MPI runs untuned, with the segment size that it ships, takes as long as Open MPI itself, the gain is the choice's.
Exit code 1 if a call under libcollwise is slower than by default beyond the intervals, or if rules
gain less than x 1.2 on average.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Container, Mapping, Sequence
from pathlib import Path
from statistics import geometric_mean

import collwise
from collwise.common.units import format_seconds, format_size
from collwise.simulator.execution.targets import ExecutionTarget
from collwise.simulator.store import Store
from collwise.simulator.sweeps.method import Method, Precision, combine
from collwise.simulator.sweeps.mpi_runner import measure_launches
from collwise.simulator.timing import Case
from collwise.studies.figures.programs import gain_figure
from collwise.studies.figures.style import save
from collwise.studies.present.programs import gain
from collwise.studies.present.shown import markdown_of
from collwise.studies.reports.markdown import markdown_table
from collwise.validation.libraries.baselines import baseline
from collwise.validation.measurement.gain import LIBCOLLWISE, RULES, GainRow, MeasuredGain, measure_gain
from collwise.validation.testbed.bed import temporarily_up
from collwise.validation.testbed.shape import Shape, simulated_platform
from collwise.validation.testbed.target import TestBed
from collwise.validation.times.choice import LIBRARY_DECIDES
from collwise.validation.times.grid import Grid, case_of

SHAPE = Shape(8, 100e6)
COLLECTIVES = ("bcast", "gather", "scatter", "reduce", "allreduce", "allgather", "alltoall")
SIZES = tuple(1024 * 4**k for k in range(5))
SEGMENTS = (0, 8192, 32768)
MIN_GAIN, CLOSER = 1.2, 3
METHOD = Method(precision=Precision(5, 10), launches=3)
COLUMNS = ("call", "Open MPI runs", "Open MPI", "our form of it", "choice", "libcollwise", "gain", "simulated gain")


def measured_seconds(
    target: ExecutionTarget, wanted: Sequence[Case], store: Store, method: Method
) -> Mapping[Case, float]:
    """The mean times of cases, which the store keeps."""
    launches = measure_launches(target, wanted, store, method)
    combined = [combine(each, method.precision.confidence) for each in zip(*launches, strict=True)]
    return {one.case: one.seconds for one in combined if one.ok}


def largest_gains(found: MeasuredGain, untuned: Container[tuple[str, int]]) -> list[GainRow]:
    """The call with the largest gain beyond the intervals of each of the collectives with the largest.

    Only calls count of which it is known what the library runs untuned.
    """
    sure = [row for row in found.rows if row.significant(LIBCOLLWISE) and row.choice != LIBRARY_DECIDES]
    known = [row for row in sure if (row.collective, row.message_bytes) in untuned]
    rows = sorted(known, key=lambda row: row.speedup(LIBCOLLWISE), reverse=True)
    by_collective: dict[str, GainRow] = {}
    for row in rows:
        by_collective.setdefault(row.collective, row)
    return list(by_collective.values())[:CLOSER]


def examined(
    target: ExecutionTarget, procs: int, sizes: Sequence[int], launches: int, method: Method
) -> tuple[MeasuredGain, list[tuple[str, ...]]]:
    """Measures all algorithms, chooses among them, and measures the gain of the choices.

    Returns also the cells under COLUMNS, a row for each call with a large gain.
    """
    # What the library runs untuned, by collective and size, where the catalogue has it.
    decided = {(name, size): baseline().choice(name, procs, size) for name in COLLECTIVES for size in sizes}
    known = {place: choice for place, choice in decided.items() if choice is not None}
    untuned = {(name, size): case_of(name, choice, procs, size) for (name, size), choice in known.items()}
    grid = [case for name in COLLECTIVES for case in Grid.of(name, (procs,), sizes, 1, SEGMENTS).cases()]
    own = (LIBRARY_DECIDES,)
    calls = [case for name in COLLECTIVES for case in Grid(name, own, (procs,), tuple(sizes)).cases()]
    wanted = [*dict.fromkeys([*grid, *untuned.values(), *calls])]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "measured.sqlite")
        with Store(path) as store:
            seconds = measured_seconds(target, wanted, store, method)
        print(f"measured: {len(wanted)} cases", flush=True)
        with collwise.session(path, "schedule") as context:
            chosen = collwise.select(f"store:file={path},source=measured,collective={'+'.join(COLLECTIVES)}")
            tables = {table.collective: table for table in chosen.tables}
            with Store(Path(folder, "gain.sqlite")) as store:
                found = measure_gain(target, tables, calls, store, launches=launches)
            closer: list[tuple[str, ...]] = []
            for row in largest_gains(found, untuned):
                place = row.collective, row.message_bytes
                before, after = untuned[place], case_of(row.collective, row.choice, procs, row.message_bytes)
                played = context.simulate(simulated_platform(SHAPE), [before, after]).timings
                closer.append(
                    (
                        f"{row.collective}, {format_size(row.message_bytes)}",
                        known[place].label,
                        format_seconds(row.default.seconds),
                        format_seconds(seconds[before]),
                        row.choice.label,
                        format_seconds(row.libcollwise.seconds),
                        f"x {row.speedup(LIBCOLLWISE):.2f}",
                        f"x {played[before].seconds / played[after].seconds:.2f}",
                    )
                )
    return found, closer


def page(found: MeasuredGain, closer: Sequence[tuple[str, ...]], launches: int) -> str:
    """The text of the page."""
    return (
        "# Gains at run time: one run\n\n<!-- Written by benchmarks/gain.py; do not edit. See interposing.md. -->\n\n"
        f"Test bed of {SHAPE.title}, one process on each node. All algorithms and Open MPI's own collectives were "
        f"measured in {METHOD.launches} launches, and choices made by these times: where none is faster beyond the "
        f"intervals, the library decides. Times are means over {launches} launches; gains in brackets lie within the "
        "confidence intervals.\n\n" + markdown_of(gain(found)) + "\n## What Open MPI runs untuned, closely\n\n"
        "For the largest gains of three collectives beyond the intervals, the catalogue's choice that is the same as "
        "what Open MPI runs untuned, with the segment size that it ships. If our form of it takes as long as Open MPI, "
        "the gain is the choice's. The simulated gain is the schedule engine's on the bed's nominal platform.\n\n"
        + markdown_table(COLUMNS, closer)
    )


def is_good(found: MeasuredGain) -> bool:
    """Whether no call is slower beyond the intervals under libcollwise, and rules gain enough."""
    slower = [row for row in found.rows if row.significant(LIBCOLLWISE) and row.speedup(LIBCOLLWISE) < 1]
    by_rules = [row.speedup(RULES) for row in found.rows if row.rules is not None]
    print(f"slower beyond the intervals: {len(slower)}; rules: x {geometric_mean(by_rules):.2f} on average")
    return not slower and geometric_mean(by_rules) >= MIN_GAIN


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    docs = Path(__file__).parents[1] / "docs"
    parser.add_argument("--launches", type=int, default=5, help="of each of the three ways")
    parser.add_argument("-o", "--output", type=Path, default=docs / "gain-results.md")
    parser.add_argument("--figure", type=Path, default=docs / "figures" / "gain.png")
    options = parser.parse_args()
    with temporarily_up(SHAPE, "gain") as bed:
        target = TestBed(bed)
        found, closer = examined(target, SHAPE.nodes, SIZES, options.launches, METHOD)
    save(gain_figure(found.rows, f"Gain over Open MPI's default, {target.name}, P = {SHAPE.nodes}"), options.figure)
    options.output.write_text(page(found, closer, options.launches), encoding="utf-8")
    return 0 if is_good(found) else 1


if __name__ == "__main__":
    sys.exit(main())
