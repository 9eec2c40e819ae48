"""Looks for the causes of disagreements: runs their worst cases again, unchanged and under each condition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from collwise.platforms import Platform
from collwise.simulator.bench import Measured, Simulated
from collwise.simulator.execution.targets import ExecutionTarget, ModifiedTarget
from collwise.simulator.sweeps.context import SimulationContext
from collwise.simulator.sweeps.method import Method
from collwise.simulator.timing import Case
from collwise.validation.testbed.bed import temporarily_up
from collwise.validation.testbed.shape import Shape
from collwise.validation.testbed.target import TestBed
from collwise.validation.testbed.tcp_counters import TcpCounts, tcp_counts
from collwise.validation.three_way.conditions import CONDITIONS, Condition
from collwise.validation.three_way.disagreements import Diagnosis, Disagreement, Pair, cause_of

UNCHANGED = Condition("", "nothing changed")
_LIMIT_SECONDS = 300.0


@dataclass(frozen=True)
class Diagnoser:
    """Measures and simulates a few cases under conditions on test beds of one shape and its changes.

    `platform` is calibrated for the shape, and `isolated` on single messages. `name` is that of the test beds.
    """

    shape: Shape
    platform: Platform
    isolated: Platform
    name: str
    context: SimulationContext
    method: Method

    def diagnose(self, found: Sequence[Disagreement]) -> list[Diagnosis]:
        """A cause for each disagreement.

        Raises what bringing up test beds and measuring raise; the store keeps finished cases.
        """
        if not found:
            return []
        cases = list(dict.fromkeys(one.case for one in found))
        pairs: dict[str, dict[Case, Pair]] = {}
        counted: dict[Case, TcpCounts] = {}
        jobs = [UNCHANGED, *CONDITIONS]
        for shape, conditions in groupby(jobs, key=lambda one: one.shape(self.shape)):
            with temporarily_up(shape, self.name) as up:
                bed = TestBed(up)
                for condition in conditions:
                    pairs[condition.cause] = self._under(condition, bed, cases)
                    if condition is UNCHANGED:
                        counted = self._counted(bed, cases)
        diagnoses = []
        for one in found:
            unchanged = pairs[UNCHANGED.cause].get(one.case)
            under = {name: of_cases[one.case] for name, of_cases in pairs.items() if name and one.case in of_cases}
            cause = cause_of(one.worst, unchanged, under)
            diagnoses.append(Diagnosis(one, cause, unchanged, under, counted.get(one.case)))
        return diagnoses

    def _under(self, condition: Condition, bed: TestBed, cases: Sequence[Case]) -> dict[Case, Pair]:
        applicable = {case: condition.case(case) for case in cases if condition.applies(case)}
        changed = list(dict.fromkeys(applicable.values()))
        if not changed:
            return {}
        target = ModifiedTarget(bed, {"condition": condition.change}, launcher_args=condition.launcher_args)
        platform = condition.platform(self.isolated if condition.isolated else self.platform)
        measured = self._measured(target).time(changed)
        simulated = Simulated(platform, self.context).time(changed)
        pairs = {
            other: Pair(simulated[other].seconds, measured[other].seconds, measured[other].half_width_seconds)
            for other in changed
            if simulated[other].ok and measured[other].ok
        }
        return {case: pairs[other] for case, other in applicable.items() if other in pairs}

    def _counted(self, bed: TestBed, cases: Sequence[Case]) -> dict[Case, TcpCounts]:
        """The counts of TCP and the switch by case, while the MPI program ran only that case."""
        bench = self._measured(ModifiedTarget(bed, {"condition": "counted"}))
        found = {}
        for case in cases:
            before = tcp_counts(bed.bed)
            bench.time([case])
            found[case] = tcp_counts(bed.bed) - before
        return found

    def _measured(self, target: ExecutionTarget) -> Measured:
        return Measured(target, self.context, self.method, _LIMIT_SECONDS)
