"""collwise run and application: programs under other collectives, on real data and simulated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import collwise
from collwise import arguments
from collwise.common.errors import CollwiseError, UsageError
from collwise.common.units import format_seconds
from collwise.platforms import HostPlatform
from collwise.simulator.execution.interposed import LIBRARIES, LibraryOptions, run_interposed
from collwise.simulator.sweeps.context import SCHEDULE
from collwise.studies.cli import options
from collwise.studies.cli.declare import argument, command, flag, option, refuse_options
from collwise.studies.cli.output import print_json, print_table, write_figure
from collwise.studies.cli.types import COUNTS, NAMES, NEW_FILE, PATH, PLATFORM, SIZES, NamedChoice, Parsed
from collwise.validation.measurement import applications
from collwise.validation.times.thresholds import with_bounds

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


def _settings(text: str) -> dict[str, int]:
    found = {}
    for part in arguments.names(text):
        name, equals, value = part.partition("=")
        if not equals or not value.isdecimal():
            raise UsageError(f"malformed '{part}': write NAME=NUMBER, for example iterations=48")
        found[name] = int(value)
    return found


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not 0 < rate < float("inf"):
        raise UsageError(f"'{text}' is no rate; valid: operations per second above 0, for example 2e10")
    return rate


_HEADS = ("P", "collectives", "time", "in collectives", "share, mean", "share, most", "speed-up", "algorithms")


@command("application asp --platform gros --procs 8 --collectives ompi,mpich --set size=4096,iterations=4")
def application(
    name: str = argument(NamedChoice("application", applications.APPLICATIONS)),
    platform: HostPlatform = options.placed_platform(),
    procs: Sequence[int] = option(COUNTS, required=True, in_project=True),
    collectives: Sequence[str] = option(NAMES, applications.COLLECTIVES, said={"choices": applications.NAMES}),
    settings: Mapping[str, int] = option(Parsed("settings", _settings), ""),
    rate: float | None = option(Parsed("rate", _rate)),
    segments: Sequence[int] = option(SIZES, applications.SEGMENTS),
    ppn: int | None = options.PPN,
    figure: Path | None = option(NEW_FILE),
    simulation: options.SimulationOptions = options.simulation(SCHEDULE.name),
    as_json: bool = options.JSON,
) -> None:
    """Simulates an application with modelled computation under several choices of collectives.

    asp broadcasts the rows of a matrix by turns, matmul is a master-worker matrix multiplication, training an allreduce
    of AlexNet's gradients. ompi, mpich, mvapich2 and impi are SMPI's selectors; names with a version are what that
    library decides untuned, by our algorithms; flat and hierarchical are the fastest of our algorithms for the
    application's calls. The speed-up is over the first choice. Executions that the store has are not repeated. The exit
    code is 1 if one failed.
    """
    if not collectives:
        raise UsageError(f"--collectives: name one at least; valid: {', '.join(applications.NAMES)}, or a file")
    if not {applications.FLAT, applications.HIERARCHICAL}.intersection(collectives):
        refuse_options(
            ("segments", "jobs", "executor"), f"--collectives with {applications.FLAT} or {applications.HIERARCHICAL}"
        )
    with simulation.context() as context:
        times = collwise.application(
            name, platform, procs, collectives,
            settings=settings or {}, rate=rate, segments=segments, ppn=ppn, context=context,
        )  # fmt: skip
    if figure is not None:
        from collwise.studies.figures.applications import application_figure

        write_figure(application_figure(times, f"{name} on {platform.title}, simulated"), figure)
    if as_json:
        print_json(times.to_dict("records"))
    else:
        print_table(f"{name} on {platform.title}, simulated", _HEADS, list(map(cells, times.itertuples())), 0, keys=2)
        words = applications.arguments_of(applications.application_of(name), settings or {}, rate)
        click.echo(f"{name} {' '.join(words)}; an operation is one of: {applications.application_of(name).operation}")
        if figure is not None:
            click.echo(f"figure: {figure}")
    failed = times[times.error != ""]
    if len(failed):
        raise CollwiseError(f"{len(failed)} of {len(times)} executions failed; first: {failed.error.iloc[0]}")


def cells(one: Any) -> tuple[object, ...]:
    """The cells of a row of `collwise.application`."""
    if one.error:
        return (one.procs, one.collectives, "failed", *["-"] * 4, one.algorithms or "-")
    return (
        *(one.procs, one.collectives, format_seconds(one.seconds), format_seconds(one.mean_seconds)),
        *(f"{one.mean_share * 100:.2f} %", f"{one.most_share * 100:.2f} %", f"{one.speedup:.2f}"),
        one.algorithms or "-",
    )
