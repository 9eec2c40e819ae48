"""collwise platforms experiment, thresholds, ranks and calibrate, which find out properties of a platform or target."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import click

from collwise.calibrations import fitted_to_times
from collwise.common import experiments as kinds
from collwise.common.errors import UsageError
from collwise.common.experiments import Experiment
from collwise.common.files import write_text
from collwise.common.units import format_seconds, format_size, parse_size
from collwise.platforms import HostPlatform, Platform, load_description, write_description
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import SimulationContext
from collwise.simulator.sweeps.method import Precision
from collwise.studies.cli import declare, options, types
from collwise.studies.cli.declare import argument, flag, option
from collwise.studies.cli.derive import command
from collwise.studies.cli.options import BENCH_WITH_PPN, TARGET
from collwise.studies.cli.testbed import RATE
from collwise.studies.cli.types import COUNTS, NEW_FILE, PATH, PLATFORM, SIZE, SIZES, FiniteRange
from collwise.studies.present.shown import Shown, Table, drawing, shown
from collwise.studies.reports.markdown import percent
from collwise.targets import TARGET_OPTIONS, TargetOptions, refuse_target_details, target_from
from collwise.validation import rank_mapping as mapped
from collwise.validation.testbed.bed import running
from collwise.validation.testbed.shape import TCP_VARIANTS, Shape, simulated_platform
from collwise.validation.testbed.target import TestBed, tcp_counts
from collwise.validation.times.defaults import SEGMENT_BYTES


@command("platforms experiment roundtrip --platform grisou --sizes 1KiB:64KiB:x4")
def experiment(
    kind: str = argument(click.Choice(kinds.KINDS), default=kinds.ROUNDTRIP, metavar="[KIND]"),
    where: HostPlatform | TargetOptions = BENCH_WITH_PPN,
    procs: int | None = options.process_count(2),
    processes: str | None = option(),
    sizes: Sequence[int] | None = option(SIZES),
    reply: int | None = option(SIZE),
    count: int | None = option(click.IntRange(1), said={"kinds": kinds.WITH_COUNT}),
    delay: float | None = option(FiniteRange(0), said={"kinds": kinds.WITH_DELAY}),
    parallel: bool = option(default=True),
    precision: Precision = options.precision(Precision()),
    context: SimulationContext = options.SIMULATION,
) -> Shown:
    """Runs experiments between a few processes, simulated or real.

    Real experiments run under Open MPI or MPICH on this machine, hosts or a test bed. KIND is roundtrip, send, isend,
    receive, unexpected_receive (overheads), saturation, prtt (PRTT(n, d, m)), sendrecv (exchanges), one_to_two,
    reduce (a local reduction), clock, or a collective: scatter, gather, chain_bcast, linear_barrier.
    """
    from collwise.simulator.sweeps.experiment_runner import ExperimentLaboratory

    if not isinstance(where, TargetOptions):
        lab = context.laboratory(where, procs)
    else:
        target = target_from(where)
        lab = ExperimentLaboratory.measured(target, procs or target.usual_procs, context.store, precision=precision)
    # Collectives send no empty messages, except for the barrier, which sends nothing else.
    default_size = 0 if kind == kinds.LINEAR_BARRIER else 1 if kind in kinds.ON_MANY else lab.min_bytes
    default_reply = 0 if kind in kinds.WITHOUT_REPLY else lab.min_bytes
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
            raise UsageError(f"--processes all-triplets with P = {procs}; P must be at least 3")
        triplets = itertools.combinations(range(procs), 3)
        return [(first, *(rank for rank in three if rank != first)) for three in triplets for first in three]
    if re.fullmatch(r"\s*\d{1,9}(\s*[,;]\s*\d{1,9})*\s*", text) is None:
        raise UsageError(
            f"--processes: malformed '{text}': separate ranks by commas and sets by semicolons (0,1;0,2), or write "
            "all-pairs or all-triplets"
        )
    return [tuple(map(int, ranks.split(","))) for ranks in text.split(";")]


@command("platforms thresholds --procs 8 --buffer 32KB -o thresholds.toml", figures=True, report=True)
def thresholds(
    where: TargetOptions = TARGET,
    procs: Sequence[int] = option(COUNTS, "8"),
    buffers: Sequence[int] = option(SIZES, "16KB", key="buffer_bytes"),
    variants: Sequence[str] = option(types.named_choices("TCP variant", TCP_VARIANTS), "reno-2009"),
    rate: float = option(RATE, "100Mbit", key="bits_per_second"),
    sizes: Sequence[int] = option(SIZES, "4KiB:128KiB:+4KiB"),
    repetitions: int = option(click.IntRange(1), 5),
    output: Path | None = option(NEW_FILE),
    store: Path = options.STORE,
) -> Shown:
    """Finds thresholds of linear gather and linear scatter.

    The times of linear gather escalate between M1 and M2, and the times of linear scatter leap at S. The command also
    tries LMO gather. The method is from O'Flynn 2009, sections 4.4.1 and 7.2. The command makes its own test beds with
    one process per node, for every number of nodes, switch buffer and TCP variant. If options name a target, it
    measures on that target as it is. Everything is measured anew each time, since escalations occur by chance.
    """
    from collwise.models.parameters import thresholds_text
    from collwise.studies.present.testbed import regions, title_of
    from collwise.validation.measurement.irregular_regions import RegionsPlan, find_regions, regions_on_bed

    refuse_target_details(where)
    if where.named:
        of = f"beds that this command makes itself, without {TARGET_OPTIONS}"
        declare.refuse_options(("buffers", "variants", "rate"), of)
    plans = [RegionsPlan(count, tuple(sizes), repetitions) for count in procs]
    many = 1 if where.named else len(buffers) * len(variants)
    if output is not None and many * len(plans) > 1:
        raise UsageError(f"--output: thresholds are written for one target, not for {many * len(plans)}")
    target = target_from(where) if where.named else None
    if target is not None:
        for plan in plans:
            target.processes_per_node(plan.procs)
    run = f"regions {datetime.now(UTC).isoformat(timespec='seconds')}"
    with Store(store) as opened:
        if target is not None:
            counters = partial(tcp_counts, target.bed) if isinstance(target, TestBed) else None
            found = [find_regions(target, plan, opened, run=run, counters=counters) for plan in plans]
        else:
            # Open MPI keeps its own settings, so that escalations are as users meet them.
            found = [
                regions_on_bed(shape, variant, plan, opened, name="regions", run=run)
                for plan, buffer, variant in itertools.product(plans, buffers, variants)
                for shape in [Shape(plan.procs, rate, buffer, transport="default")]
            ]
    presented = regions(found)
    if output is None:
        return presented
    said = f"{title_of(found[0])}, by collwise platforms thresholds"
    write_text(output, thresholds_text(found[0].thresholds, said))
    return replace(presented, parts=(*presented.parts, f"written: {output}"))


@command("platforms ranks --platform hcl16 --collective gather --procs 4 --sizes 64KiB")
def ranks(
    platform: HostPlatform = options.PLATFORM,
    collective: str = option(required=True),
    sizes: Sequence[int] = option(types.SIZES, "1KiB:64KiB:x4"),
    model: str = options.model(mapped.MODELS, mapped.MODELS[0]),
    parameters: Path | None = option(types.PATH),
    procs: int | None = options.process_count(2),
    common: bool = flag(),
    output: Path | None = option(types.NEW_FILE),
    context: SimulationContext = options.SIMULATION,
) -> Shown:
    """Finds the best mapping of nodes to ranks for binomial trees.

    The best mapping has the least predicted time of a binomial scatter or gather (--collective). Rank 0 stays on the
    first node. The command compares the predicted and simulated times under the best mapping with those under the
    default mapping, in which ranks follow the order of nodes.

    The file of -o has one host name per line, rank 0 first. To run a program with it:

    \b
      Open MPI:  mpirun --map-by seq --hostfile FILE PROGRAM
      MPICH:     mpiexec -f FILE -ppn 1 PROGRAM
      Slurm: SLURM_HOSTFILE=FILE srun --ntasks=P --distribution=arbitrary --cpu-bind=cores PROGRAM
    """
    from collwise.validation.fitting.models_by_name import model_of

    mapped.check_choice(collective, model)
    if sizes[0] < 1:
        raise UsageError("--sizes: blocks of 0 bytes need no mapping; give at least 1 B")
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


def _ends(text: str) -> tuple[int, int]:
    least, colon, most = text.partition(":")
    if not colon:
        raise UsageError(f"'{text}' is not a range; write for example 1B:4MiB")
    return parse_size(least), parse_size(most)


@command("platforms calibrate --testbed -o bed.toml --figures figures", figures=True)
def calibrate(
    published: Platform | None = option(types.Parsed("platform", load_description)),
    procs: int | None = options.process_count(2),
    where: TargetOptions = TARGET,
    nominal: HostPlatform | None = option(PLATFORM),
    name: str | None = option(),
    nodes: int | None = option(click.IntRange(2)),
    sizes: tuple[int, int] | None = option(types.Parsed("sizes", _ends)),
    together: bool = option(default=True),
    quick: bool = flag(),
    points: Path | None = option(PATH),
    times: Sequence[Path] = option(PATH, multiple=True),
    output: Path | None = option(NEW_FILE),
    context: SimulationContext = options.SIMULATION,
) -> Shown:
    """Fits a platform's description to measurements.

    The measurements are messages between two nodes, times that others measured, or published figures. Without --times
    or --published it fits smpi/os, smpi/or, smpi/ois, the eager limit, and the latency and bandwidth factors to the
    times of MPI_Send, MPI_Isend, MPI_Recv and ping-pongs, never to collectives. Where nodes have several processes, it
    also measures how soon one sees a flag of another one in shared memory. Finished measurements are in the store,
    so a stopped command resumes. All points are also written as CSV into the folder of the description. With --times it
    multiplies parameters of --nominal by factors fitted to times that others measured. These are times of messages
    between two nodes, and of collectives with forced algorithms and one process on each node. It says which parameters
    the times determine, predicts each collective from the others, and names the most useful further measurements. With
    --published, for clusters that you cannot measure on, it fits three parameters to the values that a paper prints,
    says how well the calibrated simulation meets each value, and writes a description only if -o is given.
    """
    if published is not None:
        declare.refuse_others(("published", "procs", "ppn", "output"), "measured messages, not for --published")
        return _published(published, procs, where.ppn, output)
    if not times:
        declare.refuse_options(("procs",), "--published and --times")
    if times:
        declare.refuse_others(("times", "nominal", "name", "procs", "output", "force"), "messages, not for --times")
        found = fitted_to_times(_nominal(where, nominal, name), times, procs or 0)
        presented = shown(found)
        if output is None:
            return presented
        found.save(output)
        return replace(presented, parts=(*presented.parts, f"written: {output}"))
    from collwise.validation.calibration.calibration import QUICK, USUAL, measure_points, refit
    from collwise.validation.calibration.calibration_points import read_points, write_points

    whole = _nominal(where, nominal, name)
    described = replace(whole, nodes=nodes or whole.nodes)
    file = output or types.checked_new_file(Path(f"{described.name}.toml"))
    points_file = points or types.checked_new_file(file.with_suffix(".points.csv"))
    if points is not None:
        declare.refuse_options(("quick", "sizes", "together"), "measuring; --points measures nothing")
        measured = read_points(points)
    elif not where.named:
        raise UsageError(f"say where to measure: {TARGET_OPTIONS}, or give earlier measurements: --points FILE.csv")
    else:
        grid = QUICK if quick else USUAL
        if sizes is not None:
            grid = replace(grid, min_bytes=sizes[0], max_bytes=sizes[1])
        target = target_from(where)
        with context.progress(f"calibration, {target.name}") as advance:
            measured = measure_points(target, described, grid, context.store, together=together, on_progress=advance)
        write_points(points_file, measured)
    result = refit(measured, described, context)
    made = result.platform
    write_text(file, write_description(replace(made, nodes=whole.nodes)))
    rows = [
        (
            kind.replace("_", "-") + (" within a node" if within else ""),
            len(of_kind),
            len(result.segments.get(kind, ())) or "-" if not within else "-",
            f"{100 * result.median_error(kind, within_node=within):.1f} %",
        )
        for (kind, within), of_kind in result.residuals.groupby(["kind", "within_node"])
    ]
    title = "Simulated against measured: median relative error; messages in a row and exchanges are not fitted"
    link = f"link {made.link_bytes_per_second / 1e6:.4g} MB/s, one way {2e6 * made.link_latency_seconds:.3g} us"
    eager = f"eager below {format_size(made.calibration.eager_limit_bytes)}"
    facts = {
        "platform": made.name,
        "file": str(file),
        "points": str(points_file),
        "link_bytes_per_second": made.link_bytes_per_second,
        "link_latency_seconds": made.link_latency_seconds,
        "eager_limit_bytes": made.calibration.eager_limit_bytes,
        "segments": {kind: [asdict(segment) for segment in found] for kind, found in result.segments.items()},
    }
    return Shown(
        [
            Table(title, ["times of", "points", "segments", "error"], rows),
            f"{file}: {link} without overheads, {eager}; points in {points_file}",
        ],
        result.residuals.to_dict("records"),
        facts,
        {
            f"calibration-{kind.replace('_', '-')}": drawing("measurements.calibration_figure", result, kind)
            for kind in result.segments
        },
    )


def _published(platform: Platform, procs: int | None, ppn: int | None, output: Path | None) -> Shown:
    from collwise.validation.calibration.published import PAPER_GATHER_PROCS, calibrate as fit_published

    ppn = ppn or platform.default_processes_per_node
    procs = procs or PAPER_GATHER_PROCS.get(platform.name, platform.max_procs(ppn) // 2)
    calibrated, figures = fit_published(platform, procs, ppn)
    if output is not None:
        write_text(output, write_description(calibrated))
    rows = [
        (figure.name, f"{figure.published:.4g}", f"{figure.simulated:.4g}", f"{figure.relative_error * 100:+.1f} %")
        for figure in figures
    ]
    title = f"{platform.title}: published figures and the calibrated simulation (gather times in seconds)"
    table = Table(title, ["figure", "published", "simulated", "error"], rows)
    return Shown([table], [vars(figure) | {"relative_error": figure.relative_error} for figure in figures])


def _nominal(where: TargetOptions, nominal: HostPlatform | None, name: str | None) -> Platform:
    chosen = nominal
    if chosen is None:
        if where.testbed is None:
            raise UsageError(
                "give --nominal PLATFORM, a description with the hosts and their rate; make one with "
                "'collwise platforms describe'"
            )
        chosen = simulated_platform(running(where.testbed).shape)
    if not isinstance(chosen, Platform):
        raise UsageError(f"--nominal {chosen.name}: expected a description of equal nodes behind one switch, in TOML")
    name = name or chosen.name
    return replace(chosen, name=name, title=chosen.title if name == chosen.name else name)
