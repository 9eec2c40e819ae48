"""collwise experiment: what models are estimated from, between a few processes."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import asdict

import click

from collwise.common.errors import UsageError
from collwise.common.experiments import (
    KINDS,
    LINEAR_BARRIER,
    ON_MANY,
    ONE_TO_TWO,
    PRTT,
    RECEIVE,
    ROUNDTRIP,
    SATURATION,
    Experiment,
    Measurement,
)
from collwise.common.units import format_seconds, format_size
from collwise.platforms import HostPlatform
from collwise.simulator.sweeps.laboratory import ExperimentLaboratory
from collwise.simulator.sweeps.method import Precision
from collwise.studies.cli.commands import example
from collwise.studies.cli.options import (
    PLATFORM,
    PRECISION,
    SIZE,
    SIZES,
    FiniteRange,
    SimulationOptions,
    json_option,
    precision_options,
    print_json,
    refuse_options,
    simulation_options,
)
from collwise.studies.cli.tables import stdout_console, table
from collwise.studies.cli.target_options import PLACES, Where, place_options, target_from

_PROCESSES_HELP = "write ranks by commas, sets by semicolons (0,1;0,2), all-pairs or all-triplets"


@click.command(epilog=example("experiment --platform grisou --kind roundtrip --sizes 1KiB:64KiB:x4"))
@click.option("--kind", type=click.Choice(KINDS), default=ROUNDTRIP, show_default=True)
@click.option("--platform", type=PLATFORM, help="Simulate on a known platform or a .toml or .xml file.")
@place_options
@click.option("--procs", type=click.IntRange(2), help="Processes, one a node. Default: all; on this machine 4.")
@click.option("--processes", help="Ranks, the first keeps the time: 0,1;0,2, all-pairs, all-triplets. Default: 0,1.")
@click.option("--sizes", type=SIZES, help="Message sizes: 1KiB:1MiB:x2. Default: the smallest that costs something.")
@click.option("--reply", type=SIZE, help="Reply size. Default: the smallest; of a roundtrip, the message's.")
@click.option("--count", type=click.IntRange(1), help="Messages in a row (saturation, prtt). Default: 10.")
@click.option("--delay", type=FiniteRange(0), help="Other work in seconds (prtt, receive). Default: 0.001.")
@click.option("--parallel/--one-after-another", default=True, show_default=True, help="On disjoint processes.")
@precision_options(Precision())
@simulation_options
@json_option
@click.pass_context
def experiment(
    command: click.Context,
    kind: str,
    platform: HostPlatform | None,
    where: Where,
    procs: int | None,
    processes: str | None,
    sizes: Sequence[int] | None,
    reply: int | None,
    count: int | None,
    delay: float | None,
    parallel: bool,
    precision: Precision,
    simulation: SimulationOptions,
    as_json: bool,
) -> None:
    """Makes experiments between a few processes: simulated, or under Open MPI or MPICH here, on hosts or a test bed.

    Roundtrips, overheads, saturation, PRTT(n, d, m), one to two, and scatter, gather, chain broadcast and barrier.
    """
    if (platform is None) == (not where.named):
        raise UsageError(f"name either --platform, to simulate, or a place to measure at: {PLACES}")
    with simulation.context() as context:
        if platform is not None:
            refuse_options(command, PRECISION, f"measured times ({PLACES}); simulated time is exact")
            runner = context.laboratory(platform, procs)
        else:
            refuse_options(command, ("engine", "simgrid", "jobs"), "--platform")
            place = target_from(where)
            runner = ExperimentLaboratory.measured(
                place, procs or place.usual_procs, context.store, precision=precision
            )
        least = runner.least_bytes
        # Collectives send no empty messages, but for the barrier, which sends nothing else.
        default_size = 0 if kind == LINEAR_BARRIER else 1 if kind in ON_MANY else least
        default_reply = 0 if kind in ON_MANY else least
        experiments = [
            Experiment(
                kind,
                ranks,
                size,
                reply if reply is not None else size if kind == ROUNDTRIP else default_reply,
                count if count is not None else 10 if kind in (SATURATION, PRTT) else 1,
                delay if delay is not None else 0.001 if kind in (PRTT, RECEIVE) else 0.0,
            )
            for size in (sizes if sizes is not None else (default_size,))
            for ranks in _process_sets(processes, kind, runner.procs)
        ]
        measurements = runner.run(experiments, parallel)
    if as_json:
        print_json(_document(runner, experiments, measurements))
        return
    rows = [_row(one, measurement) for one, measurement in zip(experiments, measurements, strict=True)]
    columns = ["kind", "processes", "m", "mean", "+-", "repetitions"]
    stdout_console().print(table(f"{runner.label}, P = {runner.procs}", columns, rows, left=2))
    effort = runner.effort
    click.echo(f"{effort.measurements} measurements, {format_seconds(effort.seconds)} on the platform")


def _process_sets(text: str | None, kind: str, procs: int) -> list[tuple[int, ...]]:
    if text is None:
        if kind in ON_MANY:
            return [tuple(range(procs))]
        return [(0, 1, 2) if kind == ONE_TO_TWO else (0, 1)]
    if text == "all-pairs":
        return list(itertools.combinations(range(procs), 2))
    if text == "all-triplets":
        if procs < 3:
            raise UsageError(f"--processes all-triplets with P = {procs}; valid: P from 3 on")
        triplets = itertools.combinations(range(procs), 3)
        return [(first, *(rank for rank in three if rank != first)) for three in triplets for first in three]
    if re.fullmatch(r"\s*\d{1,9}(\s*[,;]\s*\d{1,9})*\s*", text) is None:
        raise UsageError(f"--processes: malformed '{text}': {_PROCESSES_HELP}")
    return [tuple(map(int, ranks.split(","))) for ranks in text.split(";")]


def _row(one: Experiment, measurement: Measurement) -> tuple[object, ...]:
    processes = f"0-{len(one.processes) - 1}" if one.kind in ON_MANY else ",".join(map(str, one.processes))
    return (
        one.kind,
        processes,
        format_size(one.message_bytes),
        format_seconds(measurement.seconds),
        format_seconds(measurement.half_width_seconds) if measurement.half_width_seconds < float("inf") else "-",
        measurement.repetitions,
    )


def _document(
    runner: ExperimentLaboratory, experiments: Sequence[Experiment], measurements: Sequence[Measurement]
) -> dict[str, object]:
    return {
        "engine": runner.label,
        "procs": runner.procs,
        "measurements": [
            asdict(one) | asdict(measurement) for one, measurement in zip(experiments, measurements, strict=True)
        ],
        "effort": asdict(runner.effort),
    }
