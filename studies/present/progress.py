"""The progress of long work, shown by Rich, which loads only when it is needed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from collwise.common.errors import note
from collwise.common.units import counted

if TYPE_CHECKING:
    from collwise.simulator.sweeps.runner import Progress as SweepProgress
    from collwise.simulator.timing import Timing

# The interval at which work without a terminal reports its progress.
_TELL_EVERY_SECONDS = 30.0


@contextmanager
def sweep_progress(label: str) -> Iterator[SweepProgress]:
    """A progress bar on stderr with the time left and the number of finished cases. It prints failures at once."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from collwise.studies.present.shown import describe

    # Failures must not become output of a notebook's cell.
    console = Console(stderr=True, force_jupyter=False)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TextColumn("{task.fields[cases]}"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    with bar:
        task = bar.add_task(label, total=1.0, cases="")
        finished = 0
        began = told = time.monotonic()

        def advance(timing: Timing | None, done: float, cases: int = 0, /) -> None:
            nonlocal finished, told
            finished += timing is not None
            number = f"{finished} of {counted(cases, 'case')}" if finished else ""
            bar.update(task, completed=done, cases=number)
            now = time.monotonic()
            if not console.is_terminal and now - told > _TELL_EVERY_SECONDS:
                told = now
                left = f"about {(now - began) * (1 / done - 1) / 60:.0f} min left" if done > 0 else ""
                note(", ".join(filter(None, (f"{label}: {done * 100:.0f} %", number, left))))
            if timing is not None and not timing.ok:
                console.print(f"collwise: failed: {describe(timing)}", highlight=False, soft_wrap=True)

        yield advance
