"""Measured times that nobody measured: from fixed formulas, as results of a script of ours, and as three launches.

They are made by additions, multiplications and divisions of exact numbers, so that they are the same everywhere. Some
choices are nearly equal and have intervals that overlap, some cases are missing, and MPI's own collectives are timed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from collwise.simulator.store import Store
from collwise.simulator.sweeps.method import Method, Precision
from collwise.simulator.sweeps.mpi_runner import measured_configuration, timing_from_record
from collwise.simulator.timing import Case, Timing

PROCS, SIZES, SEGMENTS = (4, 6, 16), (1024, 8192, 65536, 1 << 20), (8192, 65536)
ALGORITHMS = {
    "bcast": {"linear": (0,), "chain": SEGMENTS, "binary": SEGMENTS, "binomial": SEGMENTS, "scatter_allgather": (0,)},
    "gather": {"linear": (0,), "linear_sync": (8192,), "binomial": (0,)},
    "gatherv": {"linear": (0,), "linear_nonblocking": (0,), "chain": SEGMENTS},
    "scatter": {"linear": (0,), "linear_nonblocking": (0,), "binomial": (0,)},
    "scatterv": {"linear": (0,), "linear_nonblocking": (0,), "chain": SEGMENTS},
    "allgather": {"bruck": (0,), "recursive_doubling": (0,), "ring": (0,), "neighbor_exchange": (0,)},
    "allgatherv": {"bruck": (0,), "ring": (0,), "neighbor_exchange": (0,)},
    "alltoall": {"linear": (0,), "pairwise": (0,), "bruck": (0,)},
    "alltoallv": {"linear": (0,), "pairwise": (0,)},
    "barrier": {"linear": (0,), "double_ring": (0,), "recursive_doubling": (0,), "bruck": (0,), "tree": (0,)},
    "reduce": {"linear": (0,), "chain": SEGMENTS, "binary": SEGMENTS, "binomial": SEGMENTS, "rabenseifner": (0,)},
    "allreduce": {"non_overlapping": (0,), "recursive_doubling": (0,), "ring": (0,), "segmented_ring": SEGMENTS},
    "reduce_scatter": {"non_overlapping": (0,), "recursive_halving": (0,), "ring": (0,), "butterfly": (0,)},
    "reduce_scatter_block": {"recursive_halving": (0,), "recursive_doubling": (0,), "butterfly": (0,)},
    "scan": {"linear": (0,), "recursive_doubling": (0,), "binomial": (0,)},
    "exscan": {"linear": (0,), "recursive_doubling": (0,), "binomial": (0,)},
}
POWER_OF_TWO = {"recursive_doubling": ("allgather",), "butterfly": (), "recursive_halving": ()}
LAUNCHED = ("bcast", "allreduce")
METHOD = Method(precision=Precision(10, 10))


def cases(counts: Sequence[int] = PROCS) -> Iterator[Case]:
    """The cases that were measured, with MPI's own collectives."""
    for collective, algorithms in ALGORITHMS.items():
        for procs in counts:
            for size in SIZES if collective != "barrier" else (0,):
                for algorithm, segments in algorithms.items():
                    if procs & (procs - 1) and collective in POWER_OF_TWO.get(algorithm, ()):
                        continue
                    for segment in segments:
                        case = Case(collective, algorithm, procs, size, segment_bytes=segment)
                        if _share("missing", case) >= 0.08:
                            yield case
                yield Case(collective, "-", procs, size, experiment="builtin")


def seconds_of(case: Case) -> float:
    """Latencies and bytes, by up to 40 % more for one choice than for another; each tenth one nearly as another."""
    rounds = case.procs.bit_length()
    base = 2e-5 * rounds + 4e-10 * case.message_bytes * (1 + case.procs / 16)
    far = _share("far", case)
    return base * (1.02 if far < 0.3 else 1 + 0.4 * far)


def record_of(case: Case, launch: int = 1) -> dict[str, Any]:
    """The record that the benchmark program prints; one case in fifteen has no interval."""
    seconds = seconds_of(case) * (1 + 0.02 * _share(f"launch {launch}", case))
    half_width = seconds * 0.08 * _share(f"width {launch}", case)
    return {
        "seconds": seconds,
        "half_width_seconds": None if _share(f"none {launch}", case) < 1 / 15 else half_width,
        "repetitions": 10,
        "median_seconds": seconds * (1 - 0.01 * _share(f"median {launch}", case)),
        "least_seconds": seconds * 0.9,
        "greatest_seconds": seconds * 1.3,
        "late_starts": 0,
        "clock_resolution_seconds": 1e-9,
        "precise": True,
    }


def timing_of(case: Case, launch: int = 1) -> Timing:
    return timing_from_record(case, record_of(case, launch))


def _share(what: str, case: Case) -> float:
    """A number from 0 to 1 that depends on the case and on nothing else."""
    of = f"{what} {case.collective} {case.algorithm} {case.segment_bytes} {case.procs} {case.message_bytes}"
    return int.from_bytes(hashlib.sha256(of.encode()).digest()[:4], "big") / 2**32


def write_results(file: Path) -> None:
    """Writes the results of a script that ran on 16 nodes of Gros."""
    every = list(cases())
    header = {
        "collwise_script": 1,
        "method": asdict(METHOD),
        "sources_digest": "golden",
        "cases": [asdict(case) for case in every],
    }
    hosts = [{"host": f"gros-{number}", "library": "Open MPI v4.1.4, package: golden"} for number in range(1, 17)]
    records = [{"id": number} | record_of(case) for number, case in enumerate(every)]
    file.write_text("".join(json.dumps(line) + "\n" for line in (header, *hosts, *records)))


def store_launches(file: Path) -> None:
    """Puts three launches of a measurement on a cluster `trio` into a store."""
    with Store(file) as store:
        for launch in (1, 2, 3):
            configuration = measured_configuration(
                "trio", "Open MPI 4.1.4", METHOD, {"hosts": "trio-[1-16]", "mapping": "by blocks"}, launch=launch
            )
            timed = [case for case in cases() if case.collective in LAUNCHED]
            store.add(configuration, [timing_of(case, launch) for case in timed])
