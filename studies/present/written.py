"""A script that measures where collwise is not installed, and the number of times that were deleted."""

from __future__ import annotations

from collwise.common.units import counted
from collwise.store_contents import Deleted
from collwise.studies.present.shown import Shown
from collwise.timings import Script


def shown(found: Script | Deleted) -> Shown:
    """How to run the script, or the number of times."""
    if isinstance(found, Script):
        line = f"{found.path}: {counted(found.cases, 'case')}; run it there by: {found.words}"
        return Shown([line], [{"file": str(found.path), "cases": found.cases}])
    return Shown([f"deleted: {found} times" if found else "nothing to delete"], [{"deleted": int(found)}])
