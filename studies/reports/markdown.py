"""Markdown for reports, pages of studies and the docs: tables, shares in percent, and sentences.

Sentences are blocks of Jinja templates, which are in the same folders as the modules that fill them in.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from collwise.common.units import counted, format_seconds, format_size

if TYPE_CHECKING:
    import jinja2


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
    """A share as text such as '12.3 %', with a sign if asked for; '-' for nan."""
    return "-" if math.isnan(part) else f"{part * 100:{'+' if sign else 'z'}.{digits}f} %"


def whole_percent(slowdown: float) -> str:
    """A slowdown in whole percent, such as '3' or '160'; '-' for nan, and '0' without a minus sign."""
    return "-" if math.isnan(slowdown) else f"{slowdown * 100:z.0f}"


class Texts:
    """A template whose blocks consist of paragraphs, which blank lines divide."""

    def __init__(self, template: str, folder: Path = Path(__file__).parent) -> None:
        self._name, self._folder = template, folder

    @cached_property
    def _template(self) -> jinja2.Template:
        import jinja2

        # StrictUndefined raises an error if a report lacks a number; otherwise its sentence would have a gap.
        environment = jinja2.Environment(
            loader=jinja2.FileSystemLoader(self._folder),
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        environment.filters |= {"size": format_size, "percent": percent, "counted": counted}
        environment.filters |= {"seconds": lambda value: format_seconds(float(value)), "number": format}
        return environment.get_template(self._name)

    def paragraphs(self, block: str, /, **values: Any) -> list[str]:
        """The paragraphs of a block, each on one line; paragraphs that are empty for these values are left out."""
        template = self._template
        text = "".join(template.blocks[block](template.new_context(values)))
        return [" ".join(words) for name in text.split("\n\n") if (words := name.split())]

    def line(self, block: str, /, **values: Any) -> str:
        """The text of a block of one paragraph; empty if the paragraph is empty for these values."""
        return " ".join(self.paragraphs(block, **values))
