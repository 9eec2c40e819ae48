"""collwise import: times that were measured elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import click

from collwise.common.errors import CollwiseError
from collwise.common.notices import note
from collwise.simulator.store import Store
from collwise.studies.cli import options
from collwise.studies.cli.declare import PATH, argument, command, option
from collwise.studies.cli.output import print_json, print_table
from collwise.validation.measurement.imports import FORMATS, import_file
from collwise.validation.measurement.imports.reading import MissingFacts


@command(
    "import osu_bcast.txt --platform mycluster --procs 64",
    "import",
    help=f"Reads times that were measured elsewhere into the store: {FORMATS}.",
)
def import_times(
    files: Sequence[Path] = argument(PATH, nargs=-1, required=True),
    platform: str = option("Where it was measured. Scripts' results say it; others need it.", default=""),
    procs: int | None = option("P, where the file does not say it (OSU).", click.IntRange(1)),
    ppn: int = option("Processes per node, of others.", click.IntRange(1), 1),
    store: Path = options.STORE,
    as_json: bool = options.JSON,
) -> None:
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
        print_table(str(store), ["file", "collective", "experiment", "P", "times"], cells, left=3)
    for file, _, _, imported in rows:
        if missing := imported.asked - len(imported.timings):
            said = f"{missing} of {imported.asked} cases have no record: the run there ended early"
            note(f"{file}: {said}")
    if any(failed for _, _, failed, _ in rows):
        raise CollwiseError(
            f"{sum(failed for _, _, failed, _ in rows)} cases had failed there; they are stored as failed"
        )
