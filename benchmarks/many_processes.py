"""Contests of all algorithms on 28,672 processes, 512 nodes of 56 at one switch, from nothing.

    .venv/bin/python benchmarks/many_processes.py [--nodes 512] [--ppn 56] [--topology TOPOLOGY]

`collwise platforms new` describes the cluster, and `collwise simulate --engine schedule --margin 0` times allgather,
allreduce, alltoall and bcast at ten sizes from 8 B to 2 MiB, with every algorithm that can be chosen at that P. What
cannot be the fastest is not played to its end. The limit is 300 s of wall time on two idle cores. At one switch
processes that do the same are played once for all of them; with a TOPOLOGY such as
fat-tree:nodes_per_switch=32,oversubscription=2 only those at switches that are alike, which takes many times as long.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from resource import RUSAGE_CHILDREN, getrusage

from commands import collwise_command, seconds_of

LIMIT_SECONDS = 300.0
COLLECTIVES = ("allgather", "allreduce", "alltoall", "bcast")
SIZES = "8B:2MiB:x4"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=512, help="the number of nodes")
    parser.add_argument("--ppn", type=int, default=56, help="processes on each node")
    parser.add_argument("--topology", help="the nodes' network, as for 'collwise platforms new'")
    given = parser.parse_args()
    node = ["--cpus", "2", "--cores", str(given.ppn), "--ppn", str(given.ppn), "--memory-gbytes", "40"]
    network = ["--interconnect", "infiniband-ndr200", *(["--topology", given.topology] if given.topology else [])]
    where = ["--platform", "large.toml", "--ppn", str(given.ppn), "--procs", str(given.nodes * given.ppn)]
    how = ["--engine", "schedule", "--margin", "0", "--store", "t.sqlite", "--sizes", SIZES]
    processor = wall = 0.0
    with tempfile.TemporaryDirectory() as folder:
        new = collwise_command("platforms", "new", "large", "--nodes", str(given.nodes), *node, *network)
        seconds_of(new, cwd=folder)
        for one in COLLECTIVES:
            own_processor, own_wall = seconds_of(
                collwise_command("simulate", "--collective", one, *where, *how), cwd=folder
            )
            print(f"{one}: {own_wall:.1f} s, {own_processor:.1f} s of processor time", flush=True)
            processor, wall = processor + own_processor, wall + own_wall
    print(f"{wall:.1f} s, {processor:.1f} s of processor time, {getrusage(RUSAGE_CHILDREN).ru_maxrss / 2**10:.0f} MiB")
    print(f"limit {LIMIT_SECONDS:.0f} s: {'met' if wall <= LIMIT_SECONDS else 'not met'}")
    return 0 if wall <= LIMIT_SECONDS else 1


if __name__ == "__main__":
    sys.exit(main())
