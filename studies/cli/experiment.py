"""collwise experiment: the experiments between a few processes from which models are estimated."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import asdict

import click

from collwise.common import experiments as kinds
from collwise.common.errors import UsageError
from collwise.common.experiments import Experiment
from collwise.common.units import format_seconds, format_size
from collwise.platforms import HostPlatform
from collwise.simulator.sweeps.method import Precision
from collwise.studies.cli import declare, options
from collwise.studies.cli.declare import command, option
from collwise.studies.cli.options import PRECISION
from collwise.studies.cli.output import print_json, print_table
from collwise.studies.cli.target_options import TARGET, TARGET_OPTIONS, TargetOptions, target_from
from collwise.studies.cli.types import PLATFORM, SIZE, SIZES, FiniteRange


@command("experiment --platform grisou --kind roundtrip --sizes 1KiB:64KiB:x4")
def experiment(
    kind: str = option(click.Choice(kinds.KINDS), kinds.ROUNDTRIP),
    platform: HostPlatform | None = option(PLATFORM),
    where: TargetOptions = TARGET,
    procs: int | None = option(click.IntRange(2)),
    processes: str | None = option(),
    sizes: Sequence[int] | None = option(SIZES),
    reply: int | None = option(SIZE),
    count: int | None = option(click.IntRange(1), said={"kinds": kinds.WITH_COUNT}),
    delay: float | None = option(FiniteRange(0), said={"kinds": kinds.WITH_DELAY}),
    parallel: bool = option(default=True),
    precision: Precision = options.precision(Precision()),
    simulation: options.SimulationOptions = options.SIMULATION,
    as_json: bool = options.JSON,
) -> None:
    """Makes experiments between a few processes: simulated, or under Open MPI or MPICH here, on hosts or a test bed.

    The kinds are roundtrips, overheads, saturation, PRTT(n, d, m), exchanges, one to two, local reduction, reading the
    clock, and scatter, gather, chain broadcast and barrier.
    """
    from collwise.simulator.sweeps.laboratory import ExperimentLaboratory

    if (platform is None) == (not where.named):
        raise UsageError(f"name either --platform, to simulate, or a target to measure on: {TARGET_OPTIONS}")
    with simulation.context() as context:
        if platform is not None:
            declare.refuse_options(PRECISION, f"measured times ({TARGET_OPTIONS}); simulated time is exact")
            lab = context.laboratory(platform, procs)
        else:
            declare.refuse_options(options.SIMULATING, "--platform")
            target = target_from(where)
            lab = ExperimentLaboratory.measured(target, procs or target.usual_procs, context.store, precision=precision)
        # Collectives send no empty messages, except for the barrier, which sends nothing else.
        default_size = 0 if kind == kinds.LINEAR_BARRIER else 1 if kind in kinds.ON_MANY else lab.least_bytes
        default_reply = 0 if kind in kinds.WITHOUT_REPLY else lab.least_bytes
        process_sets = _process_sets(processes, kind, lab.procs)
        experiments = [
            Experiment(
                kind,
                ranks,
                size,
                reply if reply is not None else size if kind == kinds.ROUNDTRIP else default_reply,
                count if count is not None else 10 if kind in kinds.WITH_COUNT else 1,
                delay if delay is not None else 0.001 if kind in kinds.WITH_DELAY else 0.0,
            )
            for size in (sizes if sizes is not None else (default_size,))
            for ranks in process_sets
        ]
        measurements = lab.run(experiments, parallel)
    pairs = list(zip(experiments, measurements, strict=True))
    if as_json:
        records = [asdict(one) | asdict(found) for one, found in pairs]
        print_json(records, {"engine": lab.label, "procs": lab.procs, "effort": asdict(lab.effort)})
        return
    rows = [
        (
            one.kind,
            f"0-{len(one.processes) - 1}" if one.kind in kinds.ON_MANY else ",".join(map(str, one.processes)),
            format_size(one.message_bytes),
            format_seconds(found.seconds),
            format_seconds(found.half_width_seconds) if math.isfinite(found.half_width_seconds) else "-",
            found.repetitions,
        )
        for one, found in pairs
    ]
    columns = ["kind", "processes", "m", "mean", "+-", "repetitions"]
    print_table(f"{lab.label}, P = {lab.procs}", columns, rows, left=2)
    effort = lab.effort
    click.echo(f"{effort.measurements} measurements, {format_seconds(effort.seconds)} on the platform")


def _process_sets(text: str | None, kind: str, procs: int) -> list[tuple[int, ...]]:
    if text is None:
        if kind in kinds.ON_MANY:
            return [tuple(range(procs))]
        return [(0, 1, 2) if kind == kinds.ONE_TO_TWO else (0, 1)]
    if text == "all-pairs":
        return list(itertools.combinations(range(procs), 2))
    if text == "all-triplets":
        if procs < 3:
            raise UsageError(f"--processes all-triplets with P = {procs}; valid: P from 3 on")
        triplets = itertools.combinations(range(procs), 3)
        return [(first, *(rank for rank in three if rank != first)) for three in triplets for first in three]
    if re.fullmatch(r"\s*\d{1,9}(\s*[,;]\s*\d{1,9})*\s*", text) is None:
        raise UsageError(
            f"--processes: malformed '{text}': write ranks by commas, sets by semicolons (0,1;0,2), all-pairs or "
            "all-triplets"
        )
    return [tuple(map(int, ranks.split(","))) for ranks in text.split(";")]
