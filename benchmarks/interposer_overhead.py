"""Time that libcollwise.so adds to calls between two processes, against the same calls by PMPI in the same run.

.venv/bin/python benchmarks/interposer_overhead.py [openmpi|mpich] [--blocks N] [--sizes 8,64] [--least]

First where MPI's own algorithm runs, for an allreduce of 8 bytes: at most 3 % may be added. Then where ours does, for
the common collectives; Open MPI is forced to run the same algorithm by itself, and ours may take 1.1 times as long or
30 ns more. Blocks of 2000 calls of both alternate (of less where messages are long); times are medians of N such pairs.
Where other programs use the processors, --least compares the quickest blocks of both instead. Processes are bound to
cores.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from collwise.algorithms.catalogue import Catalogue
from collwise.common.units import format_size
from collwise.simulator.execution.installations import Installation, mpi_installation

LIMIT_PERCENT = 3.0
LIMIT_RATIO, LIMIT_NANOSECONDS = 1.1, 30.0
# Rules for 29 message sizes, all of which leave the call to MPI.
SOME_RULES = "".join(f"allreduce 2 1 {2**bits if bits else 0} default\n" for bits in range(29))
SIZES = (8, 64, 1024, 8192, 65536)
SAME = {
    "bcast": "binomial",
    "reduce": "binomial",
    "allreduce": "recursive_doubling",
    "gather": "binomial",
    "scatter": "binomial",
    "allgather": "ring",
    "alltoall": "pairwise",
    "barrier": "recursive_doubling",
}


def tables() -> dict[str, str]:
    """Decision tables by title, under which MPI's own algorithm runs."""
    ours = Catalogue.load().collective("allreduce").selectable[0]
    return {
        "no table": "",
        "a table without allreduce": "bcast 2 1 0 binomial\n",
        "a table, default for allreduce": SOME_RULES,
        "a table, default for 8 bytes": SOME_RULES + f"allreduce 2 1 {2**29} {ours}\n",
    }


def by_least(took: dict[str, float]) -> dict[str, float]:
    """The same with the quickest blocks of both in place of the medians."""
    plain, through = took["plain_least"], took["through_least"]
    added = through - plain
    return took | {"plain": plain, "through": through, "added": added, "added_low": added, "added_high": added}


def measure(
    mpi: Installation, table: str, words: Sequence[str], least: bool, settings: Mapping[str, str] | None = None
) -> list[dict[str, float]]:
    """What the program prints under a decision table, with further variables."""
    with tempfile.TemporaryDirectory(prefix="collwise-") as directory:
        variables = {"LD_PRELOAD": str(mpi.program("libcollwise.so")), **(settings or {})}
        if table:
            Path(directory, "table").write_text(table)
            variables["COLLWISE_TABLE"] = str(Path(directory, "table"))
        command = [str(mpi.launcher), "-np", "2"]
        for name, value in variables.items():
            command += ["-x", f"{name}={value}"] if mpi.library == "openmpi" else ["-genv", name, value]
        command += ["--bind-to", "core"] if mpi.library == "openmpi" else ["-bind-to", "core"]
        environment = os.environ | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        command += [str(mpi.program("interposer_overhead")), *words]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    took = [json.loads(line) for line in done.stdout.splitlines()]
    return [by_least(one) for one in took] if least else took


def check_forwarded(mpi: Installation, blocks: int, least: bool) -> bool:
    """Prints what is added where MPI's own algorithm runs; returns whether that is little enough."""
    print(
        f"{'allreduce of 8 bytes by MPI':<34} {'PMPI (ns)':>10} {'added (ns)':>11} {'quartiles':>17} {'added (%)':>10}"
    )
    worst = 0.0
    for title, table in tables().items():
        [took] = measure(mpi, table, [str(4 * blocks), "allreduce", "8"], least)
        percent = 100 * took["added"] / took["plain"]
        worst = max(worst, percent)
        quartiles = f"{took['added_low']:.1f} to {took['added_high']:.1f}"
        print(f"{title:<34} {took['plain']:>10.1f} {took['added']:>11.1f} {quartiles:>17} {percent:>10.1f}")
    print(f"most added: {worst:.1f} %; the limit is {LIMIT_PERCENT:.0f} %\n")
    return worst < LIMIT_PERCENT


def check_same(mpi: Installation, blocks: int, least: bool, some_sizes: Sequence[int]) -> bool:
    """Prints the times of the same algorithms inside libcollwise and MPI; returns whether they are close enough."""
    version = ".".join(mpi.version.split(".")[:2])
    print(
        f"{'the same algorithm':<32} {'bytes':>8} {mpi.library + ' (ns)':>13} {'ours (ns)':>10} {'ratio':>6}  too slow"
    )
    slow = points = 0
    for collective, algorithm in SAME.items():
        settings = {}
        if mpi.library == "openmpi":
            number = Catalogue.load().algorithm(collective, algorithm).openmpi[version]
            settings = {
                "OMPI_MCA_coll_tuned_use_dynamic_rules": "1",
                f"OMPI_MCA_coll_tuned_{collective}_algorithm": str(number),
                "OMPI_MCA_coll": "^han,sm",
            }
        sizes = ["0"] if collective == "barrier" else [str(size) for size in some_sizes]
        table, words = f"{collective} 2 1 0 {algorithm}\n", [str(blocks), collective, *sizes]
        for took in measure(mpi, table, words, least, settings):
            is_slow = took["added"] > max((LIMIT_RATIO - 1) * took["plain"], LIMIT_NANOSECONDS)
            slow, points = slow + is_slow, points + 1
            print(
                f"{collective + ' ' + algorithm:<32} {format_size(int(took['bytes'])):>8} {took['plain']:>13.1f} "
                f"{took['through']:>10.1f} {took['through'] / took['plain']:>6.2f}  {'yes' if is_slow else ''}"
            )
    print(f"{slow} of {points} points take over {LIMIT_RATIO:g} times and {LIMIT_NANOSECONDS:g} ns more")
    return slow == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", nargs="?", default="openmpi", choices=("openmpi", "mpich"))
    parser.add_argument("--blocks", type=int, default=50, help="pairs of blocks")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="message sizes in bytes, by commas")
    parser.add_argument("--least", action="store_true", help="compare the quickest blocks, not the medians")
    options = parser.parse_args()
    mpi = mpi_installation(options.library)
    print(mpi.label)
    sizes = [int(size) for size in options.sizes.split(",")]
    good = [
        check_forwarded(mpi, options.blocks, options.least),
        check_same(mpi, options.blocks, options.least, sizes),
    ]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
