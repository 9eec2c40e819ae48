"""Measures how methods of measuring compare under real Open MPI, for the pages hunold2018.md and oflynn2009.md.

    .venv/bin/python docs/methods_on_a_bed.py nrep         # writes studies/papers/hunold2018/nrep.toml
    .venv/bin/python docs/methods_on_a_bed.py timing       # writes studies/papers/oflynn2009/timing.toml
    .venv/bin/python docs/methods_on_a_bed.py series       # writes studies/papers/oflynn2009/series.csv.gz
    .venv/bin/python docs/methods_on_a_bed.py escalations  # writes studies/papers/oflynn2009/escalations.csv.gz

The first has the repetitions that Hunold & Carpen-Amarie's NREP chooses, the second O'Flynn's ways of timing, the third
single calls beside series of calls that nothing separates, the last one repetitions of gathers that escalate. They
measure on a test bed in this machine, for 3 to 15 minutes, and need the right to make network namespaces.
"""

from __future__ import annotations

import gzip
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from models_against_measured import undisturbed

from collwise import session
from collwise.common.errors import CollwiseError
from collwise.common.project import results_folder
from collwise.simulator.execution.local_machine import LocalMachine
from collwise.simulator.execution.targets import ExecutionTarget
from collwise.simulator.store import Store
from collwise.simulator.sweeps.method import Method, Precision
from collwise.simulator.sweeps.mpi_runner import measure_launches
from collwise.simulator.timing import Case
from collwise.studies import papers
from collwise.studies.papers.oflynn2009.analysis import (
    BED_THRESHOLDS,
    SERIES,
    SERIES_SIZES,
    gathers_with,
    latencies,
)
from collwise.validation.measurement.irregular_regions import COMPARED_SIZES, bed_with_tcp
from collwise.validation.testbed.bed import temporarily_up
from collwise.validation.testbed.shape import Shape
from collwise.validation.testbed.target import TestBed
from collwise.validation.times.choice import LIBRARY_DECIDES, Choice
from collwise.validation.times.grid import case_of
from collwise.validation.times.measured import robust

SHAPE = Shape(nodes=8, bits_per_second=25e6)
PAPERS = Path(papers.__file__).parent
COLLECTIVES, SIZES = ("bcast", "allreduce", "gather"), (64, 1024, 16384, 131072)
LAUNCHES, ERRORS = 5, (0.1, 0.03, 0.01)
"""The paper's number of executions, and relative standard errors of one-byte messages; the paper's is 0.01."""
TIMINGS, BLOCKS = ("global", "maximum", "root"), tuple(range(1000, 100_001, 3000))
LIKE_THE_THESIS = Shape(nodes=8, bits_per_second=100e6, buffer_bytes=32_000, transport="default")
"""A bed on which gathers escalate, as in docs/regions.md; Open MPI keeps its own settings."""
REPETITIONS = 30
"""The repetitions of each gather and size that escalates by chance."""
LAUNCHES_OF = {"single": 20, "series": LAUNCHES}
"""Launches for each of SERIES: escalations are rare, and a launch has but one single call of each size."""


def medians(target: ExecutionTarget, cases: Sequence[Case], store: Store, how: Method) -> list[float]:
    """The median of the launches' medians of each case, in seconds."""
    return [robust(each).seconds for each in zip(*measure_launches(target, cases, store, how), strict=True)]


def nrep(where: str, target: ExecutionTarget, procs: int, repetitions: int, store: Store) -> Iterator[str]:
    """A table for each collective, size and error: what NREP chose, and how far its medians are from those of many."""
    per_node = target.processes_per_node(procs)
    cases = [case_of(name, LIBRARY_DECIDES, procs, size, per_node) for name in COLLECTIVES for size in SIZES]
    many = Method(precision=Precision(repetitions, repetitions), limit_seconds=0, launches=LAUNCHES)
    right = medians(target, cases, store, many)
    for error in ERRORS:
        how = Method(precision=Precision(5, 100_000), nrep=error, launches=LAUNCHES)
        chosen = zip(*measure_launches(target, cases, store, how), strict=True)
        for case, seconds, launches in zip(cases, right, chosen, strict=True):
            counts = [one.repetitions for one in launches]
            away = [abs(one.median_seconds / seconds - 1) for one in launches]
            yield "\n[[measured]]"
            yield f'where = "{where}"\ncollective = "{case.collective}"\nmessage_bytes = {case.message_bytes}'
            yield f"standard_error = {error}\nseconds = {seconds:.4g}\nrepetitions = {counts}"
            yield f"error = {median(away):.3g}\nworst_error = {max(away):.3g}"


def timing(target: ExecutionTarget, store: Store) -> Iterator[str]:
    """A table for each way of timing and collective: what the benchmark takes, and its times over the first's.

    A barrier of the kind that ends the root's timing takes `barrier` seconds alone.
    """
    alone = case_of("barrier", Choice("bruck"), SHAPE.nodes, 0, 1)
    (barrier,) = medians(target, [alone], store, Method(precision=Precision(50, 50)))
    for name in ("scatter", "gather"):
        cases = [case_of(name, Choice("linear"), 8, size, 1) for size in BLOCKS]
        seconds: dict[str, list[float]] = {}
        for way in TIMINGS:
            how = Method(timing=way, precision=Precision(1, 1))
            started = time.monotonic()
            measure_launches(target, cases, store, how)
            spent = time.monotonic() - started
            seconds[way] = medians(target, cases, store, Method(timing=way, precision=Precision(10, 10)))
            ways = {way: seconds[way]}
            if way == "root":
                ways["root, barrier subtracted"] = [one - barrier for one in seconds[way]]
            for label, times in ways.items():
                ratios = sorted(one / other for one, other in zip(times, seconds[TIMINGS[0]], strict=True))
                yield f'\n[[measured]]\ntiming = "{label}"\ncollective = "{name}"\nbenchmark_seconds = {spent:.3g}'
                yield f"ratio = {median(ratios):.4g}\nleast_ratio = {ratios[0]:.4g}\ngreatest_ratio = {ratios[-1]:.4g}"


def series(target: ExecutionTarget) -> Iterator[str]:
    """Lines of CSV with the least and the greatest time of a process, for single calls and for series of calls.

    Raises CollwiseError if a run fails.
    """
    yield "collective,kind,launch,message_bytes,minimum,maximum"
    for collective in ("scatter", "gather"):
        linear = ("--mca", "coll_tuned_use_dynamic_rules", "1", "--mca", f"coll_tuned_{collective}_algorithm", "1")
        for kind, words in SERIES.items():
            asked = ["--collectives", collective, "--sizes", SERIES_SIZES, *words]
            for launch in range(1, LAUNCHES_OF[kind] + 1):
                run = target.run("latency", SHAPE.nodes, asked, launcher_args=linear)
                if run.returncode != 0:
                    raise CollwiseError(run.problem)
                for size, least, greatest in latencies(run.output_lines).itertuples():
                    yield f"{collective},{kind},{launch},{size},{least:.4g},{greatest:.4g}"


def escalations(target: ExecutionTarget, store: Store) -> Iterator[str]:
    """Lines of CSV with the time of every repetition of gathers of blocks from M1 to M2."""
    yield "gather,message_bytes,repetition,seconds"
    sizes = [size for size in COMPARED_SIZES if BED_THRESHOLDS.irregular(size)]
    how = Method(precision=Precision(REPETITIONS, REPETITIONS), limit_seconds=0, keep_samples=True)
    for name, choice in gathers_with(BED_THRESHOLDS).items():
        cases = [case_of("gather", choice, SHAPE.nodes, size, 1) for size in sizes]
        (timings,) = measure_launches(target, cases, store, how)
        for timing in timings:
            for number, seconds in enumerate(timing.samples or (), 1):
                yield f"{name},{timing.case.message_bytes},{number},{seconds:.4g}"


def head(what: str) -> list[str]:
    """The first lines of a file: what it has, when it was measured and by which program, and the load before."""
    date = time.strftime("%Y-%m-%d", time.gmtime())
    return [
        f"# {what}, by docs/{Path(sys.argv[0]).name}.",
        f'measured_on = "{date}"',
        f'load = "{os.getloadavg()[0]:.1f}"',
    ]


def write_csv(file: Path, lines: Sequence[str]) -> None:
    """Writes lines of CSV, compressed."""
    text = "\n".join(lines) + "\n"
    file.write_bytes(gzip.compress(text.encode(), mtime=0))


def main(what: str) -> None:
    """Measures one of the four, and writes its file."""
    if what == "nrep":
        lines = head("Repetitions by NREP, and errors of its medians by those of many repetitions")
        with session(results_folder() / "measured-nrep.sqlite") as context:
            lines += nrep("two processes of one machine", LocalMachine("openmpi"), 2, 1000, context.store)
            undisturbed()
            with temporarily_up(SHAPE, "methods") as bed:
                lines += nrep("8 nodes at 25 Mbit/s, emulated", TestBed(bed), 8, 40, context.store)
        file = PAPERS / "hunold2018" / "nrep.toml"
    elif what in ("series", "escalations"):
        where = "a test bed of 8 nodes at 100 Mbit/s, 32 kB in each switch port"
        with (
            tempfile.TemporaryDirectory() as folder,
            session(Path(folder, "t.sqlite")) as context,
            bed_with_tcp(LIKE_THE_THESIS, "reno-2009", "methods") as target,
        ):
            if what == "series":
                lines = head(f"Single calls and series of 30 on {where}")
                lines += series(target)
            else:
                lines = head(f"Repetitions of gathers on {where}")
                lines += escalations(target, context.store)
        write_csv(
            PAPERS / "oflynn2009" / f"{what}.csv.gz", [f"# {line.removeprefix('# ')}" for line in lines[:3]] + lines[3:]
        )
        return
    else:
        lines = head("Ways of timing linear scatter and gather on a test bed of 8 nodes at 25 Mbit/s")
        undisturbed()
        # A store that has the times already would make the benchmark seem to take none.
        with (
            tempfile.TemporaryDirectory() as folder,
            session(Path(folder, "timing.sqlite")) as context,
            temporarily_up(SHAPE, "methods") as bed,
        ):
            lines += timing(TestBed(bed), context.store)
        file = PAPERS / "oflynn2009" / "timing.toml"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
