"""collwise import: times that were measured elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import click

from collwise.common.errors import CollwiseError
from collwise.simulator.store import Store
from collwise.studies.cli.commands import example
from collwise.studies.cli.options import json_option, print_json, store_option
from collwise.studies.cli.tables import stdout_console, table
from collwise.validation.measurement.imports import FORMATS, import_file
from collwise.validation.measurement.imports.reading import MissingFacts


@click.command(
    "import",
    help=f"Reads times that were measured elsewhere into the store: {FORMATS}.",
    epilog=example("import osu_bcast.txt --platform mycluster --procs 64"),
)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--platform", default="", help="Where it was measured. Scripts' results say it; others need it.")
@click.option("--procs", type=click.IntRange(1), help="P, where the file does not say it (OSU).")
@click.option("--ppn", type=click.IntRange(1), default=1, show_default=True, help="Processes per node, of others.")
@store_option
@json_option
def import_times(files: Sequence[Path], platform: str, procs: int | None, ppn: int, store: Path, as_json: bool) -> None:
    """See the command's help above: it names the formats."""
    facts = MissingFacts(platform, procs or 0, ppn)
    rows = []
    with Store(store) as opened:
        for file in files:
            imported = import_file(file, opened, facts)
            timings = imported.timings
            counts = Counter((timing.case.collective, timing.case.experiment, timing.case.procs) for timing in timings)
            failed = sum(not timing.ok for timing in timings)
            rows.append((file, counts, failed, imported))
    if as_json:
        print_json(
            [
                {
                    "file": str(file),
                    "failed": failed,
                    "times": [
                        {"collective": collective, "experiment": experiment, "procs": of, "number": number}
                        for (collective, experiment, of), number in counts.items()
                    ],
                }
                for file, counts, failed, _ in rows
            ]
        )
    else:
        cells = [(file, *key, number) for file, counts, _, _ in rows for key, number in counts.items()]
        stdout_console().print(table(str(store), ["file", "collective", "experiment", "P", "times"], cells, left=3))
    for file, _, _, imported in rows:
        if missing := imported.asked - len(imported.timings):
            said = f"{missing} of {imported.asked} cases have no record: the run there ended early"
            click.echo(f"collwise: {file}: {said}", err=True)
    if any(failed for _, _, failed, _ in rows):
        raise CollwiseError(
            f"{sum(failed for _, _, failed, _ in rows)} cases had failed there; they are stored as failed"
        )
