"""Commands that benchmarks run, and the seconds that these and functions take."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from resource import RUSAGE_CHILDREN, getrusage
from typing import Any


def collwise_command(*words: str) -> list[str]:
    return [sys.executable, "-P", "-m", "collwise.studies", *words]


def seconds_of(command: Sequence[str], **options: Any) -> tuple[float, float]:
    """Processor seconds of a command and its children, and wall seconds; `options` are those of subprocess.run."""
    before, started = getrusage(RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, **{"stdout": subprocess.DEVNULL} | options)
    after, wall = getrusage(RUSAGE_CHILDREN), time.perf_counter() - started
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


def least_seconds(work: Callable[[], object], runs: int, together: float = 0.0) -> float:
    """The least processor time of several runs, at least of as many as take so many seconds together.

    Other programs on the machine hardly change it.
    """
    found: list[float] = []
    while len(found) < runs or sum(found) < together:
        started = time.process_time()
        work()
        found.append(time.process_time() - started)
    return min(found)
