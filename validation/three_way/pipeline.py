"""The whole comparison on test beds or a cluster, stage by stage, from nothing to the scores and the causes."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from collwise.common.errors import CollwiseError, UsageError
from collwise.common.files import write_text
from collwise.models.interface import CollectiveModel
from collwise.platforms import HostPlatform, Platform, write_description
from collwise.simulator.bench import Measured
from collwise.simulator.execution.targets import ExecutionTarget
from collwise.simulator.sweeps.context import SCHEDULE, SMPI, SimulationContext
from collwise.simulator.sweeps.method import PRECISION_OF_FITS, Method, Precision
from collwise.simulator.timing import Case, Timing
from collwise.validation.calibration.calibration import QUICK, USUAL, alone_platform, measure_points, refit
from collwise.validation.compare.deciders import Deciding
from collwise.validation.compare.scores import AllScores, Scores
from collwise.validation.correctness.verification import VerificationResult, verify_hierarchical
from collwise.validation.fitting.models_by_name import measured_models
from collwise.validation.hierarchy.cost_model import TaskStudy, study_tasks
from collwise.validation.hierarchy.space import Space
from collwise.validation.testbed.bed import temporarily_up
from collwise.validation.testbed.check import BedCheck, check
from collwise.validation.testbed.shape import simulated_platform
from collwise.validation.testbed.target import TestBed
from collwise.validation.three_way.disagreements import Diagnoser, Diagnosis, Disagreement, disagreements, spread
from collwise.validation.three_way.plan import Scenario, ThreeWayPlan
from collwise.validation.three_way.verdicts import (
    COMPONENTS,
    ENGINES,
    LARGE_BYTES,
    OWN,
    SCHEDULED,
    SIMULATED,
    Repeatability,
    can_be_simulated,
    repeatability,
    with_component,
)
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
"""The main scenario's method for messages and blocks below LARGE_BYTES, whose times differ most between launches."""
_LIMIT_SECONDS = 900.0
TASK_COLLECTIVES, TASK_ALGORITHMS, TASK_BYTES = ("bcast", "allreduce"), ("chain", "binary", "binomial"), 65536
"""Tasks that are measured on nodes of several processes: their collectives, trees between nodes, and segments."""
MODELS_SECONDS, QUICK_MODELS_SECONDS = 960.0, 240.0
"""The time limits for fitting all models. The models share a limit equally."""
_OWN = Deciding(OWN, lambda *_: LIBRARY_DECIDES)


@dataclass(frozen=True)
class Stage:
    """A step of the comparison and its duration."""

    name: str
    seconds: float


@dataclass
class Validation:
    """The results of a comparison, part by part.

    `scores` maps each place of measurement to the scores of engines, models and MPI's own choices there; the main
    scenario is first. `platforms` has the simulated platforms by the name of the test bed, or by their own names on a
    cluster. `checked` is the check of the main test bed; None if the plan is quick. `notes` are on models that could
    not be fitted. If nodes have several processes, `components` has the times of MPI's own collectives by component,
    `verified` the checks of hierarchical algorithms, and `tasks` the tasks.
    """

    plan: ThreeWayPlan
    scores: dict[str, AllScores] = field(default_factory=dict)
    platforms: dict[str, HostPlatform] = field(default_factory=dict)
    repeated: Repeatability = field(default_factory=lambda: repeatability([]))
    checked: BedCheck | None = None
    disagreements: list[Disagreement] = field(default_factory=list)
    diagnoses: list[Diagnosis] = field(default_factory=list)
    failed: list[Timing] = field(default_factory=list)
    components: dict[str, AllTimes] = field(default_factory=dict)
    verified: list[VerificationResult] = field(default_factory=list)
    tasks: list[TaskStudy] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    stages: list[Stage] = field(default_factory=list)

    @property
    def place(self) -> str:
        """The place at which the main scenario was measured."""
        return next(iter(self.scores))

    @property
    def main(self) -> AllScores:
        """The scores of the main scenario."""
        return self.scores[self.place]

    @property
    def maker(self) -> str:
        """The MPI library that was measured."""
        return next(iter(self.main.values())).right.maker

    @property
    def models(self) -> list[str]:
        """The models that predict anything."""
        known = dict.fromkeys(name for scores in self.main.values() for name in scores.times)
        return [name for name in known if name not in ENGINES]

    @property
    def on_testbed(self) -> bool:
        """True if everything was measured on test beds."""
        return self.plan.main.shape is not None


OnStage = Callable[[str, float | None], None]
"""Gets a stage's name, and None at the start of the stage or the stage's seconds at its end."""
MethodOf = Callable[[Case], Method]


@dataclass
class ThreeWayComparison:
    """One run of a plan: on test beds that it makes, or on `target`, which is simulated as `platform`.

    On test beds, platforms are calibrated first; on the target, only if `calibrate` is true. Calibrated platforms are
    written to `folder`.
    """

    plan: ThreeWayPlan
    context: SimulationContext
    folder: Path
    on_stage: OnStage = lambda name, seconds: None
    name: str = USUAL_NAME
    target: ExecutionTarget | None = None
    platform: HostPlatform | None = None
    calibrate: bool = False
    result: Validation = field(init=False)

    def __post_init__(self) -> None:
        self.result = Validation(self.plan)

    def run(self) -> Validation:
        """Runs everything in the order of the plan. No test bed is left up, whatever happens.

        Raises UsageError if test beds cannot be made or cases do not fit on the platform, CollwiseError if a run fails.
        """
        main, result = self.plan.main, self.result
        with self._at(main) as target:
            platform, isolated = self._platforms(target, main)
            models = self._fitted(target) if self.plan.models else []
            self._score(target, main, platform, models)
            if main.by_node:
                self._on_shared_nodes(target)
            self._repeat(target)
            if isinstance(target, TestBed) and not self.plan.quick:
                with self._stage(f"{target.name}: network and processors checked"):
                    result.checked = check(target.bed)
        for scenario in self.plan.scenarios[1:]:
            alike = scenario.shape == (main.shape and replace(main.shape, nodes=scenario.nodes))
            with self._at(scenario) as target:
                here = platform if alike else self._platforms(target, scenario)[0]
                if alike and isinstance(here, Platform) and main.shape is not None:
                    here = replace(here, nodes=scenario.nodes)
                self._score(target, scenario, here, models if alike else [])
        found = result.disagreements = disagreements(result.main.values())
        if main.shape is not None and isinstance(platform, Platform) and isolated is not None:
            chosen = spread(found, self.plan.diagnosed)
            with self._stage(f"causes of {len(chosen)} of {len(found)} disagreements"):
                diagnoser = Diagnoser(main.shape, platform, isolated, self.name, self.context, METHOD)
                result.diagnoses = diagnoser.diagnose(chosen)
        return result

    @contextmanager
    def _at(self, scenario: Scenario) -> Iterator[ExecutionTarget]:
        """The target of a scenario: the given target, or a test bed of the scenario's shape."""
        if scenario.shape is None:
            assert self.target is not None
            yield self.target
        else:
            with temporarily_up(scenario.shape, self.name) as bed:
                yield TestBed(bed)

    @contextmanager
    def _stage(self, name: str) -> Iterator[None]:
        self.on_stage(name, None)
        started = time.monotonic()
        yield
        self.result.stages.append(Stage(name, time.monotonic() - started))
        self.on_stage(name, self.result.stages[-1].seconds)

    def _platforms(self, target: ExecutionTarget, scenario: Scenario) -> tuple[HostPlatform, Platform | None]:
        """The platform to simulate for the target, and the platform for single messages if both are calibrated."""
        nominal = self.platform if scenario.shape is None else simulated_platform(scenario.shape)
        assert nominal is not None
        if scenario.shape is None and not self.calibrate:
            return nominal, None
        if not isinstance(nominal, Platform):
            raise UsageError(f"nominal platform {nominal.name}; expected equal nodes behind one switch, in TOML")
        used = replace(nominal, nodes=min(nominal.nodes, scenario.nodes))
        with self._stage(f"{target.name}: calibrated"):
            points = measure_points(target, used, QUICK if self.plan.quick else USUAL, self.context.store)
            platform = replace(refit(points, used, self.context).platform, nodes=nominal.nodes)
        name = platform.name if scenario.shape is None else target.name
        write_text(self.folder / f"{name}.toml", write_description(platform))
        return platform, alone_platform(points, used)

    def _fitted(self, target: ExecutionTarget) -> list[CollectiveModel]:
        main, budget = self.plan.main, QUICK_MODELS_SECONDS if self.plan.quick else MODELS_SECONDS
        bench = functools.partial(Measured, target, self.context, Method("maximum", PRECISION_OF_FITS))
        note = self.result.notes.append
        with self._stage(f"{target.name}: models fitted"):
            return measured_models(bench, main.procs, [*main.sizes], budget_seconds=budget, on_note=note)

    def _score(
        self, target: ExecutionTarget, scenario: Scenario, platform: HostPlatform, models: Sequence[CollectiveModel]
    ) -> None:
        """Scores both engines, the models and MPI's own choices by measured times."""
        on_bed, grids = scenario.shape is not None, scenario.grids()
        place = target.name if on_bed else f"{target.name}, P = {scenario.procs}"
        method = _by_size if scenario is self.plan.main else lambda case: METHOD
        with self._stage(f"{target.name}: {sum(len(grid.cases()) for grid in grids)} cases measured"):
            measured = self._times(target, grids, method, place)
        with self._stage(f"{target.name}: simulated and predicted"):
            ours = [replace(grid, besides=()) for grid in grids]
            some = [grid.only(functools.partial(can_be_simulated, grid.collective)) for grid in ours]
            contexts = [replace(self.context, engine=engine) for engine in (SMPI, SCHEDULE)]
            simulated, played = (simulate(platform, some, context) for context in contexts)
            scores = AllScores(
                Scores(right, {SIMULATED: item, SCHEDULED: other, **_predicted(models, right.grid), OWN: _OWN})
                for right, item, other in zip(measured, simulated, played, strict=True)
            )
        self.result.failed += [timing for times in (*simulated, *played) for timing in times.failed]
        self.result.scores[place] = scores
        self.result.platforms[target.name if on_bed else platform.name] = platform

    def _times(self, target: ExecutionTarget, grids: Sequence[Grid], method: MethodOf, place: str) -> list[Times]:
        """The medians of the launches' medians, since a launch may be disturbed. Intervals are those of the means."""
        medians = self._measured(target, [case for grid in grids for case in grid.cases()], method)
        for case, timing in medians.items():
            if math.isfinite(timing.median_seconds):
                medians[case] = replace(timing, seconds=timing.median_seconds)
        return [Times.of_timings(grid, medians, place, "measured", target.installation.label) for grid in grids]

    def _measured(
        self, target: ExecutionTarget, cases: Sequence[Case], method: MethodOf, run: str = ""
    ) -> dict[Case, Timing]:
        made: dict[Case, Timing] = {}
        for each in dict.fromkeys(map(method, cases)):
            bench = Measured(target, self.context, each, _LIMIT_SECONDS, run)
            found = bench.time([case for case in cases if method(case) == each])
            failed = [timing for timing in found.values() if not timing.ok]
            if len(failed) == len(found):
                raise CollwiseError(f"{target.name}: no case could be measured; the first error: {failed[0].error}")
            made |= found
            self.result.failed += failed
        return made

    def _repeat(self, target: ExecutionTarget) -> None:
        cases = self.plan.main.cases()
        sample = cases[:: max(1, -(-len(cases) // self.plan.repeated))]
        with self._stage(f"{target.name}: {len(sample)} cases measured again"):
            first, second = (self._measured(target, sample, _by_size, run) for run in ("", "again"))
        self.result.repeated = repeatability((first[case], second[case]) for case in sample)

    def _on_shared_nodes(self, target: ExecutionTarget) -> None:
        """Makes the additional measurements for nodes with several processes."""
        main, result = self.plan.main, self.result
        own = [replace(grid, choices=(LIBRARY_DECIDES,), besides=()) for grid in main.grids()]
        for name in COMPONENTS:
            with self._stage(f"{target.name}: Open MPI's component {name} measured"):
                times = self._times(with_component(target, name), own, lambda case: MAIN_METHOD, target.name)
                result.components[name] = AllTimes.of(times)
        bench = Measured(target, self.context, METHOD, _LIMIT_SECONDS)
        with self._stage(f"{target.name}: tasks measured"):
            for collective in main.sizes:
                if collective in TASK_COLLECTIVES:
                    place = (main.nodes,), (main.processes_per_node,)
                    space = Space(collective, *place, (TASK_BYTES,), (TASK_BYTES,), TASK_ALGORITHMS)
                    result.tasks += study_tasks(space.cases(), bench)
        with self._stage(f"{target.name}: hierarchical algorithms verified"):
            result.verified = [item for name in (*main.sizes, "barrier") for item in verify_hierarchical(target, name)]


def _by_size(case: Case) -> Method:
    """The method for a case of the main scenario."""
    return SHORT_METHOD if case.message_bytes < LARGE_BYTES else MAIN_METHOD


def _predicted(models: Sequence[CollectiveModel], grid: Grid) -> dict[str, Times]:
    """The times by the models that cover any of the algorithms; times that are not positive are dropped."""
    covering = [model for model in models if {*model.algorithms(grid.collective)} & {*grid.names}]
    times = {model.name: predicted(model, replace(grid, besides=())) for model in covering}
    return {name: item.where(item.seconds > 0) for name, item in times.items()}
