"""collwise simulate, measure and search: they make times and fill the store with them."""

from __future__ import annotations

import collwise
from collwise.common.units import parse_duration
from collwise.studies.cli import options
from collwise.studies.cli.declare import group, option
from collwise.studies.cli.derive import derived
from collwise.studies.cli.target_options import TARGET
from collwise.studies.cli.types import NAMES, NEW_FILE, NEW_SCRIPT, PLATFORM, Parsed, Scaled
from collwise.validation.adaptive.goal import LOSS, Goal

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
    platform=option(PLATFORM),
    raw=option(NEW_FILE),
    script=option(NEW_SCRIPT),
    context=options.STORED,
    figures=True,
)

search = derived(
    collwise.measure_adaptively,
    "search --collective bcast,allreduce --procs 4 --sizes 1KiB:1MiB:x4 --budget 2min",
    name="search",
    goal=group(
        Goal,
        budget_seconds=option(Parsed("duration", parse_duration), Goal.budget_seconds, show_default=False),
        loss=option(Scaled(0.01), LOSS * 100),
    ),
    platform=option(PLATFORM),
    method=options.METHOD_OF_ROUNDS,
    context=options.simulation("schedule"),
)
