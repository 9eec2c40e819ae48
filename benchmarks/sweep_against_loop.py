"""Wall time of a sweep by `collwise simulate` against a shell loop with one smpirun per case, with an empty store.

    .venv/bin/python benchmarks/sweep_against_loop.py [--platform grisou] [--collective bcast] [--procs 90]

Prints both times, their ratio, and the largest difference between the simulated times of the same cases.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from commands import collwise_command, seconds_of

from collwise.common.folders import SOURCES
from collwise.platforms import load
from collwise.simulator.execution.installations import smpi_installation
from collwise.simulator.execution.processes import case_lines
from collwise.simulator.execution.smpirun import smpi_files, smpirun_command
from collwise.simulator.store import Store
from collwise.simulator.sweeps.smpi_runner import SmpiRunner
from collwise.simulator.timing import Case
from collwise.validation.times.defaults import PAPER_SIZES, SEGMENT_BYTES
from collwise.validation.times.grid import Grid


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--platform", default="grisou")
    parser.add_argument("--collective", default="bcast", choices=list(PAPER_SIZES))
    parser.add_argument("--procs", type=int, default=90)
    options = parser.parse_args()
    platform = load(options.platform)
    sizes, ppn = PAPER_SIZES[options.collective], platform.default_processes_per_node
    cases = Grid.of(options.collective, (options.procs,), sizes, ppn, (SEGMENT_BYTES,)).cases()
    with tempfile.TemporaryDirectory() as folder:
        loop_seconds, by_loop = shell_loop(platform, cases, Path(folder))
        sweep_seconds, by_sweep = sweep(options, cases, Path(folder))
    worst = max(abs(by_loop[case] - by_sweep[case]) for case in cases)
    print(f"{options.collective} on {options.platform}, P = {options.procs}: {len(cases)} cases")
    print(f"shell loop, one smpirun per case: {loop_seconds:.2f} s")
    print(f"collwise simulate, empty store: {sweep_seconds:.2f} s")
    print(f"ratio: {loop_seconds / sweep_seconds:.2f}")
    print(f"largest difference of simulated times: {worst:.3g} s (timing precision of the engine: 1e-9 s)")
    return 0 if worst <= 1e-9 else 1


def shell_loop(platform, cases: list[Case], folder: Path) -> tuple[float, dict[Case, float]]:
    smpi = smpi_installation()
    script = ["set -e"]
    with smpi_files(platform, cases[0].procs, cases[0].processes_per_node) as files:
        for number, case in enumerate(cases):
            case_file = folder / f"case-{number}"
            case_file.write_text(case_lines([case]))
            command = smpirun_command(smpi, files, case.procs, smpi.program("benchmark"))
            script.append(" ".join([*command, str(case_file)]))
        (folder / "loop.sh").write_text("\n".join(script) + "\n")
        started = time.perf_counter()
        done = subprocess.run(["sh", str(folder / "loop.sh")], capture_output=True, text=True, check=True)
        elapsed = time.perf_counter() - started
    seconds = [json.loads(line)["seconds"] for line in done.stdout.splitlines()]
    return elapsed, dict(zip(cases, seconds, strict=True))


def sweep(options: argparse.Namespace, cases: list[Case], folder: Path) -> tuple[float, dict[Case, float]]:
    store = folder / "timings.sqlite"
    command = collwise_command("simulate", "--platform", options.platform, "--collective", options.collective)
    command += ["--procs", str(options.procs), "--segments", str(SEGMENT_BYTES), "--store", str(store)]
    command += ["--sizes", ",".join(map(str, PAPER_SIZES[options.collective]))]
    _, elapsed = seconds_of(command, stderr=subprocess.DEVNULL, cwd=SOURCES)
    with Store(store) as opened:
        timings = opened.timings(SmpiRunner(load(options.platform)).configuration)
    return elapsed, {case: timings[case].seconds for case in cases}


if __name__ == "__main__":
    sys.exit(main())
