"""How our programs get lists to work through, in a file, and say of each line that it is done, by a record of JSON."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
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
def worklist(
    text: str, keep: Callable[[dict[str, Any]], None], folder: AbstractContextManager[Path] | None = None
) -> Iterator[Worklist]:
    """A file of that text in `folder`, by default a temporary one of this machine."""
    with folder or tempfile.TemporaryDirectory(prefix="collwise-") as directory:
        file = Path(directory, "list")
        file.write_text(text, encoding="utf-8")
        yield Worklist(str(file), keep)
