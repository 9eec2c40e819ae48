"""Files of work for our programs, which print a JSON record for each line that they have done."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from collwise.simulator.timing import Case


@dataclass
class Worklist:
    """A file of work for a program. `take` gets the program's lines of output and passes the records in them to `keep`;
    `done` counts the records.
    """

    file_name: str
    keep: Callable[[dict[str, Any]], None]
    done: int = 0

    def take(self, line: str) -> None:
        """Takes a line of output. Ignores lines that are not records, or a record that was cut off at the end."""
        if line.startswith('{"id"'):
            try:
                record = json.loads(line)
            except json.JSONDecodeError:
                return
            if record["id"] < 0:  # the record of a line whose id could not be read
                return
            self.done += 1
            self.keep(record)


@contextlib.contextmanager
def worklist(
    text: str, keep: Callable[[dict[str, Any]], None], folder: AbstractContextManager[Path] | None = None
) -> Iterator[Worklist]:
    """A file with that text in `folder`, by default a temporary directory of this machine."""
    with folder or tempfile.TemporaryDirectory(prefix="collwise-") as directory:
        file = Path(directory, "list")
        file.write_text(text, encoding="utf-8")
        yield Worklist(str(file), keep)


def case_lines(cases: Sequence[Case]) -> str:
    """The cases as programs/benchmark.c reads them; a case's id is its position."""
    return "".join(
        f"{number} {case.experiment} {case.collective} {case.algorithm} {case.procs} {case.root} "
        f"{case.message_bytes} {case.segment_bytes} {case.parameter} {case.gather_bytes} {case.limit_bytes}\n"
        for number, case in enumerate(cases)
    )
