"""Experiments between a few processes, simulated or on a real MPI library; every measurement is kept in the store."""

from __future__ import annotations

import collections
import concurrent.futures
import json
import math
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

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
from collwise.simulator.execution.installations import Engine, file_digest, smpi_engine
from collwise.simulator.execution.processes import (
    SMPI_OPTIONS,
    ProgramRun,
    run_command,
    smpi_command,
    smpi_environment,
    smpi_files,
)
from collwise.simulator.execution.targets import Place
from collwise.simulator.execution.worklist import worklist
from collwise.simulator.store import Case, Configuration, Store, Timing
from collwise.simulator.sweeps.rounds import plan_rounds

_MOST_BYTES = 2**30
_MOST_MESSAGES = 100_000
_MOST_REPETITIONS = 100_000
_MEASURING_LIMIT_SECONDS = 3600.0
# Rounds worth a simulator process of their own.
_ROUNDS_A_PROCESS = 50

_Rounds = list[list[Experiment]]


@dataclass(frozen=True)
class Precision:
    """How often an experiment is repeated on a real MPI library, as in O'Flynn 2009, section 3.1.

    At least `min_repetitions`, then until the half-width of the mean's confidence interval, by Student's t, is below
    `relative_error` times the mean, or `max_repetitions` are reached. Raises UsageError for values that make no sense.
    """

    min_repetitions: int = 5
    max_repetitions: int = 100
    confidence: float = 0.95
    relative_error: float = 0.025

    def __post_init__(self) -> None:
        if not 1 <= self.min_repetitions <= self.max_repetitions <= _MOST_REPETITIONS:
            raise UsageError(
                f"{self.min_repetitions} to {self.max_repetitions} repetitions; valid: from 1 to {_MOST_REPETITIONS}, "
                "the least not above the most"
            )
        for name, value in (("confidence", self.confidence), ("relative error", self.relative_error)):
            if not 0 < value < 1:
                raise UsageError(f"{name} {value}; valid: between 0 and 1, both excluded")

    def details(self) -> dict[str, str]:
        """What measured times depend on, as a Configuration has it."""
        return {
            "repetitions": f"{self.min_repetitions} to {self.max_repetitions}",
            "confidence": repr(self.confidence),
            "relative_error": repr(self.relative_error),
        }

    def line(self) -> str:
        """The first line of the file that programs/experiments reads."""
        from scipy import stats

        quantiles = stats.t.ppf(0.5 + self.confidence / 2, range(1, self.max_repetitions))
        numbers = " ".join(repr(float(quantile)) for quantile in quantiles)
        return f"{self.min_repetitions} {self.max_repetitions} {self.relative_error!r} {numbers}\n"


EXACT = Precision(1, 1)
"""Of simulated time."""


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


class ExperimentRunner:
    """A common.experiments.Laboratory on a simulated platform or a real library; made by `simulated` or `measured`.

    Attributes: `procs`, `least_bytes`, `eager_limit_bytes` and `effort` as in Laboratory; `label` names the engine.
    Experiments asked for again count as effort again, though the store answers.
    """

    def __init__(
        self,
        engine: Engine,
        store: Store,
        procs: int,
        precision: Precision,
        eager_limit_bytes: int,
        platform: HostPlatform | None = None,
        jobs: int | None = None,
        place: Place | None = None,
        deadline: float | None = None,
    ) -> None:
        self.procs, self.eager_limit_bytes = procs, eager_limit_bytes
        self.least_bytes = 0 if platform is None else 1
        self.effort = Effort()
        self.label = engine.label
        self._engine, self._store, self._precision, self._platform = engine, store, precision, platform
        self._place, self._deadline = place, deadline
        self._jobs = jobs or os.cpu_count() or 1
        self._known: dict[Configuration, dict[Case, Timing]] = {}

    @classmethod
    def simulated(
        cls,
        platform: HostPlatform,
        store: Store,
        *,
        procs: int | None = None,
        engine_version: str | None = None,
        jobs: int | None = None,
    ) -> ExperimentRunner:
        """On the first `procs` nodes of a platform (default: all), a process each.

        Raises UsageError when the engine is missing or the nodes do not suffice.
        """
        count = len(platform.hosts) if procs is None else procs
        platform.hosts_for(count, 1)
        chosen = smpi_engine(engine_version, count)
        return cls(chosen, store, count, EXACT, platform.eager_limit_bytes, platform, jobs)

    @classmethod
    def measured(
        cls,
        place: Place,
        procs: int,
        store: Store,
        *,
        precision: Precision | None = None,
        limit_seconds: float = _MEASURING_LIMIT_SECONDS,
    ) -> ExperimentRunner:
        """With `procs` processes of a place, under its real MPI library; what still runs after the limit is stopped.

        Raises UsageError when there are no processes, or not as many as that.
        """
        if procs < 1:
            raise UsageError(f"{procs} processes; the least is 1")
        place.processes_per_node(procs)
        deadline = time.monotonic() + limit_seconds
        wanted = precision or Precision()
        return cls(place.engine, store, procs, wanted, place.eager_limit_bytes, place=place, deadline=deadline)

    def configuration(self, in_parallel: bool = True) -> Configuration:
        """What the times of `run` depend on besides the experiment."""
        details = {
            "program_digest": file_digest(self._engine.program("experiments")),
            "side_by_side": "yes" if in_parallel else "no",
        }
        if self._platform is not None:
            details["platform_digest"] = self._platform.digest()
            details["options"] = json.dumps(SMPI_OPTIONS, sort_keys=True)
            source, where = "simulated", self._platform.name
        else:
            assert self._place is not None
            details |= {**self._place.facts, "procs": str(self.procs), **self._precision.details()}
            source, where = "measured", self._place.name
        return Configuration(source, where, self._engine.label, tuple(sorted(details.items())))

    def run(self, experiments: Sequence[Experiment], in_parallel: bool = True) -> list[Measurement]:
        """The measurements in the order of the experiments; makes those that the store does not have.

        Raises UsageError for an experiment that does not fit and CollwiseError when the engine fails; what was measured
        before that is kept.
        """
        for experiment in experiments:
            check(experiment, self.procs)
        asked = list(dict.fromkeys(experiments))
        configuration = self.configuration(in_parallel)
        if configuration not in self._known:
            kept = self._store.timings(configuration)
            self._known[configuration] = {case: timing for case, timing in kept.items() if timing.ok}
        known = self._known[configuration]
        rounds = plan_rounds(asked, in_parallel)
        missing = [one for one in asked if self._case(one) not in known]
        if missing:
            to_make = rounds if len(missing) == len(asked) else plan_rounds(missing, in_parallel)
            _Work(self, configuration, to_make, known).run()
        timings = {one: known[self._case(one)] for one in asked}
        self.effort.measurements += sum(timing.repetitions for timing in timings.values())
        self.effort.seconds += sum(
            max(timings[one].root_seconds * timings[one].repetitions for one in together) for together in rounds
        )
        found = (timings[experiment] for experiment in experiments)
        return [Measurement(timing.seconds, timing.half_width_seconds, timing.repetitions) for timing in found]

    def _case(self, experiment: Experiment) -> Case:
        ranks = experiment.processes
        return Case(
            collective="-",
            algorithm="-",
            procs=len(ranks),
            message_bytes=experiment.message_bytes,
            processes_per_node=1 if self._place is None else self._place.processes_per_node(self.procs),
            root=ranks[0],
            experiment=experiment.kind,
            peers="" if experiment.kind in ON_MANY else ",".join(map(str, ranks)),
            reply_bytes=experiment.reply_bytes,
            count=experiment.count,
            delay_seconds=experiment.delay_seconds,
        )


class _Work:
    """The making of experiments: some processes of the engine, each with a share of the rounds.

    A commit takes longer than many an experiment: what comes in during one is written together by the next.
    """

    def __init__(
        self, runner: ExperimentRunner, configuration: Configuration, rounds: _Rounds, known: dict[Case, Timing]
    ) -> None:
        self.runner, self.configuration, self.rounds, self.known = runner, configuration, rounds, known
        self.stop = threading.Event()
        self._to_write: collections.deque[Timing] = collections.deque()
        self._writer = concurrent.futures.ThreadPoolExecutor(max_workers=1)
        self._writes: list[concurrent.futures.Future[None]] = []

    def run(self) -> None:
        try:
            with self._writer:
                self._run_shares()
        finally:  # a store that cannot be written is the better reason, when the engine was stopped for it
            for write in self._writes:
                write.result()

    def _run_shares(self) -> None:
        wanted = 1 if self.runner._platform is None else self.runner._jobs
        jobs = min(wanted, -(-len(self.rounds) // _ROUNDS_A_PROCESS))
        if jobs == 1:
            self._run_share(self.rounds)
            return
        with concurrent.futures.ThreadPoolExecutor(max_workers=jobs) as pool:
            try:
                for future in [pool.submit(self._run_share, self.rounds[job::jobs]) for job in range(jobs)]:
                    future.result()
            except BaseException:
                self.stop.set()
                raise

    def _run_share(self, rounds: _Rounds) -> None:
        experiments = [one for together in rounds for one in together]
        text = self.runner._precision.line() + experiment_lines(rounds)
        folder = self.runner._place.folder() if self.runner._place else None
        with worklist(text, lambda record: self._keep(experiments, record), folder) as work:
            run = self._run_program(work.file_name, work.take)
        if work.done < len(experiments):
            raise CollwiseError(
                f"{self.runner.label}: {run.problem}; {work.done} of {len(experiments)} experiments were made and are "
                "kept"
            )

    def _run_program(self, file_name: str, take: Callable[[str], None]) -> ProgramRun:
        chosen, procs, platform = self.runner._engine, self.runner.procs, self.runner._platform
        if platform is None:
            assert self.runner._place is not None
            assert self.runner._deadline is not None
            left = max(0.0, self.runner._deadline - time.monotonic())
            return self.runner._place.run("experiments", procs, [file_name], timeout_seconds=left, on_line=take)
        with smpi_files(platform, procs, 1) as (platform_file, host_file):
            program: Path = chosen.program("experiments")
            command = smpi_command(chosen, platform_file, host_file, procs, program, [file_name])
            return run_command(command, on_line=take, stop=self.stop, environment=smpi_environment(chosen))

    def _keep(self, experiments: list[Experiment], record: dict[str, float]) -> None:
        case = self.runner._case(experiments[int(record["id"])])
        repetitions = int(record["repetitions"])
        real = self.runner._platform is None
        timing = Timing(
            case,
            record["seconds"],
            record["elapsed_seconds"] / repetitions,
            math.inf if real and repetitions == 1 else record["half_width_seconds"],
            repetitions,
        )
        self.known[case] = timing
        self._to_write.append(timing)
        self._writes.append(self._writer.submit(self._write))

    def _write(self) -> None:
        rows = [self._to_write.popleft() for _ in range(len(self._to_write))]
        try:
            if rows:
                self.runner._store.add(self.configuration, rows)
        except UsageError:
            self.stop.set()
            raise


def experiment_lines(rounds: Sequence[Sequence[Experiment]]) -> str:
    """The experiments as programs/experiments reads them: ids are positions."""
    numbered = [(number, one) for number, together in enumerate(rounds) for one in together]
    return "".join(
        f"{place} {number} {one.kind} {one.message_bytes} {one.reply_bytes} {one.count} {one.delay_seconds!r} "
        f"{len(one.processes)} {' '.join(map(str, one.processes[:1] if one.kind in ON_MANY else one.processes))}\n"
        for place, (number, one) in enumerate(numbered)
    )
