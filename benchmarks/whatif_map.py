"""A slider's change: the map of one collective, 24 sizes x 30 process counts on Gros, timed and drawn again.

.venv/bin/python benchmarks/whatif_map.py [COLLECTIVE...]        # by default all sixteen

The sliders are those of the notebook `whatif` (studies/figures/explorer.py). Each is moved alone, then three together.
Some of the times are then compared with those of the schedule engine for each case alone, also of candidates that were
left out since they are slower. The exit code is 1 if a move takes longer than the limit in the median, a time is wrong
by more than it says, or one that was left out is the fastest.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import statistics
import sys
import time
from collections.abc import Iterator, Mapping
from functools import partial

import numpy as np

import collwise
from collwise.algorithms.catalogue import Catalogue
from collwise.platforms import HostPlatform
from collwise.platforms.changes import changed
from collwise.simulator.schedule.networks import network_tables
from collwise.simulator.schedule.pipelines import play_case
from collwise.studies.figures.explorer import Explorer
from collwise.validation.times.times import State
from collwise.validation.whatif.live_map import LiveMap

Position = dict[str, float | str]

LIMIT_SECONDS = 0.5
PROCS, SIZES = tuple(range(4, 124, 4)), tuple(2**k for k in range(24))
FACTORS = (0.125, 0.25, 0.5, 2**-0.25, 2**0.25, 2.0, 4.0, 8.0)
VALUES: Mapping[str, tuple[float | str, ...]] = {
    "bandwidth": FACTORS,
    "latency": FACTORS,
    "reduction": FACTORS,
    "overheads": (0.25, 1.0, 2.5, 5.0),
    "background": (0.05, 0.3, 0.6, 0.9),
    "eager_limit": ("4KiB", "16KiB", "64KiB", "256KiB", "1MiB"),
}
UNMOVED: Position = {
    "bandwidth": 1.0,
    "latency": 1.0,
    "reduction": 1.0,
    "overheads": 0.0,
    "background": 0.0,
    "eager_limit": "as it is",
}
TOGETHER = 12
COMPARED_MOVES, COMPARED = 4, 50


def main() -> int:
    held = [asyncio.run(benchmark(collective)) for collective in sys.argv[1:] or Catalogue.load().collectives]
    print(f"the limit of a move is {LIMIT_SECONDS:g} s; {os.cpu_count()} cores")
    return 0 if all(held) else 1


async def benchmark(collective: str) -> bool:
    """Whether all limits were held."""
    started = time.perf_counter()
    live = collwise.live_map("gros", collective, procs=PROCS, sizes=SIZES)
    explorer = Explorer(live)
    points = f"{len(live.grid.message_bytes)} sizes x {len(PROCS)} process counts x {len(live.grid.timed)} choices"
    print(f"{collective}: {points}, recorded and drawn for the first time in {time.perf_counter() - started:.1f} s")
    seconds: dict[str, list[float]] = {}
    busy = []
    for label, position in positions():
        started, processor = time.perf_counter(), time.process_time()
        set_sliders(explorer, position)
        await explorer.drawn()
        seconds.setdefault(label, []).append(time.perf_counter() - started)
        busy.append(time.process_time() - processor)
    every = list(itertools.chain(*seconds.values()))
    median = statistics.median(every)
    print(
        f"  a move takes {median:.3f} s in the median, {max(every):.3f} s at most; processors are busy for "
        f"{statistics.median(busy):.3f} s, {max(busy):.3f} s at most"
    )
    print("  at most: " + ", ".join(f"{label} {max(some):.3f} s" for label, some in seconds.items()), flush=True)
    beyond, faster = compare(explorer, live)
    return median <= LIMIT_SECONDS and beyond == 0 and faster == 0


def positions() -> Iterator[tuple[str, Position]]:
    """The moves: the name of each, and the sliders that it moves from where they stand for no change."""
    for slider, values in VALUES.items():
        for value in values:
            yield slider, {slider: value}
    random = np.random.default_rng(1)
    for _ in range(TOGETHER):
        moved = random.choice(list(VALUES), 3, replace=False)
        yield "three together", {slider: VALUES[slider][random.integers(len(VALUES[slider]))] for slider in moved}


def set_sliders(explorer: Explorer, position: Position) -> None:
    for slider, value in (UNMOVED | position).items():
        getattr(explorer, slider).value = value


def compare(explorer: Explorer, live: LiveMap) -> tuple[int, int]:
    """The number of some times that are wrong by more than their errors say, and of left-out candidates that are
    faster than the fastest one.
    """
    moves = list(positions())[:: len(list(positions())) // COMPARED_MOVES]
    worst, beyond, faster, left_out = 0.0, 0, 0, 0
    for _, position in moves:
        set_sliders(explorer, position)
        changes = explorer.changes()
        view, where = live.on(changes), changed(live.platform, changes).platform
        seconds, errors, best = view.seconds.values, view.half_widths.values, view.at(view.best).values
        is_known, is_left_out = view.state.values == State.TIMED, view.state.values == State.LEFT_OUT
        left_out += int(is_left_out.sum())
        for cells in (is_known, is_left_out):
            for place in map(tuple, np.random.default_rng(1).permutation(np.argwhere(cells))[:COMPARED]):
                exact = exact_seconds(live, where, place)
                if is_known[place]:
                    wrong = abs(exact - seconds[place])
                    worst = max(worst, wrong / exact)
                    beyond += bool(wrong > errors[place] + 1e-9 * exact)
                else:
                    faster += bool(exact < best[place[1:]])
    print(
        f"  after {len(moves)} moves, {COMPARED} times of each: the largest error is {worst * 100:.3f} %, {beyond} are "
        f"wrong by more than stated; of {left_out} candidates that were left out {COMPARED} each: {faster} are faster "
        "than the fastest"
    )
    return beyond, faster


def exact_seconds(live: LiveMap, platform: HostPlatform, place: tuple[int, int, int]) -> float:
    """The time of a choice, P and m, by the schedule engine alone."""
    number, i, j = place
    case = live.grid.case(live.grid.timed[number], live.grid.procs[i], live.grid.message_bytes[j])
    return play_case(case, partial(network_tables, platform, case.procs, case.processes_per_node)).seconds


if __name__ == "__main__":
    sys.exit(main())
