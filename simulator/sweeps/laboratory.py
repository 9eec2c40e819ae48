"""Laboratories: point-to-point experiments, simulated or on a real MPI library, made by a runner of their own."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from collwise.common.errors import CollwiseError, UsageError, unknown_name
from collwise.common.experiments import (
    KINDS,
    LINEAR_BARRIER,
    ON_MANY,
    ONE_TO_TWO,
    PRTT,
    RECEIVE,
    SATURATION,
    Effort,
    Experiment,
    Measurement,
)
from collwise.platforms import HostPlatform
from collwise.simulator.execution.installations import file_digest, smpi_installation
from collwise.simulator.execution.processes import ProgramRun
from collwise.simulator.execution.smpirun import run_smpi
from collwise.simulator.execution.targets import ExecutionTarget
from collwise.simulator.execution.worklist import worklist
from collwise.simulator.store import Store
from collwise.simulator.sweeps.method import EXACT, Precision
from collwise.simulator.sweeps.rounds import plan_rounds
from collwise.simulator.sweeps.runner import Keep, run_cases, successful_timings
from collwise.simulator.sweeps.smpi_runner import simulated_configuration
from collwise.simulator.timing import Case, Configuration, Timing

_MOST_BYTES = 2**30
_MOST_MESSAGES = 100_000
_TIME_LIMIT_SECONDS = 3600.0
# Rounds worth a simulator process of their own.
_ROUNDS_PER_PROCESS = 50

_Rounds = list[list[Experiment]]


def check(experiment: Experiment, procs: int) -> None:
    """Raises UsageError when an experiment makes no sense or does not fit on `procs` processes."""
    kind, ranks = experiment.kind, experiment.processes
    if kind not in KINDS:
        raise unknown_name("experiment", kind, KINDS)
    named = f"processes {','.join(map(str, ranks))}" if len(ranks) < 9 else f"{len(ranks)} processes"
    name = f"experiment '{kind}' on {named}"
    wanted = 3 if kind == ONE_TO_TWO else 2
    if any(not 0 <= rank < procs for rank in ranks):
        raise UsageError(f"{name}: valid ranks are 0 to {procs - 1}")
    if len(set(ranks)) < len(ranks):
        raise UsageError(f"{name}: a process is named twice; valid: each once")
    if kind in ON_MANY and sorted(ranks) != list(range(max(2, len(ranks)))):
        raise UsageError(f"{name}: it takes all from 0 to P - 1, two at least, the root first")
    if kind not in ON_MANY and len(ranks) != wanted:
        raise UsageError(f"{name}: it takes {wanted} processes")
    sizes = (experiment.message_bytes, experiment.reply_bytes, experiment.count * experiment.message_bytes)
    if not all(0 <= size <= _MOST_BYTES for size in sizes):
        raise UsageError(f"{name}: {max(sizes, key=abs)} bytes; valid: 0 B to 1 GiB, all messages of one together")
    if experiment.reply_bytes and kind in ON_MANY:
        raise UsageError(f"{name}: it has no replies; valid reply size: 0 B")
    if experiment.message_bytes and kind == LINEAR_BARRIER:
        raise UsageError(f"{name}: its messages are empty; valid size: 0 B")
    if not 1 <= experiment.count <= (_MOST_MESSAGES if kind in (SATURATION, PRTT) else 1):
        raise UsageError(
            f"{name}: {experiment.count} messages; valid: 1, for {SATURATION} and {PRTT} to {_MOST_MESSAGES}"
        )
    delay = experiment.delay_seconds
    if not 0 <= delay < math.inf or (delay and kind not in (RECEIVE, PRTT)):
        raise UsageError(f"{name}: a delay of {delay} s; valid: 0 s, and more for {RECEIVE} and {PRTT}")


def case_of(experiment: Experiment, processes_per_node: int) -> Case:
    """The case of an experiment."""
    ranks = experiment.processes
    return Case(
        collective="-",
        algorithm="-",
        procs=len(ranks),
        message_bytes=experiment.message_bytes,
        processes_per_node=processes_per_node,
        root=ranks[0],
        experiment=experiment.kind,
        peers="" if experiment.kind in ON_MANY else ",".join(map(str, ranks)),
        reply_bytes=experiment.reply_bytes,
        count=experiment.count,
        delay_seconds=experiment.delay_seconds,
    )


def experiment_of(case: Case) -> Experiment:
    """The experiment of a case, the inverse of `case_of`."""
    if case.experiment in ON_MANY:
        ranks = (case.root, *(rank for rank in range(case.procs) if rank != case.root))
    else:
        ranks = tuple(map(int, case.peers.split(",")))
    return Experiment(case.experiment, ranks, case.message_bytes, case.reply_bytes, case.count, case.delay_seconds)


class _ExperimentRunner:
    """A Runner of experiments, which are made in rounds on disjoint processes if `in_parallel`.

    `launch` runs programs/experiments over a file of rounds; with `jobs` above 1 several share the rounds.
    """

    def __init__(
        self,
        configuration: Configuration,
        precision: Precision,
        launch: Callable[[str, Callable[[str], None], threading.Event], ProgramRun],
        *,
        in_parallel: bool,
        jobs: int = 1,
        target: ExecutionTarget | None = None,
    ) -> None:
        self.processes_started = 0
        self._configuration, self._precision, self._launch = configuration, precision, launch
        self._in_parallel, self._jobs, self._target = in_parallel, jobs, target
        self._stop = threading.Event()

    @property
    def configuration(self) -> Configuration:
        """What the times depend on besides the experiment."""
        return self._configuration

    def weight(self, case: Case) -> float:
        """1: experiments are short."""
        return 1.0

    def make(self, cases: Sequence[Case], keep: Keep) -> None:
        """Makes the experiments. Raises CollwiseError when the program ends before all are made."""
        rounds = plan_rounds([experiment_of(case) for case in cases], self._in_parallel)
        per_node = cases[0].processes_per_node
        jobs = min(self._jobs, -(-len(rounds) // _ROUNDS_PER_PROCESS))
        if jobs == 1:
            self._make_share(rounds, per_node, keep)
            return
        with ThreadPoolExecutor(max_workers=jobs) as pool:
            try:
                shares = [pool.submit(self._make_share, rounds[job::jobs], per_node, keep) for job in range(jobs)]
                for share in shares:
                    share.result()
            except BaseException:
                self._stop.set()
                raise

    def _make_share(self, rounds: _Rounds, per_node: int, keep: Keep) -> None:
        experiments = [one for together in rounds for one in together]
        self.processes_started += 1

        def keep_record(record: dict[str, float]) -> None:
            case = case_of(experiments[int(record["id"])], per_node)
            repetitions = int(record["repetitions"])
            unknown = self._target is not None and repetitions == 1
            half_width = math.inf if unknown else record["half_width_seconds"]
            keep(Timing(case, record["seconds"], record["elapsed_seconds"] / repetitions, half_width, repetitions))

        text = self._precision.line() + experiment_lines(rounds)
        with worklist(text, keep_record, self._target.shared_directory() if self._target else None) as work:
            run = self._launch(work.file_name, work.take, self._stop)
        if work.done < len(experiments):
            raise CollwiseError(
                f"{self._configuration.maker}: {run.problem}; {work.done} of {len(experiments)} experiments were made "
                "and are kept"
            )


class ExperimentLaboratory:
    """A common.experiments.Laboratory on a simulated platform or a real library; made by `simulated` or `measured`.

    Attributes: `procs`, `least_bytes`, `eager_limit_bytes` and `effort` as in Laboratory; `label` names what makes the
    times. Experiments asked for again count as effort again, though the store answers.
    """

    def __init__(
        self, label: str, store: Store, procs: int, eager_limit_bytes: int, least_bytes: int, per_node: int
    ) -> None:
        self.procs, self.eager_limit_bytes, self.least_bytes = procs, eager_limit_bytes, least_bytes
        self.effort = Effort()
        self.label = label
        self._store, self._per_node = store, per_node
        self._runners: dict[bool, _ExperimentRunner] = {}
        self._known: dict[bool, dict[Case, Timing]] = {}

    @classmethod
    def simulated(
        cls,
        platform: HostPlatform,
        store: Store,
        *,
        procs: int | None = None,
        simgrid: str | None = None,
        jobs: int | None = None,
    ) -> ExperimentLaboratory:
        """On the first `procs` nodes of a platform (default: all), one process each.

        Raises UsageError when the engine is missing or the nodes do not suffice.
        """
        count = len(platform.hosts) if procs is None else procs
        platform.hosts_for(count, 1)
        installation = smpi_installation(simgrid, count)

        def launch(file_name: str, take: Callable[[str], None], stop: threading.Event) -> ProgramRun:
            return run_smpi(installation, platform, "experiments", count, [file_name], on_line=take, stop=stop)

        made = cls(installation.label, store, count, platform.eager_limit_bytes, 1, 1)
        for in_parallel in (True, False):
            configuration = simulated_configuration(
                platform, installation, "experiments", side_by_side="yes" if in_parallel else "no"
            )
            made._runners[in_parallel] = _ExperimentRunner(
                configuration, EXACT, launch, in_parallel=in_parallel, jobs=jobs or os.cpu_count() or 1
            )
        return made

    @classmethod
    def measured(
        cls,
        target: ExecutionTarget,
        procs: int,
        store: Store,
        *,
        precision: Precision | None = None,
        limit_seconds: float = _TIME_LIMIT_SECONDS,
    ) -> ExperimentLaboratory:
        """With `procs` processes on a target, under its real MPI library; what still runs after the limit is stopped.

        Raises UsageError when there are no processes, or not as many as that.
        """
        if procs < 1:
            raise UsageError(f"{procs} processes; the least is 1")
        per_node = target.processes_per_node(procs)
        deadline = time.monotonic() + limit_seconds
        wanted = precision or Precision()

        def launch(file_name: str, take: Callable[[str], None], stop: threading.Event) -> ProgramRun:
            left = max(0.0, deadline - time.monotonic())
            return target.run("experiments", procs, [file_name], timeout_seconds=left, on_line=take)

        made = cls(target.installation.label, store, procs, target.eager_limit_bytes, 0, per_node)
        for in_parallel in (True, False):
            details = {
                "program_digest": file_digest(target.installation.program("experiments")),
                "side_by_side": "yes" if in_parallel else "no",
                **target.facts,
                "procs": str(procs),
                **wanted.details(),
            }
            configuration = Configuration(
                "measured", target.name, target.installation.label, tuple(sorted(details.items()))
            )
            made._runners[in_parallel] = _ExperimentRunner(
                configuration, wanted, launch, in_parallel=in_parallel, target=target
            )
        return made

    def configuration(self, in_parallel: bool = True) -> Configuration:
        """What the times of `run` depend on besides the experiment."""
        return self._runners[in_parallel].configuration

    def run(self, experiments: Sequence[Experiment], in_parallel: bool = True) -> list[Measurement]:
        """The measurements in the order of the experiments; makes those that the store does not have.

        Raises UsageError for an experiment that does not fit and CollwiseError when the engine fails; what was measured
        before that is kept.
        """
        for experiment in experiments:
            check(experiment, self.procs)
        asked = list(dict.fromkeys(experiments))
        runner = self._runners[in_parallel]
        if in_parallel not in self._known:
            self._known[in_parallel] = successful_timings(self._store, runner.configuration)
        cases = {one: case_of(one, self._per_node) for one in asked}
        found = run_cases(runner, list(cases.values()), self._store, known=self._known[in_parallel]).timings
        timings = {one: found[case] for one, case in cases.items()}
        self.effort.measurements += sum(timing.repetitions for timing in timings.values())
        self.effort.seconds += sum(
            max(timings[one].root_seconds * timings[one].repetitions for one in together)
            for together in plan_rounds(asked, in_parallel)
        )
        return [
            Measurement(timing.seconds, timing.half_width_seconds, timing.repetitions)
            for timing in (timings[experiment] for experiment in experiments)
        ]


def experiment_lines(rounds: Sequence[Sequence[Experiment]]) -> str:
    """The experiments as programs/experiments reads them: ids are positions."""
    numbered = [(number, one) for number, together in enumerate(rounds) for one in together]
    return "".join(
        f"{place} {number} {one.kind} {one.message_bytes} {one.reply_bytes} {one.count} {one.delay_seconds!r} "
        f"{len(one.processes)} {' '.join(map(str, one.processes[:1] if one.kind in ON_MANY else one.processes))}\n"
        for place, (number, one) in enumerate(numbered)
    )
