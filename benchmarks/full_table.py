"""A full decision table by the schedule engine: all collectives, P = 2 to 1024, 24 message sizes, from nothing.

    .venv/bin/python benchmarks/full_table.py [--largest 1024] [--store FILE]

It runs `collwise simulate --engine schedule --margin 1` and `collwise select` on a cluster like Dahu of Grid'5000, with
1,024 nodes and one process on each. The process counts are powers of two and those midway between them, 2, 3, 4, 6, 8,
12 and so on; a row of the table holds from its P up to the next one. At each of them every algorithm is timed at every
size by doubling from 1 B to 8 MiB, with segments of 8 to 128 KiB, so that the table's choices are within its tolerance
of the best ones at all of these points; what cannot be such a choice is not played to its end. A barrier has one size.
The limit is 300 s of wall time on two idle cores; on a busy machine the processor's time says more. With --store the
timings are kept, and those that are there are not made again.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from commands import collwise_command, seconds_of

from collwise.platforms import load_description
from collwise.platforms.description_file import write_description

LIMIT_SECONDS = 300.0
SIZES = "1B:8MiB:x2"


def process_counts(largest: int) -> list[int]:
    """2, 3, 4, 6, 8, 12, ... up to the largest."""
    octaves = [2**k for k in range(1, largest.bit_length())]
    return [count for octave in octaves for count in (octave, octave * 3 // 2) if count <= largest]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--largest", type=int, default=1024, help="the largest P")
    parser.add_argument("--store", help="keep the timings in this file, and use those in it")
    given = parser.parse_args()
    counts = process_counts(given.largest)
    with tempfile.TemporaryDirectory() as folder:
        cluster = Path(folder, "cluster.toml")
        described = replace(load_description("dahu"), name="cluster", nodes=given.largest)
        cluster.write_text(write_description(described), encoding="utf-8")
        table = Path(folder, "table.json")
        what = ["simulate", "--engine", "schedule", "--margin", "1", "--collective", "all", "--sizes", SIZES]
        where = ["--platform", str(cluster), "--ppn", "1", "--procs", ",".join(map(str, counts))]
        store = ["--store", given.store or str(Path(folder, "timings.sqlite"))]
        times = str(Path(folder, "cluster.times"))
        simulate = collwise_command(*what, *where, *store, "-o", times)
        select = collwise_command("select", times, "-o", str(table))
        processor, wall = (sum(both) for both in zip(*map(seconds_of, (simulate, select)), strict=True))
        tables = json.loads(table.read_text(encoding="utf-8"))
    rows = sum(len(row) for one in tables for row in one["rules"].values())
    print(f"{len(tables)} collectives at {len(counts)} process counts from {counts[0]} to {counts[-1]}: {rows} rows")
    print(f"{wall:.1f} s, {processor:.1f} s of processor time; the limit is {LIMIT_SECONDS:.0f} s")
    return 0 if wall <= LIMIT_SECONDS else 1


if __name__ == "__main__":
    sys.exit(main())
