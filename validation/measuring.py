"""Times on a real MPI library, on the machine at hand: the same program and cases as in simulation.

Double barriers precede each repetition. What is measured between processes of one machine says how the library behaves
there, not how a cluster does.
"""

from __future__ import annotations

import json
import math
import platform as machine
import tempfile
from collections.abc import Callable, Sequence

from scipy import stats

from collwise.common.errors import CollwiseError
from collwise.simulator.engines import engine, file_digest
from collwise.simulator.launch import run_program
from collwise.simulator.store import Case, Configuration, Store, Timing
from collwise.simulator.sweep import case_lines

TIMINGS = ("maximum", "root")
_CONFIDENCE = 0.95


def half_width(deviation_seconds: float, repetitions: int) -> float:
    """Half-width in seconds of the 95 % interval of the mean, by Student's t; infinite for one repetition."""
    if repetitions < 2:
        return math.inf
    quantile = float(stats.t.ppf(0.5 + _CONFIDENCE / 2, repetitions - 1))
    return quantile * deviation_seconds / math.sqrt(repetitions)


def measure(
    library: str,
    cases: Sequence[Case],
    store: Store,
    *,
    timing: str = "maximum",
    repetitions: int = 20,
    warmup: int = 2,
    timeout_seconds: float = 600.0,
    on_timing: Callable[[Timing], None] | None = None,
) -> list[Timing]:
    """Measures all cases in one execution under 'openmpi' or 'mpich' and keeps each as it comes.

    `timing` is 'root' (the root's clock, until a closing barrier) or 'maximum' (the slowest process). Raises UsageError
    when the library is missing, CollwiseError when the run ends before all cases are done.
    """
    chosen = engine(library)
    details = {
        "timing": timing,
        "repetitions": str(repetitions),
        "warmup": str(warmup),
        "program_digest": file_digest(chosen.program("benchmark")),
    }
    configuration = Configuration("measured", machine.node(), chosen.label, tuple(sorted(details.items())))
    ordered = sorted(cases, key=lambda case: (case.procs, case))
    timings: list[Timing] = []

    def take(line: str) -> None:
        if not line.startswith('{"id"'):
            return
        record = json.loads(line)
        case = ordered[record["id"]]
        if "error" in record:
            timings.append(Timing(case, math.nan, error=record["error"]))
        else:
            width = half_width(record["deviation_seconds"], record["repetitions"])
            seconds, count = record["seconds"], record["repetitions"]
            timings.append(Timing(case, seconds, half_width_seconds=width, repetitions=count))
        store.add(configuration, timings[-1:])
        if on_timing is not None:
            on_timing(timings[-1])

    with tempfile.NamedTemporaryFile("w", prefix="collwise-cases-", suffix=".txt") as case_file:
        case_file.write(case_lines(ordered))
        case_file.flush()
        options = ["--timing", timing, "--repetitions", str(repetitions), "--warmup", str(warmup)]
        procs = max(case.procs for case in ordered)
        run = run_program(
            library, "benchmark", procs, [case_file.name, *options], timeout_seconds=timeout_seconds, on_line=take
        )
    if len(timings) < len(ordered):
        raise CollwiseError(
            f"{chosen.label}: {run.problem}; {len(timings)} of {len(ordered)} cases were measured and are kept"
        )
    return timings
