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
from collwise.studies.cli import options
from collwise.studies.cli.declare import argument, command, flag, option
from collwise.studies.cli.types import NEW_FILE, PATH, PLATFORM, NamedChoice

if TYPE_CHECKING:
    from collwise.models.lmo import Thresholds


@command(
    "run --library smpi --platform gros --procs 4 --algorithms bcast=chain --report -- latency",
    context_settings={"allow_interspersed_args": False},
)
def run(
    library: str = option(NamedChoice("MPI library", LIBRARIES), required=True),
    procs: int = option(click.IntRange(1), required=True),
    platform: HostPlatform | None = option(PLATFORM),
    ppn: int | None = options.PPN,
    simgrid: str | None = options.SIMGRID,
    table: Path | None = option(PATH),
    algorithms: str = option(default=""),
    thresholds: Thresholds | None = options.THRESHOLDS,
    report: bool = flag(),
    report_to: Path | None = option(NEW_FILE),
    plain: bool = flag(),
    program: str = argument(),
    args: Sequence[str] = argument(click.UNPROCESSED, nargs=-1),
) -> int:
    """Runs an MPI program with our algorithms in the calls for which a table or list names one: -- PROGRAM [ARGS].

    The program is not modified; for smpi, it must have been built by smpicc. 'latency', 'asp', 'matmul' and 'training'
    are programs of ours. The exit code is the program's, or 1 if the program does not call the library.
    """
    from collwise.validation.times.thresholds import with_bounds

    if report and report_to is not None:
        raise UsageError("give either --report or --report-to FILE")
    destination = str(report_to.absolute()) if report_to is not None else "1" if report else ""
    options = LibraryOptions(table, algorithms, destination)
    if plain and (options != LibraryOptions() or thresholds is not None):
        raise UsageError(
            "--plain runs without the library: no --table, --algorithms, --thresholds, --report or --report-to with it"
        )
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
        processes_per_node=ppn or platform.default_processes_per_node if platform is not None else 1,
        simgrid=simgrid,
        plain=plain,
    )
