"""Adaptive measuring on a test bed: what it saves against the full grid, and what its choices lose by the grid's times.

    .venv/bin/python benchmarks/adaptive.py results/adaptive.sqlite --measure
    .venv/bin/python benchmarks/adaptive.py results/adaptive.sqlite -o docs/adaptive-results.md

With --measure three full grids are measured on a test bed of 8 nodes at 50 Mbit/s, and then two adaptive searches for
each thing that may be known beforehand, as far as the files beside the store do not have them. Their budget is 25 % of
the machine time of the grid that took the least. Choices are
judged by times that they were not made from: those of a search and those of one grid by the other two grids. What a
search loses is what its choices take longer than the grid's. Then searches are replayed on the first grid's stored
times: each repetition is drawn such that least, median and mean are those of its case. All times are medians, as
`check three-way` judges: means of short messages tell of stalls of the two cores. Exit code 1 if the searches that know
the engine's times take more than 25 % of a full grid's machine time, or lose more than 1 % on average.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from collwise.common.units import format_seconds, format_size
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import SCHEDULE, SimulationContext
from collwise.simulator.sweeps.method import USUAL_METHOD, half_width
from collwise.simulator.sweeps.mpi_runner import measure
from collwise.simulator.sweeps.runner import Keep
from collwise.simulator.timing import Case, Configuration, Timing
from collwise.studies.present.searches import search_document
from collwise.studies.reports.markdown import markdown_table, percent
from collwise.validation.adaptive import Goal
from collwise.validation.adaptive.belief import Predictions
from collwise.validation.adaptive.search import MAX_REPETITIONS, REPETITIONS, AdaptiveSearch, search_on
from collwise.validation.testbed.bed import temporarily_up
from collwise.validation.testbed.shape import Shape, simulated_platform
from collwise.validation.testbed.target import TestBed
from collwise.validation.times.grid import Grid as Cases

SHAPE, PROCS, SEGMENTS = Shape(8, 50e6), (4, 8), (8192, 32768)
WHOLE, BLOCKS = [1024 * 2**k for k in range(9)], [256 * 2**k for k in range(8)]
COLLECTIVES = ("bcast", "gather", "scatter", "reduce", "allreduce", "allgather", "alltoall")
MAX_TIME, MAX_LOSS = 0.25, 0.01
LAUNCH_SECONDS = 2.0
NOTHING, ENGINE = "nothing", "schedule engine"
GRIDS, SEARCHES = 3, 2
Known = Mapping[str, Sequence[Predictions]]
LONG_BYTES = 8192
COLUMNS = (
    *("search", "knows beforehand", "budget", "machine time", "share", "cases", "rounds"),
    *("no choice", "loss", "full grid's", "more", "+-", "more from 8 KiB", "expected"),
)
Grid = Mapping[Case, Timing]
Point = tuple[str, int, int]


@dataclass(frozen=True)
class Row:
    """A search: what it knew, its budget as a share of the full grid's time, its result (`document`) and its losses.

    `losses` and `full_grids` are those of its choices and of a full grid's, by point, against the best by other times.
    """

    kind: str
    knows: str
    budget: float
    found: dict[str, Any]
    losses: dict[Point, float]
    full_grids: dict[Point, float]

    @property
    def more(self) -> dict[Point, float]:
        """The loss of the choices less that of the full grid's."""
        return {point: loss - self.full_grids[point] for point, loss in self.losses.items()}


class Replay:
    """A Runner and a clock: repetitions around the stored times of a full grid."""

    def __init__(self, grid: Mapping[Case, Timing], seed: int) -> None:
        self.processes_started, self.now = 0, 0.0
        self._grid, self._random = grid, np.random.default_rng(seed)
        self.configuration = Configuration("measured", "replay", "Open MPI", (("seed", str(seed)),))

    def weight(self, case: Case) -> float:
        """The same for all."""
        return 1.0

    def clock(self) -> float:
        """The machine time so far."""
        return self.now

    def make(self, wanted: Sequence[Case], keep: Keep) -> None:
        """Draws the repetitions of each case."""
        self.processes_started += 1
        self.now += LAUNCH_SECONDS
        for case in wanted:
            known = self._grid[case]
            samples = [self._drawn(known) for _ in range(REPETITIONS)]
            precision = USUAL_METHOD.precision
            while len(samples) < MAX_REPETITIONS and (
                half_width(samples, precision.confidence) > precision.relative_error * np.mean(samples)
            ):
                samples.append(self._drawn(known))
            self.now += sum(samples) + USUAL_METHOD.warmup * known.seconds
            keep(Timing(case, float(np.mean(samples)), repetitions=len(samples), samples=tuple(samples)))

    def _drawn(self, known: Timing) -> float:
        """Half of all repetitions are between the least and the median, the others above, so that the mean is right."""
        least, median = known.least_seconds, known.median_seconds
        if self._random.random() < 0.5:
            return float(self._random.uniform(least, median))
        return median + float(self._random.exponential(max(2 * known.seconds - median - (least + median) / 2, 0.0)))


def grid_cases() -> list[Case]:
    """The full grid."""
    return [
        case
        for name in COLLECTIVES
        for case in Cases.of(
            name, PROCS, WHOLE if name in ("bcast", "reduce", "allreduce") else BLOCKS, segments=SEGMENTS
        ).cases()
    ]


def machine_seconds(grid: Mapping[Case, Timing]) -> float:
    """The machine time of the full grid: all repetitions, also the untimed ones, and one launch."""
    return LAUNCH_SECONDS + sum((one.repetitions + USUAL_METHOD.warmup) * one.seconds for one in grid.values())


def judged(kind: str, knows: str, found: dict[str, Any], grids: Sequence[Grid]) -> Row:
    """A measured search: it and each grid are judged by the geometric mean of the other grids' medians, in turn."""
    own: dict[Point, list[float]] = {}
    full: dict[Point, list[float]] = {}
    for competitor in grids:
        others = [grid for grid in grids if grid is not competitor]
        judge = {
            case: float(np.exp(np.mean([np.log(grid[case].median_seconds) for grid in others]))) for case in grids[0]
        }
        for kept, choices in ((own, found), (full, choices_of(competitor))):
            for point, loss in losses(choices, judge).items():
                kept.setdefault(point, []).append(loss)
    means = [{point: float(np.mean(values)) for point, values in kept.items()} for kept in (own, full)]
    return Row(kind, knows, MAX_TIME, found, *means)


def losses(found: dict[str, Any], judge: Mapping[Case, float]) -> dict[Point, float]:
    """The loss of each choice against the best by these times, by point."""
    times: dict[Point, dict[tuple[str, int], float]] = {}
    for case, seconds in judge.items():
        here = times.setdefault((case.collective, case.procs, case.message_bytes), {})
        here[case.algorithm, case.segment_bytes] = seconds
    lost = {}
    for entry in found["points"]:
        if entry["loss"] is None:  # no choice
            continue
        point = entry["collective"], entry["procs"], entry["message_bytes"]
        here = times[point]
        lost[point] = here[entry["algorithm"], entry["segment_bytes"]] / min(here.values()) - 1
    return lost


def choices_of(grid: Mapping[Case, Timing]) -> dict[str, Any]:
    """The choice of a full grid at every point, by medians, in the form of a search's result."""
    competing: dict[Point, list[Case]] = {}
    for case in grid:
        competing.setdefault((case.collective, case.procs, case.message_bytes), []).append(case)
    names = ("collective", "procs", "message_bytes", "algorithm", "segment_bytes")
    points = [
        {**{name: getattr(best, name) for name in names}, "loss": 0.0, "measured": len(here), "candidates": len(here)}
        for here in competing.values()
        for best in (min(here, key=lambda case: grid[case].median_seconds),)
    ]
    sums = {"seconds": machine_seconds(grid), "measured": len(grid), "cases": len(grid), "rounds": 1, "mean_loss": 0.0}
    return {"points": points, **sums}


def predicted(store: Store) -> Predictions:
    """The times by the schedule engine on the nominal platform, which nothing was measured for."""
    swept = SimulationContext(store, SCHEDULE).simulate(simulated_platform(SHAPE), grid_cases())
    return {case: one.seconds for case, one in swept.timings.items()}


def measure_all(path: Path, known: Known) -> None:
    """Measures the grids, then the searches, in files beside `path`; what is there is not made again."""
    with temporarily_up(SHAPE, "adaptive") as bed:
        target = TestBed(bed)
        for number in range(1, GRIDS + 1):
            with Store(grid_file(path, number)) as store:
                measure(target, grid_cases(), store, USUAL_METHOD)
        goal = Goal(MAX_TIME * min_seconds(full_grids(path)))
        for number in range(1, SEARCHES + 1):
            for knows, predictions in known.items():
                file = search_file(path, knows, number)
                if not file.exists():
                    with Store(file.with_suffix(".sqlite")) as own:
                        found = search_on(target, grid_cases(), own, predictions, goal, USUAL_METHOD, tell)
                    file.write_text(json.dumps(search_document(found)), encoding="utf-8")


def grid_file(path: Path, number: int) -> Path:
    """The store of one of the full grids; the first is `path` itself."""
    return path if number == 1 else path.with_name(f"{path.stem}-grid-{number}.sqlite")


def search_file(path: Path, knows: str, number: int) -> Path:
    """The result of a measured search."""
    return path.with_name(f"{path.stem}-{knows.split()[0]}-{number}.json")


def tell(number: int, count: int, spent: float) -> None:
    """A line on stderr for each round."""
    print(f"round {number}: {count} cases, {spent:.1f} s spent", file=sys.stderr, flush=True)


def replayed(grid: Mapping[Case, Timing], known: Known, full: float, times: int) -> list[Row]:
    """Searches on the grid's stored times, several for each thing known beforehand and each budget."""
    rows = []
    for knows, predictions in known.items():
        for budget in (0.1, MAX_TIME):
            for seed in range(times):
                runner = Replay(grid, seed)
                with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "replay.sqlite") as store:
                    search = AdaptiveSearch(
                        runner, runner.configuration, grid_cases(), store, predictions, Goal(budget * full),
                        clock=runner.clock,
                    )  # fmt: skip
                    found = search_document(search.run())
                own = losses(found, {case: one.median_seconds for case, one in grid.items()})
                rows.append(Row("replayed", knows, budget, found, own, dict.fromkeys(own, 0.0)))
    return rows


def mean_percent(values: Sequence[float]) -> str:
    """The mean of shares, in percent."""
    return percent(float(np.mean(values)))


def cells(rows: Sequence[Row], full: float) -> tuple[str, ...]:
    """A row of the table; of several searches the means."""
    first = rows[0]
    more = [value for one in rows for value in one.more.values()]
    seconds = float(np.mean([one.found["seconds"] for one in rows]))
    return (
        *(first.kind + (f", {len(rows)} times" if len(rows) > 1 else ""), first.knows, percent(first.budget)),
        *(format_seconds(seconds), percent(seconds / full)),
        f"{np.mean([one.found['measured'] for one in rows]):.0f} of {first.found['cases']}",
        f"{np.mean([one.found['rounds'] for one in rows]):.0f}",
        f"{np.mean([len(one.found['points']) - len(one.losses) for one in rows]):.1f} of {len(first.found['points'])}",
        mean_percent([value for one in rows for value in one.losses.values()]),
        mean_percent([value for one in rows for value in one.full_grids.values()]),
        mean_percent(more),
        percent(float(np.std(more) / np.sqrt(len(more)))),
        mean_percent([value for one in rows for point, value in one.more.items() if is_long(point)]),
        mean_percent([one.found["mean_loss"] for one in rows]),
    )


def page(measured: Sequence[Row], replays: Sequence[Row], grid: Mapping[Case, Timing], full: float) -> str:
    """The page of results."""
    searches = [
        cells([one for one in kind if (one.knows, one.budget) == key], full)
        for kind in (measured, replays)
        for key in dict.fromkeys((one.knows, one.budget) for one in kind)
    ]
    heads = ("collective", "knows beforehand", "cases", "loss", "full grid's", "more")
    rows = [
        row
        for knows in dict.fromkeys(one.knows for one in measured)
        for row in by_collective([one for one in measured if one.knows == knows])
    ]
    return (
        "<!-- Written by benchmarks/adaptive.py; do not edit. -->\n# Adaptive measuring: results\n\n"
        "`benchmarks/adaptive.py` wrote this page. "
        "[measuring.md](measuring.md#only-where-the-choice-is-in-doubt) describes the search.\n\n"
        f"Test bed of 8 nodes at 50 Mbit/s with one process each, Open MPI; {', '.join(COLLECTIVES)} on P = 4 and 8, "
        f"{format_size(WHOLE[0])} to {format_size(WHOLE[-1])} by doubling, blocks of {format_size(BLOCKS[0])} to "
        f"{format_size(BLOCKS[-1])}, segments of 8 and 32 KiB: {len(grid)} cases. The full grid has 5 to 50 "
        f"repetitions of each and took {format_seconds(full)} of machine time at least. Predictions, where there are "
        "any, are those of the schedule engine on the nominal platform: rate and latency as set up, none calibrated."
        f"\n\nThe loss of a choice is its time against that of the best one at its point. {GRIDS} full grids were "
        "measured, then the searches. Times on the two cores take other values in another execution of MPI, "
        "those of short messages by a fifth, so that no times may judge the choices made from them: those of a "
        "search, and in the column beside it those of one grid, are judged by the geometric mean of the other "
        f"{GRIDS - 1} grids' medians; each grid takes its turn. 'More' is what a search loses more than a full grid, "
        "with its standard error over the points, also for 8 KiB and more (all blocks together). Points of which "
        "nothing was measured have no choice and no loss. A replayed search draws independent repetitions around the "
        "first grid's times, by which it is judged, so that a full grid loses nothing; its machine time counts "
        f"{LAUNCH_SECONDS:g} s for each launch. 'Expected' is the mean loss that the search itself expects in the end."
        f"\n\n{markdown_table(COLUMNS, searches)}\n## By collective, measured\n\n{markdown_table(heads, rows)}"
    )


def is_long(point: Point) -> bool:
    """Whether a message, or all blocks together, has 8 KiB or more: shorter ones fit into the bed's bursts."""
    collective, procs, message_bytes = point
    return message_bytes * (1 if collective in ("bcast", "reduce", "allreduce") else procs) >= LONG_BYTES


def by_collective(rows: Sequence[Row]) -> Iterator[tuple[str, ...]]:
    """The cells of each collective, of searches that knew the same."""
    for name in COLLECTIVES:
        means = [
            mean_percent([value for row in rows for point, value in kept(row).items() if point[0] == name])
            for kept in (lambda row: row.losses, lambda row: row.full_grids, lambda row: row.more)
        ]
        points = [point for row in rows for point in row.found["points"] if point["collective"] == name]
        count, of = (sum(point[key] for point in points) / len(rows) for key in ("measured", "candidates"))
        yield (name, rows[0].knows, f"{count:.0f} of {of:.0f}", *means)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store", type=Path)
    parser.add_argument("--measure", action="store_true", help="measure what the store does not have")
    parser.add_argument("-o", "--output", type=Path, help="write the page here")
    parser.add_argument("--replays", type=int, default=5, help="how often each search is replayed")
    options = parser.parse_args()
    known: dict[str, Sequence[Predictions]] = {ENGINE: [], NOTHING: []}
    if options.measure or options.replays:
        with Store(options.store) as store:
            known[ENGINE] = [predicted(store)]
    if options.measure:
        measure_all(options.store, known)
        return 0
    grids = full_grids(options.store)
    full = min_seconds(grids)
    measured = [
        judged("measured", knows, json.loads(search_file(options.store, knows, number).read_text("utf-8")), grids)
        for knows in known
        for number in range(1, SEARCHES + 1)
    ]
    with_engine = [row for row in measured if row.knows == ENGINE]
    slow = any(row.found["seconds"] > MAX_TIME * full for row in with_engine)
    poor = float(np.mean([value for row in with_engine for value in row.more.values()])) > MAX_LOSS
    text = page(measured, replayed(grids[0], known, full, options.replays), grids[0], full)
    print(text)
    if options.output is not None:
        options.output.write_text(text, encoding="utf-8")
    return 1 if slow or poor else 0


def full_grids(path: Path) -> list[Grid]:
    """The measured times of all full grids."""
    found = []
    for number in range(1, GRIDS + 1):
        with Store(grid_file(path, number)) as store:
            [made] = [one for one in store.configurations() if one.configuration.source == "measured"]
            found.append({case: one for case, one in store.timings_of(made.key).items() if one.ok})
    return found


def min_seconds(grids: Sequence[Grid]) -> float:
    """The machine time of the grid that took the least."""
    return min(map(machine_seconds, grids))


if __name__ == "__main__":
    sys.exit(main())
