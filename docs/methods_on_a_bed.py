"""Measures how methods of measuring compare under real Open MPI, for the pages hunold2018.md and oflynn2009.md.

    .venv/bin/python docs/methods_on_a_bed.py nrep      # writes studies/papers/hunold2018/nrep.toml
    .venv/bin/python docs/methods_on_a_bed.py timing    # writes studies/papers/oflynn2009/timing.toml

The first has the repetitions that Hunold & Carpen-Amarie's NREP chooses, the second O'Flynn's ways of timing. They
measure on a test bed in this machine, for 5 to 15 minutes, and need the right to make network namespaces.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from models_against_measured import undisturbed

from collwise import session
from collwise.common.project import results_folder
from collwise.simulator.execution.local_machine import LocalMachine
from collwise.simulator.execution.targets import ExecutionTarget
from collwise.simulator.store import Store
from collwise.simulator.sweeps.method import Method, Precision
from collwise.simulator.sweeps.mpi_runner import measure_launches
from collwise.simulator.timing import Case
from collwise.studies import papers
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
    """A table for each way of timing and collective: what the benchmark takes, and its times over the first's."""
    for name in ("scatter", "gather"):
        cases = [case_of(name, Choice("linear"), 8, size, 1) for size in BLOCKS]
        seconds: dict[str, list[float]] = {}
        for way in TIMINGS:
            how = Method(timing=way, precision=Precision(1, 1))
            started = time.monotonic()
            measure_launches(target, cases, store, how)
            spent = time.monotonic() - started
            seconds[way] = medians(target, cases, store, Method(timing=way, precision=Precision(10, 10)))
            ratios = sorted(one / other for one, other in zip(seconds[way], seconds[TIMINGS[0]], strict=True))
            yield f'\n[[measured]]\ntiming = "{way}"\ncollective = "{name}"\nbenchmark_seconds = {spent:.3g}'
            yield f"ratio = {median(ratios):.4g}\nleast_ratio = {ratios[0]:.4g}\ngreatest_ratio = {ratios[-1]:.4g}"


def head(what: str) -> list[str]:
    """The first lines of a file: what it has, when it was measured and by which program, and the load before."""
    date = time.strftime("%Y-%m-%d", time.gmtime())
    return [
        f"# {what}, by docs/{Path(sys.argv[0]).name}.",
        f'measured_on = "{date}"',
        f'load = "{os.getloadavg()[0]:.1f}"',
    ]


def main(what: str) -> None:
    """Measures one of both, and writes its file."""
    if what == "nrep":
        lines = head("Repetitions by NREP, and errors of its medians by those of many repetitions")
        with session(results_folder() / "measured-nrep.sqlite") as context:
            lines += nrep("two processes of one machine", LocalMachine("openmpi"), 2, 1000, context.store)
            undisturbed()
            with temporarily_up(SHAPE, "methods") as bed:
                lines += nrep("8 nodes at 25 Mbit/s, emulated", TestBed(bed), 8, 40, context.store)
        file = PAPERS / "hunold2018" / "nrep.toml"
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
