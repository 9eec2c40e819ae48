"""Adaptive measuring on a test bed: what it saves against the full grid, and what its choices lose by the grid's times.

    .venv/bin/python benchmarks/adaptive.py results/adaptive.sqlite --measure
    .venv/bin/python benchmarks/adaptive.py results/adaptive.sqlite -o docs/adaptive-results.md

With --measure the full grid, two adaptive searches and the full grid once more are measured on a test bed of 8 nodes at
50 Mbit/s, as far as the store does not have them. What the choices of the second grid lose by the first one is what
choices lose because times do not repeat. Then searches are replayed on the grid's stored times: each repetition is
drawn such that least, median and mean are those of its case. Losses are judged by medians, as `validate` judges: means
of short messages tell of stalls of the two cores. Exit code 1 if a measured search takes more than 25 % of the full
grid's machine time, or its choices lose more than 1 % on average.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from collwise.common.units import format_seconds, format_size
from collwise.simulator.execution.targets import ExecutionTarget
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import SCHEDULE, SimulationContext
from collwise.simulator.sweeps.method import USUAL_METHOD, half_width
from collwise.simulator.sweeps.mpi_runner import measure
from collwise.simulator.sweeps.runner import Keep
from collwise.simulator.timing import Case, Configuration, Timing
from collwise.studies.reports.adaptive import document
from collwise.studies.reports.markdown import percent
from collwise.validation.adaptive.belief import Predictions
from collwise.validation.adaptive.goal import Goal
from collwise.validation.adaptive.search import MOST_REPETITIONS, REPETITIONS, AdaptiveSearch, search_on
from collwise.validation.selection.cases import candidates, cases
from collwise.validation.testbed.bed import temporarily_up
from collwise.validation.testbed.platform import simulated_platform
from collwise.validation.testbed.shape import Shape
from collwise.validation.testbed.target import TestBed

SHAPE, PROCS, SEGMENTS = Shape(8, 50e6), (4, 8), (8192, 32768)
WHOLE, BLOCKS = [1024 * 2**k for k in range(9)], [256 * 2**k for k in range(8)]
COLLECTIVES = ("bcast", "gather", "scatter", "reduce", "allreduce", "allgather", "alltoall")
MOST_TIME, MOST_LOSS = 0.25, 0.01
LAUNCH_SECONDS = 2.0
NOTHING, ENGINE = "nothing", "schedule engine"
AGAIN = "again"
Known = Mapping[str, Sequence[Predictions]]
LONG_BYTES = 8192
COLUMNS = ("search", "knows beforehand", "budget", "machine time", "share", "cases", "rounds")
LOSSES = ("loss", "worst", "from 8 KiB", "by means", "expected")


@dataclass(frozen=True)
class Row:
    """A search: what it knew, its budget as a share of the full grid's time, and its result (`document`)."""

    kind: str
    knows: str
    budget: float
    found: dict[str, Any]
    losses: list[float]
    by_means: list[float]


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
            while len(samples) < MOST_REPETITIONS and (
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
        for case in cases(
            name,
            candidates(name, SEGMENTS),
            PROCS,
            WHOLE if name in ("bcast", "reduce", "allreduce") else BLOCKS,
        )
    ]


def machine_seconds(grid: Mapping[Case, Timing]) -> float:
    """The machine time of the full grid: all repetitions, also the untimed ones, and one launch."""
    return LAUNCH_SECONDS + sum((one.repetitions + USUAL_METHOD.warmup) * one.seconds for one in grid.values())


def losses(found: dict[str, Any], grid: Mapping[Case, Timing], by: str = "median_seconds") -> list[float]:
    """The loss of each choice against the best, by the medians, or means, of the grid."""
    times: dict[tuple[str, int, int], dict[tuple[str, int], float]] = {}
    for case, one in grid.items():
        here = times.setdefault((case.collective, case.procs, case.message_bytes), {})
        here[case.algorithm, case.segment_bytes] = getattr(one, by)
    lost = []
    for point in decided(found):
        here = times[point["collective"], point["procs"], point["message_bytes"]]
        lost.append(here[point["algorithm"], point["segment_bytes"]] / min(here.values()) - 1)
    return lost


def decided(found: dict[str, Any]) -> list[dict[str, Any]]:
    """The points that have a choice."""
    return [point for point in found["points"] if point["loss"] is not None]


def choices_of(grid: Mapping[Case, Timing]) -> dict[str, Any]:
    """The choice of a full grid at every point, by medians, in the form of a search's result."""
    best: dict[tuple[str, int, int], Case] = {}
    for case, one in grid.items():
        point = (case.collective, case.procs, case.message_bytes)
        if point not in best or one.median_seconds < grid[best[point]].median_seconds:
            best[point] = case
    counts = Counter((case.collective, case.procs, case.message_bytes) for case in grid)
    names = ("collective", "procs", "message_bytes", "algorithm", "segment_bytes")
    points = [
        {**{name: getattr(case, name) for name in names}, "loss": 0.0, "measured": count, "candidates": count}
        for case, count in ((best[point], count) for point, count in counts.items())
    ]
    sums = {"seconds": machine_seconds(grid), "measured": len(grid), "cases": len(grid), "rounds": 1, "mean_loss": 0.0}
    return {"points": points, **sums}


def predicted(store: Store) -> Predictions:
    """The times by the schedule engine on the nominal platform, which nothing was measured for."""
    swept = SimulationContext(store, SCHEDULE).simulate(simulated_platform(SHAPE), grid_cases())
    return {case: one.seconds for case, one in swept.timings.items()}


def search_there(target: ExecutionTarget, path: Path, known: Known, full: float) -> None:
    """One measured search for each thing that may be known beforehand; writes what each found beside the store."""
    for knows, predictions in known.items():
        with Store(_beside(path, knows, "sqlite")) as own:
            goal = Goal(MOST_TIME * full)
            found = search_on(target, grid_cases(), own, predictions, goal, USUAL_METHOD, tell)
        _beside(path, knows, "json").write_text(json.dumps(document(found)), encoding="utf-8")


def _beside(path: Path, knows: str, ending: str) -> Path:
    return path.with_name(f"{path.stem}-{knows.split()[0]}.{ending}")


def tell(number: int, count: int, spent: float) -> None:
    """A line on stderr for each round."""
    print(f"round {number}: {count} cases, {spent:.1f} s spent", file=sys.stderr, flush=True)


def replayed(grid: Mapping[Case, Timing], known: Known, full: float, times: int) -> list[Row]:
    """Searches on the grid's stored times, several for each thing known beforehand and each budget."""
    rows = []
    for knows, predictions in known.items():
        for budget in (0.1, MOST_TIME):
            for seed in range(times):
                runner = Replay(grid, seed)
                with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "replay.sqlite") as store:
                    search = AdaptiveSearch(
                        runner, runner.configuration, grid_cases(), store, predictions, Goal(budget * full),
                        clock=runner.clock,
                    )  # fmt: skip
                    found = document(search.run())
                rows.append(Row("replayed", knows, budget, found, losses(found, grid), losses(found, grid, "seconds")))
    return rows


def cells(rows: Sequence[Row], full: float) -> str:
    """A line of the table; of several searches the means."""
    first = rows[0]
    seconds = float(np.mean([one.found["seconds"] for one in rows]))
    values = (
        *(first.kind + (f", {len(rows)} times" if len(rows) > 1 else ""), first.knows, percent(first.budget)),
        *(format_seconds(seconds), percent(seconds / full)),
        f"{np.mean([one.found['measured'] for one in rows]):.0f} of {first.found['cases']}",
        f"{np.mean([one.found['rounds'] for one in rows]):.0f}",
        percent(mean_of(one.losses for one in rows)),
        percent(max(max(one.losses) for one in rows)),
        percent(mean_of(map(of_long, rows))),
        percent(mean_of(one.by_means for one in rows)),
        percent(float(np.mean([one.found["mean_loss"] for one in rows]))),
    )
    return "| " + " | ".join(values) + " |"


def mean_of(parts: Iterable[Sequence[float]]) -> float:
    """The mean over all values of all parts."""
    return float(np.mean([value for part in parts for value in part]))


def page(measured: Sequence[Row], replays: Sequence[Row], grid: Mapping[Case, Timing], full: float) -> str:
    """The page of results."""
    lines = [
        "# Adaptive measuring: results",
        "",
        "`benchmarks/adaptive.py` wrote this page. [adaptive.md](adaptive.md) describes the search.",
        "",
        f"Test bed of 8 nodes at 50 Mbit/s with one process each, Open MPI; {', '.join(COLLECTIVES)} on P = 4 and 8, "
        f"{format_size(WHOLE[0])} to {format_size(WHOLE[-1])} by doubling, blocks of {format_size(BLOCKS[0])} to "
        f"{format_size(BLOCKS[-1])}, segments of 8 and 32 KiB: {len(grid)} cases. The full grid has 5 to 50 "
        f"repetitions of each and took {format_seconds(full)} of machine time. Predictions, where there are any, are "
        "those of the schedule engine on the nominal platform: rate and latency as set up, nothing calibrated.",
        "",
        "The loss of a choice is its time against that of the best one at its point, both by the full grid's medians: "
        "the mean and the worst over all points, the mean over those of 8 KiB and more (all blocks together), and the "
        "mean by the grid's means. Short messages on the two cores take other times in another execution of MPI: what "
        "the choices of the full grid measured again lose by the first one is what no search can know. A replayed "
        "search draws independent repetitions around the full grid's times; its machine time counts "
        f"{LAUNCH_SECONDS:g} s for each launch. 'Expected' is the mean loss that the search itself expects in the end.",
        "",
        "| " + " | ".join(COLUMNS + LOSSES) + " |",
        "|" + " --- |" * len(COLUMNS + LOSSES),
        *(cells([one], full) for one in measured),
    ]
    for key in dict.fromkeys((one.knows, one.budget) for one in replays):
        lines.append(cells([one for one in replays if (one.knows, one.budget) == key], full))
    lines += ["", "## By collective, measured", ""]
    lines += ["| collective | knows beforehand | points | cases | loss | worst |", "|" + " --- |" * 6]
    for one in measured:
        lines += by_collective(one)
    return "\n".join(lines) + "\n"


def of_long(row: Row) -> list[float]:
    """The losses of messages, or of all blocks together, of 8 KiB and more: shorter ones fit into the bed's bursts."""

    def total(point: dict[str, Any]) -> int:
        whole = point["collective"] in ("bcast", "reduce", "allreduce")
        return int(point["message_bytes"] * (1 if whole else point["procs"]))

    return [loss for point, loss in zip(decided(row.found), row.losses, strict=True) if total(point) >= LONG_BYTES]


def by_collective(row: Row) -> list[str]:
    """A line for each collective of a search."""
    lines = []
    for name in COLLECTIVES:
        mine = [loss for point, loss in zip(decided(row.found), row.losses, strict=True) if point["collective"] == name]
        points = [point for point in row.found["points"] if point["collective"] == name]
        count, of = (sum(point[key] for point in points) for key in ("measured", "candidates"))
        worst, mean = percent(max(mine)), percent(float(np.mean(mine)))
        lines.append(f"| {name} | {row.knows} | {len(mine)} | {count} of {of} | {mean} | {worst} |")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store", type=Path)
    parser.add_argument("--measure", action="store_true", help="measure what the store does not have")
    parser.add_argument("-o", "--output", type=Path, help="write the page here")
    parser.add_argument("--replays", type=int, default=5, help="how often each search is replayed")
    options = parser.parse_args()
    with Store(options.store) as store:
        known: dict[str, Sequence[Predictions]] = {
            ENGINE: [predicted(store)] if options.measure or options.replays else [],
            NOTHING: [],
        }
        if options.measure:
            with temporarily_up(SHAPE, "adaptive") as bed:
                target = TestBed(bed)
                measure(target, grid_cases(), store, USUAL_METHOD)
                search_there(target, options.store, known, machine_seconds(full_grid(store)))
                with Store(_beside(options.store, AGAIN, "sqlite")) as second:
                    measure(target, grid_cases(), second, USUAL_METHOD)
            return 0
        grid = full_grid(store)
    full, measured = machine_seconds(grid), []
    for knows in known:
        if (file := _beside(options.store, knows, "json")).exists():
            found = json.loads(file.read_text(encoding="utf-8"))
            by = losses(found, grid), losses(found, grid, "seconds")
            measured.append(Row("measured", knows, MOST_TIME, found, *by))
    slow = any(row.found["seconds"] > MOST_TIME * full for row in measured)
    poor = any(float(np.mean(row.losses)) > MOST_LOSS for row in measured)
    if (file := _beside(options.store, AGAIN, "sqlite")).exists():
        with Store(file) as second:
            found = choices_of(full_grid(second))
        measured.append(Row("full grid again", "-", 1.0, found, losses(found, grid), losses(found, grid, "seconds")))
    text = page(measured, replayed(grid, known, full, options.replays), grid, full)
    print(text)
    if options.output is not None:
        options.output.write_text(text, encoding="utf-8")
    return 1 if slow or poor else 0


def full_grid(store: Store) -> dict[Case, Timing]:
    """The measured times of the full grid."""
    [made] = [one for one in store.configurations() if one.configuration.source == "measured"]
    return {case: one for case, one in store.timings_of(made.key).items() if one.ok}


if __name__ == "__main__":
    sys.exit(main())
