"""collwise gain: the gain of a decision table at run time over Open MPI's own decisions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

import collwise
from collwise.common.errors import UsageError, note
from collwise.common.files import write_text
from collwise.platforms import HostPlatform
from collwise.simulator.sweeps.context import SimulationContext
from collwise.studies.cli import options
from collwise.studies.cli.declare import command, option, refuse_options
from collwise.studies.cli.output import check_failed, print_json, print_table, sweep_progress, write_figure
from collwise.studies.cli.target_options import TARGET, TargetOptions, target_from
from collwise.studies.cli.types import COLLECTIVES, COUNTS, NEW_FILE, PATH, PLATFORM, SIZES
from collwise.validation.times.defaults import TOLERANCE_PERCENT
from collwise.validation.times.grid import builtin_cases

_COLLECTIVES = "bcast,gather,scatter,reduce,allreduce,allgather,alltoall"


@command("gain --platform gros --collective bcast --procs 4 --library openmpi")
def gain(
    where: TargetOptions = TARGET,
    decisions: Path | None = option(PATH),
    platform: HostPlatform | None = option(PLATFORM),
    collectives: Sequence[str] | None = option(COLLECTIVES, said={"collectives": _COLLECTIVES}),
    procs: tuple[int, ...] = option(COUNTS, required=True),
    sizes: tuple[int, ...] = option(SIZES, "1KiB:256KiB:x4"),
    segments: tuple[int, ...] = option(SIZES, "8KiB:64KiB:x2"),
    launches: int = option(click.IntRange(2), 5),
    repetitions: int = option(click.IntRange(1), 5),
    check: bool = option(default=True),
    figure: Path | None = option(NEW_FILE),
    report: Path | None = option(NEW_FILE),
    store: Path = options.STORE,
    as_json: bool = options.JSON,
) -> None:
    """Measures Open MPI as it is, by a rules file, and with libcollwise preloaded: the gain of a decision table.

    It runs with Open MPI on this machine, hosts, a batch job's nodes or a test bed. The program calls MPI's own
    collectives; the three ways are launched in turn. The report of libcollwise proves that the chosen algorithms ran,
    and the messages of Open MPI prove that it follows the rules.

    In a Slurm job of salloc --exclusive --nodes 2 --ntasks-per-node 32, 64 processes are bound and measured by
    --launcher srun --ppn 32 --mpirun-args "--cpu-bind=cores" --procs 64 --no-check.
    """
    from collwise.simulator.store import Store
    from collwise.studies.cli.deciding import Asked, choosable, simulated_times
    from collwise.studies.reports.gain import COLUMNS, cells, check_lines, gains_markdown, records, summary_lines
    from collwise.validation.measurement.gain import measure_gain
    from collwise.validation.times.files import AllTimes

    if where.library not in (None, "openmpi"):
        raise UsageError(f"--library {where.library}: rules files are Open MPI's; valid: openmpi")
    if (decisions is None) == (platform is None):
        raise UsageError("name one of --decisions and --platform")
    if platform is None:
        refuse_options(("segments",), "--platform")
    if figure is not None and len(procs) > 1:
        raise UsageError("--figure: one number of processes, please: its map is of collectives and sizes")
    target = target_from(where)
    for count in procs:
        target.processes_per_node(count)
    with Store(store) as opened:
        if decisions is not None:
            chosen = collwise.Decisions.load(decisions)
        else:
            context = SimulationContext(opened, progress=sweep_progress)
            assert platform is not None
            algorithms = choosable(collectives or _COLLECTIVES.split(","), None, by_node=False, guidelines=False)
            margins = dict.fromkeys(algorithms, TOLERANCE_PERCENT / 100)
            asked = Asked(algorithms, None, procs, sizes, segments, 1, margins)
            times = AllTimes.of(simulated_times(asked, platform, context))
            chosen = collwise.select(times, one_choice=False)
            check_failed(chosen.failed)
        tables = {one.collective: one for one in chosen.tables}
        if missing := [name for name in collectives or () if name not in tables]:
            raise UsageError(f"{decisions}: no decisions for {missing[0]}; there are some for {', '.join(tables)}")
        tables = {name: tables[name] for name in collectives or tables}
        cases = [
            case
            for name in tables
            for count in procs
            for case in builtin_cases(name, [count], sizes, target.processes_per_node(count))
        ]
        found = measure_gain(
            target, tables, cases, opened, launches=launches, repetitions=repetitions, check=check,
            on_launch=lambda done, of: note(f"{done} of {of} launches"),
        )  # fmt: skip
    if figure is not None:
        from collwise.studies.figures.gain import gain_figure

        write_figure(gain_figure(found.rows, f"Gain over Open MPI's default, {target.name}, P = {procs[0]}"), figure)
    if report is not None:
        write_text(report, gains_markdown(found))
    if as_json:
        print_json(records(found.rows), {"checks": check_lines(found)})
    else:
        title = f"{target.name}, {target.installation.label}: means ± half-widths; gains in brackets are within them"
        print_table(title, COLUMNS, [cells(row) for row in found.rows])
        for line in (*summary_lines(found), *check_lines(found)):
            click.echo(line)
