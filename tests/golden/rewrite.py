"""Writes the golden files again: `python -m tests.golden.rewrite [GROUP...]`."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from tests.golden.running import NAMES, file_of, results
from tests.golden.shapes import dumped


def rewrite(groups: list[str]) -> None:
    for group in groups or NAMES:
        started = time.process_time()
        with tempfile.TemporaryDirectory() as folder:
            found = results(group, Path(folder))
        file_of(group).write_text(dumped(found) + "\n", encoding="utf-8")
        print(f"{group}: {len(found)} results, {time.process_time() - started:.1f} s of processor time")


if __name__ == "__main__":
    rewrite(sys.argv[1:])
