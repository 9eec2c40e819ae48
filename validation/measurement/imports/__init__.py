"""Times that were measured elsewhere, read into the store: our own scripts' results and other programs' output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from collwise.common.errors import UsageError
from collwise.simulator.timing import Timing
from collwise.validation.measurement.imports.programs import READERS

if TYPE_CHECKING:
    from collwise.simulator.store import Store
    from collwise.validation.measurement.imports.reading import MissingFacts

FORMATS = "results of a collwise script, OSU micro-benchmarks, Intel MPI Benchmarks (IMB-MPI1), ReproMPI"


@dataclass(frozen=True)
class Imported:
    """The times in a file, and the number of cases that its run was to measure, which is larger if it ended early."""

    timings: Sequence[Timing]
    asked: int


def import_file(path: Path, store: Store, missing: MissingFacts) -> Imported:
    """Reads a whole file, then stores and returns its times. `missing` supplies what the file does not say.

    Raises UsageError naming file, line and what was expected; nothing of the file is stored then.
    """
    from collwise.validation.measurement.imports import results
    from collwise.validation.measurement.imports.reading import Lines

    lines = Lines.of(path, missing)
    if results.recognised(lines):
        found, asked = results.read(lines)
    else:
        read = next((read for title, read in READERS.items() if any(map(title.match, lines.lines))), None)
        if read is None:
            raise UsageError(f"{path}: in no format that is known; valid: {FORMATS}")
        found, asked = read(lines), 0
    timings: list[Timing] = []
    for configuration, recorded in found:
        store.add(configuration, recorded)
        timings += {timing.case: timing for timing in recorded}.values()
    return Imported(timings, asked or len(timings))
