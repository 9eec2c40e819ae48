"""The gain of unmodified programs in C, Fortran and Python from a table on a test bed; writes docs/programs.md.

    .venv/bin/python benchmarks/programs.py [--platform FILE] [--launches N] [-o docs/programs.md]

A test bed of 8 nodes at 50 Mbit/s is made. Each program runs once under libcollwise's report, `profile` chooses a table
by the schedule engine on the platform (the bed's nominal one, or FILE, a calibrated one), and the program then runs in
turn with and without it. Gains are predicted by the schedule engine, simulated by SMPI, and achieved. The system's
mpi4py runs the Python program. Exit code 1 if outputs differ or a table's algorithms do not run.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import collwise
from collwise.platforms import HostPlatform
from collwise.simulator.execution.interposed import LIBRARY
from collwise.simulator.execution.targets import ExecutionTarget, LaunchRequest
from collwise.simulator.sweeps.method import half_width
from collwise.studies.reports.markdown import markdown_table
from collwise.validation.testbed.bed import temporarily_up
from collwise.validation.testbed.shape import Shape, simulated_platform
from collwise.validation.testbed.target import TestBed

SHAPE = Shape(8, 50e6)
SOURCES = Path(__file__).with_name("programs")
PROGRAMS = {"subspace": "C", "transposition": "Fortran", "kmeans": "Python"}
COLUMNS = ("program", "calls", "table", "without (s)", "with (s)", "predicted", "simulated", "achieved", "output")
_TIME_LIMIT_SECONDS = 60.0


@dataclass(frozen=True)
class Row:
    """A program's results; times are those of the launches without and with the table, in turn."""

    name: str
    calls: str
    rules: tuple[str, ...]
    predicted: float
    simulated: float
    without: tuple[float, ...]
    tuned: tuple[float, ...]
    is_identical: bool
    is_used: bool

    @property
    def gain(self) -> tuple[float, float]:
        """The mean of the launches' gains, and the half-width of its 95 % interval."""
        gains = [one / other for one, other in zip(self.without, self.tuned, strict=True)]
        return statistics.mean(gains), half_width(gains)


def built(name: str, folder: Path) -> tuple[str, ...]:
    """The words that run the program, as a user would build it."""
    language = PROGRAMS[name]
    if language == "Python":
        return "/usr/bin/python3", str(SOURCES / f"{name}.py")
    compiler, suffix = ("mpicc.openmpi", "c") if language == "C" else ("mpifort.openmpi", "f90")
    command = [compiler, "-O2", str(SOURCES / f"{name}.{suffix}"), "-o", str(folder / name)]
    subprocess.run(command, check=True, cwd=folder)
    return (str(folder / name),)


def launch(
    target: ExecutionTarget, procs: int, command: Sequence[str], variables: Mapping[str, str]
) -> tuple[str, float]:
    """Runs the program; `variables` are libcollwise's, without which it is not loaded.

    Returns its output without its time, and that time in seconds.
    """
    loaded = {"LD_PRELOAD": str(target.installation.program(LIBRARY)), **variables} if variables else {}
    program, *args = command
    request = LaunchRequest(program, procs, tuple(args), _TIME_LIMIT_SECONDS, environment=loaded)
    run = target.launch(request)
    if run.returncode != 0:
        raise SystemExit(f"{Path(command[-1]).stem}: {run.problem}")
    lines = list(run.output_lines)
    [seconds] = [float(line.split()[1]) for line in lines if line.startswith("seconds ")]
    return "\n".join(line for line in lines if not line.startswith("seconds ")), seconds


def expected_gain(report: Path, platform: HostPlatform, engine: str, store: Path, seconds: float) -> tuple[float, str]:
    """The gain of the whole program by an engine, for the calls of its report, and the table that it chooses.

    The program takes `seconds` without the table. What it does besides its collectives stays as it is.
    """
    with collwise.session(store, engine) as context:
        found = collwise.profile(report, platform=platform, context=context)
    calls = found.frame().dropna(subset=["default_seconds", "tuned_seconds"])
    default = float((calls.calls * calls.default_seconds).sum())
    tuned = float((calls.calls * calls.tuned_seconds).sum())
    other = max(seconds - default, 0.0)
    return (other + default) / (other + tuned), found.rules()


def examined(target: ExecutionTarget, name: str, command: Sequence[str], platform: HostPlatform, launches: int) -> Row:
    """The program's profile, its table, and its runs in turn."""
    procs = SHAPE.nodes
    with target.shared_directory() as folder:
        report, table, after = folder / "before.json", folder / "table", folder / "after.json"
        text, seconds = launch(target, procs, command, {"COLLWISE_REPORT": str(report)})
        store = folder / "store.sqlite"
        predicted, rules = expected_gain(report, platform, "schedule", store, seconds)
        simulated, _ = expected_gain(report, platform, "smpi", store, seconds)
        table.write_text(rules, encoding="utf-8")
        tuned = {"COLLWISE_TABLE": str(table)}
        used, _ = launch(target, procs, command, {**tuned, "COLLWISE_REPORT": str(after)})
        pairs = [[launch(target, procs, command, how) for how in ({}, tuned)] for _ in range(launches)]
        chosen = chosen_by(rules)
        ran = {(row["collective"], row.get("algorithm")) for row in json.loads(after.read_text())["rows"]}
        calls = sorted({row["collective"] for row in json.loads(report.read_text())["rows"]})
    texts = {text, used, *(one for pair in pairs for one, _ in pair)}
    return Row(
        name,
        ", ".join(calls),
        tuple(sorted({f"{collective} {algorithm}" for collective, algorithm in chosen})),
        predicted,
        simulated,
        tuple(taken for (_, taken), _ in pairs),
        tuple(taken for _, (_, taken) in pairs),
        len(texts) == 1,
        bool(chosen) and chosen <= ran,
    )


def chosen_by(rules: str) -> set[tuple[str, str]]:
    """The collectives and algorithms that a table names."""
    lines = [line.split() for line in rules.splitlines() if line and not line.startswith("#")]
    return {(words[0], words[4]) for words in lines if words[4] != "default"}


def page(rows: Sequence[Row], launches: int, platform: str) -> str:
    """The text of the page."""
    table = []
    for row in rows:
        gain, half = row.gain
        table.append(
            (
                f"{row.name} ({PROGRAMS[row.name]})",
                row.calls,
                "; ".join(row.rules),
                f"{statistics.mean(row.without):.3f}",
                f"{statistics.mean(row.tuned):.3f}",
                f"x {row.predicted:.2f}",
                f"x {row.simulated:.2f}",
                f"x {gain:.2f} ± {half:.2f}",
                "identical" if row.is_identical else "DIFFERS",
            )
        )
    return (
        "# Programs on a test bed\n\n<!-- Written by benchmarks/programs.py; do not edit. -->\n\n"
        f"Three unmodified programs (`benchmarks/programs/`) on a test bed of {SHAPE.title}, without libcollwise and "
        "with a table that `profile` chose for their calls by the schedule engine on "
        f"{platform}. Times are those that the programs print, means of {launches} launches each, in turn; the "
        "achieved gain is the mean of the launches' ratios with its 95 % interval. Predicted and simulated gains are "
        "those of the whole program, if its collectives take the times of the schedule engine and of SMPI, and the "
        "rest of it what it takes besides these. "
        "[interposing.md](interposing.md#which-calls-matter-and-what-would-i-gain) says how.\n\n"
        + markdown_table(COLUMNS, table)
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--platform", help="a platform's name or file; by default the bed's nominal one")
    parser.add_argument("--launches", type=int, default=6)
    parser.add_argument("-o", "--output", type=Path, default=Path(__file__).parents[1] / "docs" / "programs.md")
    options = parser.parse_args()
    platform = simulated_platform(SHAPE) if options.platform is None else collwise.platform(options.platform)
    with tempfile.TemporaryDirectory() as folder, temporarily_up(SHAPE, "programs") as bed:
        target = TestBed(bed)
        rows = []
        for name in PROGRAMS:
            row = examined(target, name, built(name, Path(folder)), platform, options.launches)
            print(row, flush=True)
            rows.append(row)
    title = "its nominal platform" if options.platform is None else platform.title
    options.output.write_text(page(rows, options.launches, title), encoding="utf-8")
    return 0 if all(row.is_identical and row.is_used for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
