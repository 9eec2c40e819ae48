"""Notices and warnings on stderr, one line each."""

from __future__ import annotations

import sys
from functools import cache


def note(message: str) -> None:
    """Prints something that stands beside the results on stderr."""
    print(f"collwise: {message}", file=sys.stderr)


@cache
def warn(message: str) -> None:
    """Prints a warning on stderr, once for each message."""
    print(f"collwise: warning: {message}", file=sys.stderr)
