"""Time that libcollwise.so adds to calls, against the same calls by PMPI in the same run.

.venv/bin/python benchmarks/interposer_overhead.py [openmpi|mpich] [--blocks N] [--sizes 8,64] [--least]
.venv/bin/python benchmarks/interposer_overhead.py --bed [--blocks N] [-o docs/interposing-bed.md]

Between two processes, first where MPI's own algorithm runs, for an allreduce of 8 bytes: at most 3 % may be added. Then
where ours does, for the common collectives; Open MPI is forced to run the same algorithm by itself, and ours may take
1.1 times as long or 30 ns more. Blocks of 2000 calls of both alternate (of less where messages are long); times are
medians of N such pairs. Where other programs use the processors, --least compares the quickest blocks of both instead.
Processes are bound to cores. With --bed the same algorithms run on a test bed of 8 nodes at 50 Mbit/s, one process on
each, in blocks of 200 calls, and the table is written as a page.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from collwise.algorithms.catalogue import Catalogue
from collwise.common.units import format_seconds, format_size
from collwise.simulator.execution.installations import Installation, mpi_installation
from collwise.simulator.execution.targets import ExecutionTarget, LaunchRequest
from collwise.studies.reports.markdown import markdown_table
from collwise.validation.testbed.bed import temporarily_up
from collwise.validation.testbed.shape import Shape
from collwise.validation.testbed.target import TestBed

SHAPE = Shape(8, 50e6)
LIMIT_PERCENT = 3.0
LIMIT_RATIO, LIMIT_NANOSECONDS = 1.1, 30.0
# Rules for 29 message sizes, all of which leave the call to MPI.
SOME_RULES = "".join(f"allreduce 2 1 {2**bits if bits else 0} default\n" for bits in range(29))
SIZES = (8, 64, 1024, 8192, 65536)
SAME = {
    "bcast": "binomial",
    "reduce": "binomial",
    "allreduce": "recursive_doubling",
    "gather": "binomial",
    "scatter": "binomial",
    "allgather": "ring",
    "alltoall": "pairwise",
    "barrier": "recursive_doubling",
}


def tables() -> dict[str, str]:
    """Decision tables by title, under which MPI's own algorithm runs."""
    ours = Catalogue.load().collective("allreduce").selectable[0]
    return {
        "no table": "",
        "a table without allreduce": "bcast 2 1 0 binomial\n",
        "a table, default for allreduce": SOME_RULES,
        "a table, default for 8 bytes": SOME_RULES + f"allreduce 2 1 {2**29} {ours}\n",
    }


def by_min(took: dict[str, float]) -> dict[str, float]:
    """The same with the quickest blocks of both in place of the medians."""
    plain, through = took["plain_min"], took["through_min"]
    added = through - plain
    return took | {"plain": plain, "through": through, "added": added, "added_low": added, "added_high": added}


@dataclass(frozen=True)
class Way:
    """A way to run the program: its processes, the calls of a block, and the most bytes of one."""

    mpi: Installation
    procs: int
    calls: int
    block_bytes: int
    run: Callable[[Sequence[str], Mapping[str, str], str], Sequence[str]]
    """Its output lines for its arguments, further variables and a decision table."""


def on_this_machine(mpi: Installation) -> Way:
    """Two processes that are bound to cores."""

    def run(words: Sequence[str], variables: Mapping[str, str], table: str) -> Sequence[str]:
        with tempfile.TemporaryDirectory(prefix="collwise-") as directory:
            command = [str(mpi.launcher), "-np", "2"]
            for name, value in {**variables, **table_variable(table, Path(directory))}.items():
                command += ["-x", f"{name}={value}"] if mpi.library == "openmpi" else ["-genv", name, value]
            command += ["--bind-to", "core"] if mpi.library == "openmpi" else ["-bind-to", "core"]
            environment = os.environ | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
            command += [str(mpi.program("interposer_overhead")), *words]
            done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        return done.stdout.splitlines()

    return Way(mpi, 2, 2000, 1 << 24, run)


def on_target(target: ExecutionTarget) -> Way:
    """All processes of an execution target."""

    def run(words: Sequence[str], variables: Mapping[str, str], table: str) -> Sequence[str]:
        with target.shared_directory() as folder:
            environment = {**variables, **table_variable(table, folder)}
            request = LaunchRequest(
                "interposer_overhead", target.usual_procs, tuple(words), 300.0, environment=environment
            )
            done = target.launch(request)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(words)}: {done.problem}")
        return list(done.output_lines)

    return Way(target.installation, target.usual_procs, 200, 200 << 10, run)


def table_variable(table: str, folder: Path) -> dict[str, str]:
    """The variable that names a decision table, which is written into the folder; none without a table."""
    if not table:
        return {}
    (folder / "table").write_text(table)
    return {"COLLWISE_TABLE": str(folder / "table")}


def measure(
    way: Way, table: str, words: Sequence[str], blocks: int, least: bool, settings: Mapping[str, str] | None = None
) -> list[dict[str, float]]:
    """What the program prints under a decision table, with further variables."""
    variables = {"LD_PRELOAD": str(way.mpi.program("libcollwise.so")), **(settings or {})}
    lines = way.run([str(blocks), str(way.calls), str(way.block_bytes), *words], variables, table)
    took = [json.loads(line) for line in lines if line.startswith("{")]
    return [by_min(one) for one in took] if least else took


def check_forwarded(way: Way, blocks: int, least: bool) -> bool:
    """Prints what is added where MPI's own algorithm runs; returns whether that is little enough."""
    print(
        f"{'allreduce of 8 bytes by MPI':<34} {'PMPI (ns)':>10} {'added (ns)':>11} {'quartiles':>17} {'added (%)':>10}"
    )
    worst = 0.0
    for title, table in tables().items():
        [took] = measure(way, table, ["allreduce", "8"], 4 * blocks, least)
        percent = 100 * took["added"] / took["plain"]
        worst = max(worst, percent)
        quartiles = f"{took['added_low']:.1f} to {took['added_high']:.1f}"
        print(f"{title:<34} {took['plain']:>10.1f} {took['added']:>11.1f} {quartiles:>17} {percent:>10.1f}")
    print(f"most added: {worst:.1f} %; the limit is {LIMIT_PERCENT:.0f} %\n")
    return worst < LIMIT_PERCENT


@dataclass(frozen=True)
class Point:
    """The times of one algorithm and size, in nanoseconds; the difference with its quartiles."""

    collective: str
    size: int
    plain: float
    ours: float
    added: float
    low: float
    high: float

    @property
    def is_slow(self) -> bool:
        """Whether ours takes too much longer, by the median difference and by the difference of medians."""
        return min(self.added, self.ours - self.plain) > max((LIMIT_RATIO - 1) * self.plain, LIMIT_NANOSECONDS)


def same_algorithms(way: Way, blocks: int, least: bool, some_sizes: Sequence[int]) -> list[Point]:
    """The times of the same algorithms inside libcollwise and MPI, which are printed as well."""
    version = ".".join(way.mpi.version.split(".")[:2])
    library = way.mpi.library
    print(f"{'the same algorithm':<32} {'bytes':>8} {library + ' (ns)':>13} {'ours (ns)':>10} {'ratio':>6}  too slow")
    points = []
    for collective, algorithm in SAME.items():
        settings = {}
        if library == "openmpi":
            number = Catalogue.load().algorithm(collective, algorithm).openmpi[version]
            settings = {
                "OMPI_MCA_coll_tuned_use_dynamic_rules": "1",
                f"OMPI_MCA_coll_tuned_{collective}_algorithm": str(number),
                "OMPI_MCA_coll": "^han,sm",
            }
        sizes = ["0"] if collective == "barrier" else [str(size) for size in some_sizes]
        table = f"{collective} {way.procs} 1 0 {algorithm}\n"
        for took in measure(way, table, [collective, *sizes], blocks, least, settings):
            names = ("plain", "through", "added", "added_low", "added_high")
            point = Point(collective, int(took["bytes"]), *(took[name] for name in names))
            points.append(point)
            print(
                f"{collective + ' ' + algorithm:<32} {format_size(point.size):>8} {point.plain:>13.1f} "
                f"{point.ours:>10.1f} {point.ours / point.plain:>6.2f}  {'yes' if point.is_slow else ''}",
                flush=True,
            )
    return points


def verdict(points: Sequence[Point]) -> str:
    """The number of points that take too long."""
    slow = sum(point.is_slow for point in points)
    return f"{slow} of {len(points)} points take over {LIMIT_RATIO:g} times and {LIMIT_NANOSECONDS:g} ns more"


def page(points: Sequence[Point], way: Way, blocks: int) -> str:
    """The page about a test bed."""
    columns = ("collective", "algorithm", "bytes", f"{way.mpi.label}", "libcollwise", "ratio", "difference, quartiles")
    rows = [
        (
            point.collective,
            SAME[point.collective],
            format_size(point.size),
            format_seconds(point.plain * 1e-9),
            format_seconds(point.ours * 1e-9),
            f"{point.ours / point.plain:.3f}{' (too slow)' if point.is_slow else ''}",
            f"{100 * point.low / point.plain:+.1f} to {100 * point.high / point.plain:+.1f} %",
        )
        for point in points
    ]
    return (
        "# The same algorithms inside libcollwise on a test bed\n\n"
        "<!-- Written by benchmarks/interposer_overhead.py --bed; do not edit. -->\n\n"
        f"Calls of {way.procs} processes on a test bed of {SHAPE.title}, one process on each node. Open MPI is forced "
        "to run the algorithm by itself, and libcollwise runs its own form of it, in turn in the same processes; times "
        f"are medians of {blocks} blocks of each, of up to {way.calls} calls. The difference between neighbouring "
        f"blocks is given by its quartiles, in percent of Open MPI's time. {verdict(points)}. "
        "[interposing.md](interposing.md#what-it-costs) has the times of two processes that share memory.\n\n"
        + markdown_table(columns, rows, left=2)
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", nargs="?", default="openmpi", choices=("openmpi", "mpich"))
    parser.add_argument("--blocks", type=int, help="pairs of blocks; default: 50, on the test bed 12")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="message sizes in bytes, by commas")
    parser.add_argument("--least", action="store_true", help="compare the quickest blocks, not the medians")
    parser.add_argument("--bed", action="store_true", help=f"on a test bed of {SHAPE.title}, by Open MPI")
    usual = Path(__file__).parents[1] / "docs" / "interposing-bed.md"
    parser.add_argument("-o", "--output", type=Path, default=usual, help="the page about the test bed")
    options = parser.parse_args()
    sizes = [int(size) for size in options.sizes.split(",")]
    if options.bed:
        blocks = options.blocks or 12
        with temporarily_up(SHAPE, "interposer") as bed:
            way = on_target(TestBed(bed))
            points = same_algorithms(way, blocks, options.least, sizes)
        options.output.write_text(page(points, way, blocks), encoding="utf-8")
        print(verdict(points))
        return int(any(point.is_slow for point in points))
    way, blocks = on_this_machine(mpi_installation(options.library)), options.blocks or 50
    print(way.mpi.label)
    is_little = check_forwarded(way, blocks, options.least)
    points = same_algorithms(way, blocks, options.least, sizes)
    print(verdict(points))
    return int(not is_little or any(point.is_slow for point in points))


if __name__ == "__main__":
    sys.exit(main())
