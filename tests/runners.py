"""Runners that tests inject in place of an engine."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import SMPI, SimulationContext
from collwise.simulator.sweeps.runner import Keep
from collwise.simulator.timing import Case, Configuration, Timing

# Each runner has times of its own, which the store must not take for another's.
_numbers = itertools.count()


class FunctionRunner:
    """A Runner whose times come from a function of the case; None means that the case fails with `error`."""

    def __init__(self, seconds: Callable[[Case], float | None], error: str = "failed") -> None:
        self.processes_started = 0
        self._seconds, self._error = seconds, error
        self._number = str(next(_numbers))

    @property
    def configuration(self) -> Configuration:
        return Configuration("simulated", "test", "SimGrid 3.32", (("runner", self._number),))

    def weight(self, case: Case) -> float:
        return 1.0

    def make(self, cases: Sequence[Case], keep: Keep) -> None:
        self.processes_started += 1
        for case in cases:
            seconds = self._seconds(case)
            keep(Timing(case, math.nan, error=self._error) if seconds is None else Timing(case, seconds))


def context_with(store: Store, seconds: Callable[[Case], float | None], error: str = "failed") -> SimulationContext:
    """A context whose simulated times come from a function of the case."""
    return SimulationContext(store, replace(SMPI, collectives=lambda *_: FunctionRunner(seconds, error)))


def never(case: Case) -> float:
    """Fails the test: nothing should be simulated."""
    raise AssertionError(f"{case} was simulated again")
