"""Rows of the timing table: a case, the configuration of its time, and the time itself."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import asdict, dataclass

from collwise.algorithms.catalogue import Algorithm, Catalogue

WINDOWS = (1, 2)  # the values of the parameter `within` with which processes of a node use its memory
WITH_WINDOWS = ("bcast", "reduce", "allreduce")  # the collectives that do so; the others send messages in its place


@dataclass(frozen=True, order=True)
class Case:
    """One point to be timed: a collective by an algorithm, or an experiment of parameter estimation.

    Sizes are in bytes; `segment_bytes` 0 means unsegmented; `parameter` is the algorithm's radix, number of chains or
    the like, 0 for its default. `limit_bytes` is the largest message that the algorithm segments, 0 for no limit.

    `experiment` is 'collective', an experiment of programs/benchmark.c (`gather_bytes` is then the size m_g of the
    closing gather), 'tasks' or one of its variants (programs/task_times.h), or an experiment between few processes
    (common/experiments.py). For such an experiment, `peers` names the processes, separated by commas, and
    `reply_bytes`, `count` and `delay_seconds` are parameters.
    """

    collective: str
    algorithm: str
    procs: int
    message_bytes: int
    segment_bytes: int = 0
    parameter: int = 0
    processes_per_node: int = 1
    root: int = 0
    experiment: str = "collective"
    gather_bytes: int = 0
    limit_bytes: int = 0
    peers: str = ""
    reply_bytes: int = 0
    count: int = 1
    delay_seconds: float = 0.0

    @property
    def nodes(self) -> int:
        """Number of nodes under block mapping (rank r on node r // processes_per_node)."""
        return -(-self.procs // self.processes_per_node)

    @property
    def entry(self) -> Algorithm:
        """The catalogue's entry of the algorithm. Raises UsageError if there is none."""
        return Catalogue.load().algorithm(self.collective, self.algorithm)

    @property
    def uses_windows(self) -> bool:
        """True if the processes of a node share memory, or read one another's memory (`within` is 1 or 2)."""
        is_one = self.parameter in WINDOWS and self.collective in WITH_WINDOWS
        return is_one and self.entry.count_parameter == "within"


def is_mock_up(case: Case) -> bool:
    """True if the case's algorithm calls the MPI library's own collectives."""
    algorithm = Catalogue.load().find(case.collective, case.algorithm)
    return algorithm is not None and bool(algorithm.guideline)


def named_parameters(case: Case) -> str:
    """The case's parameters as tables of libcollwise name them, defaults included: 'segment_bytes=8192 radix=4'."""
    entry = Catalogue.load().find(case.collective, case.algorithm)
    if entry is None:
        return ""
    named = entry.named_parameters(case.segment_bytes, case.parameter or entry.default_count, case.limit_bytes)
    return " ".join(f"{name}={value}" for name, value in named.items())


@dataclass(frozen=True)
class Configuration:
    """Everything that times depend on besides the case. Any difference gives another key, so that results never mix.

    `source`: predicted, simulated or measured; `maker`: engine and version, MPI library, or model; `details`: digests
    of platform and program, options.
    """

    source: str
    platform: str
    maker: str
    details: tuple[tuple[str, str], ...] = ()

    @property
    def key(self) -> str:
        """The SHA-256 digest of all fields, in hexadecimal."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class Timing:
    """A row: `seconds` until the last process is done (nan when failed), and `root_seconds` until the root is done.

    For experiments between few processes, `seconds` is the time that the experiment defines, and `root_seconds` the
    whole time of a repetition on the first process, which on real MPI includes synchronisation and a share of the
    warm-up.

    `half_width_seconds` is the half-width of the confidence interval of the mean, 0 if the time is exact. In measured
    rows, `seconds` is the mean of the times that the method's timing defines; `late_starts` counts repetitions that
    were discarded because a process started late; `precise` says whether the method's precision was reached; `samples`
    are the times of the repetitions that count, in their order, if they were recorded. For experiments with tasks,
    `samples` are instead the instants, from the start of the call, at which the first leader was done with each task,
    then those of the next leader, and so on.
    """

    case: Case
    seconds: float
    root_seconds: float = math.nan
    half_width_seconds: float = 0.0
    repetitions: int = 1
    error: str = ""
    median_seconds: float = math.nan
    least_seconds: float = math.nan
    greatest_seconds: float = math.nan
    late_starts: int = 0
    clock_resolution_seconds: float = 0.0
    precise: bool = True
    samples: tuple[float, ...] | None = None

    @property
    def ok(self) -> bool:
        """True if the case ran without an error."""
        return not self.error
