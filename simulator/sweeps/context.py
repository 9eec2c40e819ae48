"""The simulation context: the store, the engine, how many simulations run side by side, the progress."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from collwise.platforms import HostPlatform
from collwise.simulator.store import Store
from collwise.simulator.sweeps.experiment_runner import SimulatedExperiments
from collwise.simulator.sweeps.laboratory import ExperimentLaboratory
from collwise.simulator.sweeps.runner import Progress, Runner, RunResult, run_cases
from collwise.simulator.sweeps.smpi_runner import SmpiRunner
from collwise.simulator.timing import Case

RunnerFactory = Callable[[HostPlatform, int, "SimulationContext"], Runner]
"""Makes the runner for a platform, the largest process count and a context."""


def _smpi(platform: HostPlatform, procs: int, context: SimulationContext) -> Runner:
    return SmpiRunner(platform, procs, context.simgrid, context.jobs)


@contextmanager
def no_progress(label: str) -> Iterator[Progress]:
    """Shows nothing."""
    yield lambda timing, fraction: None


ENGINES: Mapping[str, RunnerFactory] = {"smpi": _smpi}
"""What simulates, by the name that --engine takes."""


@dataclass(frozen=True)
class SimulationContext:
    """How simulated times are made, and the store that holds them.

    `engine` is a name of ENGINES; `simgrid` a version of SimGrid, by default the system's; `jobs` how many simulations
    run side by side, by default one per core. `progress` shows how far a simulation with a label is. `make_runner`
    replaces the engine's own runner, for instance in a test.
    """

    store: Store
    engine: str = "smpi"
    simgrid: str | None = None
    jobs: int | None = None
    progress: Callable[[str], AbstractContextManager[Progress]] = no_progress
    make_runner: RunnerFactory | None = None

    def simulate(self, platform: HostPlatform, cases: Sequence[Case], label: str = "") -> RunResult:
        """Times of all cases; simulates those that the store does not have. `label` is shown with the progress.

        Raises UsageError when the engine is missing or a case does not fit on the platform.
        """
        procs = max((case.procs for case in cases), default=1)
        runner = (self.make_runner or ENGINES[self.engine])(platform, procs, self)
        with self.progress(label or platform.name) as advance:
            return run_cases(runner, cases, self.store, advance)

    def simulate_experiments(
        self, platform: HostPlatform, procs: int, processes_per_node: int, cases: Sequence[Case], label: str = ""
    ) -> RunResult:
        """Times of experiments among `procs` processes, each made alone; otherwise as `simulate`."""
        runner = SimulatedExperiments(
            platform, procs, processes_per_node=processes_per_node, simgrid=self.simgrid, jobs=self.jobs
        )
        with self.progress(label or platform.name) as advance:
            return run_cases(runner, cases, self.store, advance)

    def laboratory(
        self, platform: HostPlatform, procs: int | None = None, processes_per_node: int = 1
    ) -> ExperimentLaboratory:
        """A laboratory of the first `procs` processes on a platform, by default one on each node.

        Raises UsageError when the engine is missing or the nodes do not suffice.
        """
        return ExperimentLaboratory.simulated(
            platform,
            self.store,
            procs=procs,
            processes_per_node=processes_per_node,
            simgrid=self.simgrid,
            jobs=self.jobs,
        )
