"""The runner for a real MPI library: the same program and cases as in simulation (docs/measuring.md)."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from collwise.algorithms.catalogue import buffers
from collwise.common.errors import CollwiseError
from collwise.simulator.execution.installations import file_digest
from collwise.simulator.execution.launchers import LocalMachine
from collwise.simulator.execution.processes import case_lines, worklist
from collwise.simulator.execution.targets import ExecutionTarget
from collwise.simulator.limits import check_measured_sizes
from collwise.simulator.store import Store
from collwise.simulator.sweeps.method import USUAL_METHOD, Method, combine
from collwise.simulator.sweeps.runner import Keep, Progress, Runner, run_cases
from collwise.simulator.timing import Case, Configuration, Timing, is_mock_up


class MpiRunner(Runner):
    """One execution of MPI over all cases, on an execution target.

    `run` distinguishes repeated measurements, `launch` the executions of one measurement. `timeout_seconds` is by
    default the sum of the method's own limits. If `in_random_order` is true, the order of algorithms differs in each
    run and launch, so that no algorithm always comes first.
    """

    def __init__(
        self,
        target: ExecutionTarget,
        method: Method,
        *,
        run: str = "",
        launch: int = 1,
        timeout_seconds: float | None = None,
        in_random_order: bool = False,
    ) -> None:
        self.target, self.method = target, method
        self._in_random_order = in_random_order
        self._run, self._launch, self._timeout_seconds = run, launch, timeout_seconds

    @property
    def configuration(self) -> Configuration:
        """The configuration that the times depend on besides the case."""
        target, mpi = self.target, self.target.installation
        facts = {"program_digest": file_digest(mpi.program("benchmark")), **target.facts}
        if self._in_random_order:
            facts["order"] = "random"
        return measured_configuration(target.name, mpi.label, self.method, facts, run=self._run, launch=self._launch)

    def make(self, cases: Sequence[Case], keep: Keep) -> None:
        """Measures the cases. Raises CollwiseError when the execution ends before all are done."""
        seed = f"{self._run} {self._launch}"
        ordered = in_random_order(cases, seed) if self._in_random_order else in_program_order(cases)
        self.processes_started += 1

        def keep_record(record: dict[str, Any]) -> None:
            keep(timing_from_record(ordered[record["id"]], record))

        with worklist(case_lines(ordered), keep_record, self.target.shared_directory()) as work:
            ended = self.target.run(
                "benchmark",
                max(case.procs for case in ordered),
                [work.file_name, *self.method.options(), *_buffer_options(cases)],
                timeout_seconds=self._timeout_seconds or self.method.max_seconds(len(ordered)),
                on_line=work.take,
            )
        if work.done < len(ordered):
            kept = f"{work.done} of {len(ordered)} cases were measured and are kept"
            raise CollwiseError(f"{self.target.installation.label}: {ended.problem}; {kept}")


def _buffer_options(cases: Sequence[Case]) -> list[str]:
    """The options with the sizes of the buffers that mock-ups may use, if there are mock-ups."""
    if not any(is_mock_up(case) for case in cases):
        return []
    sizes = buffers()
    return ["--message-buffer", str(sizes.message_bytes), "--integer-buffer", str(sizes.integer_bytes)]


def in_program_order(cases: Iterable[Case]) -> list[Case]:
    """The cases in the order of one execution: by process count, so that communicators are made once."""
    return sorted(cases, key=lambda case: (case.procs, case))


def in_random_order(cases: Iterable[Case], seed: str) -> list[Case]:
    """The cases sorted by process count; within each count, algorithms in a random order, each with ascending sizes."""
    ordered = in_program_order(cases)
    kinds = list(dict.fromkeys(replace(case, message_bytes=0) for case in ordered))
    places = dict(zip(kinds, random.Random(seed).sample(range(len(kinds)), len(kinds)), strict=True))
    return sorted(ordered, key=lambda case: (case.procs, places[replace(case, message_bytes=0)], case))


def measured_configuration(
    platform: str, maker: str, method: Method, facts: Mapping[str, str], *, run: str = "", launch: int = 1
) -> Configuration:
    """The configuration that times of the benchmark program depend on besides the case.

    `facts` holds the facts of the target, and the digest of the program. `run` and `launch` are those of MpiRunner.
    """
    details = {
        "timing": method.timing,
        "synchronisation": method.synchronisation,
        **({"late_seconds": repr(method.late_seconds)} if method.synchronisation == "rounds" else {}),
        **method.precision.details(),
        "limit_seconds": repr(method.limit_seconds),
        "warmup": str(method.warmup),
        **({"calls": str(method.calls)} if method.calls > 1 else {}),
        **facts,
        **({"nrep": repr(method.nrep)} if method.nrep is not None else {}),
        **({"samples": "kept"} if method.keep_samples else {}),
        **({"run": run} if run else {}),
        **({"launch": str(launch)} if launch > 1 else {}),
    }
    return Configuration("measured", platform, maker, tuple(sorted(details.items())))


def measure(
    target: ExecutionTarget,
    cases: Sequence[Case],
    store: Store,
    method: Method = USUAL_METHOD,
    **options: Any,
) -> list[Timing]:
    """The times of all cases, combined over the method's launches."""
    each = measure_launches(target, cases, store, method, **options)
    return [combine(timings, method.precision.confidence) for timings in zip(*each, strict=True)]


def measure_launches(
    target: ExecutionTarget,
    cases: Sequence[Case],
    store: Store,
    method: Method = USUAL_METHOD,
    *,
    on_progress: Progress | None = None,
    **options: Any,
) -> list[list[Timing]]:
    """Times of all cases, in their order, for each launch of the method. Measures those that the store does not have.

    Each time is stored at once. `options` are options of MpiRunner other than `launch`. Raises CollwiseError when a
    launch ends before all cases are done.
    """
    check_measured_sizes(cases, isinstance(target, LocalMachine))
    launches = []
    for launch in range(method.launches):

        def advance(timing: Timing | None, done: float, cases: int = 0, /, before: int = launch) -> None:
            if on_progress is not None:
                on_progress(timing, (before + done) / method.launches, cases * method.launches)

        runner = MpiRunner(target, method, launch=launch + 1, **options)
        timings = run_cases(runner, cases, store, advance).timings
        launches.append([timings[case] for case in cases])
    return launches


def timing_from_record(case: Case, record: Mapping[str, Any]) -> Timing:
    """The timing in a record that the benchmark program printed."""
    if "error" in record:
        return Timing(case, math.nan, error=record["error"], precise=False)
    return Timing(
        case,
        half_width_seconds=math.inf if record["half_width_seconds"] is None else record["half_width_seconds"],
        samples=tuple(record["samples"]) if "samples" in record else None,
        **{name: record[name] for name in _RECORDED},
    )


# The fields of a Timing that a record has under the same names and in the same form.
_RECORDED = (
    *("seconds", "repetitions", "median_seconds", "least_seconds", "greatest_seconds", "late_starts"),
    *("clock_resolution_seconds", "precise"),
)
_CSV_CASE = ("collective", "algorithm", "procs", "message_bytes", "segment_bytes", "parameter", "root")


def samples_csv(launches: Sequence[Sequence[Timing]]) -> str:
    """Every sample as a line of CSV, launches and repetitions counted from 1."""
    lines = [",".join([*_CSV_CASE, "launch", "repetition", "seconds"])]
    for launch, timings in enumerate(launches, 1):
        for timing in timings:
            case = [str(getattr(timing.case, name)) for name in _CSV_CASE]
            for number, seconds in enumerate(timing.samples or (), 1):
                lines.append(",".join([*case, str(launch), str(number), repr(seconds)]))
    return "\n".join(lines) + "\n"
