"""collwise show: message, models."""

from __future__ import annotations

import click

from collwise import known, predictions
from collwise.studies.cli.commands import CommandGroup, example
from collwise.studies.cli.derive import derived


@click.group(cls=CommandGroup, epilog=example("show models"))
def show() -> None:
    """Shows what collwise knows of algorithms and models."""


message = derived(predictions.message, "show message mine.parameters.toml 0,1 --sizes 1KiB", parent=show)
models = derived(known.models, "show models --collective bcast", parent=show)
