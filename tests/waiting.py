"""Waiting for what happens in other processes, by looking rather than by sleeping for a time that ought to do."""

from __future__ import annotations

import time
from collections.abc import Callable

# Ends a wait for what never comes; on a busy machine something may come late.
PATIENCE_SECONDS = 600.0


def wait_for(happened: Callable[[], object], every_seconds: float = 0.01) -> None:
    """Returns as soon as `happened` does not return something false. Fails when that takes beyond all measure."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not happened():
        assert time.monotonic() < end, f"not seen within {PATIENCE_SECONDS:g} s"
        time.sleep(every_seconds)
