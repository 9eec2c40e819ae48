"""Looks for the causes of disagreements: runs their worst cases again, unchanged and under each condition."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import groupby

import pandas as pd

from collwise.platforms import Platform
from collwise.simulator.execution.targets import ModifiedTarget
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import SimulationContext
from collwise.simulator.sweeps.method import Method
from collwise.simulator.sweeps.mpi_runner import measure
from collwise.simulator.timing import Case
from collwise.validation.testbed.shape import Shape
from collwise.validation.testbed.target import TestBed
from collwise.validation.testbed.tcp_counters import TcpCounts, tcp_counts
from collwise.validation.three_way.conditions import CONDITIONS, Condition
from collwise.validation.three_way.disagreements import Diagnosis, Disagreement, Pair, cause_of

BedOf = Callable[[Shape], AbstractContextManager[TestBed]]
"""Brings up a test bed of a shape for the duration of the context."""

UNCHANGED = Condition("", "nothing changed")
_TIMEOUT_SECONDS = 300.0


@dataclass(frozen=True)
class Diagnoser:
    """Measures and simulates a few cases under conditions on test beds of one shape and its changes.

    `platform` is calibrated for the shape, and `isolated` on single messages.
    """

    shape: Shape
    platform: Platform
    isolated: Platform
    bed_of: BedOf
    store: Store
    method: Method

    def diagnose(self, found: Sequence[tuple[Disagreement, Case]]) -> list[Diagnosis]:
        """A cause for each disagreement, given with the case of its worst row.

        Raises what bringing up test beds and measuring raise; the store keeps finished cases.
        """
        if not found:
            return []
        cases = list(dict.fromkeys(case for _, case in found))
        pairs: dict[str, dict[Case, Pair]] = {}
        counted: dict[Case, TcpCounts] = {}
        jobs = [UNCHANGED, *CONDITIONS]
        for shape, conditions in groupby(jobs, key=lambda one: one.shape(self.shape)):
            with self.bed_of(shape) as bed:
                for condition in conditions:
                    pairs[condition.cause] = self._under(condition, bed, cases)
                    if condition is UNCHANGED:
                        counted = self._counted(bed, cases)
        diagnoses = []
        for one, case in found:
            unchanged = pairs[UNCHANGED.cause].get(case)
            under = {name: of_cases[case] for name, of_cases in pairs.items() if name and case in of_cases}
            cause = cause_of(one.worst, unchanged, under)
            diagnoses.append(Diagnosis(one, cause, unchanged, under, counted.get(case)))
        return diagnoses

    def _under(self, condition: Condition, bed: TestBed, cases: Sequence[Case]) -> dict[Case, Pair]:
        applicable = {case: condition.case(case) for case in cases if condition.applies(case)}
        changed = list(dict.fromkeys(applicable.values()))
        if not changed:
            return {}
        target = ModifiedTarget(bed, {"condition": condition.change}, launcher_args=condition.launcher_args)
        measured = measure(target, changed, self.store, method=self.method, timeout_seconds=_TIMEOUT_SECONDS)
        platform = condition.platform(self.isolated if condition.isolated else self.platform)
        simulated = SimulationContext(self.store).simulate(platform, changed).timings
        pairs = {
            other: Pair(simulated[other].seconds, timing.seconds, timing.half_width_seconds)
            for other, timing in zip(changed, measured, strict=True)
            if simulated[other].ok and timing.ok
        }
        return {case: pairs[other] for case, other in applicable.items() if other in pairs}

    def _counted(self, bed: TestBed, cases: Sequence[Case]) -> dict[Case, TcpCounts]:
        """The counts of TCP and the switch by case, while the MPI program ran only that case."""
        found = {}
        for case in cases:
            before = tcp_counts(bed.bed)
            target = ModifiedTarget(bed, {"condition": "counted"})
            measure(target, [case], self.store, method=self.method, timeout_seconds=_TIMEOUT_SECONDS)
            found[case] = tcp_counts(bed.bed) - before
        return found


def case_of(row: pd.Series, cases: Sequence[Case]) -> Case:
    """The case that a row was measured from."""
    wanted = (row.collective, row.algorithm, row.procs, row.message_bytes)
    return next(case for case in cases if (case.collective, case.algorithm, case.procs, case.message_bytes) == wanted)
