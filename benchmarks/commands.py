"""Commands that benchmarks run, and the seconds that these, functions and imports take.

    .venv/bin/python benchmarks/commands.py OTHER [--names select,export] [--pairs 15]

This times what a name of `import collwise` imports, here and in OTHER, in turn: the folder of another checkout, or a
revision of this one. A line has the least processor seconds of both, and the median and the range of the ratios of the
pairs. What a function imports when it is called is not part of it.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from typing import Any

SOURCES = Path(__file__).resolve().parents[1]
_FLOORS = ("algorithms", "common", "models", "platforms", "simulator", "studies", "validation")
_IMPORT = """
import sys, time
sys.path.insert(0, sys.argv[1])
import collwise
started = time.process_time()
getattr(collwise, sys.argv[2])
print(time.process_time() - started, collwise.__file__)
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("other", help="the folder of another checkout, or a revision of this one")
    parser.add_argument("--names", default="select", help="names of the package, separated by commas")
    parser.add_argument("--pairs", type=int, default=15)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        here = importable(SOURCES, Path(folder, "here"))
        there = importable(checkout(options.other, Path(folder, "other")), Path(folder, "there"))
        print(f"{'':24} {'here (s)':>9} {'there (s)':>9} {'ratio':>7}   range")
        for name in options.names.split(","):
            # The first import of each compiles the modules.
            pairs = [(import_seconds(here, name), import_seconds(there, name)) for _ in range(options.pairs + 1)][1:]
            mine, others = (min(seconds) for seconds in zip(*pairs, strict=True))
            ratios = [one / other for one, other in pairs]
            spread = f"{min(ratios):.3f} to {max(ratios):.3f}"
            print(f"{name:24} {mine:9.3f} {others:9.3f} {statistics.median(ratios):7.3f}   {spread}", flush=True)
    return 0


def checkout(other: str, empty: Path) -> Path:
    """The folder of that name, or else the sources of that revision, unpacked into the `empty` folder."""
    if Path(other).is_dir():
        return Path(other).resolve()
    empty.mkdir()
    archive = subprocess.run(["git", "archive", other], cwd=SOURCES, stdout=subprocess.PIPE)
    if archive.returncode:
        sys.exit(f"neither a folder nor a revision: {other}")
    subprocess.run(["tar", "-x", "-C", str(empty)], input=archive.stdout, check=True)
    return empty


def importable(sources: Path, folder: Path) -> Path:
    """The `folder`, made with the package collwise as setup.py maps it to the folders of the sources."""
    package = folder / "collwise"
    package.mkdir(parents=True)
    api = [path.relative_to(sources) for path in sources.joinpath("studies/api").glob("*.py")]
    for path in (*map(Path, _FLOORS), *api):
        package.joinpath(path.name).symlink_to(sources / path)
    return folder


def import_seconds(folder: Path, name: str) -> float:
    """Processor seconds that a new Python needs to import what that name of the package in the folder needs."""
    command = [sys.executable, "-P", "-c", _IMPORT, str(folder), name]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"collwise.{name} of {folder.name}: {done.stderr.splitlines()[-1]}")
    seconds, file = done.stdout.split()
    assert Path(file).is_relative_to(folder), file
    return float(seconds)


def collwise_command(*words: str) -> list[str]:
    return [sys.executable, "-P", "-m", "collwise.studies", *words]


def seconds_of(command: Sequence[str], **options: Any) -> tuple[float, float]:
    """Processor seconds of a command and its children, and wall seconds; `options` are those of subprocess.run."""
    before, started = getrusage(RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, **{"stdout": subprocess.DEVNULL} | options)
    after, wall = getrusage(RUSAGE_CHILDREN), time.perf_counter() - started
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


def min_seconds(work: Callable[[], object], runs: int, together: float = 0.0) -> float:
    """The least processor time of several runs, at least of as many as take so many seconds together.

    Other programs on the machine hardly change it.
    """
    found: list[float] = []
    while len(found) < runs or sum(found) < together:
        started = time.process_time()
        work()
        found.append(time.process_time() - started)
    return min(found)


if __name__ == "__main__":
    sys.exit(main())
