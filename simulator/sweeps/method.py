"""The method of measuring on a real MPI library: precision, timing and synchronisation (docs/measuring.md)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from collwise.common.errors import UsageError, check_name
from collwise.simulator.timing import Timing

TIMINGS = ("maximum", "root", "global")
SYNCHRONISATIONS = ("barriers", "rounds")
_MAX_REPETITIONS = 100_000
# Added to the time limit of a run: for its start, and for each case.
_START_SECONDS = 60.0
_CASE_SECONDS = 5.0
MEDIAN_VARIANCE = math.pi / 2
"""The variance of the median of many normally distributed values, divided by the variance of their mean."""


@dataclass(frozen=True)
class Precision:
    """The number of repetitions of an experiment on a real MPI library, as in O'Flynn 2009, section 3.1.

    There are at least `min_repetitions`, then more until the half-width of the mean's confidence interval, by Student's
    t, is below `relative_error` times the mean, or until `max_repetitions` are reached.
    """

    min_repetitions: int = 5
    max_repetitions: int = 100
    confidence: float = 0.95
    relative_error: float = 0.025

    def __post_init__(self) -> None:
        if not 1 <= self.min_repetitions <= self.max_repetitions <= _MAX_REPETITIONS:
            raise UsageError(
                f"{self.min_repetitions} to {self.max_repetitions} repetitions; valid: 1 to {_MAX_REPETITIONS}, "
                "the minimum not above the maximum"
            )
        for name, value in (("confidence", self.confidence), ("relative error", self.relative_error)):
            if not 0 < value < 1:
                raise UsageError(f"{name} {value}; valid: strictly between 0 and 1")

    def details(self) -> dict[str, str]:
        """The settings that measured times depend on, as details of a Configuration."""
        return {
            "repetitions": f"{self.min_repetitions} to {self.max_repetitions}",
            "confidence": repr(self.confidence),
            "relative_error": repr(self.relative_error),
        }

    def options(self) -> list[str]:
        """The options of the programs that measure."""
        return _words(vars(self))


PRECISION_OF_FITS = Precision(3, 10, 0.95, 0.05)
"""The usual precision of the many experiments to which implementation-aware models are fitted."""
USUAL_PRECISION = Precision(5, 50, 0.95, 0.05)  # the default precision of measured collectives


@dataclass(frozen=True)
class Method:
    """The method by which a collective is timed, and the number of its repetitions.

    `timing` is 'root' (the root's clock until a closing barrier), 'maximum' (the slowest process's time) or 'global'
    (from the first start to the last end on a global clock). `synchronisation` is 'barriers' (two barriers before each
    repetition) or 'rounds': each repetition starts at an announced instant of the global clock, and is discarded if a
    process has a start skew above `late_seconds`. `warmup` untimed repetitions come first, at least one. A repetition
    consists of `calls` calls back to back, as in the Intel MPI Benchmarks, and its time is the mean per call. `nrep` is
    None, or the relative standard error of one-byte messages in Hunold & Carpen-Amarie's procedure NREP; the K of this
    procedure is the minimum number of repetitions. No repetition of a case begins after `limit_seconds`; 0 means no
    limit. If `keep_samples` is true, the timings hold every repetition. All cases are measured in `launches` separate
    executions of MPI.
    """

    timing: str = "maximum"
    precision: Precision = USUAL_PRECISION
    warmup: int = 1
    synchronisation: str = "barriers"
    nrep: float | None = None
    limit_seconds: float = 5.0
    keep_samples: bool = False
    launches: int = 1
    late_seconds: float = 1e-5
    calls: int = 1

    def __post_init__(self) -> None:
        check_name("timing", self.timing, TIMINGS)
        check_name("synchronisation", self.synchronisation, SYNCHRONISATIONS)
        if self.nrep is not None and not 0 < self.nrep < 1:
            raise UsageError(f"relative standard error {self.nrep} of NREP; valid: strictly between 0 and 1")
        if not 0 <= self.limit_seconds < math.inf:
            raise UsageError(f"limit of {self.limit_seconds} seconds; valid: 0 (no limit) or more")
        if not 0 <= self.late_seconds < math.inf:
            raise UsageError(f"start skew of {self.late_seconds} seconds; valid: 0 or more")
        counts = {"untimed repetitions": self.warmup, "calls in a row": self.calls, "launches": self.launches}
        for name, count in counts.items():
            if not 1 <= count <= 1000:
                raise UsageError(f"{count} {name}; valid: 1 to 1000")

    def options(self) -> list[str]:
        """The options of the benchmark program."""
        names = ("timing", "synchronisation", "limit_seconds", "warmup", "calls", "late_seconds", "nrep")
        given = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        return [*_words(given), *self.precision.options(), *(["--samples"] if self.keep_samples else [])]

    def max_seconds(self, cases: int) -> float | None:
        """The time limit of one launch; None: no limit.

        With NREP, the limit of a case applies four times: to t1, to each of two batches, and to the repetitions.
        """
        if self.limit_seconds == 0:
            return None
        limits = 1 if self.nrep is None else 4
        return _START_SECONDS + cases * (limits * self.limit_seconds + _CASE_SECONDS)


USUAL_METHOD = Method()


def _words(options: Mapping[str, object]) -> list[str]:
    return [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", str(value))]


def half_width(values: Sequence[float], confidence: float = 0.95) -> float:
    """Half-width of the confidence interval of the values' mean, by Student's t; infinite for fewer than two."""
    import numpy as np
    from scipy import stats

    if len(values) < 2:
        return math.inf
    quantile = float(stats.t.ppf(0.5 + confidence / 2, len(values) - 1))
    return quantile * float(np.std(values, ddof=1)) / math.sqrt(len(values))


def combine(launches: Sequence[Timing], confidence: float = 0.95) -> Timing:
    """One Timing of a case from several launches: the mean of their means, and the confidence interval of that mean.

    The interval thus includes the variation between launches. The median is the median of the launches' medians.
    Minimum and maximum are over all repetitions. A single launch is returned as it is; if a launch failed, its failure
    is returned.
    """
    import numpy as np

    if len(launches) == 1:
        return launches[0]
    for launch in launches:
        if not launch.ok:
            return launch
    means = [launch.seconds for launch in launches]
    recorded = [launch.samples for launch in launches if launch.samples is not None]
    samples = tuple(itertools.chain(*recorded)) if len(recorded) == len(launches) else None
    return replace(
        launches[0],
        seconds=float(np.mean(means)),
        half_width_seconds=half_width(means, confidence),
        repetitions=sum(launch.repetitions for launch in launches),
        median_seconds=float(np.median([launch.median_seconds for launch in launches])),
        least_seconds=min(launch.least_seconds for launch in launches),
        greatest_seconds=max(launch.greatest_seconds for launch in launches),
        late_starts=sum(launch.late_starts for launch in launches),
        clock_resolution_seconds=max(launch.clock_resolution_seconds for launch in launches),
        precise=all(launch.precise for launch in launches),
        samples=samples,
    )
