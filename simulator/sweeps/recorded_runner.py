"""The runner for records from elsewhere: times that were measured before, on another machine or by another program."""

from __future__ import annotations

from collections.abc import Sequence

from collwise.simulator.store import Store
from collwise.simulator.sweeps.runner import Keep, RunResult, run_cases
from collwise.simulator.timing import Case, Configuration, Timing


class RecordedRunner:
    """A Runner that hands out recorded timings."""

    def __init__(self, configuration: Configuration, timings: Sequence[Timing]) -> None:
        self.configuration = configuration
        self.processes_started = 0
        self.timings = {timing.case: timing for timing in timings}

    def weight(self, case: Case) -> float:
        """1: a record takes no time."""
        return 1.0

    def make(self, cases: Sequence[Case], keep: Keep) -> None:
        """Hands out the record of each case."""
        for case in cases:
            keep(self.timings[case])

    def store_all(self, store: Store) -> RunResult:
        """Stores all records; a row of the same configuration and case is replaced."""
        return run_cases(self, list(self.timings), store, known={})
