"""Compares simulated times of our algorithms and of SMPI's own code for them, on one platform and by one program."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

from collwise.algorithms.catalogue import Algorithm, Catalogue
from collwise.platforms import HeterogeneousPlatform, HostPlatform, Platform
from collwise.simulator.execution.launchers import run_program
from collwise.simulator.execution.processes import case_lines, worklist
from collwise.simulator.timing import Case
from collwise.validation.libraries.openmpi_3 import PIPELINES
from collwise.validation.times.choice import Choice
from collwise.validation.times.grid import BUILTIN, Grid

# Few processes, for which broadcasts have short segments, an odd count, a power of two, and an even one. Sizes on both
# sides of the eager limit, which are multiples of each count and of the 8 bytes of an element, since libraries treat
# remainders differently.
PROCS = (6, 15, 16, 30)
SIZES = (1920, 19200, 245760)
# For messages of less than one segment per process, SMPI uses its other ring algorithm.
_LONGER_SIZES = {("allreduce", "ompi_ring_segmented"): (31457280,)}
TOLERANCE = 0.02

_TIME_LIMIT_SECONDS = 120.0


@dataclass(frozen=True)
class SmpiRow:
    """The simulated seconds until the last process of a call is done, by our algorithm and by SMPI's."""

    collective: str
    algorithm: str
    smpi: str
    procs: int
    message_bytes: int
    segment_bytes: int
    parameter: int
    ours_seconds: float
    theirs_seconds: float
    problem: str = ""

    results_agree: ClassVar[bool] = True
    """Results cannot differ, since data has no values in these simulations."""

    @property
    def ratio(self) -> float:
        """Our seconds divided by SMPI's; 1 if both are 0."""
        if self.ours_seconds == self.theirs_seconds:
            return 1.0
        return self.ours_seconds / self.theirs_seconds if self.theirs_seconds > 0 else float("nan")

    @property
    def differs(self) -> bool:
        """True if the times are further apart than the tolerance."""
        return not abs(self.ratio - 1) <= TOLERANCE


def compared_algorithms(collective: str | None = None) -> list[Algorithm]:
    """The algorithms that SMPI also has."""
    return [algorithm for algorithm in Catalogue.load().algorithms(collective) if algorithm.smpi]


def compare_with_smpi(
    platform: HostPlatform,
    collective: str | None = None,
    procs: Sequence[int] | None = None,
    sizes: Sequence[int] | None = None,
    *,
    simgrid: str | None = None,
    on_algorithm: Callable[[str], object] = lambda _: None,
) -> list[SmpiRow]:
    """Rows by algorithm, process count and size; none where an algorithm does not apply.

    Reductions take no time in SMPI's own algorithms, so here they take no time in ours, either. If a run fails, its
    rows have the problem. Raises UsageError when SimGrid is missing or the platform is too small.
    """
    platform = without_processor_costs(platform)
    rows: list[SmpiRow] = []
    for algorithm in compared_algorithms(collective):
        on_algorithm(f"{algorithm.collective} {algorithm.name}")
        grid = Grid(algorithm.collective, (), tuple(procs or PROCS), tuple(_sizes(algorithm, sizes)))
        ours = grid.with_besides(partial(_smpi_choice, algorithm)).cases()
        if not ours:
            continue
        theirs = [replace(case, experiment=BUILTIN) for case in ours]
        option = f"--cfg=smpi/{algorithm.collective}:{algorithm.smpi}"
        our_times, their_times = _times(ours, platform, simgrid, ()), _times(theirs, platform, simgrid, (option,))
        found = zip(ours, our_times, their_times, strict=True)
        for case, (our_seconds, our_problem), (their_seconds, their_problem) in found:
            call = (case.procs, case.message_bytes, case.segment_bytes, case.parameter)
            problem = "; ".join(filter(None, (our_problem, their_problem)))
            name = (algorithm.collective, algorithm.name, algorithm.smpi)
            rows.append(SmpiRow(*name, *call, our_seconds, their_seconds, problem))
    return rows


def _sizes(algorithm: Algorithm, asked: Sequence[int] | None) -> Sequence[int]:
    if algorithm.collective == "barrier":
        return (0,)
    return asked or (*SIZES, *_LONGER_SIZES.get((algorithm.collective, algorithm.smpi), ()))


def without_processor_costs(platform: HostPlatform) -> HostPlatform:
    """The platform with free reductions and overheads, as in SMPI's own algorithms; platform XML is not changed."""
    if not isinstance(platform, Platform | HeterogeneousPlatform):
        return platform
    free = replace(platform.calibration.with_overheads_times(0), reduce_seconds_per_byte=0.0)
    return replace(platform, calibration=free)


def _times(
    cases: Sequence[Case], platform: HostPlatform, simgrid: str | None, options: Sequence[str]
) -> list[tuple[float, str | None]]:
    """The simulated seconds of each case, or nan and the problem if there is no time."""
    records: list[dict[str, Any]] = []
    with worklist(case_lines(cases), records.append) as work:
        run = run_program(
            "smpi", "benchmark", max(case.procs for case in cases), [work.file_name], platform=platform,
            simgrid=simgrid, timeout_seconds=_TIME_LIMIT_SECONDS, on_line=work.take, launcher_args=options,
        )  # fmt: skip
    problem = next((record["error"] for record in records if "error" in record), run.problem)
    seconds = {int(record["id"]): float(record["seconds"]) for record in records if "seconds" in record}
    return [(seconds[n], None) if n in seconds else (math.nan, problem) for n in range(len(cases))]


def _smpi_choice(algorithm: Algorithm, procs: int, message_bytes: int) -> Choice:
    """The algorithm with the segment size and parameter that SMPI's own version chooses, as in its source code."""
    decide = _DECISIONS.get((algorithm.collective, algorithm.smpi))
    parameters = decide(procs, message_bytes) if decide else (algorithm.smpi_segment_bytes, 0)
    return Choice(algorithm.name, *parameters)


def _bcast_pipeline(procs: int, message_bytes: int) -> tuple[int, int]:
    """Open MPI's decision for long messages, but with the first segment size of PIPELINES if no segment size fits."""
    fitting = (segment for slope, intercept, segment in PIPELINES if procs < slope * message_bytes + intercept)
    return next(fitting, PIPELINES[0][2]), 0


def _reduce_pipeline(procs: int, message_bytes: int) -> tuple[int, int]:
    if procs > 0.0410 / 1024 * message_bytes + 9.7128:
        return 1024, 0
    return (32768, 0) if procs > 0.0033 / 1024 * message_bytes + 1.6761 else (65536, 0)


def _reduce_binomial(procs: int, message_bytes: int) -> tuple[int, int]:
    if message_bytes < (20480 if procs < 8 else 2048):
        return 0, 0
    return (1024, 0) if procs > 0.6016 / 1024 * message_bytes + 1.3496 else (0, 0)


_DECISIONS: dict[tuple[str, str], Callable[[int, int], tuple[int, int]]] = {
    ("bcast", "ompi_pipeline"): _bcast_pipeline,
    ("gather", "ompi_linear_sync"): lambda _, size: (32768 if size > 92160 else 1024, 0),
    ("reduce", "ompi_pipeline"): _reduce_pipeline,
    ("reduce", "ompi_binomial"): _reduce_binomial,
    ("reduce", "ompi_chain"): lambda procs, _: (65536, min(procs // 2, 32)),
}
