"""collwise whatif and sweep: which choices and times change if a platform does, and at which factors."""

from __future__ import annotations

import collwise
from collwise.platforms.changes import CHANGES
from collwise.simulator.sweeps.context import SCHEDULE
from collwise.studies.cli import options
from collwise.studies.cli.derive import derived

_CHANGES = "\n".join(f"  {name}={kind.example}: {kind.meaning}" for name, kind in CHANGES.items())

whatif = derived(
    collwise.whatif,
    "whatif --platform gros --collective allreduce --procs 16,62 --sizes 1KiB,1MiB --change bandwidth=x0.25",
    more=f"\b\nChanges, made in the order given:\n{_CHANGES}",
    figures=True,
    context=options.simulation(SCHEDULE.name),
)
sweep = derived(
    collwise.sweep,
    "sweep --platform gros --collective allreduce --procs 62 --sizes 1MiB --factors bandwidth=x0.25:x8",
    figures=True,
    context=options.simulation(SCHEDULE.name),
)
