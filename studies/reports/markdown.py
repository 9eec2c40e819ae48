"""Tables as Markdown text, for reports, pages of studies and the docs, and shares in their cells."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence


def markdown_table(columns: Sequence[object], rows: Iterable[Sequence[object]], left: int | None = None) -> str:
    """A Markdown table that ends with a newline.

    The first `left` columns are aligned left and the others right; without `left`, alignment is the reader's default.
    Cells are not padded, so that a changed number changes one line.
    """
    right_from = len(columns) if left is None else left
    marks = ["---" if number < right_from else "---:" for number in range(len(columns))]
    lines = ([str(cell).replace("|", r"\|") for cell in line] for line in (columns, marks, *rows))
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def percent(part: float, sign: bool = False, digits: int = 1) -> str:
    """'12.3 %', with a sign if asked for; '-' for nan."""
    return "-" if math.isnan(part) else f"{part * 100:{'+' if sign else 'z'}.{digits}f} %"


def whole_percent(slowdown: float) -> str:
    """'3', '160': whole percent, without a minus sign for nothing; '-' where there is no time."""
    return "-" if math.isnan(slowdown) else f"{slowdown * 100:z.0f}"
