"""Runners of experiments between a few processes: the program 'experiments' in SMPI or on a real MPI library."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from collwise.common.errors import CollwiseError
from collwise.common.experiments import EAGER_LIMIT, ON_MANY, Experiment
from collwise.platforms import HostPlatform
from collwise.simulator.execution.installations import file_digest, smpi_installation
from collwise.simulator.execution.processes import ProgramRun
from collwise.simulator.execution.smpirun import run_smpi
from collwise.simulator.execution.targets import ExecutionTarget
from collwise.simulator.execution.worklist import worklist
from collwise.simulator.sweeps.method import Precision
from collwise.simulator.sweeps.runner import DividedRunner, Keep, LocalThreads, Part, Pool
from collwise.simulator.sweeps.smpi_runner import simulated_configuration
from collwise.simulator.timing import Case, Configuration, Timing

TIME_LIMIT_SECONDS = 3600.0
# The number of rounds for which a further simulator process is worth its start.
_ROUNDS_PER_PROCESS = 50

_Rounds = Sequence[Sequence[Experiment]]


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


RunProgram = Callable[[str, Callable[[str], None], threading.Event], ProgramRun]
"""Runs the program on a file of experiments and passes on the lines that the program prints. Stops when the event is
set.
"""


@dataclass(frozen=True)
class _Share(Part):
    """A part whose experiments, one for each of `cases`, are made in rounds."""

    rounds: _Rounds = ()


class ExperimentRunner(DividedRunner):
    """Makes experiments: in rounds on disjoint processes if `in_parallel`, otherwise one by one.

    `repetitions` holds exact numbers of repetitions, by case; other cases are repeated as the engine sees fit. The pool
    runs the program once for each share of the rounds. `folder` makes a directory that all processes can read, by
    default a temporary one of this machine. `copy` makes the runner again where its pickle is loaded.
    """

    def __init__(
        self,
        configuration: Configuration,
        run_program: RunProgram,
        pool: Pool,
        *,
        in_parallel: bool,
        repetitions: Mapping[Case, int] | None = None,
        folder: Callable[[], AbstractContextManager[Path] | None] = lambda: None,
        copy: Callable[[], ExperimentRunner] | None = None,
    ) -> None:
        super().__init__(pool)
        self._configuration = configuration
        self._run_program, self._folder = run_program, folder
        self._in_parallel = in_parallel
        self._repetitions = {experiment_of(case): number for case, number in (repetitions or {}).items()}
        self._copy = copy

    def __reduce__(self) -> tuple[object, ...]:
        """The call that makes a copy. Only simulated experiments are made on other machines."""
        assert self._copy is not None
        return self._copy, ()

    @property
    def configuration(self) -> Configuration:
        """The configuration that the times depend on besides the experiment."""
        return self._configuration

    def parts(self, cases: Sequence[Case], slots: int) -> Sequence[Part]:
        """Shares of the rounds; each share is made by one execution of the program."""
        by_experiment = {experiment_of(case): case for case in cases}
        rounds = plan_rounds(list(by_experiment), self._in_parallel)
        count = min(slots, -(-len(rounds) // _ROUNDS_PER_PROCESS))
        shares = [rounds[number::count] for number in range(count)]
        return [
            _Share([by_experiment[experiment] for together in share for experiment in together], rounds=share)
            for share in shares
        ]

    def make_part(self, part: Part, keep: Keep, stop: threading.Event) -> int:
        """Runs the experiments of one share. Raises CollwiseError when the program ends before all are made."""
        assert isinstance(part, _Share)
        lines, refused = experiment_lines(part.rounds, self._repetitions), []

        def keep_record(record: dict[str, Any]) -> None:
            if "error" in record:
                refused.append(f"experiment '{lines.splitlines()[record['id']]}': {record['error']}")
            else:
                keep(_timing(part.cases[record["id"]], record))

        with worklist(lines, keep_record, self._folder()) as work:
            run = self._run_program(work.file_name, work.take, stop)
        made = work.done - len(refused)
        if made < len(part.cases) and not stop.is_set():
            problem = refused[0] if refused else run.problem
            raise CollwiseError(
                f"{self.configuration.maker}: {problem}; {made} of {len(part.cases)} experiments were made"
            )
        return 1


def simulated_experiments(
    platform: HostPlatform,
    procs: int,
    *,
    processes_per_node: int = 1,
    simgrid: str | None = None,
    pool: Pool | None = None,
    in_parallel: bool = False,
    program: str = "experiments",
) -> ExperimentRunner:
    """A runner that simulates each experiment once, on the first `procs` processes of a platform."""
    platform.hosts_for(procs, processes_per_node)
    installation, side_by_side = smpi_installation(simgrid, procs), "yes" if in_parallel else "no"

    def run_program(file_name: str, on_line: Callable[[str], None], stop: threading.Event) -> ProgramRun:
        return run_smpi(
            installation,
            platform,
            program,
            procs,
            [file_name],
            processes_per_node=processes_per_node,
            on_line=on_line,
            stop=stop,
        )

    return ExperimentRunner(
        simulated_configuration(platform, installation, program, side_by_side=side_by_side),
        run_program,
        pool or LocalThreads(),
        in_parallel=in_parallel,
        copy=partial(
            simulated_experiments,
            platform,
            procs,
            processes_per_node=processes_per_node,
            simgrid=installation.version,
            in_parallel=in_parallel,
            program=program,
        ),
    )


def measured_experiments(
    target: ExecutionTarget,
    procs: int,
    precision: Precision,
    *,
    in_parallel: bool = False,
    repetitions: Mapping[Case, int] | None = None,
    limit_seconds: float = TIME_LIMIT_SECONDS,
) -> ExperimentRunner:
    """A runner of experiments among `procs` processes on a target, under its real MPI library.

    Cases without a number in `repetitions` are repeated until they are precise. If `repetitions` has any number, the
    timings contain all samples. Experiments that still run `limit_seconds` after the runner was made are stopped.
    """
    deadline = time.monotonic() + limit_seconds
    options = [*precision.options(), *(["--samples"] if repetitions else [])]
    details = {
        "program_digest": file_digest(target.installation.program("experiments")),
        "side_by_side": "yes" if in_parallel else "no",
        **target.facts,
        "procs": str(procs),
        **precision.details(),
        **({"samples": "kept"} if repetitions else {}),
    }

    def run_program(file_name: str, on_line: Callable[[str], None], stop: threading.Event) -> ProgramRun:
        left = max(0.0, deadline - time.monotonic())
        return target.run("experiments", procs, [file_name, *options], timeout_seconds=left, on_line=on_line)

    return ExperimentRunner(
        Configuration("measured", target.name, target.installation.label, tuple(sorted(details.items()))),
        run_program,
        LocalThreads(1),
        in_parallel=in_parallel,
        repetitions=repetitions,
        folder=target.shared_directory,
    )


def plan_rounds(experiments: Sequence[Experiment], in_parallel: bool) -> list[list[Experiment]]:
    """The experiments of each round; there is one per round unless `in_parallel`.

    All experiments of a round have the same kind and about the same size, so that none waits long for another.
    """
    if not in_parallel:
        return [[experiment] for experiment in experiments]
    alike: dict[object, list[Experiment]] = {}
    for item in experiments:
        size = (item.message_bytes + item.reply_bytes).bit_length()
        alike.setdefault((item.kind, item.count, item.delay_seconds, size), []).append(item)
    return [made for group in alike.values() for made in _pack(group)]


def _pack(experiments: list[Experiment]) -> list[list[Experiment]]:
    """Fills one round after another, always with the experiment whose processes have the most experiments left.

    If several experiments are equally busy, the sum of their ranks modulo P decides, since pairs of processes with the
    same sum are disjoint. All pairs thus take P or P - 1 rounds.
    """
    procs = 1 + max(rank for experiment in experiments for rank in experiment.processes)
    experiments = sorted(experiments, key=lambda experiment: sum(experiment.processes) % procs)
    takes = np.zeros((len(experiments), procs), dtype=bool)
    for number, experiment in enumerate(experiments):
        takes[number, list(experiment.processes)] = True
    left = np.ones(len(experiments), dtype=bool)
    rounds: list[list[Experiment]] = []
    while left.any():
        busiest = takes @ takes[left].sum(axis=0)
        free = left.copy()
        rounds.append([])
        while free.any():
            chosen = int(np.argmax(np.where(free, busiest, -1)))
            rounds[-1].append(experiments[chosen])
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


def experiment_lines(rounds: _Rounds, repetitions: Mapping[Experiment, int]) -> str:
    """The lines that programs/experiments reads, one per experiment. The id of an experiment is its position."""
    numbered = [(number, experiment) for number, together in enumerate(rounds) for experiment in together]
    return "".join(
        f"{position} {number} {experiment.kind} {experiment.message_bytes} {experiment.reply_bytes} "
        f"{experiment.count} {experiment.delay_seconds!r} "
        f"{repetitions.get(experiment, 0)} {len(experiment.processes)} "
        f"{' '.join(map(str, experiment.processes[:1] if experiment.kind in ON_MANY else experiment.processes))}\n"
        for position, (number, experiment) in enumerate(numbered)
    )
