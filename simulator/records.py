"""How our programs get lists to work through, in a file, and say of each line that it is done, by a record of JSON."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any


@dataclass
class Worklist:
    """The file for a program; `take` gets the lines of its output, `keep` the records in them, `done` counts these."""

    file_name: str
    keep: Callable[[dict[str, Any]], None]
    done: int = 0

    def take(self, line: str) -> None:
        """Passes over what is no record, or one that was cut off when the program was ended."""
        if line.startswith('{"id"'):
            try:
                record = json.loads(line)
            except json.JSONDecodeError:
                return
            self.done += 1
            self.keep(record)


@contextlib.contextmanager
def worklist(text: str, keep: Callable[[dict[str, Any]], None]) -> Iterator[Worklist]:
    """A temporary file of that text."""
    with tempfile.NamedTemporaryFile("w", prefix="collwise-", suffix=".txt") as file:
        file.write(text)
        file.flush()
        yield Worklist(file.name, keep)
