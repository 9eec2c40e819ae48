"""Memory of a node: predicted times of the schedule engine beside measured ones, on two processes of this machine.

    .venv/bin/python benchmarks/windows.py [--store FILE] [--every]

Broadcasts, reductions and allreduces from tasks run under Open MPI with messages, shared memory and one-sided
communication. Eight of the measured times give the numbers of a platform's description, which are printed; the schedule
engine predicts the others by these. `--every` prints all times. Times are stored, by default in
results/timings.sqlite. Measuring takes about two minutes, on an idle machine with two cores.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np

import collwise
from collwise.common.project import default_store_path
from collwise.common.units import format_seconds, format_size, parse_size
from collwise.platforms import Calibration, Platform, load_description
from collwise.simulator.schedule.library import Schedule
from collwise.simulator.schedule.networks import network_tables
from collwise.simulator.sweeps.method import Method, Precision
from collwise.simulator.timing import Case
from collwise.studies.cli.output import print_table
from collwise.studies.present.progress import sweep_progress
from collwise.studies.present.shown import Table
from collwise.validation.hierarchy.space import WITHIN
from collwise.validation.times.grid import choice_of

COLLECTIVES, ALGORITHM, PROCS = ("bcast", "reduce", "allreduce"), "tasks_chain", 2
SHORT, CHUNK, MIDDLE, LARGE = 1024, 32 << 10, 64 << 10, 1 << 20
SIZES = (*(SHORT * 4**k for k in range(8)), CHUNK)
SEGMENTS = (64 << 10, 1 << 20)
MESSAGES, SHARED, ONE_SIDED = range(3)
EAGER_LIMIT = 4096
"""Open MPI's for messages within a node."""
APART = 0.1
"""Ways whose measured times differ by this share have a winner."""


def main() -> None:
    """Prints the description's numbers and the comparison."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--store", type=Path, default=default_store_path())
    parser.add_argument("--every", action="store_true")
    arguments = parser.parse_args()
    measured = measure(arguments.store)
    platform, fitted = describe(measured)
    predicted = {case: predict(platform, case) for case in measured}
    if arguments.every:
        print_table(Table("all times", ("case", "measured", "predicted", "error"), every_row(measured, predicted)))
    rows = [row_of(ways, measured, predicted) for ways in by_way(measured)]
    heads = ("collective", "m", "segments", "measured", "predicted", "fastest measured", "predicted as fastest")
    print_table(Table("ways that differ by 10 % and more", heads, [row for row in rows if row is not None]))
    told = [row for row in rows if row is not None]
    for name, sizes in (("up to 1 MiB", range(LARGE + 1)), ("above", range(LARGE + 1, max(SIZES) + 1))):
        for way in (MESSAGES, SHARED, ONE_SIDED):
            errors = [
                abs(predicted[case] / measured[case] - 1)
                for case in measured
                if case not in fitted and case.parameter == way and case.message_bytes in sizes
            ]
            print(f"{name}, {WITHIN[way]}: median error {np.median(errors):.0%}, largest {max(errors):.0%}")
        among = [row for row in told if parse_size(str(row[1])) in sizes]
        right = sum(row[-1] == row[-2] for row in among)
        print(f"{name}: the fastest way is right in {right} of {len(among)} cells")


def measure(store: Path) -> dict[Case, float]:
    """The measured seconds of all cases that could be measured."""
    method = Method(precision=Precision(30, 100), warmup=3)
    with collwise.session(store, progress=sweep_progress) as context:
        found = {
            name: collwise.measure(
                name,
                PROCS,
                SIZES,
                algorithms=ALGORITHM,
                segments=SEGMENTS,
                counts={"within": "point-to-point,shared-memory,one-sided"},
                target="openmpi",
                method=method,
                context=context,
            )[name]
            for name in COLLECTIVES
        }
    return {
        case: seconds
        for times in found.values()
        for case in times.grid.cases()
        if case.message_bytes > case.segment_bytes or case.segment_bytes == max(SEGMENTS)
        if (seconds := times.seconds_of(choice_of(case), case.procs, case.message_bytes)) > 0
    }


def describe(measured: dict[Case, float]) -> tuple[Platform, set[Case]]:
    """This machine by eight of the measured times, whose cases are returned as well."""
    fitted: set[Case] = set()

    def seconds(collective: str, way: int, size: int) -> float:
        case = next(
            one for one in measured if (one.collective, one.parameter, one.message_bytes) == (collective, way, size)
        )
        fitted.add(case)
        return measured[case]

    shortest = {way: seconds("bcast", way, SHORT) for way in (MESSAGES, SHARED, ONE_SIDED)}
    # A flag, a copy in and a copy out; one-sided communication adds a get and two operations on counters.
    copy = (seconds("bcast", SHARED, CHUNK) - shortest[SHARED]) / (2 * (CHUNK - SHORT))
    flag = shortest[SHARED] - 2 * SHORT * copy
    operation = max(shortest[ONE_SIDED] - shortest[SHARED], 0) / 3
    # Messages: one latency below the eager limit, and another one from it on; two rates.
    first, middle, large = (seconds("bcast", MESSAGES, size) for size in (EAGER_LIMIT, MIDDLE, LARGE))
    rate = (MIDDLE - EAGER_LIMIT) / (middle - first)
    eager = shortest[MESSAGES] - SHORT / rate - 2 * operation
    waiting = first - EAGER_LIMIT / rate - operation
    slow_rate = LARGE / (large - waiting - operation)
    reduction = (seconds("reduce", MESSAGES, MIDDLE) - middle) / MIDDLE
    numbers = {
        "flag_latency_seconds": flag,
        "copy_seconds_per_byte": copy,
        "reduce_seconds_per_byte": reduction,
        "os, or, ois (base_seconds)": operation,
        "loopback_latency_seconds": eager,
        "the same from the eager limit on": waiting,
        "loopback_bytes_per_second": rate,
        f"the same from {format_size(4 * MIDDLE)} on": slow_rate,
    }
    print_table(Table("this machine", ("key", "value"), [(name, f"{value:.3g}") for name, value in numbers.items()]))
    base = ((0, operation, 0.0),)
    calibration = Calibration(
        latency_factor=((0, 1.0), (EAGER_LIMIT, waiting / eager)),
        bandwidth_factor=((0, 1.0), (4 * MIDDLE, slow_rate / rate)),
        os=base,
        or_=base,
        ois=base,
        eager_limit_bytes=EAGER_LIMIT,
        reduce_seconds_per_byte=reduction,
        copy_seconds_per_byte=copy,
    )
    made = replace(
        load_description("exact"),
        cores_per_node=PROCS,
        loopback_latency_seconds=eager,
        loopback_bytes_per_second=rate,
        flag_latency_seconds=flag,
        calibration=calibration,
    )
    return made, fitted


def predict(platform: Platform, case: Case) -> float:
    """The seconds by the schedule engine."""
    schedule = Schedule(case)
    return schedule.play(network_tables(platform, case.procs, case.processes_per_node, schedule.sizes)).seconds


def by_way(measured: dict[Case, float]) -> list[tuple[Case, ...]]:
    """The cases that differ only in the way within the node, where all three were measured."""
    found: dict[Case, list[Case]] = {}
    for case in measured:
        found.setdefault(replace(case, parameter=0), []).append(case)
    return [tuple(ways) for ways in found.values() if len(ways) == len({MESSAGES, SHARED, ONE_SIDED})]


def row_of(
    ways: tuple[Case, ...], measured: dict[Case, float], predicted: dict[Case, float]
) -> tuple[object, ...] | None:
    """A row of the comparison; None if the fastest way is not faster than the others by APART."""
    first, second, *_ = sorted(ways, key=measured.__getitem__)
    if measured[second] < (1 + APART) * measured[first]:
        return None
    told = min(ways, key=predicted.__getitem__)
    case = ways[0]
    return (
        case.collective,
        format_size(case.message_bytes),
        format_size(case.segment_bytes),
        *(" / ".join(format_seconds(seconds[way]) for way in ways) for seconds in (measured, predicted)),
        *(WITHIN[one.parameter] for one in (first, told)),
    )


def every_row(measured: dict[Case, float], predicted: dict[Case, float]) -> list[tuple[object, ...]]:
    """A row for each case."""
    return [
        (
            f"{case.collective}, {format_size(case.message_bytes)}, {WITHIN[case.parameter]}, "
            f"segments of {format_size(case.segment_bytes)}",
            format_seconds(seconds),
            format_seconds(predicted[case]),
            f"{predicted[case] / seconds - 1:+.0%}",
        )
        for case, seconds in measured.items()
    ]


if __name__ == "__main__":
    main()
