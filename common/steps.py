"""Lines on stderr about steps that take a while, such as compiling."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

_CLEAR_LINE = "\r\x1b[K"


@contextlib.contextmanager
def step(what: str) -> Iterator[Callable[[str], None]]:
    """Prints on stderr what is being done, and at the end how many seconds it took.

    It yields a function that shows the progress and the seconds so far, on terminals only.
    """
    started = time.monotonic()
    is_terminal = sys.stderr.isatty()

    def say(ending: str, end: str = "\n") -> None:
        print(f"{_CLEAR_LINE if is_terminal else ''}collwise: {what}{ending}", end=end, file=sys.stderr, flush=True)

    def elapsed() -> str:
        return f"{time.monotonic() - started:.0f} s"

    def show(how_far: str) -> None:
        if is_terminal:
            say(f": {how_far}, {elapsed()}", end="")

    say("", end="" if is_terminal else "\n")
    try:
        yield show
    except BaseException:
        if is_terminal:
            print(file=sys.stderr)
        raise
    say(f": done in {elapsed()}")
