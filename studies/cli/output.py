"""The output of commands: tables, JSON, and the progress of long work.

Tables fit a terminal of any width: cells and columns that do not fit are folded or split into parts, never cropped.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
import shlex
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import click
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, JustifyMethod, RenderResult
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from collwise.common.errors import CollwiseError, note
from collwise.common.units import counted
from collwise.simulator.sweeps.runner import Progress as SweepProgress
from collwise.simulator.timing import Timing
from collwise.studies.cli.commands import AllCommands

CSV = "collwise.csv"
"""The key in click's context under which --csv is kept."""
# Rich crops tables that are wider than its console, so a console for a file or a pipe is wider than any table.
_UNBOUNDED = 100_000
# Columns of long text are folded to this width if nothing else bounds them.
_WIDEST_TEXT = 160
# A number and its unit are one word.
_UNITS = r"(?:[kKMGT]i?)?(?:B|bit)(?:/s)?|[mun]?s|%"
_BETWEEN_WORDS = re.compile(rf"(?<![0-9]) | (?!(?:{_UNITS})(?:[\s,;)]|$))")
_BORDERS_PER_COLUMN = 3
# The interval at which a sweep without a terminal reports its progress.
_TELL_EVERY_SECONDS = 30.0


def own_command() -> str:
    """The command that runs, as a shell takes it."""
    return shlex.join(["collwise", *sys.argv[1:]])


def stdout_console() -> Console:
    """A console for results: as wide as the terminal or COLUMNS says, unbounded where neither does."""
    columns = os.environ.get("COLUMNS", "")
    terminal = sys.stdout.isatty()
    width = int(columns) if columns.isdecimal() and int(columns) else None if terminal else _UNBOUNDED
    return Console(width=width, no_color=None if terminal else True)


class WholeTable:
    """A table that shows every cell whole at any width.

    The first `left` columns are aligned left, the others right. Where the table is too wide, cells and heads are
    folded between words; where that is not enough, the columns are split into parts that each repeat the first `keys`
    columns, by default those aligned left, or one if all or none are; where even one column beside the keys is too
    wide, each row becomes a list of its cells. `wrap` folds long cells also where nothing bounds the width.
    """

    def __init__(
        self,
        title: str,
        columns: Sequence[str],
        rows: Sequence[Sequence[object]],
        left: int = 1,
        wrap: bool = False,
        keys: int | None = None,
    ) -> None:
        self.title, self.columns, self.left, self.wrap = title, columns, left, wrap
        self.rows = [list(map(str, row)) for row in rows]
        self.keys = keys if keys is not None else left if 0 < left < len(columns) else 1

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = min(options.max_width, _WIDEST_TEXT) if self.wrap else options.max_width
        parts = self._parts(width)
        if not parts:
            yield Text(f"{self.title} (the table is wider than {width} columns: row by row)", style="bold")
            yield from self._row_by_row(width)
        for number, part in enumerate(parts, start=1):
            of = f" (part {number} of {len(parts)}: the table is wider than {width} columns)" if len(parts) > 1 else ""
            yield Text(self.title + of, style="bold")
            yield self._table(part, width)

    def _parts(self, width: int) -> list[list[int]]:
        """The columns of each part; none if a part of one column beside the keys does not fit."""
        keys = list(range(self.keys))
        parts: list[list[int]] = []
        for column in range(self.keys, len(self.columns)):
            if parts and self._widths([*parts[-1], column], width):
                parts[-1].append(column)
            elif self._widths([*keys, column], width):
                parts.append([*keys, column])
            else:
                return []
        return parts or ([keys] if self._widths(keys, width) else [])

    def _widths(self, columns: Sequence[int], width: int) -> list[int]:
        """Widths of these columns that fit, taken from the widest first; none if their longest words do not fit."""
        cells = [[self.columns[column], *(row[column] for row in self.rows)] for column in columns]
        natural = [max(cell_len(line) for cell in one for line in cell.split("\n")) for one in cells]
        least = [max(cell_len(word) for cell in one for word in _words(cell)) for one in cells]
        available = width - _BORDERS_PER_COLUMN * len(columns) - 1
        if sum(least) > available:
            return []
        found, cap = natural, max(natural)
        while sum(found) > available:
            cap -= 1
            found = [max(low, min(high, cap)) for low, high in zip(least, natural, strict=True)]
        return found

    def _table(self, part: Sequence[int], width: int) -> Table:
        made = Table(header_style="bold")
        widths = self._widths(part, width)
        for column, room in zip(part, widths, strict=True):
            justify: JustifyMethod = "left" if column < self.left else "right"
            made.add_column(_cell(self.columns[column], room), justify=justify, no_wrap=True, width=room)
        for row in self.rows:
            made.add_row(*(_cell(row[column], room) for column, room in zip(part, widths, strict=True)))
        return made

    def _row_by_row(self, width: int) -> Iterator[Text]:
        for row in self.rows:
            yield Text()
            for column, cell in zip(self.columns, row, strict=True):
                yield _cell(f"{column}: {cell}" if column else cell, width)


def _words(text: str) -> list[str]:
    return [word for line in text.split("\n") for word in _BETWEEN_WORDS.split(line)]


def _cell(text: str, width: int) -> Text:
    return Text("\n".join(_folded(text, width)))


def _folded(text: str, width: int) -> Iterator[str]:
    """Lines of at most `width`, broken between words; a longer word after / _ : or =, else where the line ends."""
    pieces = re.compile(rf".{{1,{max(width - 1, 1)}}}[/_:=]|.{{1,{max(width, 1)}}}")
    for line in text.split("\n"):
        folded = ""
        for word in _BETWEEN_WORDS.split(line):
            if folded and cell_len(folded) + 1 + cell_len(word) > width:
                yield folded
                folded = word
            else:
                folded = f"{folded} {word}" if folded else word
            if cell_len(folded) > width:
                *full, folded = pieces.findall(folded)
                yield from full
        yield folded


def print_table(
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    left: int = 1,
    wrap: bool = False,
    keys: int | None = None,
) -> None:
    """Prints a table on standard output; see WholeTable."""
    stdout_console().print(WholeTable(title, columns, rows, left, wrap, keys))


def print_json(rows: Sequence[Mapping[Any, Any]], facts: Mapping[str, Any] | None = None) -> None:
    """Prints a command's rows, and facts beside them, as one document of JSON, or with --csv the rows alone as CSV.

    docs/json.md describes the form; json_schema.py has the columns of each command. nan and infinity, which JSON has
    not, become null.
    """
    from importlib.metadata import version  # which takes longer than all else that commands need for their help

    context = click.get_current_context()
    if context.meta.get(CSV):
        click.echo(csv_text([_finite(row) for row in rows]), nl=False)
        return
    document = {
        "collwise": version("collwise"),
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
    """Rows as CSV, with the columns of all of them; lists and objects in a cell are JSON."""
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
        raise CollwiseError(f"{counted(len(failed), 'case')} failed; first: {describe(failed[0])}")
