"""collwise simulate: fills the timing table from SMPI."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from collwise.algorithms.catalogue import Algorithm, Catalogue
from collwise.common.errors import CollwiseError
from collwise.common.units import format_seconds, format_size
from collwise.platforms import HostPlatform
from collwise.simulator.timing import Case, Timing
from collwise.studies.cli.commands import example
from collwise.studies.cli.options import (
    COUNTS,
    NAMES,
    SIZES,
    SimulationOptions,
    algorithm_names,
    collectives_option,
    json_option,
    platform_option,
    ppn_option,
    print_json,
    processes_per_node,
    segments_option,
    several,
    simulation_options,
)
from collwise.studies.cli.tables import stdout_console, table
from collwise.studies.cli.thresholds import check_thresholds_matter, thresholds_option, with_thresholds
from collwise.validation.selection.cases import candidates, cases
from collwise.validation.selection.defaults import SEGMENTS_TEXT, sizes_of

if TYPE_CHECKING:
    from collwise.models.lmo import Thresholds


@click.command(epilog=example("simulate --platform gros --collective bcast --procs 4,8 --sizes 8KiB:64KiB:x2"))
@platform_option
@collectives_option
@click.option("--algorithms", type=NAMES, help="Names by commas, of one collective. Default: all that can be chosen.")
@click.option("--procs", required=True, type=COUNTS, help="Process counts: 50,80,90 or 10:90:+10.")
@click.option("--sizes", type=SIZES, help="Message sizes: 8KiB:4MiB:x2. Default: 12 by doubling, by collective.")
@segments_option(SEGMENTS_TEXT)
@click.option("--chains", type=click.IntRange(1), help="Chains of K-chain trees. Default: 4.")
@click.option("--radix", type=click.IntRange(2), help="Radix of k-nomial trees. Default: 4.")
@click.option("--max-requests", type=click.IntRange(1), help="Exchanges at a time of alltoall linear_sync. Default: 4.")
@thresholds_option
@click.option("--root", type=click.IntRange(0), default=0, show_default=True, help="The root's rank.")
@ppn_option
@simulation_options
@json_option
def simulate(
    platform: HostPlatform,
    collectives: Sequence[str],
    algorithms: Sequence[str] | None,
    procs: Sequence[int],
    sizes: Sequence[int] | None,
    segments: Sequence[int],
    chains: int | None,
    radix: int | None,
    max_requests: int | None,
    thresholds: Thresholds | None,
    root: int,
    ppn: int | None,
    simulation: SimulationOptions,
    as_json: bool,
) -> None:
    """Simulates every algorithm at every P, m and segment size; what the store has is not repeated.

    A run that was stopped resumes when the command is given again. Exit code 1 if a case failed. Process counts that an
    algorithm does not run on are left out.
    """
    ppn = processes_per_node(platform, ppn)
    if root >= min(procs):
        raise click.BadParameter(f"rank {root} does not exist with P = {min(procs)}", param_hint="--root")
    if algorithms and len(collectives) > 1 and tuple(algorithms) != ("all",):
        raise click.BadParameter("names belong to one collective; several were asked for", param_hint="--algorithms")
    check_thresholds_matter([one for name in collectives for one in _algorithms(name, algorithms)], thresholds)
    counts = {"chains": chains, "radix": radix, "max_requests": max_requests}
    asked = []
    for name in collectives:
        choices = candidates(name, segments, algorithm_names(name, algorithms), counts)
        choices = with_thresholds(name, choices, thresholds)
        asked += cases(name, choices, procs, sizes_of(name, sizes), ppn, root)
    with simulation.context() as context:
        result = context.simulate(platform, asked, f"{platform.name} {several(collectives)}")
    if as_json:
        print_json([_record(timing) for timing in result.timings.values()])
    else:
        for name in collectives:
            mine = [timing for timing in result.timings.values() if timing.case.collective == name]
            _print_table(platform, name, _algorithms(name, algorithms), procs, mine)
        click.echo(
            f"{len(asked)} cases, {result.reused} of them from {simulation.store}; "
            f"{result.processes_started} simulator processes; {result.configuration.maker}"
        )
    if result.failed:
        raise CollwiseError(
            f"{len(result.failed)} of {len(asked)} cases failed; the times of the others are stored; first: "
            f"{result.failed[0].error}"
        )


def _algorithms(collective: str, asked: Sequence[str] | None) -> list[Algorithm]:
    return [Catalogue.load().algorithm(collective, name) for name in algorithm_names(collective, asked)]


def _record(timing: Timing) -> dict[str, object]:
    return asdict(timing.case) | {"nodes": timing.case.nodes, "seconds": timing.seconds, "error": timing.error}


def _print_table(
    platform: HostPlatform,
    collective: str,
    algorithms: Sequence[Algorithm],
    procs: Sequence[int],
    timings: Sequence[Timing],
) -> None:
    names = [algorithm.name for algorithm in algorithms]
    bounded = {algorithm.name for algorithm in algorithms if algorithm.bounded}

    def segment_of(case: Case) -> int:
        return 0 if case.algorithm in bounded else case.segment_bytes

    points = sorted({(t.case.procs, t.case.message_bytes, segment_of(t.case)) for t in timings})
    times = {(t.case.algorithm, t.case.procs, t.case.message_bytes, segment_of(t.case)): t for t in timings}
    segments = {segment for _, _, segment in points if segment}
    if len(segments) <= 1:
        # One segment size: algorithms without segments stand in the same row.
        points = sorted({(p, m, max(segments, default=0)) for p, m, _ in points})
        times |= {(name, p, m, max(segments, default=0)): t for (name, p, m, _), t in times.items()}
    rows = [
        (
            p,
            format_size(m),
            *([format_size(segment)] if len(segments) > 1 else []),
            *(_cell(times.get((name, p, m, segment))) for name in names),
        )
        for p, m, segment in points
    ]
    heads = ["P", "m", *(["segment"] if len(segments) > 1 else []), *names]
    common = f", segments of {format_size(next(iter(segments)))}" if len(segments) == 1 else ""
    title = f"{collective} on {platform.title}, simulated{common}"
    stdout_console().print(table(title, heads, rows, left=0, keys=len(heads) - len(names)))
    for algorithm in algorithms:
        without = [p for p in procs if algorithm.objection(p)]
        if without:
            listed = ", ".join(map(str, without))
            click.echo(f"{algorithm.name} {algorithm.objection(without[0])}: not simulated for P = {listed}")


def _cell(timing: Timing | None) -> str:
    if timing is None:
        return "-"
    return format_seconds(timing.seconds) if timing.ok else "failed"
