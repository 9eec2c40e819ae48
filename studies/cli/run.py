"""collwise run: runs an unmodified MPI program with our algorithms in place of MPI's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from collwise.common.errors import UsageError
from collwise.platforms import HostPlatform
from collwise.simulator.execution.interposed import LIBRARIES, LibraryOptions, run_interposed
from collwise.studies.cli.commands import example
from collwise.studies.cli.options import (
    PLATFORM,
    NamedChoice,
    ppn_option,
    processes_per_node,
    simgrid_option,
    thresholds_option,
)
from collwise.validation.selection.thresholds import with_bounds

if TYPE_CHECKING:
    from collwise.models.lmo import Thresholds


@click.command(
    context_settings={"allow_interspersed_args": False},
    epilog=example("run --library smpi --platform gros --procs 4 --algorithms bcast=chain --report -- latency"),
)
@click.option("--library", required=True, type=NamedChoice("MPI library", LIBRARIES), help="Which MPI runs it.")
@click.option("--procs", required=True, type=click.IntRange(1), help="How many processes.")
@click.option("--platform", type=PLATFORM, help="For smpi: a known platform or a .toml or .xml file.")
@ppn_option
@simgrid_option
@click.option("--table", type=click.Path(path_type=Path), help="A decision table (collwise export --format collwise).")
@click.option("--algorithms", default="", help="bcast=k_chain,chains=3;barrier=bruck: overrides the table.")
@thresholds_option
@click.option("--report", is_flag=True, help="Print at the end how often each algorithm ran, by message size.")
@click.option("--plain", is_flag=True, help="Run without the library, to compare.")
@click.argument("program")
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def run(
    library: str,
    procs: int,
    platform: HostPlatform | None,
    ppn: int | None,
    simgrid: str | None,
    table: Path | None,
    algorithms: str,
    thresholds: Thresholds | None,
    report: bool,
    plain: bool,
    program: str,
    args: Sequence[str],
) -> int:
    """Runs an MPI program with our algorithms where a table or a list names one: -- PROGRAM [ARGS].

    The program is not modified; for smpi, it must have been built by smpicc. 'latency' is a program of ours. The exit
    code is the program's, or 1 if the program does not call the library.
    """
    options = LibraryOptions(table, algorithms, report)
    if plain and (options != LibraryOptions() or thresholds is not None):
        raise UsageError("--plain runs without the library: no --table, --algorithms, --thresholds or --report with it")
    if library != "smpi" and (platform is not None or ppn is not None or simgrid is not None):
        raise UsageError("--platform, --ppn and --simgrid are for --library smpi")
    options.check()
    options = replace(options, algorithms=with_bounds(algorithms, thresholds))
    return run_interposed(
        library,
        program,
        args,
        procs=procs,
        options=options,
        platform=platform,
        processes_per_node=processes_per_node(platform, ppn) if platform is not None else 1,
        simgrid=simgrid,
        plain=plain,
    )
