"""The number of times that were deleted."""

from __future__ import annotations

from collwise.store_contents import Deleted
from collwise.studies.present.shown import Shown


def shown(number: Deleted) -> Shown:
    """The number, in a sentence."""
    return Shown([f"deleted: {number} times" if number else "nothing to delete"], [{"deleted": int(number)}])
