"""Rows of the timing table: a case, what made its time, and the time itself."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import asdict, dataclass


@dataclass(frozen=True, order=True)
class Case:
    """One point to time. Sizes in bytes; `segment_bytes` 0 means unsegmented, `fanout` 0 the algorithm's default.

    `experiment` is 'collective', or one of the experiments of parameter estimation: those of programs/benchmark.c,
    whose `gather_bytes` is the size m_g of the closing gather, or those between few processes (common/experiments.py),
    whose ranks `peers` lists by commas, with `reply_bytes`, `count` and `delay_seconds`. `limit_bytes` is the size up
    to which an algorithm cuts messages, 0 where it has no such parameter.
    """

    collective: str
    algorithm: str
    procs: int
    message_bytes: int
    segment_bytes: int = 0
    fanout: int = 0
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
        """Nodes used under block mapping (rank r on node r // processes_per_node)."""
        return -(-self.procs // self.processes_per_node)


@dataclass(frozen=True)
class Configuration:
    """What made a time. Any change here is another key, so that no result is ever taken for another's.

    `source`: predicted, simulated or measured; `maker`: engine and version, MPI library, or model; `details`: digests
    of platform and program, options.
    """

    source: str
    platform: str
    maker: str
    details: tuple[tuple[str, str], ...] = ()

    @property
    def key(self) -> str:
        """SHA-256 over everything, hex."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class Timing:
    """A row: `seconds` until the last process is done (nan when failed), `root_seconds` until the root is.

    In an experiment between few processes, `seconds` is what its kind measures and `root_seconds` all that a repetition
    took the first process, on real MPI with synchronisation and its share of the warm-up.
    `half_width_seconds` is that of the confidence interval of the mean, 0 where time is exact. In measured rows
    `seconds` is the mean by the method's timing, `late_starts` counts repetitions that were discarded because a process
    began late, `precise` says whether the method's precision was reached, and `samples` holds all other repetitions in
    their order, if they were asked for. In simulated rows these are 0, true and None.
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
        """Whether the case ran."""
        return not self.error
