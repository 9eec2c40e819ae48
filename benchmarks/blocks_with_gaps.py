"""Processor time of an MPI_Allgatherv of blocks with gaps in SMPI, through libcollwise.so against SMPI's own.

    .venv/bin/python benchmarks/blocks_with_gaps.py [--procs 64] [--bytes 65536] [--simgrid VERSION]

The elements are contiguous (chars), have holes (pairs of ints), or are adjacent and start above 0; SMPI itself copies
the last kind as contiguous. The time of a run with empty blocks is subtracted, and the least time of three runs is
used.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from commands import seconds_of

from collwise.simulator.execution.installations import smpi_installation

SOURCE = Path(__file__).with_suffix(".c")
KINDS = ("char", "pairs", "adjacent")
# SMPI's own default algorithm.
OURS = ["--algorithms", "allgatherv=linear"]
RUNS = 3
MAX_TIMES_SLOWER = 5.0


def cpu_seconds(options: argparse.Namespace, program: Path, how: list[str], kind: str, block_bytes: int) -> float:
    where = ["--library", "smpi", "--platform", "gros", "--ppn", "1"]
    command = [sys.executable, "-m", "collwise.studies", "program", "run", *where]
    if options.simgrid:
        command += ["--simgrid", options.simgrid]
    command += [*how, "--procs", str(options.procs), "--", str(program), kind, str(block_bytes)]
    return min(seconds_of(command, stdout=None)[0] for _ in range(RUNS))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--procs", type=int, default=64)
    parser.add_argument("--bytes", type=int, default=64 * 1024)
    parser.add_argument("--simgrid")
    options = parser.parse_args()
    compiler = smpi_installation(options.simgrid).launcher.with_name("smpicc")
    worst = 0.0
    with tempfile.TemporaryDirectory(prefix="collwise-") as directory:
        program = Path(directory) / "blocks_with_gaps"
        subprocess.run([str(compiler), "-std=gnu11", "-O2", str(SOURCE), "-o", str(program)], check=True)
        print(f"P = {options.procs}, blocks of {options.bytes} bytes")
        print(f"{'elements':<10} {'SMPI (s)':>9} {'ours (s)':>9} {'ratio':>6}")
        for kind in KINDS:
            own, ours = (
                cpu_seconds(options, program, how, kind, options.bytes) - cpu_seconds(options, program, how, kind, 0)
                for how in (["--plain"], OURS)
            )
            worst = max(worst, ours / own)
            print(f"{kind:<10} {own:>9.2f} {ours:>9.2f} {ours / own:>6.1f}")
    print(f"at most {worst:.1f} times SMPI's own; the limit is {MAX_TIMES_SLOWER:.0f}")
    return 0 if worst < MAX_TIMES_SLOWER else 1


if __name__ == "__main__":
    sys.exit(main())
