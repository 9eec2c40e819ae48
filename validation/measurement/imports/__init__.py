"""Times that were measured elsewhere, read into the store: our own scripts' results and other programs' output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from collwise.common.errors import UsageError
from collwise.simulator.store import Store
from collwise.simulator.timing import Configuration, Timing
from collwise.validation.measurement.imports import imb, osu, repro, results
from collwise.validation.measurement.imports.reading import Lines, Unsaid

FORMATS = "results of a collwise script, OSU micro-benchmarks, Intel MPI Benchmarks (IMB-MPI1), ReproMPI"

_READERS = (osu, imb, repro)


@dataclass(frozen=True)
class Imported:
    """What a file held, and how many cases were asked of the run that wrote it: more than times if it ended early."""

    timings: Sequence[Timing]
    asked: int


def import_file(path: Path, store: Store, unsaid: Unsaid) -> Imported:
    """Reads a whole file, then stores what it holds, and returns it. `unsaid` is what the file does not tell.

    Raises UsageError naming file, line and what was expected; nothing of the file is stored then.
    """
    lines = Lines.of(path)
    if results.recognised(lines):
        return Imported(results.read(lines, store), results.cases_asked(lines))
    for reader in _READERS:
        if reader.recognised(lines):
            timings = _stored(store, reader.read(lines, unsaid))
            return Imported(timings, len(timings))
    raise UsageError(f"{path}: in no format that is known; valid: {FORMATS}")


def _stored(store: Store, found: Sequence[tuple[Configuration, list[Timing]]]) -> list[Timing]:
    for configuration, timings in found:
        store.add(configuration, timings)
    return [timing for _, timings in found for timing in timings]
