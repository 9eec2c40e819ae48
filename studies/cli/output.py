"""The output of commands: tables, JSON, and the progress of long work.

Rich shows tables and progress. It loads only when it is needed, so that a command's help is quick.
"""

from __future__ import annotations

import csv
import io
import json
import math
import shlex
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from collwise.common.errors import UsageError, note
from collwise.common.program import __version__, program_name
from collwise.common.units import counted
from collwise.studies.cli.commands import AllCommands
from collwise.studies.present.shown import Table, describe

if TYPE_CHECKING:
    from collwise.simulator.sweeps.runner import Progress as SweepProgress
    from collwise.simulator.timing import Timing

CSV = "collwise.csv"
"""The key in click's context under which --csv is kept."""
# The interval at which a sweep without a terminal reports its progress.
_TELL_EVERY_SECONDS = 30.0


def own_command() -> str:
    """The running command, quoted for a shell."""
    return f"{program_name()} {shlex.join(sys.argv[1:])}"


def print_table(table: Table) -> None:
    """Prints a table on standard output."""
    from collwise.studies.cli.tables import WholeTable, stdout_console

    stdout_console().print(WholeTable(table))


def confirm(question: str, consequence: str, yes: bool) -> None:
    """Asks whether to go on, unless --yes is given. Raises UsageError if nobody can answer."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(f"{consequence}; without a terminal, nobody can be asked: add --yes")
    click.confirm(question, abort=True, err=True)


def print_json(rows: Sequence[Mapping[Any, Any]], facts: Mapping[str, Any] | None = None) -> None:
    """Prints a command's rows and facts as one JSON document. With --csv it prints the rows alone.

    docs/json.md describes the form; json_schema.toml has the columns of each command. nan and infinity become null,
    since JSON has neither.
    """
    context = click.get_current_context()
    if context.meta.get(CSV):
        click.echo(csv_text([_finite(row) for row in rows]), nl=False)
        return
    document = {
        "collwise": __version__,
        "command": _called(context),
        "call": own_command(),
        "facts": facts or {},
        "rows": rows,
    }
    click.echo(json.dumps(_finite(document), indent=2))


def _called(context: click.Context) -> str:
    """The words of the command that runs, without `collwise`."""
    words: list[str] = []
    one: click.Context | None = context
    while one is not None and not isinstance(one.command, AllCommands):
        words.insert(0, str(one.info_name))
        one = one.parent
    return " ".join(words)


def csv_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as CSV, with every column that any row has. Lists and objects in cells become JSON."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(dict.fromkeys(key for row in rows for key in row)), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({key: json.dumps(cell) if isinstance(cell, dict | list) else cell for key, cell in row.items()})
    return text.getvalue()


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
    """A progress bar on stderr with the time left and the number of finished cases. It prints failures at once."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

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
