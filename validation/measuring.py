"""Times on a real MPI library: the same program and cases as in simulation."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from scipy import stats

from collwise.common.errors import CollwiseError
from collwise.simulator.engines import file_digest
from collwise.simulator.experiments import Precision
from collwise.simulator.places import Place
from collwise.simulator.store import Case, Configuration, Store, Timing
from collwise.simulator.sweep import case_lines

TIMINGS = ("maximum", "root")
_CONFIDENCE = 0.95
USUAL_PRECISION = Precision(5, 50, 0.95, 0.05)


@dataclass(frozen=True)
class Method:
    """How a collective is timed: whose clock counts, and how often it is repeated.

    `timing`: 'root', the root's clock until a closing barrier, or 'maximum', the slowest process's time. `warmup`
    repetitions come first, untimed.
    """

    timing: str = "maximum"
    precision: Precision = USUAL_PRECISION
    warmup: int = 1


def half_width(deviation_seconds: float, repetitions: int) -> float:
    """Half-width in seconds of the 95 % interval of the mean, by Student's t; infinite for one repetition."""
    if repetitions < 2:
        return math.inf
    quantile = float(stats.t.ppf(0.5 + _CONFIDENCE / 2, repetitions - 1))
    return quantile * deviation_seconds / math.sqrt(repetitions)


def measuring_configuration(place: Place, method: Method, run: str = "") -> Configuration:
    """What measured times depend on besides the case; `run` tells repeated measurements apart."""
    details = {
        "timing": method.timing,
        "repetitions": f"{method.precision.min_repetitions} to {method.precision.max_repetitions}",
        "warmup": str(method.warmup),
        "program_digest": file_digest(place.engine.program("benchmark")),
        **place.facts,
        **({"run": run} if run else {}),
    }
    return Configuration("measured", place.name, place.engine.label, tuple(sorted(details.items())))


def measure(
    place: Place,
    cases: Sequence[Case],
    store: Store,
    *,
    method: Method = Method(),
    run: str = "",
    timeout_seconds: float = 600.0,
    on_timing: Callable[[Timing], None] | None = None,
) -> list[Timing]:
    """Times of all cases, in their order; measures those that the store does not have, and keeps each as it comes.

    Raises CollwiseError when the run ends before all cases are done.
    """
    configuration = measuring_configuration(place, method, run)
    known = {case: timing for case, timing in store.timings(configuration).items() if timing.ok}
    ordered = sorted(set(cases) - set(known), key=lambda case: (case.procs, case))
    made: dict[Case, Timing] = {}

    def take(line: str) -> None:
        if not line.startswith('{"id"'):
            return
        record = json.loads(line)
        case = ordered[record["id"]]
        if "error" in record:
            timing = Timing(case, math.nan, error=record["error"])
        else:
            width = half_width(record["deviation_seconds"], record["repetitions"])
            timing = Timing(case, record["seconds"], half_width_seconds=width, repetitions=record["repetitions"])
        made[case] = timing
        store.add(configuration, [timing])
        if on_timing is not None:
            on_timing(timing)

    if ordered:
        with tempfile.NamedTemporaryFile("w", prefix="collwise-cases-", suffix=".txt") as case_file:
            case_file.write(case_lines(ordered))
            case_file.flush()
            options = ["--timing", method.timing, "--repetitions", str(method.precision.min_repetitions)]
            options += ["--warmup", str(method.warmup)]
            procs = max(case.procs for case in ordered)
            run_ended = place.run(
                "benchmark", procs, [case_file.name, *options], timeout_seconds=timeout_seconds, on_line=take
            )
        if len(made) < len(ordered):
            raise CollwiseError(
                f"{place.engine.label}: {run_ended.problem}; {len(made)} of {len(ordered)} cases were measured "
                "and are kept"
            )
    known |= made
    return [known[case] for case in cases]
