"""A slider's change: the map of one collective, 24 sizes x 30 process counts on Gros, timed and drawn again.

.venv/bin/python benchmarks/whatif_map.py [COLLECTIVE...]        # by default allreduce

Each move of the slider changes the bandwidth; then the candidates are timed again by `collwise.live_map`, and the map
is drawn. Some moves of other sliders follow. Some of the times are compared with those of the schedule engine for each
case alone, also of candidates that were left out since they are slower. The exit code is 1 if a move takes longer than
the limit in the median, a time is wrong by more than it says, or one that was left out is the fastest.
"""

from __future__ import annotations

import statistics
import sys
import time
from functools import partial

import numpy as np

import collwise
from collwise.platforms.changes import Change, parse_change
from collwise.simulator.schedule.networks import network_tables
from collwise.simulator.schedule.pipelines import play_case
from collwise.studies.figures.whatif import LiveFigure
from collwise.validation.whatif.live_map import LiveMap, LiveView

LIMIT_SECONDS = 0.5
PROCS, SIZES = tuple(range(4, 124, 4)), tuple(2**k for k in range(24))
MOVES = [2.0 ** (step / 2) for step in range(-4, 7)]
OTHER_MOVES = ("latency=x0.5", "latency=x4", "reduction=x4", "overheads=1us", "background=0.5", "eager_limit=256KiB")
COMPARED = 200


def main() -> int:
    held = True
    for collective in sys.argv[1:] or ["allreduce"]:
        started = time.perf_counter()
        live = collwise.live_map("gros", collective, procs=PROCS, sizes=SIZES)
        figure = LiveFigure(live.choices, PROCS, SIZES)
        recorded = time.perf_counter() - started
        timing, drawing, used = [], [], []
        for factor in MOVES:
            started, processor = time.perf_counter(), time.process_time()
            view = live.on([Change("bandwidth", f"x{factor}")])
            timed = time.perf_counter()
            figure.draw(view.best, view.best_seconds / live.base.best_seconds)
            used.append(time.process_time() - processor)
            timing.append(timed - started)
            drawing.append(time.perf_counter() - timed)
        both = statistics.median(np.add(timing, drawing))
        points = f"{len(SIZES)} sizes x {len(PROCS)} process counts x {len(live.choices)} choices"
        print(f"{collective}: {points}, recorded and drawn for the first time in {recorded:.1f} s")
        print(
            f"  a move: {both:.3f} s in the median, {max(np.add(timing, drawing)):.3f} s at most; timing takes "
            f"{statistics.median(timing):.3f} s and drawing {statistics.median(drawing):.3f} s; "
            f"processors are busy for {statistics.median(used):.3f} s"
        )
        for text in OTHER_MOVES:
            started, processor = time.perf_counter(), time.process_time()
            live.on([parse_change(text)])
            print(f"  {text}: {time.perf_counter() - started:.3f} s; busy for {time.process_time() - processor:.3f} s")
        worst, beyond, faster = compared(live, view)
        print(f"  largest error: {worst * 100:.3f} % of {COMPARED} times; {beyond} are wrong by more than stated")
        left_out = np.isnan(view.seconds) & ~np.isnan(live.base.seconds)
        print(
            f"  {left_out.sum()} candidates were left out; {faster} of {COMPARED} of them are faster than the fastest"
        )
        held = held and both <= LIMIT_SECONDS and beyond == 0 and faster == 0
    print(f"the limit of a move is {LIMIT_SECONDS:g} s")
    return 0 if held else 1


def compared(live: LiveMap, view: LiveView) -> tuple[float, int, int]:
    """The largest relative error of some times, how many are wrong by more than their errors say, and how many are
    shorter than that of the fastest candidate although they were left out.
    """
    worst, beyond, faster = 0.0, 0, 0
    fastest = view.best_seconds
    is_known = ~np.isnan(view.seconds)
    for cells in (is_known, ~is_known & ~np.isnan(live.base.seconds)):
        for number, i, j in np.random.default_rng(1).permutation(np.argwhere(cells))[:COMPARED]:
            case = live.grid.case(live.choices[number], PROCS[i], SIZES[j])
            exact = play_case(case, partial(network_tables, view.platform, case.procs, case.processes_per_node)).seconds
            if is_known[number, i, j]:
                wrong = abs(exact - view.seconds[number, i, j])
                worst = max(worst, wrong / exact)
                beyond += wrong > view.errors[number, i, j] + 1e-9 * exact
            else:
                faster += exact < fastest[i, j]
    return worst, beyond, faster


if __name__ == "__main__":
    sys.exit(main())
