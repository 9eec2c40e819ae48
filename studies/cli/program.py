"""collwise program: runs programs with our algorithms, and says what these save."""

from __future__ import annotations

import click

import collwise
from collwise.simulator.execution.interposed import LIBRARIES
from collwise.simulator.sweeps.context import SCHEDULE
from collwise.studies.cli import options, types
from collwise.studies.cli.commands import CommandGroup, example
from collwise.studies.cli.declare import argument, option
from collwise.studies.cli.derive import derived
from collwise.validation.measurement import applications


@click.group(cls=CommandGroup, epilog=example("program run --library openmpi --procs 2 --report -- latency"))
def program() -> None:
    """Runs programs with our algorithms, and says what these save and gain."""


_SIMULATION = options.simulation(SCHEDULE.name)
run = derived(
    collwise.run_program,
    "program run --library smpi --platform gros --procs 4 --algorithms bcast=chain --report -- latency",
    name="run",
    parent=program,
    library=option(types.NamedChoice("MPI library", LIBRARIES), required=True),
    procs=option(click.IntRange(1), required=True),
    platform=option(types.PLATFORM),
    algorithms=option(default=""),
)
profile = derived(
    collwise.profile,
    "program profile report.json --platform gros",
    parent=program,
    context=_SIMULATION,
)
apply = derived(
    collwise.application,
    "program apply asp --platform gros --procs 8 --collectives ompi,mpich --set size=4096,iterations=4",
    name="apply",
    parent=program,
    figures=True,
    program=argument(types.NamedChoice("application", applications.APPLICATIONS)),
    collectives=option(types.NAMES, applications.COLLECTIVES, said={"choices": applications.NAMES}),
    context=_SIMULATION,
)
gain = derived(
    collwise.gain,
    "program gain decisions.json --procs 4 --collective bcast",
    parent=program,
    figures=True,
    report=True,
    collective=option(types.COLLECTIVES),
    target=options.target("library"),
)
