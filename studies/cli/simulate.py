"""collwise simulate: fills the timing table by SMPI or the schedule engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

import collwise
from collwise import arguments
from collwise.algorithms.catalogue import Algorithm, Catalogue
from collwise.common.errors import CollwiseError
from collwise.common.units import counted, format_seconds, format_size
from collwise.studies.cli import options
from collwise.studies.cli.declare import command, group, option
from collwise.studies.cli.output import print_json, print_table
from collwise.studies.cli.types import ALGORITHMS, COUNTS, SIZE, SIZES
from collwise.validation.library_defaults.baselines import Baseline
from collwise.validation.times.defaults import SEGMENTS_TEXT, sizes_of
from collwise.validation.times.grid import CASE_COLUMNS

if TYPE_CHECKING:
    import pandas as pd

    from collwise.platforms import HostPlatform


_COLUMNS = [*CASE_COLUMNS, "parameters", "seconds", "error"]


@command("simulate --platform gros --collective bcast --procs 4,8 --sizes 8KiB:64KiB:x2")
def simulate(
    platform: HostPlatform = options.placed_platform(),
    collectives: Sequence[str] = options.COLLECTIVES,
    algorithms: Sequence[str] | None = option(ALGORITHMS),
    procs: Sequence[int] = option(COUNTS, required=True, in_project=True),
    others: dict[str, Any] = group(
        dict,
        sizes=options.SIZES,
        segments=option(SIZES, SEGMENTS_TEXT),
        counts=options.COUNTS,
        between_segment=option(SIZE, 0),
        thresholds=options.THRESHOLDS,
        root=option(click.IntRange(0), 0),
        ppn=options.PPN,
    ),
    called: Baseline = options.CALLED_LIBRARY,
    simulation: options.SimulationOptions = options.SIMULATION,
    as_json: bool = options.JSON,
) -> None:
    """Simulates every algorithm at every P, m and segment size; cases that the store has are not repeated.

    A run that was stopped resumes when the command is given again. The exit code is 1 if a case failed. Process counts
    that an algorithm does not run on are left out; it is an error if no algorithm runs on any.
    """
    with simulation.context(called.name) as context:
        made = collwise.simulate(platform, collectives, procs, algorithms=algorithms, context=context, **others)
    times, (first, *_) = made.frame()[_COLUMNS], made.values()
    if as_json:
        print_json(times.to_dict("records"))
    else:
        for name in collectives:
            shown = times[times.collective == name]
            among = arguments.algorithms(name, algorithms)
            _print_table(platform, name, among, procs, sizes_of(name, others["sizes"]), shown, first.maker)
        click.echo(
            f"{counted(len(times), 'case')}, {first.facts['reused']} of them from {simulation.store}; "
            f"{counted(first.facts['processes_started'], 'simulator process')}; {first.maker}"
        )
    if any(times.error):
        failed = times[times.error != ""]
        raise CollwiseError(
            f"{len(failed)} of {counted(len(times), 'case')} failed; the times of the others are in the store; "
            f"first: {failed.error.iloc[0]}"
        )


def _print_table(
    platform: HostPlatform,
    collective: str,
    names: Sequence[str],
    procs: Sequence[int],
    sizes: Sequence[int],
    times: pd.DataFrame,
    maker: str,
) -> None:
    catalogue = Catalogue.load().collective(collective).algorithms
    cut = times.segment_bytes.where([not catalogue[name].bounded for name in times.algorithm], 0)
    segments = sorted({segment for segment in cut if segment})
    if len(segments) == 1:
        # Algorithms without segments stand in the rows of the one segment size.
        cut[:] = segments[0]
    text = times.seconds.map(format_seconds).where(times.error == "", "failed")
    labels = [_label(catalogue[name], count) for name, count in zip(times.algorithm, times.fanout, strict=True)]
    cells = times.assign(segment_bytes=cut, text=text, label=labels).pivot(
        index=["procs", "message_bytes", "segment_bytes"], columns="label", values="text"
    )
    by_name: dict[str, list[str]] = {name: [] for name in names}
    for name, label in dict.fromkeys(zip(times.algorithm, labels, strict=True)):
        by_name[name].append(label)
    columns = [label for name, found in by_name.items() for label in found or [name]]
    # If there is no cell, the algorithm does not run.
    cells = cells.reindex(columns=columns).fillna("-").reset_index()
    repeated = cells.duplicated(["procs", "message_bytes", *columns]) & (cells.segment_bytes > cells.message_bytes)
    several_segments = len(segments) > 1
    rows = [
        (p, format_size(m), *([format_size(segment)] if several_segments else []), *row)
        for p, m, segment, *row in cells[~repeated].itertuples(index=False, name=None)
    ]
    heads = ["P", "m", *(["segment"] if several_segments else []), *columns]
    common = f", segments of {format_size(segments[0])}" if len(segments) == 1 else ""
    title = f"{collective} on {platform.title}, simulated by {maker}{common}"
    print_table(title, heads, rows, left=0, keys=len(heads) - len(columns))
    if repeated.any():
        click.echo("Segments larger than m cut nothing; rows that repeat another one are left out.")
    if counts := [
        _label(catalogue[name], count)
        for name in columns
        if name in catalogue and (count := catalogue[name].default_count)
    ]:
        click.echo(f"By default {'; '.join(counts)}.")
    for name in names:
        without = [p for p in procs if catalogue[name].objection(p)]
        if without:
            listed = ", ".join(map(str, without))
            click.echo(f"{name} {catalogue[name].objection(without[0])}: not simulated for P = {listed}")
        for p in procs:
            # A mock-up may need more memory than its buffers have.
            too_long = [] if p in without else [size for size in sizes if catalogue[name].objection(p, size)]
            if too_long:
                why = catalogue[name].objection(p, too_long[0])
                click.echo(f"{name} {why}: not simulated for P = {p}, m = {format_size(too_long[0])} and longer")


def _label(algorithm: Algorithm, count: int) -> str:
    """'knomial, radix 8'; 'knomial' without a number of its own."""
    return f"{algorithm.name}, {algorithm.count_parameter} {count}" if count else algorithm.name
