"""collwise guidelines: performance guidelines of MPI libraries, their repair by mock-ups, and those of decisions."""

from __future__ import annotations

import click

import collwise
from collwise.guideline_checks import RULES, SIZES_TEXT, USUAL
from collwise.simulator.sweeps.context import SMPI_SELECTORS
from collwise.studies.cli import options, types
from collwise.studies.cli.commands import CommandGroup, example
from collwise.studies.cli.declare import option
from collwise.studies.cli.derive import derived
from collwise.validation.guidelines.criteria import CORRECTIONS
from collwise.validation.libraries.baselines import BASELINES


@click.group(cls=CommandGroup, epilog=example("guidelines simulate --platform gros --libraries ompi --procs 16"))
def guidelines() -> None:
    """Checks performance guidelines: no collective should be slower than others that do the same."""


_LIBRARIES = (*SMPI_SELECTORS, *BASELINES)
simulate = derived(
    collwise.guidelines,
    "guidelines simulate --platform gros --libraries ompi --collective allreduce,reduce --procs 16",
    name="simulate",
    parent=guidelines,
    figures=True,
    libraries=option(types.named_choices("library", _LIBRARIES), said={"libraries": _LIBRARIES}),
    sizes=option(types.SIZES, SIZES_TEXT),
    output=option(types.FOLDER),
)
measure = derived(
    collwise.measured_guidelines,
    "guidelines measure --library openmpi --collective allreduce,reduce --procs 4",
    name="measure",
    parent=guidelines,
    figures=True,
    rule=option(types.NamedChoice("rule", RULES), "rank"),
    correction=option(
        types.NamedChoice("correction", CORRECTIONS),
        "bh",
        said={"corrections": ", ".join(f"{name}: {title}" for name, title in CORRECTIONS.items())},
    ),
    method=options.method(USUAL),
    output=option(types.FOLDER),
    on_launch=None,
)
decisions = derived(
    collwise.check_decisions,
    "guidelines decisions decisions.json --platform gros",
    name="decisions",
    parent=guidelines,
)
