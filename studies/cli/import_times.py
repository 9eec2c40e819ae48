"""collwise import: times that were measured elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from collwise.common.errors import CollwiseError, note
from collwise.studies.cli import options
from collwise.studies.cli.declare import argument, command, option
from collwise.studies.cli.output import print_json, print_table
from collwise.studies.cli.types import PATH
from collwise.validation.measurement.imports import FORMATS, import_file
from collwise.validation.measurement.imports.reading import MissingFacts


@command(
    "import osu_bcast.txt --platform mycluster --procs 64",
    "import",
    help=f"Reads times that were measured elsewhere into the store: {FORMATS}.",
)
def import_times(
    files: Sequence[Path] = argument(PATH, nargs=-1, required=True),
    platform: str = option(
        "The name of the measured platform. Results of scripts contain it; other files need it.", default=""
    ),
    procs: int | None = option("The process count, if the file does not contain it (OSU).", click.IntRange(1)),
    ppn: int = option("Processes per node, for files of other programs.", click.IntRange(1), 1),
    store: Path = options.STORE,
    as_json: bool = options.JSON,
) -> None:
    """See the command's help above: it names the formats."""
    from collwise.simulator.store import Store

    facts = MissingFacts(platform, procs or 0, ppn)
    records: list[dict[str, Any]] = []
    with Store(store) as opened:
        for file in files:
            imported = import_file(file, opened, facts)
            timings = imported.timings
            counts = Counter((timing.case.collective, timing.case.experiment, timing.case.procs) for timing in timings)
            times = [
                {"collective": collective, "experiment": experiment, "procs": of, "number": number}
                for (collective, experiment, of), number in counts.items()
            ]
            records.append({"file": str(file), "failed": sum(not timing.ok for timing in timings), "times": times})
            if missing := imported.asked - len(timings):
                note(f"{file}: {missing} of {imported.asked} cases have no record: the run there ended early")
    if as_json:
        print_json(records)
    else:
        cells = [(record["file"], *one.values()) for record in records for one in record["times"]]
        print_table(str(store), ["file", "collective", "experiment", "P", "times"], cells, left=3)
    if failed := sum(record["failed"] for record in records):
        raise CollwiseError(f"{failed} cases had failed there; they are stored as failed")
