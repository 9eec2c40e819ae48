"""collwise gain: what a decision table is worth at run time, against Open MPI's own decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from collwise.common.errors import UsageError
from collwise.common.files import writable_file, write_text
from collwise.platforms import HostPlatform
from collwise.simulator.execution.targets import ExecutionTarget
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import SimulationContext
from collwise.studies.cli.commands import example
from collwise.studies.cli.options import (
    COLLECTIVES,
    COUNTS,
    PLATFORM,
    SIZES,
    file_option,
    json_option,
    print_json,
    repetitions_option,
    segments_option,
    store_option,
    sweep_progress,
)
from collwise.studies.cli.tables import stdout_console, table
from collwise.studies.cli.target_options import TargetOptions, target_from, target_options
from collwise.studies.reports.gain import COLUMNS, cells, check_lines, gains_markdown, records, summary_lines
from collwise.validation.measurement.gain import MeasuredGain, measure_gain
from collwise.validation.selection.cases import CaseGrid, builtin_cases
from collwise.validation.selection.decision_table import DecisionTable, decisions_from
from collwise.validation.selection.decisions import simulate_and_select

_COLLECTIVES = "bcast,gather,scatter,reduce,allreduce,allgather,alltoall"
_SIZES = "1KiB:256KiB:x4"


@click.command(epilog=example("gain --platform gros --collective bcast --procs 4 --library openmpi"))
@target_options
@click.option("--decisions", type=click.Path(path_type=Path), help="Tables to measure (collwise select -o FILE).")
@click.option("--platform", type=PLATFORM, help="Or choose now, from simulation on this platform.")
@click.option("--collective", "collectives", type=COLLECTIVES, help=f"Default: all in the file; {_COLLECTIVES}.")
@click.option("--procs", type=COUNTS, required=True, help="Process counts: 4,8.")
@click.option("--sizes", type=SIZES, default=_SIZES, show_default=True, help="Message sizes.")
@segments_option("8KiB:64KiB:x2", "For --platform.")
@click.option("--launches", type=click.IntRange(2), default=5, show_default=True, help="Of each of the three ways.")
@repetitions_option(5)
@click.option("--check/--no-check", default=True, show_default=True, help="See whether Open MPI follows the rules.")
@file_option("--figure", help="Write the map of gains (PNG or SVG) here.")
@file_option("--report", help="Write the tables (Markdown) here.")
@store_option
@json_option
def gain(
    where: TargetOptions,
    decisions: Path | None,
    platform: HostPlatform | None,
    collectives: Sequence[str] | None,
    procs: tuple[int, ...],
    sizes: tuple[int, ...],
    segments: tuple[int, ...],
    launches: int,
    repetitions: int,
    check: bool,
    figure: Path | None,
    report: Path | None,
    store: Path,
    as_json: bool,
) -> None:
    """Measures Open MPI as it is, by a rules file, and with libcollwise preloaded: the gain of a decision table.

    On this machine, hosts, a batch job's nodes or a test bed, with Open MPI. MPI's own collectives are called; the
    three ways are launched in turn. That libcollwise runs what was chosen is
    proved by its report, that Open MPI follows the rules by the messages it sends.
    """
    if where.library not in (None, "openmpi"):
        raise UsageError(f"--library {where.library}: rules files are Open MPI's; valid: openmpi")
    if (decisions is None) == (platform is None):
        raise UsageError("name one of --decisions and --platform")
    for file in (figure, report):
        if file is not None:
            writable_file(file)
    if figure is not None and len(procs) > 1:
        raise UsageError("--figure: one number of processes, please: its map is of collectives and sizes")
    target = target_from(where)
    for count in procs:
        target.processes_per_node(count)
    with Store(store) as opened:
        if decisions is not None:
            tables = _asked_for(decisions, collectives)
        else:
            assert platform is not None
            names = collectives or COLLECTIVES.convert(_COLLECTIVES, None, None)
            context = SimulationContext(opened, progress=sweep_progress)
            tables = _simulated(platform, [CaseGrid(name, procs, sizes, 1, segments) for name in names], context)
        cases = [
            case
            for name in tables
            for count in procs
            for case in builtin_cases(name, [count], sizes, target.processes_per_node(count))
        ]
        found = measure_gain(
            target, tables, cases, opened, launches=launches, repetitions=repetitions, check=check,
            on_launch=lambda done, of: click.echo(f"collwise: {done} of {of} launches", err=True),
        )  # fmt: skip
    if figure is not None:
        from collwise.studies.figures.gain import gain_figure
        from collwise.studies.figures.style import save

        save(gain_figure(found.rows, f"Gain over Open MPI's default, {target.name}, P = {procs[0]}"), figure)
    if report is not None:
        write_text(report, gains_markdown(found))
    if as_json:
        print_json({"rows": records(found.rows), "checks": check_lines(found)})
    else:
        _print(found, target)


def _simulated(
    platform: HostPlatform, grids: Sequence[CaseGrid], context: SimulationContext
) -> dict[str, DecisionTable]:
    tables, sweep = simulate_and_select(platform, grids, context)
    sweep.complete()
    return {table.collective: table for table in tables}


def _asked_for(file: Path, collectives: Sequence[str] | None) -> Mapping[str, DecisionTable]:
    tables = {one.collective: one for one in decisions_from(file)}
    missing = [name for name in collectives or () if name not in tables]
    if missing:
        raise UsageError(f"{file}: no decisions for {missing[0]}; there are some for {', '.join(tables)}")
    return {name: tables[name] for name in collectives or tables}


def _print(found: MeasuredGain, target: ExecutionTarget) -> None:
    title = f"{target.name}, {target.installation.label}: means ± half-widths; gains in brackets are within them"
    stdout_console().print(table(title, COLUMNS, [cells(row) for row in found.rows]))
    for line in (*summary_lines(found), *check_lines(found)):
        click.echo(line)
