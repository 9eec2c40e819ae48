"""collwise measure: fills the timing table from a real MPI library."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from collwise.algorithms.catalogue import Catalogue
from collwise.common.files import write_text
from collwise.common.units import format_seconds, format_size
from collwise.simulator.store import Store
from collwise.simulator.sweeps.method import Method, combine
from collwise.simulator.sweeps.mpi_runner import measure_launches, samples_csv
from collwise.simulator.timing import Timing
from collwise.studies.cli import options, target_options
from collwise.studies.cli.declare import ALGORITHMS, COUNTS, NEW_FILE, command, option
from collwise.studies.cli.output import check_failed, print_json, print_table, sweep_progress
from collwise.studies.cli.target_options import TARGET, TargetOptions, target_from
from collwise.validation.selection.defaults import SEGMENTS_TEXT

if TYPE_CHECKING:
    from collwise.models.lmo import Thresholds


@command("measure --library openmpi --collective bcast --procs 4 --sizes 8KiB:64KiB:x2")
def measure(
    where: TargetOptions = TARGET,
    collective: str = options.COLLECTIVE,
    algorithms: Sequence[str] | None = option(
        "Algorithms, names by commas, or all. Default: all that can be chosen.", ALGORITHMS
    ),
    procs: Sequence[int] = option("Process counts: 2,4.", COUNTS, required=True),
    sizes: Sequence[int] | None = options.SIZES,
    segments: Sequence[int] = options.segments(SEGMENTS_TEXT),
    thresholds: Thresholds | None = options.THRESHOLDS,
    method: Method = options.METHOD,
    raw: Path | None = option("Write every repetition to a CSV file.", NEW_FILE),
    script: Path | None = target_options.SCRIPT,
    store: Path = options.STORE,
    as_json: bool = options.JSON,
) -> None:
    """Measures our algorithms under Open MPI or MPICH: on this machine, hosts, a batch job's nodes or a test bed.

    Without a target, times are those of this machine's shared memory and cores, not of a cluster's network.
    docs/measuring.md says which method to use when.
    """
    from collwise.timings import cases_to_measure, choices

    [competing] = choices([Catalogue.load().collective(collective).name], algorithms, segments, {}, thresholds).values()
    target = None if script is not None else target_from(where)
    asked = cases_to_measure(collective, competing, procs, sizes, target)
    method = replace(method, keep_samples=raw is not None)
    if target is None:
        target_options.print_script(Path(str(script)), asked, method, where)
        return
    with Store(store) as opened, sweep_progress(f"{collective}, {target.name}") as advance:
        launches = measure_launches(target, asked, opened, method=method, on_progress=advance)
    timings = [combine(each, method.precision.confidence) for each in zip(*launches, strict=True)]
    if raw is not None:
        write_text(raw, samples_csv(launches))
    if as_json:
        records = [asdict(row.case) | asdict(row) for row in timings]
        for record, each in zip(records, zip(*launches, strict=True), strict=True):
            del record["case"]
            if len(each) > 1:
                kept = ("seconds", "half_width_seconds", "repetitions")
                record["launches"] = [{name: getattr(one, name) for name in kept} for one in each]
        print_json(records)
    else:
        several_segments = len(segments) > 1
        maker = target.installation.label
        title = f"{collective}, {maker}, {target.name}, timing {method.timing}, {method.synchronisation}"
        print_table(title, _COLUMNS, [_row(row, several_segments) for row in timings], 0, keys=3)
    check_failed([row for row in timings if not row.ok])


_COLUMNS = ("P", "m", "algorithm", "mean", "median", "minimum", "maximum", "+-", "repetitions", "late starts")


def _row(timing: Timing, with_segment: bool) -> tuple[object, ...]:
    """A star marks a mean that is not as exact as was asked for."""
    case = timing.case
    cut = f", {format_size(case.segment_bytes)}" if with_segment and case.segment_bytes else ""
    start = (case.procs, format_size(case.message_bytes), case.algorithm + cut)
    if not timing.ok:
        return (*start, "failed", *("-" for _ in range(len(_COLUMNS) - 4)))
    times = (timing.seconds, timing.median_seconds, timing.least_seconds, timing.greatest_seconds)
    width = timing.half_width_seconds / timing.seconds if timing.seconds > 0 else math.inf
    star = "" if timing.precise else " *"
    return (
        *start,
        *map(format_seconds, times),
        f"{width * 100:.1f} %{star}" if width < math.inf else "-",
        timing.repetitions,
        timing.late_starts,
    )
