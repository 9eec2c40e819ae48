"""Measures how methods of measuring compare under real Open MPI, for the pages hunold2018.md and oflynn2009.md.

    .venv/bin/python docs/methods_on_a_bed.py nrep         # writes studies/papers/hunold2018/nrep.csv.gz
    .venv/bin/python docs/methods_on_a_bed.py timing       # writes studies/papers/oflynn2009/timing.csv.gz
    .venv/bin/python docs/methods_on_a_bed.py series       # writes studies/papers/oflynn2009/series.csv.gz
    .venv/bin/python docs/methods_on_a_bed.py escalations  # writes studies/papers/oflynn2009/escalations.csv.gz

The first has the repetitions that Hunold & Carpen-Amarie's NREP chooses, the second O'Flynn's ways of timing, the third
single calls beside series of calls that nothing separates, the last one repetitions of gathers that escalate. They
measure on a test bed in this machine, for 3 to 15 minutes, and need the right to make network namespaces. A command
that was stopped resumes.
"""

from __future__ import annotations

import gzip
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path

from models_against_measured import undisturbed

from collwise import session
from collwise.common.errors import CollwiseError
from collwise.common.project import results_folder
from collwise.simulator.execution.launchers import LocalMachine
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
Place = tuple[ExecutionTarget, int, int]
"""A target, the number of processes there, and many repetitions."""
Chunk = tuple[str, Callable[[], Iterator[str]]]
"""A part of a measurement that is not repeated once it is finished: its name, and what gives its lines of CSV."""
ESCALATING = "a test bed of 8 nodes at 100 Mbit/s, 32 kB in each switch port"
LIKE_THE_THESIS = Shape(nodes=8, bits_per_second=100e6, buffer_bytes=32_000, transport="default")
"""A bed on which gathers escalate, as in docs/regions.md; Open MPI keeps its own settings."""
REPETITIONS = 30
"""The repetitions of each gather and size that escalates by chance."""
LAUNCHES_OF = {"single": 20, "series": LAUNCHES}
"""Launches for each of SERIES: escalations are rare, and a launch has but one single call of each size."""


def medians(target: ExecutionTarget, cases: Sequence[Case], store: Store, how: Method) -> list[float]:
    """The median of the launches' medians of each case, in seconds."""
    return [robust(each).seconds for each in zip(*measure_launches(target, cases, store, how), strict=True)]


def nrep(places: Mapping[str, Callable[[], AbstractContextManager[Place]]], store: Store) -> Iterator[Chunk]:
    """Repetitions and medians of launches: with a standard error of 0 those of many repetitions, else NREP's choice."""
    for where, opened in places.items():
        for error in (0, *ERRORS):
            yield f"{where},{error:g}", partial(_nrep, opened, error, store)


def _nrep(opened: Callable[[], AbstractContextManager[Place]], error: float, store: Store) -> Iterator[str]:
    with opened() as (target, procs, repetitions):
        per_node = target.processes_per_node(procs)
        cases = [case_of(name, LIBRARY_DECIDES, procs, size, per_node) for name in COLLECTIVES for size in SIZES]
        how = Method(precision=Precision(repetitions, repetitions), limit_seconds=0, launches=LAUNCHES)
        if error:
            how = Method(precision=Precision(5, 100_000), nrep=error, launches=LAUNCHES)
        for launch, timings in enumerate(measure_launches(target, cases, store, how), 1):
            for one in timings:
                case = f"{one.case.collective},{one.case.message_bytes}"
                yield f"{case},{launch},{one.repetitions},{one.median_seconds:.4g}"


def timing(target: ExecutionTarget) -> Iterator[Chunk]:
    """The median of each size, and what the benchmark takes for one repetition of each, by way of timing.

    The barrier, of the kind that ends the root's timing, is timed alone.
    """
    alone = case_of("barrier", Choice("bruck"), SHAPE.nodes, 0, 1)
    yield "barrier,maximum", partial(_timed, target, [alone], Method(precision=Precision(50, 50)))
    for name in ("scatter", "gather"):
        cases = [case_of(name, Choice("linear"), 8, size, 1) for size in BLOCKS]
        for way in TIMINGS:
            how = Method(timing=way, precision=Precision(10, 10))
            yield f"{name},{way}", partial(_timed, target, cases, how, Method(timing=way, precision=Precision(1, 1)))


def _timed(target: ExecutionTarget, cases: Sequence[Case], how: Method, once: Method | None = None) -> Iterator[str]:
    # A store that has the times already would make the benchmark seem to take none.
    with tempfile.TemporaryDirectory() as folder, session(Path(folder, "timing.sqlite")) as context:
        started = time.monotonic()
        if once:
            measure_launches(target, cases, context.store, once)
        spent = time.monotonic() - started
        for case, seconds in zip(cases, medians(target, cases, context.store, how), strict=True):
            yield f"{case.message_bytes},{seconds:.4g},{spent:.3g}"


def series(target: ExecutionTarget) -> Iterator[Chunk]:
    """The least and the greatest time of a process, for single calls and for series of calls."""
    for collective in ("scatter", "gather"):
        for kind in SERIES:
            for launch in range(1, LAUNCHES_OF[kind] + 1):
                yield f"{collective},{kind},{launch}", partial(_launched, target, collective, kind)


def _launched(target: ExecutionTarget, collective: str, kind: str) -> Iterator[str]:
    """Raises CollwiseError if the run fails."""
    linear = ("--mca", "coll_tuned_use_dynamic_rules", "1", "--mca", f"coll_tuned_{collective}_algorithm", "1")
    asked = ["--collectives", collective, "--sizes", SERIES_SIZES, *SERIES[kind]]
    run = target.run("latency", SHAPE.nodes, asked, launcher_args=linear)
    if run.returncode != 0:
        raise CollwiseError(run.problem)
    for size, least, greatest in latencies(run.output_lines).itertuples():
        yield f"{size},{least:.4g},{greatest:.4g}"


def escalations(target: ExecutionTarget, store: Store) -> Iterator[Chunk]:
    """The time of every repetition of gathers of blocks from M1 to M2."""
    for name, choice in gathers_with(BED_THRESHOLDS).items():
        yield name, partial(_repeated, target, choice, store)


def _repeated(target: ExecutionTarget, choice: Choice, store: Store) -> Iterator[str]:
    sizes = [size for size in COMPARED_SIZES if BED_THRESHOLDS.irregular(size)]
    how = Method(precision=Precision(REPETITIONS, REPETITIONS), limit_seconds=0, keep_samples=True)
    (timings,) = measure_launches(
        target, [case_of("gather", choice, SHAPE.nodes, size, 1) for size in sizes], store, how
    )
    for timing in timings:
        for number, seconds in enumerate(timing.samples or (), 1):
            yield f"{timing.case.message_bytes},{number},{seconds:.4g}"


COLUMNS = {
    "nrep": "where,standard_error,collective,message_bytes,launch,repetitions,seconds",
    "timing": "collective,timing,message_bytes,seconds,benchmark_seconds",
    "series": "collective,kind,launch,message_bytes,minimum,maximum",
    "escalations": "gather,message_bytes,repetition,seconds",
}
"""The columns of each file; a chunk's lines begin with the chunk's name."""
TITLES = {
    "nrep": "Repetitions by NREP and of many, with the medians of their launches",
    "timing": "Ways of timing linear scatter and gather on a test bed of 8 nodes at 25 Mbit/s",
    "series": f"Single calls and series of 30 on {ESCALATING}",
    "escalations": f"Repetitions of gathers on {ESCALATING}",
}
PAPER_OF = {"nrep": "hunold2018"}
"""The paper of a measurement, if it is not oflynn2009."""


def chunks(what: str, store: Store) -> Iterator[Chunk]:
    """The parts of a measurement, with the test bed up that they need."""
    if what == "nrep":
        yield from nrep({"machine": this_machine, "bed": emulated}, store)
    elif what == "timing":
        undisturbed()
        with temporarily_up(SHAPE, "methods") as bed:
            yield from timing(TestBed(bed))
    else:
        with bed_with_tcp(LIKE_THE_THESIS, "reno-2009", "methods") as target:
            yield from series(target) if what == "series" else escalations(target, store)


@contextmanager
def this_machine() -> Iterator[Place]:
    """Two processes here, of which each case is repeated 1,000 times."""
    yield LocalMachine("openmpi"), 2, 1000


@contextmanager
def emulated() -> Iterator[Place]:
    """A test bed of 8 nodes, where each case is repeated 40 times."""
    undisturbed()
    with temporarily_up(SHAPE, "methods") as bed:
        yield TestBed(bed), 8, 40


def main(what: str) -> None:
    """Measures one of the four, and writes its file. Chunks that an earlier run finished are not measured again."""
    kept = results_folder() / f"measured-{what}.csv"
    kept.parent.mkdir(parents=True, exist_ok=True)
    if not kept.exists():
        date, load = time.strftime("%Y-%m-%d", time.gmtime()), f"{os.getloadavg()[0]:.1f}"
        head = [f"# {TITLES[what]}, by docs/methods_on_a_bed.py.", f'# measured_on = "{date}"', f'# load = "{load}"']
        kept.write_text("\n".join([*head, COLUMNS[what]]) + "\n", encoding="utf-8")
    with session(kept.with_suffix(".sqlite")) as context:
        for name, measured in chunks(what, context.store):
            if f"\n{name}," not in kept.read_text(encoding="utf-8"):
                lines = "".join(f"{name},{line}\n" for line in measured())
                with kept.open("a", encoding="utf-8") as file:
                    file.write(lines)
    file_of_page = PAPERS / PAPER_OF.get(what, "oflynn2009") / f"{what}.csv.gz"
    file_of_page.write_bytes(gzip.compress(kept.read_bytes(), mtime=0))
    kept.unlink()
    kept.with_suffix(".sqlite").unlink()


if __name__ == "__main__":
    main(sys.argv[1])
