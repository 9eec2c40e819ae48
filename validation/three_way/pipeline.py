"""The whole comparison on test beds, stage by stage, from nothing to the table and the causes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from collwise.common.errors import CollwiseError
from collwise.common.files import write_text
from collwise.models.interface import CollectiveModel
from collwise.platforms import HostPlatform, Platform, write_description
from collwise.simulator.bench import Measured
from collwise.simulator.execution.targets import ExecutionTarget
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import SCHEDULE, SMPI, SimulationContext
from collwise.simulator.sweeps.method import PRECISION_OF_FITS, Method, Precision
from collwise.simulator.sweeps.mpi_runner import measure
from collwise.simulator.timing import Case, Timing
from collwise.validation.calibration.calibration import alone_platform, measure_points, refit
from collwise.validation.calibration.plan import QUICK, USUAL
from collwise.validation.calibration.points import CalibrationPoint
from collwise.validation.correctness.verification import VerificationResult, verify_hierarchical
from collwise.validation.fitting.models_by_name import measured_models
from collwise.validation.hierarchy.overlap import TaskStudy, study_tasks
from collwise.validation.hierarchy.space import Space
from collwise.validation.testbed.bed import temporarily_up
from collwise.validation.testbed.check import Check, check
from collwise.validation.testbed.platform import simulated_platform
from collwise.validation.testbed.shape import Shape
from collwise.validation.testbed.target import TestBed
from collwise.validation.three_way.diagnosing import Diagnoser, case_of
from collwise.validation.three_way.disagreements import Diagnosis, Disagreement, disagreements, spread
from collwise.validation.three_way.kinds import COMPONENTS, can_be_simulated, with_component
from collwise.validation.three_way.plan import Scenario, ThreeWayPlan
from collwise.validation.three_way.scores import Repeatability, repeatability
from collwise.validation.three_way.table import POINT, SCHEDULED, SIMULATED, ours, table_of
from collwise.validation.three_way.verdict import LARGE_BYTES

METHOD = Method(precision=Precision(5, 15, 0.95, 0.05), warmup=2)
USUAL_NAME = "validate"
"""The name of the test beds."""
MAIN_METHOD = Method(precision=Precision(3, 8, 0.95, 0.05), warmup=2, launches=3)
"""The method of the main scenario. Times differ more between launches than within one."""
SHORT_METHOD = Method(precision=Precision(8, 25, 0.95, 0.05), warmup=2, launches=9)
"""Its method for messages and blocks below LARGE_BYTES, whose times differ most between launches."""
_TIMEOUT_SECONDS = 900.0
TASK_COLLECTIVES, TASK_ALGORITHMS, TASK_BYTES = ("bcast", "allreduce"), ("chain", "binary", "binomial"), 65536
"""Tasks that are measured on nodes of several processes: their collectives, trees between nodes, and segments."""
MODELS_SECONDS, QUICK_MODELS_SECONDS = 240.0, 45.0
"""The time limits of fitting all models."""


@dataclass(frozen=True)
class Stage:
    """A step of the comparison and its duration."""

    name: str
    seconds: float


@dataclass
class Validation:
    """The result: the table, its sources, and the parts that did not run."""

    plan: ThreeWayPlan
    table: pd.DataFrame
    platforms: Mapping[str, HostPlatform]
    """The platforms that were simulated, by name of the test bed; elsewhere by their own."""
    models: tuple[str, ...]
    repeated: Repeatability
    checked: Check | None
    """Whether the network or the processors limit messages on the main test bed; None with a quick plan."""
    disagreements: list[Disagreement]
    diagnoses: list[Diagnosis]
    failed: list[Timing]
    maker: str
    on_testbed: bool = True
    components: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=POINT))
    """The times of the MPI library's components by point, a column each; without rows where they were not measured."""
    verified: list[VerificationResult] = field(default_factory=list)
    """The hierarchical algorithms on the main test bed, where its nodes have several processes."""
    tasks: list[TaskStudy] = field(default_factory=list)
    """Tasks of hierarchical collectives there."""
    notes: list[str] = field(default_factory=list)
    """Lines on models that could not be fitted."""
    stages: list[Stage] = field(default_factory=list)

    @property
    def main(self) -> pd.DataFrame:
        """The table of the main scenario."""
        return self.table[self.table.target == self.table.target.iloc[0]]


OnStage = Callable[[str, float | None], None]
"""Is called with the name of a stage and None when it starts, and with its seconds when it is done."""


@dataclass
class ThreeWayComparison:
    """One run of a plan. Finished cases and measurements are in the store, calibrated platforms in a folder.

    A run that was stopped resumes from there.
    """

    plan: ThreeWayPlan
    store: Store
    folder: Path
    on_stage: OnStage = lambda name, seconds: None
    name: str = USUAL_NAME
    _notes: list[str] = field(default_factory=list, init=False)
    _stages: list[Stage] = field(default_factory=list, init=False)
    _failed: list[Timing] = field(default_factory=list, init=False)
    _maker: str = field(default="", init=False)

    def run(self) -> Validation:
        """Runs everything in the order of the plan. No test bed is left up, whatever happens.

        Raises UsageError where test beds cannot be made and CollwiseError when a run of the MPI program fails.
        """
        main, shape = self.plan.main, self.plan.main.shape
        with self._bed(shape) as bed:
            platforms = {bed.name: self._calibrated(bed, shape)}
            nominal = simulated_platform(shape)
            isolated = alone_platform(self._points(bed, nominal), nominal)
            models = self._fitted(bed, shape.nodes)
            tables = [self._compared(bed, main, platforms[bed.name], models)]
            components, tasks = self._components(bed), self._tasks(bed)
            repeated = self._repeated(bed)
            checked, verified = self._checked(bed), self._verified(bed)
        for scenario in self.plan.scenarios[1:]:
            alike = (scenario.bits_per_second, scenario.transport) == (main.bits_per_second, main.transport)
            with self._bed(scenario.shape) as bed:
                known = next(iter(platforms.values()))
                platform = replace(known, nodes=scenario.nodes) if alike else self._calibrated(bed, scenario.shape)
                platforms[bed.name] = platform
                tables.append(self._compared(bed, scenario, platform, models if alike else []))
        found = disagreements(ours(tables[0]))
        with self._stage(f"causes of {min(len(found), self.plan.diagnosed)} of {len(found)} disagreements"):
            diagnoser = Diagnoser(shape, next(iter(platforms.values())), isolated, self._bed, self.store, METHOD)
            chosen = spread(found, self.plan.diagnosed)
            cases = main.cases()
            diagnoses = diagnoser.diagnose([(one, case_of(one.worst, cases)) for one in chosen])
        return self._result(
            tables, platforms, models, repeated, checked=checked, disagreements=found, diagnoses=diagnoses,
            components=components, verified=verified, tasks=tasks,
        )  # fmt: skip

    def _result(
        self,
        tables: Sequence[pd.DataFrame],
        platforms: Mapping[str, HostPlatform],
        models: Sequence[CollectiveModel],
        repeated: Repeatability,
        **others: Any,
    ) -> Validation:
        return Validation(
            self.plan, pd.concat(tables, ignore_index=True), platforms, tuple(model.name for model in models), repeated,
            failed=self._failed, maker=self._maker, notes=self._notes, stages=self._stages, **others,
        )  # fmt: skip

    @contextmanager
    def _stage(self, name: str) -> Iterator[None]:
        self.on_stage(name, None)
        started = time.monotonic()
        yield
        self._stages.append(Stage(name, time.monotonic() - started))
        self.on_stage(name, self._stages[-1].seconds)

    @contextmanager
    def _bed(self, shape: Shape) -> Iterator[TestBed]:
        with temporarily_up(shape, self.name) as bed:
            yield TestBed(bed)

    def _calibrated(self, bed: TestBed, shape: Shape) -> Platform:
        platform = self._refitted(bed, simulated_platform(shape))
        write_text(self.folder / f"{bed.name}.toml", write_description(platform))
        return platform

    def _refitted(self, target: ExecutionTarget, nominal: Platform) -> Platform:
        """The nominal platform calibrated on the target."""
        with self._stage(f"{target.name}: calibrated"):
            return refit(self._points(target, nominal), nominal, SimulationContext(self.store)).platform

    def _points(self, target: ExecutionTarget, nominal: Platform) -> list[CalibrationPoint]:
        """The points of the calibration, from the store if this target was measured before."""
        return measure_points(target, nominal, QUICK if self.plan.quick else USUAL, self.store)

    def _checked(self, bed: TestBed) -> Check | None:
        if self.plan.quick:
            return None
        with self._stage(f"{bed.name}: network and processors checked"):
            return check(bed.bed)

    def _fitted(self, target: ExecutionTarget, procs: int) -> list[CollectiveModel]:
        if not self.plan.models:
            return []
        budget = QUICK_MODELS_SECONDS if self.plan.quick else MODELS_SECONDS
        with self._stage(f"{target.name}: models fitted"):
            context = SimulationContext(self.store)
            method = Method(timing="maximum", precision=PRECISION_OF_FITS)
            benches = partial(Measured, target, context, method)
            return measured_models(benches, procs, budget_seconds=budget, on_note=self._notes.append)

    def _verified(self, bed: TestBed) -> list[VerificationResult]:
        if bed.bed.shape.ranks_per_node == 1:
            return []
        with self._stage(f"{bed.name}: hierarchical algorithms verified"):
            collectives = (*self.plan.main.sizes, "barrier")
            return [result for name in collectives for result in verify_hierarchical(bed, name)]

    def _components(self, bed: TestBed) -> pd.DataFrame:
        """The times of Open MPI's own collectives by its component tuned, and by HAN."""
        found = pd.DataFrame(columns=POINT)
        if bed.bed.shape.ranks_per_node == 1:
            return found
        cases = self.plan.main.builtin_cases()
        for name in COMPONENTS:
            with self._stage(f"{bed.name}: Open MPI's component {name} measured"):
                timings = self._measured(with_component(bed, name), cases, MAIN_METHOD)
            rows = table_of(bed.name, timings, {})[[*POINT, "seconds"]].rename(columns={"seconds": name})
            found = rows if found.empty else found.merge(rows, on=POINT, how="outer")
        return found

    def _tasks(self, bed: TestBed) -> list[TaskStudy]:
        """The tasks of broadcast and allreduce, with 8 segments of 64 KiB."""
        shape = bed.bed.shape
        if shape.ranks_per_node == 1:
            return []
        place = (shape.nodes,), (shape.ranks_per_node,)
        spaces = [
            Space(collective, *place, (TASK_BYTES,), (TASK_BYTES,), TASK_ALGORITHMS)
            for collective in self.plan.main.sizes
            if collective in TASK_COLLECTIVES
        ]
        with self._stage(f"{bed.name}: tasks measured"):

            def timed(cases: Sequence[Case]) -> dict[Case, Timing]:
                return dict(zip(cases, self._measured(bed, cases, METHOD), strict=True))

            return [study for space in spaces for study in study_tasks(list(space.points()), timed)]

    def _compared(
        self, bed: ExecutionTarget, scenario: Scenario, platform: HostPlatform, models: Sequence[CollectiveModel]
    ) -> pd.DataFrame:
        cases = scenario.cases()
        with self._stage(f"{bed.name}: {len(cases)} cases measured"):
            measured = self._measured_by_size(bed, cases, scenario)
        with self._stage(f"{bed.name}: MPI's own collectives measured"):
            builtin = self._measured_by_size(bed, scenario.builtin_cases(), scenario)
        cases = [case for case in cases if can_be_simulated(case)]
        with self._stage(f"{bed.name}: simulated and predicted"):
            simulated = {
                source: SimulationContext(self.store, engine).simulate(platform, cases)
                for source, engine in ((SIMULATED, SMPI), (SCHEDULED, SCHEDULE))
            }
            self._failed += [timing for swept in simulated.values() for timing in swept.failed]
            timings = {source: swept.timings for source, swept in simulated.items()}
            return table_of(bed.name, measured, timings, models, builtin)

    def _measured_by_size(
        self, bed: ExecutionTarget, cases: Sequence[Case], scenario: Scenario, run: str = ""
    ) -> list[Timing]:
        if scenario is not self.plan.main:
            return self._measured(bed, cases, METHOD, run)
        by_case: dict[Case, Timing] = {}
        for method, short in ((SHORT_METHOD, True), (MAIN_METHOD, False)):
            chosen = [case for case in cases if (case.message_bytes < LARGE_BYTES) == short]
            by_case |= zip(chosen, self._measured(bed, chosen, method, run), strict=True)
        return [by_case[case] for case in cases]

    def _measured(self, bed: ExecutionTarget, cases: Sequence[Case], method: Method, run: str = "") -> list[Timing]:
        timings = measure(bed, cases, self.store, method=method, run=run, timeout_seconds=_TIMEOUT_SECONDS)
        self._failed += [timing for timing in timings if not timing.ok]
        self._maker = bed.installation.label
        if cases and not any(timing.ok for timing in timings):
            raise CollwiseError(f"{bed.name}: no case could be measured; first: {timings[0].error}")
        return timings

    def _repeated(self, bed: ExecutionTarget) -> Repeatability:
        main = self.plan.main
        cases = main.cases()
        sample = cases[:: max(1, -(-len(cases) // self.plan.repeated))]
        with self._stage(f"{bed.name}: {len(sample)} cases measured again"):
            first, second = (self._measured_by_size(bed, sample, main, run) for run in ("", "again"))
            return repeatability(zip(first, second, strict=True))
