"""Decision tables of a cluster with a fat tree and 32 processes a node, as the README describes it, from nothing.

    .venv/bin/python benchmarks/fat_tree_decisions.py [--collectives NAMES] [--sizes SIZES] [--exhaustive]

64 nodes at four switches, 2:1 oversubscribed, are described by one `collwise platforms new`. One `collwise simulate
--engine schedule --algorithms all,by-node --margin 1` and a `collwise select` decide for allreduce, bcast and alltoall
at P = 64 and 2048, at 18 sizes by doubling from 8 B to 1 MiB. The limit is 120 s of wall time on two idle cores. What
cannot be chosen is not played to its end, and not recorded where a bound shows that. `--exhaustive` plays all cases
before, which takes many times as long; the digest of the tables is the same.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

from commands import collwise_command, seconds_of

from collwise.common.units import parse_sizes
from collwise.platforms import load
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import ENGINES, SimulationContext
from collwise.validation.select.consumers import algorithms_for
from collwise.validation.times.grid import Grid

LIMIT_SECONDS = 120.0
COLLECTIVES = "allreduce,bcast,alltoall"
CLUSTER = (
    "--nodes 64 --interconnect infiniband-hdr --cpus 2 --cores 64 --ppn 32 --topology fat-tree:"
    "nodes_per_switch=16,oversubscription=2 --memory-gbytes 80"
)
PROCS, SIZES, SEGMENT_BYTES = (64, 2048), "8B:1MiB:x2", 65536
CASES = "--procs 64,2048 --segments 64KiB --algorithms all,by-node --engine schedule --for collwise --margin 1"


def play_all(collectives: Sequence[str], sizes: str, folder: str) -> None:
    """Stores the times of all cases."""
    grids = [
        Grid.of(
            one, PROCS, tuple(parse_sizes(sizes)), 32, (SEGMENT_BYTES,), algorithms_for(one, "collwise", by_node=True)
        )
        for one in collectives
    ]
    with Store(Path(folder, "t.sqlite")) as store:
        context = SimulationContext(store, engine=ENGINES["schedule"])
        context.simulate(load(f"{folder}/big.toml"), [case for grid in grids for case in grid.cases()]).complete()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--collectives", default=COLLECTIVES, help=f"of {COLLECTIVES}")
    parser.add_argument("--sizes", default=SIZES, help="message sizes")
    parser.add_argument("--exhaustive", action="store_true", help="play every case to its end")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        seconds_of(collwise_command("platforms", "new", "big", *CLUSTER.split()), cwd=folder)
        if given.exhaustive:
            play_all(given.collectives.split(","), given.sizes, folder)
        what = ["--platform", "big.toml", "--collective", given.collectives, *CASES.split(), "--sizes", given.sizes]
        simulate = collwise_command("simulate", *what, "--store", "t.sqlite", "-o", "big.times")
        select = collwise_command("select", "big.times", "--for", "collwise", "-o", "table.json")
        processor, wall = (
            sum(both) for both in zip(*(seconds_of(one, cwd=folder) for one in (simulate, select)), strict=True)
        )
        tables = json.loads(Path(folder, "table.json").read_text(encoding="utf-8"))
    rules = [one["rules"] for one in (tables if isinstance(tables, list) else [tables])]
    digest = hashlib.sha256(json.dumps(rules, sort_keys=True).encode()).hexdigest()[:12]
    rows = sum(len(row) for one in rules for row in one.values())
    print(f"{given.collectives}: {rows} rows of digest {digest}")
    print(f"{wall:.1f} s, {processor:.1f} s of processor time, {getrusage(RUSAGE_CHILDREN).ru_maxrss / 2**10:.0f} MiB")
    if (given.collectives, given.sizes, given.exhaustive) == (COLLECTIVES, SIZES, False):
        print(f"limit {LIMIT_SECONDS:.0f} s: {'met' if wall <= LIMIT_SECONDS else 'not met'}")
    return 0 if wall <= LIMIT_SECONDS else 1


if __name__ == "__main__":
    sys.exit(main())
