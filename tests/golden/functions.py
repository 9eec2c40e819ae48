"""Results that no command prints: sources scored against the right times, and adaptive measuring where truth is known.

Where the functions change, this follows them; the results do not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import collwise
from collwise.platforms import load
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import SCHEDULE, SMPI
from collwise.simulator.sweeps.runner import Keep
from collwise.simulator.timing import Case, Configuration, Timing
from collwise.validation.adaptive import Goal
from collwise.validation.adaptive.search import AdaptiveSearch
from collwise.validation.compare.scores import AllScores, compare
from collwise.validation.fitting.models_by_name import models_on
from collwise.validation.select.consumers import can_choose
from collwise.validation.times.defaults import SEGMENTS
from collwise.validation.times.grid import Grid
from collwise.validation.times.measured import stored_times
from collwise.validation.times.sources import predicted, simulate
from tests.golden.measured import cases, record_of, seconds_of, timing_of
from tests.golden.shapes import brief, choice_text

COLUMNS = (
    *("collective", "reference", "source", "message_bytes", "cases"),
    *("mean_error", "worst_error", "points", "mean_slowdown", "worst_slowdown"),
)


def scores(folder: Path) -> dict[str, Any]:
    """Errors and slowdowns of models and engines against simulated times, and against measured ones."""
    platform, names = load("exact"), ("bcast", "gather")
    with collwise.session(store=folder / "store.sqlite") as context:
        grids = [Grid.of(name, (4, 8), (1024, 65536), segments=(8192,)) for name in names]
        smpi, played = (simulate(platform, grids, replace(context, engine=engine)) for engine in (SMPI, SCHEDULE))
        models = models_on(platform, ["hockney", "critical_path"], 1, (8192,), context, names)
        predictions = [[predicted(model, grid) for grid in grids] for model in models]
        simulated = AllScores(map(compare, smpi, played, *predictions))
        made = Configuration("measured", "exact", "Open MPI 4.1.4")
        timed = [case for case in cases((4, 8)) if case.collective in names and case.message_bytes < 2**20]
        context.store.add(made, [timing_of(case) for case in timed])
        stored = [stored_times(context.store, "measured", "exact", name) for name in names]
        right = [times.only(partial(can_choose, None, times.collective)) for times in stored]
        grids = [Grid.of(one.collective, one.procs, one.message_bytes, segments=SEGMENTS) for one in right]
        engines = (simulate(platform, grids, replace(context, engine=engine)) for engine in (SMPI, SCHEDULE))
        fitted = [predicted(models_on(platform, ["hockney"], 1, SEGMENTS, context, names)[0], grid) for grid in grids]
        measured = AllScores(map(compare, right, *engines, fitted))
    return {name: brief(_rows(one)) for name, one in {"simulated": simulated, "measured": measured}.items()}


def _rows(found: AllScores) -> list[dict[str, Any]]:
    table = found.table(["collective", "source", "message_bytes"])
    table["reference"] = [found[name].right.maker for name in table.collective]
    table["worst_error"] = table.worst_error.abs()
    table["source"] = table.source.str.removeprefix("model ")
    table = table.replace("^SimGrid .*", "SimGrid", regex=True)
    table.loc[table.source == "SimGrid", "source"] = "SMPI"
    return table.astype(object).where(table.notna(), None)[list(COLUMNS)].to_dict("records")


class Machine:
    """A Runner and a clock: the times of measured.py, and the machine time that they and executions take."""

    configuration = Configuration("measured", "golden", "Open MPI 4.1.4")

    def __init__(self) -> None:
        self.processes_started, self.now = 0, 0.0

    def weight(self, case: Case) -> float:
        """All are alike."""
        return 1.0

    def clock(self) -> float:
        """The seconds spent so far."""
        return self.now

    def make(self, asked: Sequence[Case], keep: Keep) -> None:
        """Gives each case two samples of ten times its seconds: 0.5 % apart, and some more for each execution."""
        self.processes_started += 1
        self.now += 1.0
        for case in asked:
            seconds = float(record_of(case, self.processes_started)["seconds"])
            self.now += 3 * seconds
            keep(Timing(case, seconds * 1.0025, repetitions=2, samples=(seconds, seconds * 1.005)))


def searches(folder: Path) -> dict[str, Any]:
    """What adaptive measuring chooses and measures, with predictions and without, within budgets."""
    wanted = [case for case in cases() if case.collective in ("bcast", "scan") and case.experiment == "collective"]
    predicted = {case: seconds_of(case) * (1.2 if case.algorithm in ("chain", "linear") else 1.0) for case in wanted}
    goals = {"to the usual loss": Goal(), "within 2 s": Goal(budget_seconds=2.0), "to a loss of 5 %": Goal(loss=0.05)}
    found: dict[str, Any] = {}
    for name, goal in goals.items():
        for known in (True, False):
            machine, title = Machine(), f"{name}{', with predictions' * known}"
            with Store(folder / f"{title}.sqlite") as store:
                search = AdaptiveSearch(
                    machine,
                    machine.configuration,
                    wanted,
                    store,
                    [predicted] if known else [],
                    goal,
                    clock=machine.clock,
                ).run()
            points = [
                {
                    "point": f"{one.collective} {one.procs} {one.message_bytes}",
                    "choice": None if one.timing is None else choice_text(vars(one.timing.case)),
                    "candidates": one.candidates,
                    "measured": one.measured,
                    "loss": None if math.isnan(one.loss) else float(f"{one.loss:.6g}"),
                }
                for one in search.points
            ]
            found[title] = {
                "stopped": search.stopped,
                "measured": len(search.timings),
                "rounds": search.spent.rounds,
                "seconds": float(f"{search.spent.seconds:.6g}"),
                "points": brief(points),
            }
    return found
