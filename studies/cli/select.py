"""collwise select, export and compare: decision tables, rules that MPI libraries read, and what choices cost."""

from __future__ import annotations

import click

import collwise
from collwise.studies.cli.declare import option
from collwise.studies.cli.derive import derived
from collwise.studies.cli.types import NEW_FILE, NamedChoice
from collwise.validation.libraries.formats import FORMATS
from collwise.validation.select.consumers import OPENMPI

select = derived(collwise.select, "select bcast.times --for openmpi-4.1 -o bcast.json")
export = derived(
    collwise.export,
    "export bcast.json --version 4.1 -o mine.rules",
    output=option(NEW_FILE),
    format_name=option(NamedChoice("format", FORMATS), OPENMPI),
    procs=option(click.IntRange(1)),
)
compare = derived(collwise.compare, "compare bcast.times bcast.json openmpi-4.1 --figures figures", figures=True)
