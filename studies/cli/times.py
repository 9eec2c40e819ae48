"""collwise times: list, show, export, delete, import."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from collwise import arguments
from collwise.common.errors import CollwiseError, UsageError, note
from collwise.common.units import format_seconds, format_size
from collwise.simulator.store import Store
from collwise.studies.cli import options, types
from collwise.studies.cli.commands import CommandGroup, example
from collwise.studies.cli.declare import argument, command, flag, group, option
from collwise.studies.cli.output import print_json, print_table
from collwise.studies.cli.types import NAMES, NEW_FILE, PATH
from collwise.validation.measurement.imports import FORMATS, import_file
from collwise.validation.measurement.imports.reading import MissingFacts

if TYPE_CHECKING:
    import pandas as pd

_MOST_ROWS = 200


def _rows(store: Path, **wanted: Any) -> pd.DataFrame:
    """The rows of a store that are wanted, as the options of `FILTER` say.

    Raises UsageError where there is no store, or nothing of what is named.
    """
    from collwise.store_contents import chosen_configurations, results

    _check_store(store)
    given = {name: value for name, value in wanted.items() if value is not None}
    with Store(store) as opened:
        chosen_configurations(opened, *(given.get(name) for name in ("configuration", "source", "platform")))
    if "collective" in given:
        given["collective"] = arguments.collectives(given["collective"])
    return results(store, **given)


def _check_store(store: Path) -> None:
    if not store.exists():
        raise UsageError(f"there is no store {store}; name one with --store")


FILTER = group(
    dict,
    store=options.STORE,
    configuration=option(NAMES),
    source=option(NAMES),
    platform=option(NAMES),
    collective=option(NAMES),
    algorithm=option(NAMES),
    procs=option(types.COUNTS),
    sizes=option(types.SIZES),
)


@click.group(cls=CommandGroup, epilog=example("times list"))
def times() -> None:
    """Lists, shows, exports and deletes the times in the store, and reads times that were measured elsewhere."""


@command("times list --json", "list", parent=times)
def list_configurations(store: Path = options.STORE, as_json: bool = options.JSON) -> None:
    """Lists the configurations: everything that times depend on besides the case; results of two never mix."""
    from collwise.store_contents import configurations

    found = configurations(store)
    if as_json:
        print_json(found.to_dict("records"))
        return
    shown = ("configuration", "source", "platform", "maker", "collectives", "rows", "failed", "first_made", "last_made")
    heads = [*shown[:5], "times", "failed", "from (UTC)", "to (UTC)"]
    # Experiments between a few processes have no collective.
    known = ([name for name in names.split(",") if name != "-"] for names in found["collectives"])
    found["collectives"] = [arguments.several(names) or "-" for names in known]
    print_table(str(store.absolute()), heads, found[list(shown)].values.tolist(), left=5, keys=1)


@command("times show --collective bcast --procs 16", "show", parent=times)
def show(wanted: dict[str, Any] = FILTER, as_json: bool = options.JSON) -> None:
    """Shows the times of cases, those of one configuration, collective and so on if named."""
    found = _rows(**wanted)
    if as_json:
        print_json(found.to_dict("records"))
        return
    heads = ("configuration", "platform", "collective", "algorithm", "P", "m", "segment", "seconds", "+-", "times")
    rows = [_row(one) for one in found.head(_MOST_ROWS).itertuples()]
    print_table(str(wanted["store"].absolute()), heads, rows, left=4, keys=4)
    left_out = f", of which these are the first {_MOST_ROWS}; --json prints all" if len(found) > _MOST_ROWS else ""
    click.echo(f"{len(found)} times{left_out}")


def _row(one: Any) -> Sequence[object]:
    unknown = not math.isfinite(one.half_width_seconds)
    what = one.collective if one.experiment == "collective" else f"{one.collective} ({one.experiment})"
    return (
        *(one.configuration, one.platform, what, one.algorithm, one.procs, format_size(one.message_bytes)),
        format_size(one.segment_bytes) if one.segment_bytes else "-",
        "failed" if one.error else format_seconds(one.seconds),
        "-" if one.error or unknown or not one.seconds else f"{one.half_width_seconds / one.seconds * 100:.1f} %",
        one.repetitions,
    )


@command("times export --collective bcast -o bcast.csv", "export", parent=times)
def export(
    wanted: dict[str, Any] = FILTER,
    format_name: str | None = option(types.NamedChoice("format", ("csv", "json", "parquet"))),
    output: Path = option(NEW_FILE, required=True),
) -> None:
    """Writes times with everything that is known of them, one row a case, to a file."""
    from collwise.store_contents import FORMATS, write_results

    ending = output.suffix.removeprefix(".").lower()
    if format_name is None and ending not in FORMATS:
        raise UsageError(f"-o {output}: the name does not end in a format; add --format {'|'.join(FORMATS)}")
    found = _rows(**wanted)
    write_results(found, output, format_name or ending)
    click.echo(f"written: {output}, {len(found)} times")


@command("times delete --platform gros --before 2026-01-01 --yes", "delete", parent=times)
def delete(
    store: Path = options.STORE,
    configuration: Sequence[str] | None = option(NAMES),
    source: Sequence[str] | None = option(NAMES),
    platform: Sequence[str] | None = option(NAMES),
    before: str | None = option(),
    yes: bool = flag(),
) -> None:
    """Deletes times: those of the configurations, sources and platforms named, made before a time if one is given.

    Everything is deleted at once: a command that is stopped has deleted nothing.
    """
    from collwise.store_contents import chosen_configurations, time_of

    if configuration is source is platform is before is None:
        raise click.UsageError("name what to delete: --configuration, --source, --platform or --before")
    _check_store(store)
    time = None if before is None else time_of(before)
    with Store(store) as opened:
        keys = [one.key for one in chosen_configurations(opened, configuration, source, platform)]
        number = opened.count(keys, time)
        if number == 0:
            click.echo(f"{store}: nothing to delete")
            return
        what = f"{number} times of {len(keys)} configurations in {store}"
        if not yes:
            if not sys.stdin.isatty():
                raise UsageError(f"{what} would be deleted; nobody is there to ask: add --yes")
            click.confirm(f"Delete {what}?", abort=True)
        click.echo(f"deleted: {opened.prune(keys, time)} times")


@command(
    "times import osu_bcast.txt --platform mycluster --procs 64",
    "import",
    times,
    help=f"Reads times that were measured elsewhere into the store: {FORMATS}.",
)
def import_times(
    files: Sequence[Path] = argument(PATH, nargs=-1, required=True),
    platform: str = option(default=""),
    procs: int | None = option(click.IntRange(1)),
    ppn: int = option(click.IntRange(1), 1),
    store: Path = options.STORE,
    as_json: bool = options.JSON,
) -> None:
    """Reads times that were measured elsewhere into the store; the help above names the formats."""
    facts = MissingFacts(platform, procs or 0, ppn)
    records: list[dict[str, Any]] = []
    with Store(store) as opened:
        for file in files:
            imported = import_file(file, opened, facts)
            timings = imported.timings
            counts = Counter((timing.case.collective, timing.case.experiment, timing.case.procs) for timing in timings)
            numbers = [
                {"collective": collective, "experiment": experiment, "procs": of, "number": number}
                for (collective, experiment, of), number in counts.items()
            ]
            records.append({"file": str(file), "failed": sum(not timing.ok for timing in timings), "times": numbers})
            if missing := imported.asked - len(timings):
                note(f"{file}: {missing} of {imported.asked} cases have no record: the run there ended early")
    if as_json:
        print_json(records)
    else:
        cells = [(record["file"], *one.values()) for record in records for one in record["times"]]
        print_table(str(store), ["file", "collective", "experiment", "P", "times"], cells, left=3)
    if failed := sum(record["failed"] for record in records):
        raise CollwiseError(f"{failed} cases had failed there; they are stored as failed")
