"""The simulation context: the store, the engine, the number of simultaneous simulations, and the progress.

Modules of runners are loaded when a runner is made, so that naming an engine does not have to load them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

from collwise.common.errors import UsageError, note
from collwise.simulator.sweeps.runner import LocalThreads, Pool, Progress, Runner, RunResult, known_timings, run_cases
from collwise.simulator.timing import WINDOWS, Case, is_mock_up

if TYPE_CHECKING:
    from collwise.platforms import HostPlatform
    from collwise.simulator.schedule.library import LibraryDecisions
    from collwise.simulator.store import Store
    from collwise.simulator.sweeps.experiment_runner import ExperimentLaboratory
    from collwise.simulator.sweeps.schedule_runner import ScheduleRunner

ShowProgress = Callable[[str], AbstractContextManager[Progress | None]]
"""Makes, for a label, a context that shows the progress of work while it is open."""

CollectiveRunners = Callable[["HostPlatform", int, "SimulationContext"], Runner]
"""Makes the runner of collectives for a platform, the largest process count and a context."""

ExperimentRunners = Callable[["HostPlatform", int, int, bool, "SimulationContext"], Runner]
"""Makes the runner of experiments. It gets a platform, the number of processes, how many of them are on each node,
whether experiments on disjoint processes run side by side, and a context.
"""


def without_progress(label: str) -> AbstractContextManager[Progress | None]:
    """Shows nothing."""
    return nullcontext()


@dataclass(frozen=True)
class Engine:
    """A program that simulates. `experiments` is None if the engine has no experiments between a few processes.

    `has_library` says whether the engine has its own collectives, which mock-ups then call; otherwise mock-ups call
    those of the context's `library`. `leaves_out` says whether the engine can leave out cases that are slower than a
    tolerance allows, and `has_windows` whether processes of a node can share memory.
    """

    name: str
    collectives: CollectiveRunners
    experiments: ExperimentRunners | None = None
    has_library: bool = True
    leaves_out: bool = False
    has_windows: bool = False

    def check_windows(self, values: Iterable[int]) -> None:
        """Raises UsageError if these values of `within` need shared memory, which the engine does not simulate."""
        if not self.has_windows and set(values) & set(WINDOWS):
            raise UsageError(
                f"--within: simulated processes share no memory with engine {self.name}; valid: point-to-point and "
                "by-socket, all with --engine schedule or an execution target"
            )


def _smpi(collectives: str, experiments: str, own: Mapping[str, str] = MappingProxyType({}), rules: str = "") -> Engine:
    """SMPI with these programs; `own` maps SMPI's collectives to algorithms, and libcollwise follows `rules`."""

    def runner(platform: HostPlatform, procs: int, context: SimulationContext) -> Runner:
        from collwise.simulator.sweeps.smpi_runner import SmpiRunner

        return SmpiRunner(platform, procs, context.simgrid, context.pool, collectives, own, rules)

    def experiment_runner(
        platform: HostPlatform, procs: int, per_node: int, in_parallel: bool, context: SimulationContext
    ) -> Runner:
        from collwise.simulator.sweeps.experiment_runner import SimulatedExperiments

        return SimulatedExperiments(
            platform, procs, per_node, context.simgrid, context.pool, in_parallel, program=experiments
        )

    return Engine("smpi", runner, experiment_runner)


SMPI = _smpi("benchmark", "experiments")
SMPI_ALGORITHM_1 = _smpi("benchmark_algorithm_1", "experiments_algorithm_1")
"""SMPI with segmented broadcasts that post no receive ahead: Algorithm 1 of Nuriyev & Lastovetsky 2021 as printed."""
SMPI_SELECTORS = ("ompi", "mpich", "mvapich2", "impi")
"""The selectors of SMPI, which choose the algorithms of its own collectives as these MPI libraries do."""
_SELECTED_REDUCTIONS = ("reduce", "allreduce", "reduce_scatter")
SMPI_SELECTED = frozenset(
    (*_SELECTED_REDUCTIONS, "bcast", "gather", "scatter", "allgather", "allgatherv", "alltoall", "alltoallv", "barrier")
)
"""The collectives whose algorithms selectors choose. For every other collective, SMPI has a single algorithm."""


def _schedule_engine(like_smpi: bool) -> Engine:
    def runner(platform: HostPlatform, procs: int, context: SimulationContext) -> Runner:
        from collwise.simulator.sweeps.schedule_runner import ScheduleRunner

        return ScheduleRunner(platform, context.pool, context.library, like_smpi)

    return Engine("schedule", runner, has_library=False, leaves_out=True, has_windows=True)


SCHEDULE, SCHEDULE_LIKE_SMPI = _schedule_engine(like_smpi=False), _schedule_engine(like_smpi=True)
"""The schedule engine with its own rules, and the schedule engine with the rules of SMPI's network."""


def _played(platform: HostPlatform, procs: int, per_node: int, in_parallel: bool, context: SimulationContext) -> Runner:
    from collwise.simulator.sweeps.played_experiments import PlayedExperiments

    return PlayedExperiments(platform, context.pool)


SCHEDULE_WITH_EXPERIMENTS = replace(SCHEDULE, experiments=_played)
"""The schedule engine, with experiments whose messages it plays one by one."""
ENGINES: Mapping[str, Engine] = {engine.name: engine for engine in (SMPI, SCHEDULE)}
"""The engines, by the names that --engine takes."""


def smpi_as_library(selector: str, rules: str = "") -> Engine:
    """SMPI as the MPI library that a selector stands for, in all collectives; libcollwise follows `rules`."""
    return _smpi("benchmark", "experiments", dict.fromkeys(SMPI_SELECTED, selector), rules)


@dataclass(frozen=True)
class SimulationContext:
    """The settings with which simulated times are made, and the store that holds these times.

    `simgrid` is a version of SimGrid, by default the system's; `jobs` how many simulations run side by side, by default
    one per core. `progress` shows how far a simulation is, under a label. For collectives in `tolerances` the schedule
    engine leaves out cases that are not within the tolerance (0.01: 1 %) of the fastest one. If the engine has no MPI
    library, `library` chooses the algorithms of the collectives that mock-ups call. `executor` simulates collectives
    and experiments in place of threads of this process.
    """

    store: Store
    engine: Engine = SMPI
    simgrid: str | None = None
    jobs: int | None = None
    progress: ShowProgress = without_progress
    tolerances: Mapping[str, float] = field(default_factory=dict)
    library: LibraryDecisions | None = None
    executor: Pool | None = None

    @property
    def pool(self) -> Pool:
        """The pool that makes the parts of a simulation."""
        return self.executor or LocalThreads(self.jobs)

    def simulate(self, platform: HostPlatform, cases: Sequence[Case], label: str = "") -> RunResult:
        """Times of all cases; simulates those that the store does not have."""
        if self.library is None or self.engine.has_library:
            return self._simulate(platform, cases, label)
        # Only the times of mock-ups depend on the library.
        mock_ups = [case for case in cases if is_mock_up(case)]
        others = [case for case in cases if not is_mock_up(case)]
        parts = [replace(self, library=None)._simulate(platform, others, label)] if others or not mock_ups else []
        parts += [self._simulate(platform, mock_ups, label)] if mock_ups else []
        timings = {case: timing for part in parts for case, timing in part.timings.items()}
        return RunResult(
            {case: timings[case] for case in dict.fromkeys(cases) if case in timings},
            sum(part.reused for part in parts),
            sum(part.processes_started for part in parts),
            parts[0].configuration,
        )

    def _simulate(self, platform: HostPlatform, cases: Sequence[Case], label: str) -> RunResult:
        procs = max((case.procs for case in cases), default=1)
        runner = self.engine.collectives(platform, procs, self)
        known = None
        if self.tolerances and self.engine.leaves_out:
            known = known_timings(self.store, runner.configuration)
            # Stored times of other cases, such as algorithms that a consumer lacks, must not limit these cases.
            cast("ScheduleRunner", runner).choose_within(
                self.tolerances, {case: known[case] for case in cases if case in known}
            )
        with self.progress(label or platform.name) as advance:
            return run_cases(runner, cases, self.store, advance, known)

    def simulate_experiments(
        self, platform: HostPlatform, procs: int, processes_per_node: int, cases: Sequence[Case]
    ) -> RunResult:
        """Times of experiments among `procs` processes; simulates missing ones, one by one."""
        runner = self._experiments(platform, procs, processes_per_node, in_parallel=False)
        with self.progress(platform.name) as advance:
            return run_cases(runner, cases, self.store, advance)

    def laboratory(
        self, platform: HostPlatform, procs: int | None = None, processes_per_node: int = 1
    ) -> ExperimentLaboratory:
        """A laboratory of the first `procs` processes on a platform, by default one on each node."""
        from collwise.simulator.sweeps.experiment_runner import ExperimentLaboratory

        count, eager_limit_bytes = len(platform.hosts) if procs is None else procs, platform.eager_limit_bytes
        runners = {how: self._experiments(platform, count, processes_per_node, how) for how in (True, False)}
        return ExperimentLaboratory(runners, self.store, count, eager_limit_bytes, 1, processes_per_node)

    def with_experiments(self) -> SimulationContext:
        """The same context, with SMPI in place of an engine without experiments."""
        if self.engine.experiments is not None:
            return self
        note(f"models are fitted by SMPI, since engine {self.engine.name} cannot run experiments for fitting")
        return replace(self, engine=SMPI)

    def _experiments(self, platform: HostPlatform, procs: int, processes_per_node: int, in_parallel: bool) -> Runner:
        if self.engine.experiments is None:
            others = ", ".join(engine.name for engine in ENGINES.values() if engine.experiments)
            instead = f"use --engine {others}, or --parameters FILE if the command has it"
            raise UsageError(f"engine {self.engine.name} cannot run the experiments that fit models; {instead}")
        return self.engine.experiments(platform, procs, processes_per_node, in_parallel, self)
