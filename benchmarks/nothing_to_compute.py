"""Time of commands that compute nothing: every --help, and a demo whose simulations are all in the store.

    .venv/bin/python benchmarks/nothing_to_compute.py [--demo]

The columns are the processor seconds (user and system) of `./collwise` and its children, the wall seconds, each the
least of three runs, and the ratio of the processor seconds to those of `python -c 'import click'`, which differs less
between machines and loads. The limits are wall seconds on two idle cores. With --demo, a first run of `collwise demo`
fills the default store, which can take minutes, and a second one is timed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import Any

import click
from commands import seconds_of

from collwise.common.folders import SOURCES
from collwise.studies.cli.main import collwise

HELP_LIMIT_SECONDS = 0.4
DEMO_LIMIT_SECONDS = 15.0
QUIET: dict[str, Any] = {"stderr": subprocess.DEVNULL, "cwd": SOURCES}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--demo", action="store_true", help="also time a demo from the store")
    options = parser.parse_args()
    launcher = str(SOURCES / "collwise")
    unit, wall = least([sys.executable, "-c", "import click"])
    print(f"{'':24} {'processor (s)':>13} {'wall (s)':>9} {'ratio':>7}")
    print_row("import click", unit, unit, wall)
    slowest = 0.0
    for name in ("", *collwise.list_commands(click.Context(collwise))):
        processor, wall = least([launcher, *name.split(), "--help"])
        slowest = max(slowest, wall)
        print_row(f"{name} --help".strip(), processor, unit, wall)
    print(f"slowest help: {slowest:.2f} s; the limit is {HELP_LIMIT_SECONDS} s")
    reached = slowest <= HELP_LIMIT_SECONDS
    if options.demo:
        with tempfile.TemporaryDirectory() as folder:
            demo = [launcher, "demo", "--output", folder]
            seconds_of(demo, **QUIET)
            processor, wall = seconds_of(demo, **QUIET)
        print_row("demo, all in the store", processor, unit, wall)
        print(f"the limit is {DEMO_LIMIT_SECONDS:.0f} s")
        reached = reached and wall <= DEMO_LIMIT_SECONDS
    return 0 if reached else 1


def print_row(name: str, processor: float, unit: float, wall: float) -> None:
    print(f"{name:24} {processor:13.3f} {wall:9.3f} {processor / unit:7.1f}", flush=True)


def least(command: Sequence[str]) -> tuple[float, float]:
    processor, wall = zip(*(seconds_of(command, **QUIET) for _ in range(3)), strict=True)
    return min(processor), min(wall)


if __name__ == "__main__":
    sys.exit(main())
