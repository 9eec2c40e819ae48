"""Warnings: one line on stderr, each once."""

from __future__ import annotations

import sys
from functools import cache


@cache
def warn(message: str) -> None:
    """Prints a warning, unless the same one was printed before."""
    print(f"collwise: warning: {message}", file=sys.stderr)
