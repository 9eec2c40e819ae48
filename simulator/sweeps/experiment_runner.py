"""Runners of experiments between a few processes, simulated or real, and the laboratory in which models make them."""

from __future__ import annotations

import itertools
import math
import threading
import time
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from collwise.common.errors import CollwiseError, UsageError
from collwise.common.experiments import EAGER_LIMIT, ON_MANY, Effort, Experiment, Measurement
from collwise.common.grouping import grouped
from collwise.platforms import HostPlatform
from collwise.simulator.execution.installations import file_digest, smpi_installation
from collwise.simulator.execution.processes import ProgramRun, worklist
from collwise.simulator.execution.smpirun import run_smpi
from collwise.simulator.execution.targets import ExecutionTarget
from collwise.simulator.store import Store
from collwise.simulator.sweeps.method import Precision
from collwise.simulator.sweeps.runner import (
    DividedRunner,
    Keep,
    LocalThreads,
    Part,
    Pool,
    Runner,
    known_timings,
    run_cases,
)
from collwise.simulator.sweeps.smpi_runner import simulated_configuration
from collwise.simulator.timing import Case, Configuration, Timing

TIME_LIMIT_SECONDS = 3600.0
# The number of rounds for which a further simulator process is worth its start.
_ROUNDS_PER_PROCESS = 50

_Rounds = Sequence[Sequence[Case]]


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


def processes_of(case: Case) -> tuple[int, ...]:
    """The processes of an experiment's case; the first one measures the time."""
    if case.experiment in ON_MANY:
        return (case.root, *(rank for rank in range(case.procs) if rank != case.root))
    return tuple(map(int, case.peers.split(",")))


@dataclass(frozen=True)
class _Share(Part):
    """A part whose experiments, one for each of `cases`, are made in rounds."""

    rounds: _Rounds = ()


class ExperimentRunner(DividedRunner):
    """Makes experiments: in rounds on disjoint processes if `in_parallel`, otherwise one by one.

    `repetitions` holds exact numbers of repetitions, by case; other cases are repeated as the engine sees fit.
    """

    _configuration: Configuration

    def __init__(self, pool: Pool | None, in_parallel: bool, repetitions: Mapping[Case, int]) -> None:
        super().__init__(pool)
        self._in_parallel, self._repetitions = in_parallel, repetitions

    @property
    def configuration(self) -> Configuration:
        """The configuration that the times depend on besides the experiment."""
        return self._configuration

    @abstractmethod
    def run_program(self, file_name: str, on_line: Callable[[str], None], stop: threading.Event) -> ProgramRun:
        """Runs the program on a file of experiments until `stop` is set, and passes its output lines to `on_line`."""

    def folder(self) -> AbstractContextManager[Path] | None:
        """A directory that all processes can read; None for a temporary one of this machine."""
        return None

    def parts(self, cases: Sequence[Case], slots: int) -> Sequence[Part]:
        """Shares of the rounds, each for one execution of the program."""
        rounds = plan_rounds(cases, self._in_parallel)
        count = min(slots, -(-len(rounds) // _ROUNDS_PER_PROCESS))
        shares = (rounds[number::count] for number in range(count))
        return [_Share(list(itertools.chain(*share)), rounds=share) for share in shares]

    def make_part(self, part: Part, keep: Keep, stop: threading.Event) -> int:
        """Runs the experiments of one share. Raises CollwiseError when the program ends before all are made."""
        assert isinstance(part, _Share)
        lines, refused = experiment_lines(part.rounds, self._repetitions), []

        def keep_record(record: dict[str, Any]) -> None:
            if "error" in record:
                refused.append(f"experiment '{lines.splitlines()[record['id']]}': {record['error']}")
            else:
                keep(_timing(part.cases[record["id"]], record))

        with worklist(lines, keep_record, self.folder()) as work:
            run = self.run_program(work.file_name, work.take, stop)
        made = work.done - len(refused)
        if made < len(part.cases) and not stop.is_set():
            problem = refused[0] if refused else run.problem
            raise CollwiseError(
                f"{self.configuration.maker}: {problem}; {made} of {len(part.cases)} experiments were made"
            )
        return 1


class SimulatedExperiments(ExperimentRunner):
    """Simulates each experiment once, on the first `procs` processes of a platform."""

    def __init__(
        self,
        platform: HostPlatform,
        procs: int,
        processes_per_node: int = 1,
        simgrid: str | None = None,
        pool: Pool | None = None,
        in_parallel: bool = False,
        program: str = "experiments",
    ) -> None:
        platform.hosts_for(procs, processes_per_node)
        super().__init__(pool, in_parallel, {})
        self._platform, self._procs, self._per_node, self._program = platform, procs, processes_per_node, program
        self._smpi, side_by_side = smpi_installation(simgrid, procs), "yes" if in_parallel else "no"
        self._configuration = simulated_configuration(platform, self._smpi, program, side_by_side=side_by_side)

    def __reduce__(self) -> tuple[object, ...]:
        """The class and the arguments of a copy, which uses the same SimGrid version on its machine."""
        of_run = (self._platform, self._procs, self._per_node, self._smpi.version)
        return SimulatedExperiments, (*of_run, None, self._in_parallel, self._program)

    def run_program(self, file_name: str, on_line: Callable[[str], None], stop: threading.Event) -> ProgramRun:
        """Runs the program in SMPI."""
        smpi, platform, procs, per_node = self._smpi, self._platform, self._procs, self._per_node
        run = partial(run_smpi, smpi, platform, self._program, procs, processes_per_node=per_node)
        return run([file_name], on_line=on_line, stop=stop)


class MeasuredExperiments(ExperimentRunner):
    """Makes experiments among `procs` processes on a target, under its real MPI library.

    Cases without a number in `repetitions` are repeated until they are precise. If `repetitions` is not empty, timings
    contain all samples. Experiments that still run `limit_seconds` after the runner was made are stopped.
    """

    def __init__(
        self,
        target: ExecutionTarget,
        procs: int,
        precision: Precision,
        in_parallel: bool = False,
        repetitions: Mapping[Case, int] = MappingProxyType({}),
        limit_seconds: float = TIME_LIMIT_SECONDS,
    ) -> None:
        super().__init__(LocalThreads(1), in_parallel, repetitions)
        self._target, self._procs, self._deadline = target, procs, time.monotonic() + limit_seconds
        self._options = [*precision.options(), *(["--samples"] if repetitions else [])]
        details = {
            "program_digest": file_digest(target.installation.program("experiments")),
            "side_by_side": "yes" if in_parallel else "no",
            **target.facts,
            "procs": str(procs),
            **precision.details(),
            **({"samples": "kept"} if repetitions else {}),
        }
        label = target.installation.label
        self._configuration = Configuration("measured", target.name, label, tuple(sorted(details.items())))

    def folder(self) -> AbstractContextManager[Path]:
        """A directory that the target's hosts share."""
        return self._target.shared_directory()

    def run_program(self, file_name: str, on_line: Callable[[str], None], stop: threading.Event) -> ProgramRun:
        """Runs the program on the target until the time limit."""
        left, words = max(0.0, self._deadline - time.monotonic()), [file_name, *self._options]
        return self._target.run("experiments", self._procs, words, timeout_seconds=left, on_line=on_line)


def plan_rounds(cases: Sequence[Case], in_parallel: bool) -> list[list[Case]]:
    """The experiments of each round: of the same kind and similar sizes, or a single one unless `in_parallel`."""
    if not in_parallel:
        return [[case] for case in cases]

    def kind(case: Case) -> tuple[object, ...]:
        size = (case.message_bytes + case.reply_bytes).bit_length()
        return case.experiment, case.count, case.delay_seconds, size

    return [made for group in grouped(cases, kind).values() for made in _pack(group)]


def _pack(cases: list[Case]) -> list[list[Case]]:
    """Fills one round after another, always with the experiment whose processes have the most experiments left."""
    procs = 1 + max(max(processes_of(case)) for case in cases)
    # Pairs with the same sum of ranks modulo P are disjoint, so that all pairs take P or P - 1 rounds.
    cases = sorted(cases, key=lambda case: sum(processes_of(case)) % procs)
    takes = np.zeros((len(cases), procs), dtype=bool)
    for number, case in enumerate(cases):
        takes[number, list(processes_of(case))] = True
    left = np.ones(len(cases), dtype=bool)
    rounds: list[list[Case]] = []
    while left.any():
        busiest = takes @ takes[left].sum(axis=0)
        free = left.copy()
        rounds.append([])
        while free.any():
            chosen = int(np.argmax(np.where(free, busiest, -1)))
            rounds[-1].append(cases[chosen])
            left[chosen] = False
            free &= ~takes[:, takes[chosen]].any(axis=1)
    return rounds


def _timing(case: Case, record: Mapping[str, Any]) -> Timing:
    seconds, repetitions = float(record["seconds"]), int(record["repetitions"])
    elapsed = record["elapsed_seconds"] / repetitions
    if case.experiment == EAGER_LIMIT:
        return Timing(case, math.nan, elapsed, samples=(seconds,))
    half_width = math.inf if record["half_width_seconds"] is None else record["half_width_seconds"]
    samples = tuple(record["samples"]) if "samples" in record else None
    return Timing(case, seconds, elapsed, half_width, repetitions, samples=samples)


def experiment_lines(rounds: _Rounds, repetitions: Mapping[Case, int]) -> str:
    """The lines that programs/experiments reads; the id of an experiment is its position."""
    numbered = [(number, case) for number, together in enumerate(rounds) for case in together]
    return "".join(
        f"{position} {number} {case.experiment} {case.message_bytes} {case.reply_bytes} {case.count} "
        f"{case.delay_seconds!r} {repetitions.get(case, 0)} {case.procs} "
        f"{case.root if case.experiment in ON_MANY else case.peers.replace(',', ' ')}\n"
        for position, (number, case) in enumerate(numbered)
    )


@dataclass(eq=False)
class ExperimentLaboratory:
    """A common.experiments.Laboratory whose times are rows of the timing table.

    `runners` make experiments side by side (True) or one after another (False). Stored times count as effort, too.
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
        how = precision or Precision()
        runners = {
            in_parallel: MeasuredExperiments(target, procs, how, in_parallel, limit_seconds=limit_seconds)
            for in_parallel in (True, False)
        }
        per_node, eager_limit_bytes = target.processes_per_node(procs), target.eager_limit_bytes
        return cls(runners, store, procs, eager_limit_bytes, min_bytes=0, processes_per_node=per_node)

    def run(self, experiments: Sequence[Experiment], in_parallel: bool = True) -> list[Measurement]:
        """The measurements in the order of the experiments; makes those that the store does not have.

        Raises UsageError for an experiment that does not fit, and CollwiseError when the engine fails; the store then
        has all earlier measurements.
        """
        for experiment in experiments:
            experiment.check(self.procs)
        runner = self.runners[in_parallel]
        if in_parallel not in self._known:
            self._known[in_parallel] = known_timings(self.store, runner.configuration)
        cases = {item: case_of(item, self.processes_per_node) for item in experiments}
        made = run_cases(runner, list(cases.values()), self.store, known=self._known[in_parallel])
        timings = made.complete().timings
        self.effort.measurements += sum(timing.repetitions for timing in timings.values())
        self.effort.seconds += sum(
            max(timings[case].root_seconds * timings[case].repetitions for case in together)
            for together in plan_rounds(list(cases.values()), in_parallel)
        )
        asked_for = (timings[cases[experiment]] for experiment in experiments)
        return [Measurement(one.seconds, one.half_width_seconds, one.repetitions) for one in asked_for]
