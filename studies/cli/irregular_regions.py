"""collwise irregular-regions: the escalations of linear gather, the leap of linear scatter, and LMO gather's times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from collwise.common.errors import UsageError
from collwise.common.files import write_text
from collwise.simulator.execution.targets import ExecutionTarget
from collwise.simulator.store import Store
from collwise.studies.cli import declare, options, target_options, types
from collwise.studies.cli.declare import command, option
from collwise.studies.cli.output import print_json, print_table, write_figure
from collwise.studies.cli.target_options import TARGET, TargetOptions, target_from
from collwise.studies.cli.testbed import RATE
from collwise.studies.cli.types import COUNTS, FOLDER, NEW_FILE, SIZE, SIZES
from collwise.validation.measurement.irregular_regions_testbed import TCP_VARIANTS, regions_on_bed
from collwise.validation.testbed.shape import Shape

if TYPE_CHECKING:
    from collwise.validation.measurement.irregular_regions import Regions, RegionsPlan


@command("irregular-regions --nodes 8 --buffer 32KB -o thresholds.toml")
def irregular_regions(
    where: TargetOptions = TARGET,
    nodes: Sequence[int] = option("Numbers of processes: 8,16.", COUNTS, "8", names="--nodes --procs"),
    buffers: Sequence[int] = option(
        "Switch buffers of the ports of its own beds: 16KB,64KB.", SIZES, "16KB", names="--buffer"
    ),
    variants: Sequence[str] = option(
        "TCP on its own beds, names by commas.",
        types.named_choices("TCP variant", TCP_VARIANTS),
        "reno-2009",
        names="--tcp",
    ),
    rate: float = option("The rate of the ports of its own beds.", RATE, "100Mbit"),
    stride: int = option("The stride between block sizes of the series.", SIZE, "4KiB"),
    largest: int = option("The largest block size of the series.", SIZE, "128KiB"),
    finest: int = option("The stride at which the search for M1 ends.", SIZE, "1KiB"),
    repetitions: int = options.repetitions(5),
    output: Path | None = option("Write the thresholds here (one target only).", NEW_FILE, names="-o --output"),
    report: Path | None = option("Write the tables (Markdown) here.", NEW_FILE),
    figures: Path | None = option("Write a figure per target into this folder.", FOLDER),
    store: Path = options.STORE,
    as_json: bool = options.JSON,
) -> None:
    """Looks for the escalation of linear gather (M1, M2) and the leap of linear scatter (S), and tries LMO gather.

    The method is that of O'Flynn 2009, sections 4.4.1 and 7.2. The command measures on test beds of its own, with one
    process per node, for every number of nodes, switch buffer and TCP variant, or on the target that the options name,
    as it is. Everything is measured anew each time, since escalations occur by chance.
    """
    from collwise.models.parameters import thresholds_text
    from collwise.studies.reports import irregular_regions as shown
    from collwise.validation.measurement.irregular_regions import RegionsPlan, verdict

    target_options.refuse_target_details(where)
    if where.named:
        of = f"beds that irregular-regions makes itself, without {target_options.TARGET_OPTIONS}"
        declare.refuse_options(("buffers", "variants", "rate"), of)
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

                stem = (
                    "-".join(["regions", one.target, one.variant, str(one.procs)]).replace(" ", "").replace("--", "-")
                )
                write_figure(regions_figure(one, shown.title_of(one)), figures / f"{stem}.png")
            if not as_json:
                print_table(shown.title_of(one), shown.SUMMARY_COLUMNS, [shown.summary_cells(one)], left=2)
                title = "Slowdown against linear gather without escalation"
                print_table(title, shown.ALGORITHM_COLUMNS, shown.algorithm_cells(one), left=2)
                click.echo(verdict(one))
    if output is not None:
        write_text(
            output, thresholds_text(found[0].thresholds, f"{shown.title_of(found[0])}, by collwise irregular-regions")
        )
    if report is not None:
        write_text(report, shown.regions_markdown(found))
    if as_json:
        print_json([shown.record_of(one) for one in found])


def _find(
    target: ExecutionTarget | None,
    plans: Sequence[RegionsPlan],
    buffers: Sequence[int],
    variants: Sequence[str],
    rate: float,
    store: Store,
) -> Iterator[Regions]:
    from collwise.validation.measurement.irregular_regions import find_regions
    from collwise.validation.testbed.target import TestBed
    from collwise.validation.testbed.tcp_counters import tcp_counts

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
