"""Commands that benchmarks run, and the seconds that these take."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
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
