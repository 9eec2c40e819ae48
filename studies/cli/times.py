"""collwise times: list, show, delete, import."""

from __future__ import annotations

from collections.abc import Callable

import click

from collwise import store_contents
from collwise.studies.cli import options, types
from collwise.studies.cli.commands import CommandGroup, example
from collwise.studies.cli.declare import flag, group, option
from collwise.studies.cli.derive import derived
from collwise.studies.cli.output import confirm


@click.group(cls=CommandGroup, epilog=example("times list"))
def times() -> None:
    """Lists, shows, saves and deletes the times in the store, and reads times that were measured elsewhere."""


_CONFIGURATION = dict(configuration=option(types.NAMES), source=option(types.NAMES), platform=option(types.NAMES))


def _confirm(yes: bool) -> Callable[[str], None]:
    return lambda what: confirm(f"Delete {what}?", f"{what} would be deleted", "--yes", yes)


list_times = derived(store_contents.configurations, "times list --json", name="list", parent=times, store=options.STORE)
show = derived(
    store_contents.results,
    "times show --collective bcast --procs 16 -o bcast.csv",
    name="show",
    parent=times,
    **_CONFIGURATION,
    collective=option(types.NAMES),
    equal=group(dict, algorithm=option(types.NAMES)),
)
delete = derived(
    store_contents.prune,
    "times delete --platform gros --before 2026-01-01 --yes",
    name="delete",
    parent=times,
    **_CONFIGURATION,
    confirm=group(_confirm, yes=flag()),
)
import_times = derived(
    store_contents.import_times,
    "times import osu_bcast.txt --platform mycluster --procs 64",
    name="import",
    parent=times,
    procs=option(click.IntRange(1)),
    platform=option(default=""),
    ppn=option(click.IntRange(1), 1),
    algorithm=option(default=""),
)
