"""The whole comparison on test beds or a cluster, stage by stage, from nothing to the scores and the causes."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from collwise.common.errors import CollwiseError, UsageError
from collwise.common.files import write_text
from collwise.models.interface import CollectiveModel
from collwise.platforms import HostPlatform, Platform, write_description
from collwise.simulator.bench import Measured
from collwise.simulator.execution.targets import ExecutionTarget
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import SCHEDULE, SMPI, SimulationContext
from collwise.simulator.sweeps.method import PRECISION_OF_FITS, Method, Precision
from collwise.simulator.timing import Case, Timing
from collwise.validation.calibration.calibration import alone_platform, measure_points, refit
from collwise.validation.calibration.plan import QUICK, USUAL
from collwise.validation.calibration.points import CalibrationPoint
from collwise.validation.compare.deciders import Deciding
from collwise.validation.compare.scores import AllScores, Scores
from collwise.validation.correctness.verification import VerificationResult, verify_hierarchical
from collwise.validation.fitting.models_by_name import measured_models
from collwise.validation.hierarchy.overlap import TaskStudy, study_tasks
from collwise.validation.hierarchy.space import Space
from collwise.validation.testbed.bed import temporarily_up
from collwise.validation.testbed.check import Check, check
from collwise.validation.testbed.platform import simulated_platform
from collwise.validation.testbed.shape import Shape
from collwise.validation.testbed.target import TestBed
from collwise.validation.three_way.diagnosing import Diagnoser
from collwise.validation.three_way.disagreements import Diagnosis, Disagreement, disagreements, spread
from collwise.validation.three_way.kinds import COMPONENTS, can_be_simulated, with_component
from collwise.validation.three_way.plan import Scenario, ThreeWayPlan
from collwise.validation.three_way.verdicts import ENGINES, LARGE_BYTES, OWN, Repeatability, repeatability
from collwise.validation.times.choice import LIBRARY_DECIDES
from collwise.validation.times.files import AllTimes
from collwise.validation.times.grid import Grid
from collwise.validation.times.sources import predicted, simulate
from collwise.validation.times.times import Times

METHOD = Method(precision=Precision(5, 15, 0.95, 0.05), warmup=2)
USUAL_NAME = "validate"
"""The name of the test beds."""
MAIN_METHOD = Method(precision=Precision(3, 8, 0.95, 0.05), warmup=2, launches=3)
"""The method of the main scenario. Times differ more between launches than within one."""
SHORT_METHOD = Method(precision=Precision(8, 25, 0.95, 0.05), warmup=2, launches=9)
"""Its method for messages and blocks below LARGE_BYTES, whose times differ most between launches."""
_LIMIT_SECONDS = 900.0
TASK_COLLECTIVES, TASK_ALGORITHMS, TASK_BYTES = ("bcast", "allreduce"), ("chain", "binary", "binomial"), 65536
"""Tasks that are measured on nodes of several processes: their collectives, trees between nodes, and segments."""
MODELS_SECONDS, QUICK_MODELS_SECONDS = 240.0, 45.0
"""The time limits of fitting all models."""
_OWN = Deciding(OWN, lambda *_: LIBRARY_DECIDES)


@dataclass(frozen=True)
class Stage:
    """A step of the comparison and its duration."""

    name: str
    seconds: float


@dataclass
class Validation:
    """The result: scores by measured times, and the parts that did not run."""

    plan: ThreeWayPlan
    scores: Mapping[str, AllScores]
    """What engines, models and MPI's own choices are worth, by where it was measured, the main scenario first."""
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
    components: Mapping[str, AllTimes] = field(default_factory=dict)
    """The times of MPI's own collectives by its components; none where they were not measured."""
    verified: list[VerificationResult] = field(default_factory=list)
    """The hierarchical algorithms on the main test bed, where its nodes have several processes."""
    tasks: list[TaskStudy] = field(default_factory=list)
    """Tasks of hierarchical collectives there."""
    notes: list[str] = field(default_factory=list)
    """Lines on models that could not be fitted."""
    stages: list[Stage] = field(default_factory=list)

    @property
    def place(self) -> str:
        """Where the main scenario was measured."""
        return next(iter(self.scores))

    @property
    def main(self) -> AllScores:
        """The scores of the main scenario."""
        return self.scores[self.place]


OnStage = Callable[[str, float | None], None]
"""Is called with the name of a stage and None when it starts, and with its seconds when it is done."""


@dataclass
class ThreeWayComparison:
    """One run of a plan, on test beds that it makes, or on a `target` beside simulation on `platform`.

    On test beds, and with `calibrate` on the target, platforms are calibrated first. Finished cases and measurements
    are in the store, calibrated platforms in a folder. A run that was stopped resumes from there.
    """

    plan: ThreeWayPlan
    store: Store
    folder: Path
    on_stage: OnStage = lambda name, seconds: None
    name: str = USUAL_NAME
    target: ExecutionTarget | None = None
    platform: HostPlatform | None = None
    calibrate: bool = False
    _notes: list[str] = field(default_factory=list, init=False)
    _stages: list[Stage] = field(default_factory=list, init=False)
    _failed: list[Timing] = field(default_factory=list, init=False)
    _maker: str = field(default="", init=False)

    def run(self) -> Validation:
        """Runs everything in the order of the plan. No test bed is left up, whatever happens.

        Raises UsageError where test beds cannot be made or cases do not fit on the platform, and CollwiseError when a
        run of the MPI program fails.
        """
        main = self.plan.main
        with self._at(main) as target:
            platform = self._platform(target, main)
            platforms = {self._called(target, platform): platform}
            models = self._fitted(target, main.procs)
            scores = [self._scores(target, main, platform, models)]
            shared = self._on_shared_nodes(target) if main.by_node else {}
            repeated = self._repeated(target)
            checked = self._checked(target)
            isolated = None if main.shape is None else self._isolated(target, main.shape)
        for scenario in self.plan.scenarios[1:]:
            with self._at(scenario) as target:
                alike = scenario.shape == (main.shape and replace(main.shape, nodes=scenario.nodes))
                here = self._resized(platform, scenario) if alike else self._platform(target, scenario)
                platforms[self._called(target, here)] = here
                scores.append(self._scores(target, scenario, here, models if alike else []))
        found = disagreements(scores[0].values())
        return Validation(
            self.plan,
            {next(iter(each.values())).right.platform: each for each in scores},
            platforms,
            tuple(model.name for model in models),
            repeated,
            checked,
            found,
            self._diagnosed(found, platform, isolated),
            list(dict.fromkeys(self._failed)),
            self._maker,
            on_testbed=main.shape is not None,
            notes=self._notes,
            stages=self._stages,
            **shared,
        )

    @contextmanager
    def _at(self, scenario: Scenario) -> Iterator[ExecutionTarget]:
        """The target of a scenario: the one there is, or a test bed of its shape."""
        if scenario.shape is None:
            assert self.target is not None
            yield self.target
        else:
            with self._bed(scenario.shape) as bed:
                yield bed

    @contextmanager
    def _bed(self, shape: Shape) -> Iterator[TestBed]:
        with temporarily_up(shape, self.name) as bed:
            yield TestBed(bed)

    def _called(self, target: ExecutionTarget, platform: HostPlatform) -> str:
        return target.name if self.target is None else platform.name

    def _resized(self, platform: HostPlatform, scenario: Scenario) -> HostPlatform:
        """The platform with as many nodes as a test bed has; on a cluster as it is."""
        if scenario.shape is None:
            return platform
        assert isinstance(platform, Platform)
        return replace(platform, nodes=scenario.nodes)

    def _platform(self, target: ExecutionTarget, scenario: Scenario) -> HostPlatform:
        """The platform that is simulated beside the target, calibrated there if asked for."""
        if scenario.shape is not None:
            nominal: HostPlatform = simulated_platform(scenario.shape)
        else:
            assert self.platform is not None
            nominal = self.platform
            if not self.calibrate:
                return nominal
        if not isinstance(nominal, Platform):
            raise UsageError(f"nominal platform {nominal.name}; valid: equal nodes behind one switch, in TOML")
        used = replace(nominal, nodes=min(nominal.nodes, scenario.nodes))
        with self._stage(f"{target.name}: calibrated"):
            fitted = refit(self._points(target, used), used, SimulationContext(self.store)).platform
        platform = replace(fitted, nodes=nominal.nodes)
        write_text(self.folder / f"{self._called(target, platform)}.toml", write_description(platform))
        return platform

    def _points(self, target: ExecutionTarget, nominal: Platform) -> list[CalibrationPoint]:
        """The points of the calibration, from the store if this target was measured before."""
        return measure_points(target, nominal, QUICK if self.plan.quick else USUAL, self.store)

    def _isolated(self, target: ExecutionTarget, shape: Shape) -> Platform:
        """The platform of a test bed, calibrated on single messages."""
        nominal = simulated_platform(shape)
        return alone_platform(self._points(target, nominal), nominal)

    def _diagnosed(
        self, found: Sequence[Disagreement], platform: HostPlatform, isolated: Platform | None
    ) -> list[Diagnosis]:
        main = self.plan.main
        if main.shape is None or isolated is None:
            return []
        assert isinstance(platform, Platform)
        with self._stage(f"causes of {min(len(found), self.plan.diagnosed)} of {len(found)} disagreements"):
            context = SimulationContext(self.store)
            diagnoser = Diagnoser(main.shape, platform, isolated, self._bed, context, METHOD)
            return diagnoser.diagnose(spread(found, self.plan.diagnosed))

    @contextmanager
    def _stage(self, name: str) -> Iterator[None]:
        self.on_stage(name, None)
        started = time.monotonic()
        yield
        self._stages.append(Stage(name, time.monotonic() - started))
        self.on_stage(name, self._stages[-1].seconds)

    def _checked(self, target: ExecutionTarget) -> Check | None:
        """Whether the network or the processors limit messages on a test bed, unless the plan is a quick one."""
        if self.plan.quick or not isinstance(target, TestBed):
            return None
        with self._stage(f"{target.name}: network and processors checked"):
            return check(target.bed)

    def _fitted(self, target: ExecutionTarget, procs: int) -> list[CollectiveModel]:
        if not self.plan.models:
            return []
        budget = QUICK_MODELS_SECONDS if self.plan.quick else MODELS_SECONDS
        with self._stage(f"{target.name}: models fitted"):
            context = SimulationContext(self.store)
            method = Method(timing="maximum", precision=PRECISION_OF_FITS)
            benches = functools.partial(Measured, target, context, method)
            return measured_models(benches, procs, budget_seconds=budget, on_note=self._notes.append)

    def _on_shared_nodes(self, target: ExecutionTarget) -> dict[str, Any]:
        """What is measured besides where nodes have several processes."""
        main, components = self.plan.main, {}
        own = [replace(grid, choices=(LIBRARY_DECIDES,), besides=()) for grid in main.grids()]
        for name in COMPONENTS:
            with self._stage(f"{target.name}: Open MPI's component {name} measured"):
                times = self._times(with_component(target, name), own, lambda case: MAIN_METHOD, target.name)
                components[name] = AllTimes.of(times)
        place = (main.nodes,), (main.processes_per_node,)
        spaces = [
            Space(collective, *place, (TASK_BYTES,), (TASK_BYTES,), TASK_ALGORITHMS)
            for collective in main.sizes
            if collective in TASK_COLLECTIVES
        ]
        with self._stage(f"{target.name}: tasks measured"):
            timer = functools.partial(self._measured, target, method=lambda case: METHOD)
            tasks = [study for space in spaces for study in study_tasks(list(space.points()), timer)]
        with self._stage(f"{target.name}: hierarchical algorithms verified"):
            verified = [one for name in (*main.sizes, "barrier") for one in verify_hierarchical(target, name)]
        return {"components": components, "tasks": tasks, "verified": verified}

    def _scores(
        self, target: ExecutionTarget, scenario: Scenario, platform: HostPlatform, models: Sequence[CollectiveModel]
    ) -> AllScores:
        """The scores of both engines, the models and MPI's own choices by measured times."""
        grids, name = scenario.grids(), target.name
        method = _by_size if scenario is self.plan.main else lambda case: METHOD
        with self._stage(f"{name}: {sum(len(grid.cases()) for grid in grids)} cases measured"):
            measured = self._times(
                target, grids, method, name if self.target is None else f"{name}, P = {scenario.procs}"
            )
        with self._stage(f"{name}: simulated and predicted"):
            simulable = [
                replace(grid, besides=()).only(functools.partial(can_be_simulated, grid.collective)) for grid in grids
            ]
            simulated, played = (
                simulate(platform, simulable, SimulationContext(self.store, engine)) for engine in (SMPI, SCHEDULE)
            )
            self._failed += [timing for times in (*simulated, *played) for timing in times.failed]
            return AllScores(
                Scores(right, {**dict(zip(ENGINES, engines, strict=True)), **_predicted(models, right.grid), OWN: _OWN})
                for right, *engines in zip(measured, simulated, played, strict=True)
            )

    def _times(
        self, target: ExecutionTarget, grids: Sequence[Grid], method: Callable[[Case], Method], place: str
    ) -> list[Times]:
        """Measured times: the medians of the launches' medians, so that disturbed launches do not count.

        The intervals are those of the means.
        """
        found = self._measured(target, [case for grid in grids for case in grid.cases()], method)
        typical = {
            case: replace(one, seconds=one.median_seconds) if math.isfinite(one.median_seconds) else one
            for case, one in found.items()
        }
        return [Times.of_timings(grid, typical, place, "measured", target.installation.label) for grid in grids]

    def _measured(
        self, target: ExecutionTarget, cases: Sequence[Case], method: Callable[[Case], Method], run: str = ""
    ) -> dict[Case, Timing]:
        self._maker = target.installation.label
        made: dict[Case, Timing] = {}
        for each in dict.fromkeys(map(method, cases)):
            bench = Measured(target, SimulationContext(self.store), each, _LIMIT_SECONDS, run)
            found = bench.time([case for case in cases if method(case) == each])
            if not any(timing.ok for timing in found.values()):
                raise CollwiseError(
                    f"{target.name}: no case could be measured; first: {next(iter(found.values())).error}"
                )
            made |= found
        self._failed += [timing for timing in made.values() if not timing.ok]
        return made

    def _repeated(self, target: ExecutionTarget) -> Repeatability:
        cases = self.plan.main.cases()
        sample = cases[:: max(1, -(-len(cases) // self.plan.repeated))]
        with self._stage(f"{target.name}: {len(sample)} cases measured again"):
            first, second = (self._measured(target, sample, _by_size, run) for run in ("", "again"))
            return repeatability((first[case], second[case]) for case in sample)


def _by_size(case: Case) -> Method:
    """The method of the main scenario."""
    return SHORT_METHOD if case.message_bytes < LARGE_BYTES else MAIN_METHOD


def _predicted(models: Sequence[CollectiveModel], grid: Grid) -> dict[str, Times]:
    """The times by the models that cover any of the algorithms; a time that is not positive is none."""
    covering = [model for model in models if {*model.algorithms(grid.collective)} & {*grid.names}]
    times = {model.name: predicted(model, replace(grid, besides=())) for model in covering}
    return {name: one.where(one.seconds > 0) for name, one in times.items()}
