"""Times on a real MPI library: the same program and cases as in simulation. The method is that of docs/measuring.md."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from collwise.common.errors import CollwiseError, UsageError, unknown_name
from collwise.simulator.execution.installations import file_digest
from collwise.simulator.execution.targets import Place
from collwise.simulator.execution.worklist import worklist
from collwise.simulator.store import Case, Configuration, Store, Timing
from collwise.simulator.sweeps.experiment_runner import Precision
from collwise.simulator.sweeps.smpi_runner import case_lines

TIMINGS = ("maximum", "root", "global")
SYNCHRONISATIONS = ("barriers", "rounds")
USUAL_PRECISION = Precision(5, 50, 0.95, 0.05)
# Of a run as a whole: for its start, and for a case beside its own limit.
_START_SECONDS = 60.0
_CASE_SECONDS = 5.0


@dataclass(frozen=True)
class Method:
    """How a collective is timed, and how often it is repeated.

    `timing`: 'root', the root's clock until a closing barrier, 'maximum', the slowest process's time, or 'global', from
    the first start to the last end on a global clock. `synchronisation` before each repetition: two 'barriers', or
    'rounds', which start at an announced instant of the global clock, and are discarded when a process comes more than
    `late_seconds` behind it. `warmup` repetitions, one at least, come first,
    untimed. `nrep`: None, or the relative standard error of one-byte messages of Hunold & Carpen-Amarie's procedure,
    whose K is the least number of repetitions. No repetition of a case begins after `limit_seconds`; 0: no limit.
    `keep_samples` keeps every repetition. Everything is done in `launches` separate executions of MPI.

    Raises UsageError for values that make no sense.
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

    def __post_init__(self) -> None:
        if self.timing not in TIMINGS:
            raise unknown_name("timing", self.timing, TIMINGS)
        if self.synchronisation not in SYNCHRONISATIONS:
            raise unknown_name("synchronisation", self.synchronisation, SYNCHRONISATIONS)
        if self.nrep is not None and not 0 < self.nrep < 1:
            raise UsageError(f"relative standard error {self.nrep} of NREP; valid: between 0 and 1, both excluded")
        if not 0 <= self.limit_seconds < math.inf:
            raise UsageError(f"limit of {self.limit_seconds} seconds; valid: 0 (none) or more")
        if not 0 <= self.late_seconds < math.inf:
            raise UsageError(f"{self.late_seconds} seconds behind the start of a round; valid: 0 or more")
        for name, count in (("untimed repetitions", self.warmup), ("launches", self.launches)):
            if not 1 <= count <= 1000:
                raise UsageError(f"{count} {name}; valid: 1 to 1000")

    def options(self) -> list[str]:
        """As the benchmark program takes them."""
        wanted = self.precision
        values: dict[str, object] = {
            "timing": self.timing,
            "synchronisation": self.synchronisation,
            "min-repetitions": wanted.min_repetitions,
            "max-repetitions": wanted.max_repetitions,
            "confidence": wanted.confidence,
            "relative-error": wanted.relative_error,
            "limit-seconds": self.limit_seconds,
            "warmup": self.warmup,
            "late-seconds": self.late_seconds,
        }
        if self.nrep is not None:
            values["nrep"] = self.nrep
        words = [word for name, value in values.items() for word in (f"--{name}", str(value))]
        return [*words, "--samples"] if self.keep_samples else words

    def most_seconds(self, cases: int) -> float | None:
        """Of one launch; None without a limit. NREP has one for t1, two batches and the repetitions each."""
        if self.limit_seconds == 0:
            return None
        limits = 1 if self.nrep is None else 4
        return _START_SECONDS + cases * (limits * self.limit_seconds + _CASE_SECONDS)


def measuring_configuration(place: Place, method: Method, run: str = "", launch: int = 1) -> Configuration:
    """What measured times depend on besides the case; `run` tells repeated measurements apart."""
    details = {
        "timing": method.timing,
        "synchronisation": method.synchronisation,
        **({"late_seconds": repr(method.late_seconds)} if method.synchronisation == "rounds" else {}),
        **method.precision.details(),
        "limit_seconds": repr(method.limit_seconds),
        "warmup": str(method.warmup),
        "program_digest": file_digest(place.engine.program("benchmark")),
        **place.facts,
        **({"nrep": repr(method.nrep)} if method.nrep is not None else {}),
        **({"samples": "kept"} if method.keep_samples else {}),
        **({"run": run} if run else {}),
        **({"launch": str(launch)} if launch > 1 else {}),
    }
    return Configuration("measured", place.name, place.engine.label, tuple(sorted(details.items())))


def measure(
    place: Place,
    cases: Sequence[Case],
    store: Store,
    *,
    method: Method = Method(),
    run: str = "",
    timeout_seconds: float | None = None,
    on_timing: Callable[[Timing], None] | None = None,
) -> list[Timing]:
    """Times of all cases, in their order; measures those that the store does not have, and keeps each as it comes.

    Of several launches, what `combine` makes of them; the store keeps each. `timeout_seconds` is of one launch;
    without it, what the method's limits come to. Raises CollwiseError when a launch ends before all cases are done.
    """
    each = measure_launches(
        place, cases, store, method=method, run=run, timeout_seconds=timeout_seconds, on_timing=on_timing
    )
    return [combine(timings, method.precision.confidence) for timings in zip(*each, strict=True)]


def measure_launches(
    place: Place,
    cases: Sequence[Case],
    store: Store,
    *,
    method: Method = Method(),
    run: str = "",
    timeout_seconds: float | None = None,
    on_timing: Callable[[Timing], None] | None = None,
) -> list[list[Timing]]:
    """As `measure`, for each launch of the method the times of all cases."""
    configurations = [measuring_configuration(place, method, run, number) for number in range(1, method.launches + 1)]
    return [_launch(place, cases, store, method, one, timeout_seconds, on_timing) for one in configurations]


def _launch(
    place: Place,
    cases: Sequence[Case],
    store: Store,
    method: Method,
    configuration: Configuration,
    timeout_seconds: float | None,
    on_timing: Callable[[Timing], None] | None,
) -> list[Timing]:
    known = {case: timing for case, timing in store.timings(configuration).items() if timing.ok}
    missing = sorted(set(cases) - set(known), key=lambda case: (case.procs, case))

    def keep(record: Mapping[str, Any]) -> None:
        timing = timing_from_record(missing[record["id"]], record)
        known[timing.case] = timing
        store.add(configuration, [timing])
        if on_timing is not None:
            on_timing(timing)

    if missing:
        run_cases(place, missing, method, keep, timeout_seconds=timeout_seconds or method.most_seconds(len(missing)))
    return [known[case] for case in cases]


def run_cases(
    place: Place,
    cases: Sequence[Case],
    method: Method,
    keep: Callable[[dict[str, Any]], None],
    *,
    timeout_seconds: float | None,
    what: str = "cases",
) -> None:
    """One execution of MPI over the cases as they come; `keep` gets the records, whose `id` is a case's position.

    Raises CollwiseError when it ends before all are done; this calls them `what`, and says that those done are kept.
    """
    procs = max(case.procs for case in cases)
    with worklist(case_lines(cases), keep, place.folder()) as work:
        options = [work.file_name, *method.options()]
        ended = place.run("benchmark", procs, options, timeout_seconds=timeout_seconds, on_line=work.take)
    if work.done < len(cases):
        raise CollwiseError(
            f"{place.engine.label}: {ended.problem}; {work.done} of {len(cases)} {what} were measured and are kept"
        )


def timing_from_record(case: Case, record: Mapping[str, Any]) -> Timing:
    """What the benchmark program printed of a case."""
    if "error" in record:
        return Timing(case, math.nan, error=record["error"], precise=False)
    return Timing(
        case,
        record["seconds"],
        half_width_seconds=math.inf if record["half_width_seconds"] is None else record["half_width_seconds"],
        repetitions=record["repetitions"],
        median_seconds=record["median_seconds"],
        least_seconds=record["least_seconds"],
        greatest_seconds=record["greatest_seconds"],
        late_starts=record["late_starts"],
        clock_resolution_seconds=record["clock_resolution_seconds"],
        precise=record["precise"],
        samples=tuple(record["samples"]) if "samples" in record else None,
    )


def half_width(values: Sequence[float], confidence: float = 0.95) -> float:
    """Half-width of the interval of the values' mean, by Student's t; infinite for fewer than two."""
    if len(values) < 2:
        return math.inf
    from scipy import stats

    quantile = float(stats.t.ppf(0.5 + confidence / 2, len(values) - 1))
    return quantile * float(np.std(values, ddof=1)) / math.sqrt(len(values))


def combine(launches: Sequence[Timing], confidence: float = 0.95) -> Timing:
    """One case's times of several launches as one: the mean of the launches' means, and the interval of these means.

    So the interval holds what differs between launches. The median is that of the launches' medians, the least and the
    greatest are of all repetitions, repetitions and late starts are sums, samples follow one another. One launch stays
    as it is; a launch that failed makes the case fail.
    """
    if len(launches) == 1:
        return launches[0]
    for one in launches:
        if not one.ok:
            return one
    means = [one.seconds for one in launches]
    samples: tuple[float, ...] | None = ()
    for one in launches:
        samples = None if samples is None or one.samples is None else samples + one.samples
    return replace(
        launches[0],
        seconds=float(np.mean(means)),
        half_width_seconds=half_width(means, confidence),
        repetitions=sum(one.repetitions for one in launches),
        median_seconds=float(np.median([one.median_seconds for one in launches])),
        least_seconds=min(one.least_seconds for one in launches),
        greatest_seconds=max(one.greatest_seconds for one in launches),
        late_starts=sum(one.late_starts for one in launches),
        clock_resolution_seconds=max(one.clock_resolution_seconds for one in launches),
        precise=all(one.precise for one in launches),
        samples=samples,
    )


_CSV_CASE = ("collective", "algorithm", "procs", "message_bytes", "segment_bytes", "fanout", "root")


def samples_csv(launches: Sequence[Sequence[Timing]]) -> str:
    """Every kept repetition as a line of CSV, launches and repetitions counted from 1."""
    lines = [",".join([*_CSV_CASE, "launch", "repetition", "seconds"])]
    for launch, timings in enumerate(launches, 1):
        for timing in timings:
            case = [str(getattr(timing.case, name)) for name in _CSV_CASE]
            lines += [
                ",".join([*case, str(launch), str(number), repr(seconds)])
                for number, seconds in enumerate(timing.samples or (), 1)
            ]
    return "\n".join(lines) + "\n"
