"""Tables that fit a terminal of any width: cells and columns are folded or split into parts, never cropped."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, JustifyMethod, RenderResult
from rich.table import Table as RichTable
from rich.text import Text

from collwise.studies.present.shown import Table

# Rich crops tables that are wider than its console, so a console for a file or a pipe is wider than any table.
_UNBOUNDED = 100_000
# Columns of long text are folded to this width if nothing else bounds them.
_WIDEST_TEXT = 160
# A number and its unit are one word.
_UNITS = r"(?:[kKMGT]i?)?(?:B|bit)(?:/s)?|[mun]?s|%"
_BETWEEN_WORDS = re.compile(rf"(?<![0-9]) | (?!(?:{_UNITS})(?:[\s,;)]|$))")
_BORDERS_PER_COLUMN = 3


def stdout_console() -> Console:
    """A console for results. COLUMNS or the terminal gives its width, which is otherwise unbounded."""
    columns = os.environ.get("COLUMNS", "")
    terminal = sys.stdout.isatty()
    width = int(columns) if columns.isdecimal() and int(columns) else None if terminal else _UNBOUNDED
    return Console(width=width, no_color=None if terminal else True)


class WholeTable:
    """A table that shows every cell whole at any width.

    The first `left` columns are aligned left, the others right. If the table is too wide, cells and heads are folded
    between words. If that is not enough, the columns are split into parts. Each part repeats the first `keys` columns:
    by default the columns aligned left, or one column if all columns or none are aligned left. If some column does not
    fit together with the keys, each row becomes a list of its cells. `wrap` folds long cells even if nothing bounds the
    width.
    """

    def __init__(self, table: Table) -> None:
        self.title, self.columns, self.left, self.wrap = table.title, table.columns, table.left, table.wrap
        self.rows = [list(map(str, row)) for row in table.rows]
        self.keys = table.keys if table.keys is not None else table.left if 0 < table.left < len(table.columns) else 1

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
        """The columns of each part; empty if some column does not fit together with the keys."""
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
        """Widths at which the columns fit; the widest columns shrink first. Empty if the longest words do not fit."""
        cells = [[self.columns[column], *(row[column] for row in self.rows)] for column in columns]
        natural = [max(cell_len(line) for cell in item for line in cell.split("\n")) for item in cells]
        least = [max(cell_len(word) for cell in item for word in _words(cell)) for item in cells]
        available = width - _BORDERS_PER_COLUMN * len(columns) - 1
        if sum(least) > available:
            return []
        found, cap = natural, max(natural)
        while sum(found) > available:
            cap -= 1
            found = [max(low, min(high, cap)) for low, high in zip(least, natural, strict=True)]
        return found

    def _table(self, part: Sequence[int], width: int) -> RichTable:
        made = RichTable(header_style="bold")
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
    """Lines of at most `width`, broken between words, or in long words after a / _ : or =."""
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
