"""collwise tune and demo: the whole job for a cluster."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

import collwise
from collwise import arguments
from collwise.common.errors import CollwiseError
from collwise.common.program import program_name
from collwise.common.project import find_project
from collwise.simulator.sweeps.context import SCHEDULE, SMPI
from collwise.studies.cli import options, types
from collwise.studies.cli.declare import argument, group, option
from collwise.studies.cli.derive import command, derived, show
from collwise.studies.cli.types import COUNTS, Scaled
from collwise.validation.libraries.openmpi_check import check_all
from collwise.validation.times.defaults import SEGMENT_BYTES


def _cluster_of_project() -> str:
    project = find_project()
    if project is None or project.platform is None:
        raise click.UsageError(
            "Missing argument 'CLUSTER': a platform, its file, an interconnect, or a number of nodes; for example "
            f"'{program_name()} tune jupiter', '{program_name()} tune infiniband-hdr100 --nodes 64 --ppn 32'"
        )
    return project.platform


def _placed(cluster: str | None, **places: Any) -> Any:
    """The cluster; if options place ranks, it is a platform whose ranks are placed in this way."""
    word = cluster or _cluster_of_project()
    is_placed = any(place and (name, place) != ("placement", options.BLOCK) for name, place in places.items())
    return options.placed(arguments.platform_or_interconnect(word), **places) if is_placed else word


tune = derived(
    collwise.tune,
    "tune jupiter --for openmpi-4.1 --collective bcast --procs 36,144",
    cluster=group(_placed, cluster=argument(types.WORD_OF_CLUSTER, required=False), **options.PLACES),
    procs=option(COUNTS, in_project=True),
    cpus=click.IntRange(1),
    memory_bytes_per_second=Scaled(1e9),
    output=options.results("tuned"),
    context=options.simulation(SCHEDULE.name),
)

# A real machine whose description includes message overheads. Open MPI can run the smallest of these counts here.
DEMO, DEMO_PROCS = "jupiter", "8,32,128,512"
CHECKED_PROCS, CHECKED_SIZES = "32", "8KiB:2MiB:x16"
SHOWN_RULES = ("bcast", "allreduce")
"""The collectives that Open MPI calls in the demo."""


@command("demo")
def demo(
    output: Path = options.results("demo"),
    simulation: options.SimulationOptions = options.simulation(SCHEDULE.name),
) -> None:
    """Tunes a simulated copy of a real cluster, and shows the gain, its uncertainty, and the file to use.

    The cluster is Jupiter of TU Wien, with 36 nodes of 16 processes. SMPI also simulates some of the points, as a
    check. The installed Open MPI makes calls with the rules, and its own monitoring shows that it follows the rules.
    """
    from collwise.studies.present.scores import apart

    with simulation.context() as context:
        found = collwise.tune(DEMO, procs=DEMO_PROCS, output=output, context=context)
        show(found)
        smpi = collwise.simulate(
            DEMO,
            [*found.times],
            CHECKED_PROCS,
            CHECKED_SIZES,
            segments=SEGMENT_BYTES,
            context=replace(context, engine=SMPI),
        )
    click.echo("\nSMPI, SimGrid's simulator of MPI, for the same algorithms:")
    for line in apart(collwise.compare(smpi, found.times)):
        click.echo(f"  {line}")
    click.echo("\nOpen MPI, run here with these rules:")
    wrong, shown = 0, [table for table in found.decisions.tables if table.collective in SHOWN_RULES]
    for line, ok in check_all(found.file("-openmpi-4.1.rules"), shown):
        click.echo(f"  {line}")
        wrong += ok is False
    click.echo(_OWN.format(program=program_name()))
    if wrong:
        raise CollwiseError(f"{wrong} checks of the rules failed")


_OWN = """
For your own cluster:
  {program} tune infiniband-hdr100 --nodes 64 --ppn 32 --for openmpi-5.0
  {program} platforms describe --help     a description from what the machine says of itself
  {program} platforms new --help          or from a few figures, for tune FILE.toml"""
