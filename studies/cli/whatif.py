"""collwise whatif: change, sweep."""

from __future__ import annotations

import click

import collwise
from collwise.platforms.changes import CHANGES
from collwise.simulator.sweeps.context import SCHEDULE
from collwise.studies.cli import options
from collwise.studies.cli.commands import CommandGroup, example
from collwise.studies.cli.derive import derived

_CHANGES = "\n".join(f"  {name}={kind.example}: {kind.meaning}" for name, kind in CHANGES.items())


@click.group(cls=CommandGroup, epilog=example("whatif change --platform gros --collective bcast --change bandwidth=x2"))
def whatif() -> None:
    """Shows which choices and times change if a platform does."""


change = derived(
    collwise.whatif,
    "whatif change --platform gros --collective allreduce --procs 16,62 --sizes 1KiB,1MiB --change bandwidth=x0.25",
    name="change",
    parent=whatif,
    more=f"\b\nChanges, made in the order given:\n{_CHANGES}",
    figures=True,
    context=options.simulation(SCHEDULE.name),
)
sweep = derived(
    collwise.sweep,
    "whatif sweep --platform gros --collective allreduce --procs 62 --sizes 1MiB --factors bandwidth=x0.25:x8",
    parent=whatif,
    figures=True,
    context=options.simulation(SCHEDULE.name),
)
