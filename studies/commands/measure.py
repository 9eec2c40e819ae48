"""collwise measure: fills the timing table from a real MPI library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import CollwiseError, UsageError
from collwise.common.units import format_seconds, format_size
from collwise.simulator.experiments import Precision
from collwise.simulator.store import Case, Store
from collwise.studies.commands.places import Where, place_from, place_options, print_script, script_option
from collwise.studies.commands.shared import (
    COUNTS,
    NAMES,
    SIZE,
    SIZES,
    algorithm_names,
    collective_option,
    json_option,
    print_json,
    stdout_console,
    store_option,
    table,
)
from collwise.studies.commands.thresholds import bounds_of, check_thresholds_matter, thresholds_option
from collwise.validation.grid import SIZES as USUAL_SIZES
from collwise.validation.measuring import TIMINGS, Method
from collwise.validation.measuring import measure as run_measurement

if TYPE_CHECKING:
    from collwise.models.lmo import Thresholds


@click.command()
@place_options
@collective_option
@click.option("--algorithms", type=NAMES, help="Names by commas, or all. Default: all that can be chosen.")
@click.option("--procs", required=True, type=COUNTS, help="Process counts: 2,4.")
@click.option("--sizes", type=SIZES, help="Message sizes: 8KiB:4MiB:x2. Default: the paper's, or 12 by doubling.")
@click.option("--segment", type=SIZE, default="8KiB", show_default=True, help="Segment size, where messages are cut.")
@thresholds_option
@click.option("--timing", type=click.Choice(TIMINGS), default="maximum", show_default=True, help="Whose clock counts.")
@click.option("--repetitions", type=click.IntRange(1), default=20, show_default=True)
@script_option
@store_option
@json_option
def measure(
    where: Where,
    collective: str,
    algorithms: Sequence[str] | None,
    procs: Sequence[int],
    sizes: Sequence[int] | None,
    segment: int,
    thresholds: Thresholds | None,
    timing: str,
    repetitions: int,
    script: Path | None,
    store: Path,
    as_json: bool,
) -> None:
    """Measures our algorithms under Open MPI or MPICH: on this machine, hosts, a batch job's nodes or a test bed.

    Without a place, times are of this machine's shared memory and cores, not of a cluster's network.
    """
    catalogue = Catalogue.load()
    names = algorithm_names(collective, algorithms)
    check_thresholds_matter([catalogue.algorithm(collective, name) for name in names], thresholds)
    cuts = {
        algorithm.name: bounds_of(algorithm, thresholds)
        if algorithm.bounded
        else (segment if algorithm.pipelined else 0, 0)
        for algorithm in map(catalogue.collective(collective).algorithms.__getitem__, names)
    }
    place = None if script is not None else place_from(where)
    cases = [
        Case(
            collective,
            name,
            p,
            m,
            cuts[name][0],
            processes_per_node=place.processes_per_node(p) if place else 1,
            limit_bytes=cuts[name][1],
        )
        for p in procs
        for m in sizes or USUAL_SIZES[collective]
        for name in names
        if not catalogue.algorithm(collective, name).objection(p)
    ]
    if not cases:
        raise UsageError(f"none of {', '.join(names)} runs on P = {', '.join(map(str, procs))}")
    method = Method(timing, Precision(repetitions, repetitions))
    if place is None:
        print_script(Path(str(script)), cases, method, where)
        return
    with Store(store) as opened:
        timings = run_measurement(place, cases, opened, method=method)
    if as_json:
        print_json([asdict(row.case) | {k: v for k, v in asdict(row).items() if k != "case"} for row in timings])
    else:
        rows = [
            (
                row.case.procs,
                format_size(row.case.message_bytes),
                row.case.algorithm,
                format_seconds(row.seconds) if row.ok else "failed",
                f"{row.half_width_seconds / row.seconds * 100:.0f} %" if row.ok and repetitions > 1 else "-",
            )
            for row in timings
        ]
        title = f"{collective}, {place.engine.label}, {place.name}, timing {timing}"
        stdout_console().print(table(title, ["P", "m", "algorithm", "mean", "+- (95 %)"], rows, left=0))
    failed = [row for row in timings if not row.ok]
    if failed:
        raise CollwiseError(f"{len(failed)} of {len(cases)} cases failed; first: {failed[0].error}")
