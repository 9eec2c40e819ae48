"""Times that were measured elsewhere, read into the store: our own scripts' results and other programs' output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from collwise.common.errors import UsageError, note
from collwise.common.files import read_text
from collwise.simulator.store import Store
from collwise.simulator.timing import Configuration, Timing
from collwise.validation.measurement.imports import pico, table
from collwise.validation.measurement.imports.programs import READERS
from collwise.validation.measurement.imports.reading import Lines, MissingFacts

FORMATS = (
    "results of a collwise script, of OSU micro-benchmarks, of Intel MPI Benchmarks (IMB-MPI1), of ReproMPI or of "
    "netgauge (LogGP), a CSV of times (collective,algorithm,procs,bytes,us), or a run of PICO (archive or folder)"
)


@dataclass(frozen=True)
class Imported:
    """The times in a file, and the number of cases that its run was to measure.

    `asked` is larger than the number of times if the run ended early. If `marked` is true, a case has no time because
    the time in the file is impossible; otherwise it failed in one of our own scripts.
    """

    timings: Sequence[Timing]
    asked: int
    marked: bool = True


def import_file(path: Path, store: Store, missing: MissingFacts) -> Imported:
    """Reads a whole file, archive or folder, then stores and returns its times.

    `missing` supplies facts that the file lacks. Raises UsageError naming file, line and what was expected; then
    nothing of the file is stored.
    """
    from collwise.validation.measurement import scripts  # which imports this package

    asked = 0
    if not _is_run(path) and scripts.is_result(lines := Lines.of(path, missing)):
        found, asked = scripts.read_results(lines)
    else:
        found = read_file(path, missing)
    timings: list[Timing] = []
    for configuration, recorded in found:
        store.add(configuration, recorded)
        timings += {timing.case: timing for timing in recorded}.values()
    return Imported(timings, asked or len(timings), marked=not asked)


def read_file(path: Path, missing: MissingFacts, values: bool = True) -> list[tuple[Configuration, list[Timing]]]:
    """The times of another program's file, archive or folder, by their configurations; nothing is stored.

    If `values` is false, the times of tables and of runs of PICO are not read, and each cell has the error NOT_READ.
    """
    if _is_run(path):
        return pico.read(path, missing, values)
    lines = Lines.of(path, missing)
    if table.recognised(lines):
        return table.read(lines, values)
    read = next((read for title, read in READERS.items() if any(map(title.match, lines.lines))), None)
    if read is None:
        raise UsageError(f"{path}: unknown format; valid: {FORMATS}")
    found = read(lines)
    most = max(timing.case.procs for _, timings in found for timing in timings)
    if not missing.processes_per_node and most > 2:
        note(f"{path} does not say how many processes a node had; without --ppn, {most} are taken for one on each node")
    return found


def is_output(path: Path) -> bool:
    """True for a file of text (.txt) that a benchmark wrote."""
    lines = read_text(path).splitlines() if path.suffix == ".txt" else []
    return any(title.match(line) for title in READERS for line in lines)


def _is_run(path: Path) -> bool:
    return path.is_dir() or pico.is_archive(path)
