"""What commands print: tables, JSON, and the progress of long work."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from collwise.common.errors import CollwiseError
from collwise.common.notices import note
from collwise.simulator.sweeps.runner import Progress as SweepProgress
from collwise.simulator.timing import Timing
from collwise.studies.cli.tables import stdout_console, table

# How often a sweep without a terminal says how far it is.
_TELL_EVERY_SECONDS = 30.0


def print_table(
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    left: int = 1,
    wrap: bool = False,
    keys: int | None = None,
) -> None:
    """Prints a table on standard output; see `table`."""
    stdout_console().print(table(title, columns, rows, left, wrap, keys))


def print_json(document: Any) -> None:
    """JSON on standard output; nan and infinity, which JSON has not, become null."""
    click.echo(json.dumps(_finite(document), indent=2))


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(entry) for entry in value]
    return value


@contextmanager
def sweep_progress(label: str) -> Iterator[SweepProgress]:
    """A progress bar on stderr with cases done and time left; failures are printed as they come."""
    console = Console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TextColumn("{task.fields[cases]} cases"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    with bar:
        task = bar.add_task(label, total=1.0, cases=0)
        done = 0
        told = time.monotonic()

        def advance(timing: Timing, fraction: float) -> None:
            nonlocal done, told
            done += 1
            bar.update(task, completed=fraction, cases=done)
            if not console.is_terminal and time.monotonic() - told > _TELL_EVERY_SECONDS:
                told = time.monotonic()
                note(f"{label}: {fraction * 100:.0f} %, {done} cases")
            if not timing.ok:
                console.print(f"collwise: failed: {describe(timing)}", highlight=False, soft_wrap=True)

        yield advance


def describe(timing: Timing) -> str:
    """A failed case in one line."""
    case = timing.case
    return (
        f"{case.collective} {case.algorithm} P={case.procs} m={case.message_bytes} m_s={case.segment_bytes}: "
        f"{timing.error}"
    )


def check_failed(failed: Sequence[Timing]) -> None:
    """Raises CollwiseError, which names the first one, if any case failed."""
    if failed:
        raise CollwiseError(f"{len(failed)} cases failed; first: {describe(failed[0])}")
