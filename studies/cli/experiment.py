"""collwise platforms experiment, thresholds and ranks: what is found out on a platform or a target."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from collwise import targets
from collwise.common import experiments as kinds
from collwise.common.errors import UsageError
from collwise.common.experiments import Experiment
from collwise.common.files import write_text
from collwise.common.units import format_seconds, format_size
from collwise.platforms import HostPlatform
from collwise.simulator.execution.targets import ExecutionTarget
from collwise.simulator.store import Store
from collwise.simulator.sweeps.method import Precision
from collwise.studies.cli import declare, options, types
from collwise.studies.cli.declare import flag, option
from collwise.studies.cli.derive import shows
from collwise.studies.cli.options import PRECISION
from collwise.studies.cli.target_options import TARGET
from collwise.studies.cli.testbed import RATE
from collwise.studies.cli.types import COUNTS, NEW_FILE, PLATFORM, SIZE, SIZES, FiniteRange
from collwise.studies.present.shown import Shown, Table
from collwise.studies.reports.markdown import percent
from collwise.targets import TARGET_OPTIONS, TargetOptions, target_from
from collwise.validation import rank_mapping as mapped
from collwise.validation.measurement.irregular_regions_testbed import TCP_VARIANTS, regions_on_bed
from collwise.validation.testbed.shape import Shape
from collwise.validation.testbed.target import TestBed
from collwise.validation.testbed.tcp_counters import tcp_counts
from collwise.validation.times.defaults import SEGMENT_BYTES

if TYPE_CHECKING:
    from collwise.simulator.sweeps.context import SimulationContext
    from collwise.validation.measurement.irregular_regions import Regions, RegionsPlan


@shows("platforms experiment --platform grisou --kind roundtrip --sizes 1KiB:64KiB:x4")
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
    context: SimulationContext = options.SIMULATION,
) -> Shown:
    """Makes experiments between a few processes: simulated, or under Open MPI or MPICH here, on hosts or a test bed.

    The kinds are roundtrips, overheads, saturation, PRTT(n, d, m), exchanges, one to two, local reduction, reading the
    clock, and scatter, gather, chain broadcast and barrier.
    """
    from collwise.simulator.sweeps.laboratory import ExperimentLaboratory

    if (platform is None) == (not where.named):
        raise UsageError(f"name either --platform, to simulate, or a target to measure on: {TARGET_OPTIONS}")
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
    effort = lab.effort
    cost = f"{effort.measurements} measurements, {format_seconds(effort.seconds)} on the platform"
    facts = {"engine": lab.label, "procs": lab.procs, "effort": asdict(effort)}
    table = Table(f"{lab.label}, P = {lab.procs}", columns, rows, left=2)
    return Shown([table, cost], [asdict(one) | asdict(found) for one, found in pairs], facts)


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


@shows("platforms thresholds --nodes 8 --buffer 32KB -o thresholds.toml", figures=True)
def thresholds(
    where: TargetOptions = TARGET,
    nodes: Sequence[int] = option(COUNTS, "8"),
    buffers: Sequence[int] = option(SIZES, "16KB"),
    variants: Sequence[str] = option(types.named_choices("TCP variant", TCP_VARIANTS), "reno-2009"),
    rate: float = option(RATE, "100Mbit"),
    stride: int = option(SIZE, "4KiB"),
    largest: int = option(SIZE, "128KiB"),
    finest: int = option(SIZE, "1KiB"),
    repetitions: int = option(click.IntRange(1), 5),
    output: Path | None = option(NEW_FILE),
    report: Path | None = option(NEW_FILE),
    store: Path = options.STORE,
) -> Shown:
    """Looks for the escalation of linear gather (M1, M2) and the leap of linear scatter (S), and tries LMO gather.

    The method is that of O'Flynn 2009, sections 4.4.1 and 7.2. The command measures on test beds of its own, with one
    process per node, for every number of nodes, switch buffer and TCP variant, or on the target that the options name,
    as it is. Everything is measured anew each time, since escalations occur by chance.
    """
    from collwise.models.parameters import thresholds_text
    from collwise.studies.figures.irregular_regions import regions_figure
    from collwise.studies.reports import irregular_regions as present
    from collwise.validation.measurement.irregular_regions import RegionsPlan, verdict

    targets.refuse_target_details(where)
    if where.named:
        of = f"beds that this command makes itself, without {targets.TARGET_OPTIONS}"
        declare.refuse_options(("buffers", "variants", "rate"), of)
    plans = [RegionsPlan(procs, stride, largest, repetitions, finest) for procs in nodes]
    many = 1 if where.named else len(buffers) * len(variants)
    if output is not None and many * len(plans) > 1:
        raise UsageError(f"--output: thresholds are of one target; these are {many * len(plans)}")
    target = target_from(where) if where.named else None
    if target is not None:
        for plan in plans:
            target.processes_per_node(plan.procs)
    with Store(store) as opened:
        found = list(_find(target, plans, buffers, variants, rate, opened))
    if output is not None:
        said = f"{present.title_of(found[0])}, by collwise platforms thresholds"
        write_text(output, thresholds_text(found[0].thresholds, said))
    if report is not None:
        write_text(report, present.regions_markdown(found))
    parts: list[Table | str] = []
    drawn = {}
    for one in found:
        title = present.title_of(one)
        parts.append(Table(title, present.SUMMARY_COLUMNS, [present.summary_cells(one)], left=2))
        slowdowns = "Slowdown against linear gather without escalation"
        parts += [Table(slowdowns, present.ALGORITHM_COLUMNS, present.algorithm_cells(one), left=2), verdict(one)]
        stem = "-".join(["regions", one.target, one.variant, str(one.procs)]).replace(" ", "").replace("--", "-")
        drawn[stem] = partial(regions_figure, one, title)
    parts += [f"written: {path}" for path in (output, report) if path is not None]
    return Shown(parts, list(map(present.record_of, found)), figures=drawn)


def _find(
    target: ExecutionTarget | None,
    plans: Sequence[RegionsPlan],
    buffers: Sequence[int],
    variants: Sequence[str],
    rate: float,
    store: Store,
) -> Iterator[Regions]:
    from collwise.validation.measurement.irregular_regions import find_regions

    run = f"regions {datetime.now(UTC).isoformat(timespec='seconds')}"
    for plan in plans:
        if target is not None:
            counters = partial(tcp_counts, target.bed) if isinstance(target, TestBed) else None
            yield find_regions(target, plan, store, run=run, counters=counters)
        else:
            for buffer in buffers:
                for variant in variants:
                    # Open MPI's own settings: escalations are looked for as users meet them.
                    shape = Shape(plan.procs, rate, buffer, transport="default")
                    yield regions_on_bed(shape, variant, plan, store, name="regions", run=run)


@shows("platforms ranks --platform hcl16 --collective gather --procs 4 --sizes 64KiB")
def ranks(
    platform: HostPlatform = options.PLATFORM,
    collective: str = option(required=True, said={"mapped": " or ".join(mapped.COLLECTIVES)}),
    sizes: Sequence[int] = option(types.SIZES, "1KiB:64KiB:x4"),
    model: str = option(types.NamedChoice("model", mapped.MODELS), mapped.MODELS[0]),
    parameters: Path | None = option(types.PATH),
    procs: int | None = option(click.IntRange(2)),
    common: bool = flag(),
    output: Path | None = option(types.NEW_FILE),
    context: SimulationContext = options.SIMULATION,
) -> Shown:
    """Finds the mapping of nodes to ranks under which a binomial scatter or gather is predicted to be fastest.

    Rank 0 stays on the first node. The mapping is compared with the default one, ranks in the order of the nodes, by
    predicted and by simulated time.

    The file of -o has one host name per line, rank 0 first:

    \b
      Open MPI:  mpirun --map-by seq --hostfile FILE PROGRAM
      MPICH:     mpiexec -f FILE -ppn 1 PROGRAM
      Slurm:     SLURM_HOSTFILE=FILE srun --ntasks=P --distribution=arbitrary --cpu-bind=cores PROGRAM
    """
    from collwise.validation.fitting.models_by_name import model_of

    mapped.check_choice(collective, model)
    if sizes[0] < 1:
        raise UsageError("--sizes: blocks of 0 bytes need no mapping; the least is 1 B")
    if output is not None and len(sizes) > 1 and not common:
        raise UsageError(f"-o writes one mapping, and there are {len(sizes)} sizes: add --common, or give one size")
    count = procs or len(platform.hosts)
    platform.hosts_for(count, 1)
    fitted = model_of(model, parameters, platform, 1, [SEGMENT_BYTES], context)
    chosen = mapped.best_mappings(fitted, collective, count, sizes, common)
    gains = mapped.mapping_gains(platform, fitted, collective, count, chosen, context)
    if output is not None:
        write_text(output, "".join(f"{host}\n" for host in gains[0].hosts))
    rows = [
        asdict(gain) | {"predicted_gain": gain.predicted_gain, "simulated_gain": gain.simulated_gain} for gain in gains
    ]
    facts = {"platform": platform.name, "collective": collective, "model": model, "procs": count}
    title = f"binomial {collective} on {platform.name}, P = {count}: default and best mapping by {model}"
    columns = ["m", "predicted, default", "best", "saved", "simulated, default", "best", "saved", "nodes by rank"]
    table = Table(title, columns, [_row(gain) for gain in gains], wrap=True)
    parts: list[Table | str] = [table, "nodes by rank: positions in the platform's order of hosts, from 0"]
    return Shown([*parts, *([f"written: {output}"] if output else [])], rows, facts)


def _row(gain: mapped.MappingGain) -> tuple[object, ...]:
    predicted = (format_seconds(gain.predicted_default_seconds), format_seconds(gain.predicted_seconds))
    simulated = (format_seconds(gain.simulated_default_seconds), format_seconds(gain.simulated_seconds))
    return (
        format_size(gain.message_bytes),
        *(*predicted, percent(gain.predicted_gain), *simulated, percent(gain.simulated_gain)),
        " ".join(map(str, gain.mapping)),
    )
