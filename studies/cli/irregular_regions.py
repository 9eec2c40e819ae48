"""collwise irregular-regions: where linear gather escalates and linear scatter leaps, and what LMO gather does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import click

from collwise.common.errors import UsageError, unknown_name
from collwise.common.files import writable_file, writable_folder, write_text
from collwise.models.parameter_file import thresholds_text
from collwise.simulator.execution.targets import ExecutionTarget
from collwise.simulator.store import Store
from collwise.studies.cli.commands import example
from collwise.studies.cli.options import (
    COUNTS,
    SIZE,
    SIZES,
    NamedChoices,
    file_option,
    json_option,
    print_json,
    refuse_options,
    repetitions_option,
    store_option,
)
from collwise.studies.cli.tables import stdout_console, table
from collwise.studies.cli.target_options import (
    TARGET_OPTIONS,
    TargetOptions,
    refuse_target_details,
    target_from,
    target_options,
)
from collwise.studies.cli.testbed import RATE
from collwise.studies.reports.irregular_regions import (
    ALGORITHM_COLUMNS,
    SUMMARY_COLUMNS,
    algorithm_cells,
    record_of,
    regions_markdown,
    summary_cells,
    title_of,
)
from collwise.validation.measurement.irregular_regions import Regions, RegionsPlan, find_regions, verdict
from collwise.validation.measurement.irregular_regions_testbed import TCP_VARIANTS, regions_on_bed
from collwise.validation.testbed.shape import Shape
from collwise.validation.testbed.target import TestBed
from collwise.validation.testbed.tcp_counters import tcp_counts

_BED = "regions"


@click.command("irregular-regions", epilog=example("irregular-regions --nodes 8 --buffer 32KB -o thresholds.toml"))
@target_options
@click.option("--nodes", "--procs", "nodes", type=COUNTS, default="8", show_default=True, help="Processes: 8,16.")
@click.option(
    "--buffer", "buffers", type=SIZES, default="16KB", show_default=True, help="Of ports of its own beds: 16KB,64KB."
)
@click.option(
    "--tcp",
    "variants",
    type=NamedChoices("TCP variant", TCP_VARIANTS),
    default="reno-2009",
    show_default=True,
    help="On its own beds. Names by commas.",
)
@click.option("--rate", type=RATE, default="100Mbit", show_default=True, help="Of its own beds.")
@click.option("--stride", type=SIZE, default="4KiB", show_default=True, help="Between block sizes of the series.")
@click.option("--largest", type=SIZE, default="128KiB", show_default=True, help="Block size of the series.")
@click.option("--finest", type=SIZE, default="1KiB", show_default=True, help="Stride at which the search for M1 ends.")
@repetitions_option(5)
@file_option("-o", "--output", help="Write the thresholds here (one target only).")
@file_option("--report", help="Write the tables (Markdown) here.")
@click.option("--figures", type=click.Path(path_type=Path), help="Write a figure per target into this folder.")
@store_option
@json_option
@click.pass_context
def irregular_regions(
    context: click.Context,
    where: TargetOptions,
    nodes: Sequence[int],
    buffers: Sequence[int],
    variants: Sequence[str],
    rate: float,
    stride: int,
    largest: int,
    finest: int,
    repetitions: int,
    output: Path | None,
    report: Path | None,
    figures: Path | None,
    store: Path,
    as_json: bool,
) -> None:
    """Looks for the escalation of linear gather (M1, M2) and the leap of linear scatter (S), and tries LMO gather.

    O'Flynn 2009, sections 4.4.1 and 7.2. On test beds of its own, with a process per node, for every number of nodes,
    switch buffer and TCP; or on the target that the options name, as it is. Everything is measured anew each time,
    since escalations happen or do not.
    """
    refuse_target_details(where)
    if where.named:
        refuse_options(
            context,
            ("buffers", "variants", "rate"),
            f"beds that irregular-regions makes itself, without {TARGET_OPTIONS}",
        )
    if figures is not None:
        writable_folder(figures)
    for file in (output, report):
        if file is not None:
            writable_file(file)
    for variant in variants:
        if variant not in TCP_VARIANTS:
            raise UsageError(f"--tcp: {unknown_name('TCP variant', variant, TCP_VARIANTS)}")
    plans = [RegionsPlan(procs, stride, largest, repetitions, finest) for procs in nodes]
    many = 1 if where.named else len(buffers) * len(variants)
    if output is not None and many * len(plans) > 1:
        raise UsageError(f"--output: thresholds are of one target; these are {many * len(plans)}")
    target = target_from(where) if where.named else None
    if target is not None:
        for plan in plans:
            target.processes_per_node(plan.procs)
    found = []
    with Store(store) as opened:
        for one in _find(target, plans, buffers, variants, rate, opened):
            found.append(one)
            if figures is not None:
                from collwise.studies.figures.irregular_regions import regions_figure
                from collwise.studies.figures.style import save

                save(regions_figure(one, title_of(one)), figures / f"{_stem(one)}.png")
            if not as_json:
                _print(one)
    if output is not None:
        write_text(output, thresholds_text(found[0].thresholds, f"{title_of(found[0])}, by collwise irregular-regions"))
    if report is not None:
        write_text(report, regions_markdown(found))
    if as_json:
        print_json([record_of(one) for one in found])


def _find(
    target: ExecutionTarget | None,
    plans: Sequence[RegionsPlan],
    buffers: Sequence[int],
    variants: Sequence[str],
    rate: float,
    store: Store,
) -> Iterator[Regions]:
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
                    yield regions_on_bed(shape, variant, plan, store, name=_BED, run=run)


def _stem(found: Regions) -> str:
    return "-".join(["regions", found.target, found.variant, str(found.procs)]).replace(" ", "").replace("--", "-")


def _print(found: Regions) -> None:
    console = stdout_console()
    console.print(table(title_of(found), SUMMARY_COLUMNS, [summary_cells(found)], left=2))
    title = "Slowdown against linear gather without escalation"
    console.print(table(title, ALGORITHM_COLUMNS, algorithm_cells(found), left=2))
    click.echo(verdict(found))
