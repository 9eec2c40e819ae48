"""Our algorithms against the same ones inside SMPI: both simulated on one platform, by one program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from collwise.algorithms.catalogue import Algorithm, Catalogue
from collwise.platforms import HeterogeneousPlatform, HostPlatform, Platform
from collwise.simulator.execution.local_machine import run_program
from collwise.simulator.execution.worklist import worklist
from collwise.simulator.sweeps.case_file import case_lines
from collwise.simulator.timing import Case

# An odd count, a power of two, and neither. Sizes on both sides of the eager limit that every one of these counts, and
# the 8 bytes of an element, divide: libraries treat what is left over differently.
PROCS = (15, 16, 30)
SIZES = (1920, 19200, 245760)
# Messages below a segment a process take SMPI's other ring.
_LONGER_SIZES = {("allreduce", "ompi_ring_segmented"): (31457280,)}
TOLERANCE = 0.02

_TIME_LIMIT_SECONDS = 120.0


@dataclass(frozen=True)
class SmpiRow:
    """One call on both sides: simulated seconds until the last process is done. `problem` says why there are none."""

    collective: str
    algorithm: str
    smpi: str
    procs: int
    message_bytes: int
    segment_bytes: int
    fanout: int
    ours_seconds: float
    theirs_seconds: float
    problem: str = ""

    @property
    def ratio(self) -> float:
        """Ours over theirs; 1 where both are 0."""
        if self.ours_seconds == self.theirs_seconds:
            return 1.0
        return self.ours_seconds / self.theirs_seconds if self.theirs_seconds > 0 else float("nan")

    @property
    def results_agree(self) -> bool:
        """True: in such simulations data has no values."""
        return True

    @property
    def differs(self) -> bool:
        """Whether the times are further apart than the tolerance."""
        return not abs(self.ratio - 1) <= TOLERANCE


def compared_algorithms(collective: str | None = None) -> list[Algorithm]:
    """The algorithms that SMPI has, too."""
    catalogue = Catalogue.load()
    collectives = catalogue.collectives.values() if collective is None else [catalogue.collective(collective)]
    return [algorithm for entry in collectives for algorithm in entry.algorithms.values() if algorithm.smpi]


def compare_with_smpi(
    platform: HostPlatform,
    collective: str | None = None,
    procs: Sequence[int] | None = None,
    sizes: Sequence[int] | None = None,
    *,
    algorithms: Sequence[str] | None = None,
    simgrid: str | None = None,
    tell: Callable[[str], object] = lambda _: None,
) -> list[SmpiRow]:
    """Rows by algorithm, process count and size; none where an algorithm does not apply.

    SMPI's own algorithms combine for nothing, so ours do, too. A run that fails leaves its word in the rows.
    Raises UsageError when the engine is missing or the platform is too small.
    """
    platform = without_reduction_costs(platform)
    rows: list[SmpiRow] = []
    for algorithm in compared_algorithms(collective):
        if algorithms is not None and algorithm.name not in algorithms:
            continue
        tell(f"{algorithm.collective} {algorithm.name}")
        cases = [
            _case(algorithm, count, size)
            for count in procs or PROCS
            if not algorithm.objection(count)
            for size in _sizes(algorithm, sizes)
        ]
        if not cases:
            continue
        theirs = [replace(case, experiment="builtin") for case in cases]
        option = f"--cfg=smpi/{algorithm.collective}:{algorithm.smpi}"
        rows += _rows(
            algorithm,
            cases,
            _seconds(cases, platform, simgrid, ()),
            _seconds(theirs, platform, simgrid, (option,)),
        )
    return rows


def _sizes(algorithm: Algorithm, asked: Sequence[int] | None) -> Sequence[int]:
    if algorithm.collective == "barrier":
        return (0,)
    return asked or (*SIZES, *_LONGER_SIZES.get((algorithm.collective, algorithm.smpi), ()))


def without_reduction_costs(platform: HostPlatform) -> HostPlatform:
    """The same platform, on which combining takes no time; one read from an XML file is left as it is."""
    if not isinstance(platform, Platform | HeterogeneousPlatform):
        return platform
    return replace(platform, calibration=replace(platform.calibration, reduce_seconds_per_byte=0.0))


def _case(algorithm: Algorithm, procs: int, message_bytes: int) -> Case:
    segment_bytes, fanout = _parameters(algorithm, procs, message_bytes)
    return Case(algorithm.collective, algorithm.name, procs, message_bytes, segment_bytes, fanout)


def _rows(
    algorithm: Algorithm,
    cases: Sequence[Case],
    ours: tuple[Mapping[int, float], str],
    theirs: tuple[Mapping[int, float], str],
) -> list[SmpiRow]:
    rows = []
    for number, case in enumerate(cases):
        problems = [problem for seconds, problem in (ours, theirs) if number not in seconds]
        rows.append(
            SmpiRow(
                *(algorithm.collective, algorithm.name, algorithm.smpi),
                *(case.procs, case.message_bytes, case.segment_bytes, case.fanout),
                ours_seconds=ours[0].get(number, float("nan")),
                theirs_seconds=theirs[0].get(number, float("nan")),
                problem="; ".join(problems),
            )
        )
    return rows


def _seconds(
    cases: Sequence[Case], platform: HostPlatform, simgrid: str | None, options: Sequence[str]
) -> tuple[dict[int, float], str]:
    """Simulated seconds by the cases' positions, and what went wrong if some are missing."""
    records: list[dict[str, Any]] = []
    with worklist(case_lines(cases), records.append) as work:
        run = run_program(
            "smpi",
            "benchmark",
            max(case.procs for case in cases),
            [work.file_name],
            platform=platform,
            simgrid=simgrid,
            timeout_seconds=_TIME_LIMIT_SECONDS,
            on_line=work.take,
            launcher_args=options,
        )
    errors = [record["error"] for record in records if "error" in record]
    seconds = {int(record["id"]): float(record["seconds"]) for record in records if "seconds" in record}
    return seconds, errors[0] if errors else run.problem


def _parameters(algorithm: Algorithm, procs: int, message_bytes: int) -> tuple[int, int]:
    """The segment size and fan-out that SMPI's algorithm chooses for itself, in its source code.

    Fixed segment sizes are in the catalogue; here are those that depend on the call.
    """
    choice = _CHOICES.get((algorithm.collective, algorithm.smpi))
    return choice(procs, message_bytes) if choice else (algorithm.smpi_segment_bytes, 0)


def _bcast_pipeline(procs: int, message_bytes: int) -> tuple[int, int]:
    """Open MPI's decision for long messages, without its last line."""
    for slope, intercept, segment_bytes in (
        (1.6134e-6, 2.1102, 131072),
        (2.3679e-6, 1.1787, 65536),
        (3.2118e-6, 8.7936, 16384),
    ):
        if procs < slope * message_bytes + intercept:
            return segment_bytes, 0
    return 131072, 0


def _reduce_pipeline(procs: int, message_bytes: int) -> tuple[int, int]:
    if procs > 0.0410 / 1024 * message_bytes + 9.7128:
        return 1024, 0
    return (32768, 0) if procs > 0.0033 / 1024 * message_bytes + 1.6761 else (65536, 0)


def _reduce_binomial(procs: int, message_bytes: int) -> tuple[int, int]:
    if message_bytes < (20480 if procs < 8 else 2048):
        return 0, 0
    return (1024, 0) if procs > 0.6016 / 1024 * message_bytes + 1.3496 else (0, 0)


_CHOICES: dict[tuple[str, str], Callable[[int, int], tuple[int, int]]] = {
    ("bcast", "ompi_pipeline"): _bcast_pipeline,
    ("gather", "ompi_linear_sync"): lambda _, size: (32768 if size > 92160 else 1024, 0),
    ("reduce", "ompi_pipeline"): _reduce_pipeline,
    ("reduce", "ompi_binomial"): _reduce_binomial,
    ("reduce", "ompi_chain"): lambda procs, _: (65536, min(procs // 2, 32)),
}
