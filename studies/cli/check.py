"""collwise check: recovery."""

from __future__ import annotations

import click

from collwise import checks
from collwise.studies.cli.commands import CommandGroup, example
from collwise.studies.cli.declare import option
from collwise.studies.cli.derive import derived
from collwise.studies.cli.types import PLATFORM


@click.group(cls=CommandGroup, epilog=example("check recovery --platform exact"))
def check() -> None:
    """Checks what collwise is made of against what is known to be true."""


recovery = derived(checks.recovery, "check recovery --platform exact", parent=check, platform=option(PLATFORM))
