"""collwise simulate and measure: they make times and fill the store with them."""

from __future__ import annotations

import collwise
from collwise.studies.cli import options
from collwise.studies.cli.declare import option
from collwise.studies.cli.derive import derived
from collwise.studies.cli.options import TARGET
from collwise.studies.cli.types import NAMES, NEW_FILE, NEW_SCRIPT, PLATFORM

simulate = derived(
    collwise.simulate,
    "simulate --platform gros --collective bcast --procs 4,8 --sizes 8KiB:64KiB:x2",
    context=options.simulation(called=True),
    figures=True,
    beside=option(NAMES, ()),
)

measure = derived(
    collwise.measure,
    "measure --library openmpi --collective bcast --procs 4 --sizes 8KiB:64KiB:x2",
    target=TARGET,
    confirm=options.CROWDED,
    platform=option(PLATFORM),
    raw=option(NEW_FILE),
    script=option(NEW_SCRIPT),
    context=options.STORED,
    figures=True,
)
