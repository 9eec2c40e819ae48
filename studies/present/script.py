"""A script that measures where collwise is not installed."""

from __future__ import annotations

from collwise.common.units import counted
from collwise.studies.present.shown import Shown
from collwise.timings import Script


def shown(found: Script) -> Shown:
    """How to run it."""
    line = f"{found.path}: {counted(found.cases, 'case')}; run it there by: {found.words}"
    return Shown([line], [{"file": str(found.path), "cases": found.cases}])
