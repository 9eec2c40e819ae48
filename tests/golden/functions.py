"""Results that no command prints: sources scored against the right times, and adaptive measuring where truth is known.

Where the functions change, this follows them; the results do not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import collwise
from collwise.simulator.store import Store
from collwise.simulator.sweeps.runner import Keep
from collwise.simulator.timing import Case, Configuration, Timing
from collwise.validation.adaptive.goal import Goal
from collwise.validation.adaptive.search import AdaptiveSearch
from tests.golden.measured import cases, record_of, seconds_of, timing_of
from tests.golden.shapes import brief, choice_text

FEW = {"procs": "4,8", "sizes": "1KiB,64KiB", "segments": "8KiB"}


def scores(folder: Path) -> dict[str, Any]:
    """Errors and slowdowns of models and engines against simulated times, and against measured ones."""
    of = "bcast,gather"
    with collwise.session(store=folder / "store.sqlite") as context:
        simulated = collwise.accuracy("exact", of, "hockney,critical_path", **FEW, context=context)
        made = Configuration("measured", "exact", "Open MPI 4.1.4")
        timed = [case for case in cases((4, 8)) if case.collective in of and case.message_bytes < 2**20]
        context.store.add(made, [timing_of(case) for case in timed])
        measured = collwise.accuracy("exact", of, "hockney", context=context)
    return {
        name: brief(
            one.table.replace("^SimGrid .*", "SimGrid", regex=True)
            .astype(object)
            .where(one.table.notna(), None)
            .to_dict("records")
        )
        for name, one in {"simulated": simulated, "measured": measured}.items()
    }


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
