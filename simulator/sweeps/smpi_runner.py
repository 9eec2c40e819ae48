"""Sweeps in simulation: many cases in few smpirun processes, balanced over the cores, each kept when it is done."""

from __future__ import annotations

import concurrent.futures
import heapq
import json
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from collwise.platforms import HostPlatform
from collwise.simulator.execution.installations import Engine, file_digest, smpi_engine
from collwise.simulator.execution.processes import SMPI_OPTIONS, run_command, smpi_command, smpi_environment, smpi_files
from collwise.simulator.execution.worklist import worklist
from collwise.simulator.limits import check_simulated_sizes
from collwise.simulator.store import Case, Configuration, Store, Timing
from collwise.simulator.sweeps.message_counts import cost_of

# A batch worth starting a process of its own for, in messages: a few times as long as the start takes, and short enough
# that the cores finish together.
_BATCH_MESSAGES = 40_000

Progress = Callable[[Timing, float], None]


@dataclass
class SweepResult:
    """Timings by case, in the order asked for; how many were already in the store; how many processes ran."""

    timings: dict[Case, Timing]
    reused: int
    processes_started: int
    configuration: Configuration

    @property
    def failed(self) -> list[Timing]:
        """The cases that did not run."""
        return [timing for timing in self.timings.values() if not timing.ok]


def configuration_of(platform: HostPlatform, engine: Engine) -> Configuration:
    """What makes a simulated time: the platform as written, the engine, the program and the options."""
    details = {
        "platform_digest": platform.digest(),
        "program_digest": file_digest(engine.program("benchmark")),
        "options": json.dumps(SMPI_OPTIONS, sort_keys=True),
    }
    return Configuration("simulated", platform.name, engine.label, tuple(sorted(details.items())))


def plan_batches(cases: Iterable[Case], jobs: int) -> list[list[Case]]:
    """Groups cases by processes a node, then deals the costliest first to the lightest batch.

    Within a batch cases are ordered by process count, so that communicators are made once, then the cheap first, so
    that an interrupted sweep has kept many.
    """
    by_mapping: dict[int, list[Case]] = {}
    for case in cases:
        by_mapping.setdefault(case.processes_per_node, []).append(case)
    batches: list[list[Case]] = []
    for group in by_mapping.values():
        total = sum(map(cost_of, group))
        count = min(len(group), max(jobs, round(total / _BATCH_MESSAGES)))
        heap: list[tuple[float, int]] = [(0.0, index) for index in range(count)]
        dealt: list[list[Case]] = [[] for _ in range(count)]
        for case in sorted(group, key=cost_of, reverse=True):
            load, index = heapq.heappop(heap)
            dealt[index].append(case)
            heapq.heappush(heap, (load + cost_of(case), index))
        batches += [sorted(batch, key=lambda case: (case.procs, cost_of(case), case)) for batch in dealt if batch]
    return sorted(batches, key=lambda batch: -sum(map(cost_of, batch)))


def simulate(
    platform: HostPlatform,
    cases: Sequence[Case],
    store: Store,
    *,
    engine_version: str | None = None,
    jobs: int | None = None,
    on_progress: Progress | None = None,
) -> SweepResult:
    """Times of all cases, simulating only those the store does not have. Failed ones are tried again.

    `on_progress(timing, fraction)` is called after each case, with the share of the work that is done.
    Raises UsageError when the engine is missing, a case does not fit on the platform or its messages not in memory.
    """
    jobs = jobs or os.cpu_count() or 1
    asked = list(dict.fromkeys(cases))
    for procs, processes_per_node in {(case.procs, case.processes_per_node) for case in asked}:
        platform.hosts_for(procs, processes_per_node)
    engine = smpi_engine(engine_version, max((case.procs for case in asked), default=1))
    configuration = configuration_of(platform, engine)
    known = {case: timing for case, timing in store.timings(configuration).items() if timing.ok}
    missing = [case for case in asked if case not in known]
    check_simulated_sizes(missing)
    sweep = _Sweep(platform, engine, configuration, store, missing, on_progress)
    sweep.run(jobs)
    known |= sweep.done
    return SweepResult(
        {case: known[case] for case in asked}, len(asked) - len(missing), sweep.processes_started, configuration
    )


class _Sweep:
    """The running of the missing cases: workers take batches; every record goes to the store as it comes."""

    def __init__(
        self,
        platform: HostPlatform,
        engine: Engine,
        configuration: Configuration,
        store: Store,
        missing: Sequence[Case],
        on_progress: Progress | None,
    ) -> None:
        self.platform, self.engine, self.configuration = platform, engine, configuration
        self.store, self.missing, self.on_progress = store, missing, on_progress
        self.done: dict[Case, Timing] = {}
        self.processes_started = 0
        self._total = sum(map(cost_of, missing)) or 1.0
        self._finished = 0.0
        self._lock = threading.Lock()
        self._stop = threading.Event()

    def run(self, jobs: int) -> None:
        with concurrent.futures.ThreadPoolExecutor(max_workers=jobs) as pool:
            try:
                futures = [pool.submit(self._run_batch, batch) for batch in plan_batches(self.missing, jobs)]
                for future in concurrent.futures.as_completed(futures):
                    future.result()
            except BaseException:
                self._stop.set()
                pool.shutdown(wait=True, cancel_futures=True)
                raise

    def _keep(self, timing: Timing) -> None:
        self.store.add(self.configuration, [timing])
        with self._lock:
            self.done[timing.case] = timing
            self._finished += cost_of(timing.case)
            if self.on_progress is not None:
                self.on_progress(timing, self._finished / self._total)

    def _run_batch(self, batch: list[Case]) -> None:
        """Runs a batch; when the engine fails, marks the case it failed in and goes on with the rest."""
        left = batch
        while left and not self._stop.is_set():
            seen, problem = self._run_process(left, self._keep)
            left = [case for case in left if case not in self.done]
            if self._stop.is_set() or not left:
                return
            # Where not even a barrier runs, the reason has nothing to do with the cases.
            given_up = left if not seen and not self._runs_a_barrier(left) else left[:1]
            for case in given_up:
                self._keep(Timing(case, float("nan"), error=problem))
            left = left[len(given_up) :]

    def _runs_a_barrier(self, cases: list[Case]) -> bool:
        procs = max(case.procs for case in cases)
        barrier = Case("-", "-", procs, 0, 0, 0, cases[0].processes_per_node, experiment="barrier")
        return self._run_process([barrier], lambda timing: None)[0] == 1

    def _run_process(self, cases: list[Case], keep: Callable[[Timing], None]) -> tuple[int, str]:
        """One smpirun over the cases. Returns how many gave a record, and why it ended early if it did."""
        procs = max(case.procs for case in cases)
        with self._lock:
            self.processes_started += 1
        with (
            smpi_files(self.platform, procs, cases[0].processes_per_node) as (platform_file, host_file),
            worklist(case_lines(cases), lambda record: keep(_timing(cases, record))) as work,
        ):
            program = self.engine.program("benchmark")
            command = smpi_command(self.engine, platform_file, host_file, procs, program, [work.file_name])
            environment = smpi_environment(self.engine)
            run = run_command(command, on_line=work.take, stop=self._stop, environment=environment)
        return work.done, f"{self.engine.label}: {run.problem}"


def case_lines(cases: Sequence[Case]) -> str:
    """The case file that programs/benchmark.c reads: ids are positions."""
    return "".join(
        f"{number} {case.experiment} {case.collective} {case.algorithm} {case.procs} {case.root} "
        f"{case.message_bytes} {case.segment_bytes} {case.fanout} {case.gather_bytes} {case.limit_bytes}\n"
        for number, case in enumerate(cases)
    )


def _timing(cases: Sequence[Case], record: dict[str, float | str]) -> Timing:
    case = cases[int(record["id"])]
    if "error" in record:
        return Timing(case, float("nan"), error=str(record["error"]))
    return Timing(case, float(record["seconds"]), float(record["root_seconds"]))


def default_store_path() -> Path:
    """results/timings.sqlite below the working directory."""
    return Path("results") / "timings.sqlite"
