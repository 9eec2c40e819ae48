"""The laboratory in which models make their experiments: simulated, or on a real MPI library."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from collwise.common.errors import UsageError, check_name
from collwise.common.experiments import (
    KINDS,
    LINEAR_BARRIER,
    ON_MANY,
    ONE_TO_TWO,
    WITH_COUNT,
    WITH_DELAY,
    WITHOUT_REPLY,
    Effort,
    Experiment,
    Measurement,
)
from collwise.simulator.execution.targets import ExecutionTarget
from collwise.simulator.store import Store
from collwise.simulator.sweeps.experiment_runner import (
    TIME_LIMIT_SECONDS,
    case_of,
    measured_experiments,
    plan_rounds,
)
from collwise.simulator.sweeps.method import Precision
from collwise.simulator.sweeps.runner import Runner, run_cases, successful_timings
from collwise.simulator.timing import Case, Timing

_MAX_BYTES = 2**30
_MAX_MESSAGES = 100_000


def check(experiment: Experiment, procs: int) -> None:
    """Raises UsageError when an experiment makes no sense or does not fit on `procs` processes."""
    kind, ranks = experiment.kind, experiment.processes
    check_name("experiment", kind, KINDS)
    named = f"processes {','.join(map(str, ranks))}" if len(ranks) < 9 else f"{len(ranks)} processes"
    name = f"experiment '{kind}' on {named}"
    wanted = 3 if kind == ONE_TO_TWO else 2
    if any(not 0 <= rank < procs for rank in ranks):
        raise UsageError(f"{name}: ranks must be from 0 to {procs - 1}")
    if len(set(ranks)) < len(ranks):
        raise UsageError(f"{name}: a process is named twice; name each once")
    if kind in ON_MANY and sorted(ranks) != list(range(max(2, len(ranks)))):
        raise UsageError(f"{name}: expected all ranks from 0 to P - 1 (at least two), the root first")
    if kind not in ON_MANY and len(ranks) != wanted:
        raise UsageError(f"{name}: it takes {wanted} processes")
    sizes = (experiment.message_bytes, experiment.reply_bytes, experiment.count * experiment.message_bytes)
    if not all(0 <= size <= _MAX_BYTES for size in sizes):
        raise UsageError(
            f"{name}: {max(sizes, key=abs)} bytes; valid: 0 B to 1 GiB for all messages of an experiment together"
        )
    if experiment.reply_bytes and kind in WITHOUT_REPLY:
        raise UsageError(f"{name}: it has no replies; the reply size must be 0 B")
    if experiment.message_bytes and kind == LINEAR_BARRIER:
        raise UsageError(f"{name}: its messages are empty; the size must be 0 B")
    if not 1 <= experiment.count <= (_MAX_MESSAGES if kind in WITH_COUNT else 1):
        raise UsageError(
            f"{name}: {experiment.count} messages; valid: 1, or up to {_MAX_MESSAGES} for {', '.join(WITH_COUNT)}"
        )
    delay = experiment.delay_seconds
    if not 0 <= delay < math.inf or (delay and kind not in WITH_DELAY):
        raise UsageError(f"{name}: a delay of {delay} s; valid: 0 s, or more for {', '.join(WITH_DELAY)}")


@dataclass(eq=False)
class ExperimentLaboratory:
    """A common.experiments.Laboratory whose times are rows of the timing table.

    `runners` make experiments side by side (True) or one after another (False). An experiment that is requested again
    counts as effort again, although the store has its time.
    """

    runners: Mapping[bool, Runner]
    store: Store
    procs: int
    eager_limit_bytes: int
    min_bytes: int
    processes_per_node: int
    effort: Effort = field(default_factory=Effort)
    _known: dict[bool, dict[Case, Timing]] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The name of the simulator or MPI library that makes the times."""
        return self.runners[True].configuration.maker

    @classmethod
    def measured(
        cls,
        target: ExecutionTarget,
        procs: int,
        store: Store,
        *,
        precision: Precision | None = None,
        limit_seconds: float = TIME_LIMIT_SECONDS,
    ) -> ExperimentLaboratory:
        """A laboratory of `procs` processes on a target; experiments that exceed the limit are stopped."""
        if procs < 1:
            raise UsageError(f"{procs} processes: at least 1 is needed")
        runners = {
            in_parallel: measured_experiments(
                target, procs, precision or Precision(), in_parallel=in_parallel, limit_seconds=limit_seconds
            )
            for in_parallel in (True, False)
        }
        return cls(
            runners,
            store,
            procs,
            eager_limit_bytes=target.eager_limit_bytes,
            min_bytes=0,
            processes_per_node=target.processes_per_node(procs),
        )

    def run(self, experiments: Sequence[Experiment], in_parallel: bool = True) -> list[Measurement]:
        """The measurements in the order of the experiments; makes those that the store does not have.

        Raises UsageError for an experiment that does not fit and CollwiseError when the engine fails; what was measured
        before that is in the store.
        """
        for experiment in experiments:
            check(experiment, self.procs)
        asked = list(dict.fromkeys(experiments))
        runner = self.runners[in_parallel]
        if in_parallel not in self._known:
            self._known[in_parallel] = successful_timings(self.store, runner.configuration)
        cases = {item: case_of(item, self.processes_per_node) for item in asked}
        made = run_cases(runner, list(cases.values()), self.store, known=self._known[in_parallel])
        found = made.complete().timings
        timings = {one: found[case] for one, case in cases.items()}
        self.effort.measurements += sum(timing.repetitions for timing in timings.values())
        self.effort.seconds += sum(
            max(timings[item].root_seconds * timings[item].repetitions for item in together)
            for together in plan_rounds(asked, in_parallel)
        )
        return [
            Measurement(timing.seconds, timing.half_width_seconds, timing.repetitions)
            for timing in (timings[experiment] for experiment in experiments)
        ]
