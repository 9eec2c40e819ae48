"""Warnings on stderr, one line each."""

from __future__ import annotations

import sys
from functools import cache


@cache
def warn(message: str) -> None:
    """Prints a warning on stderr, once for each message."""
    print(f"collwise: warning: {message}", file=sys.stderr)
