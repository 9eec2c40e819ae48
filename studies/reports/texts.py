"""The sentences of reports and studies: blocks of templates (Jinja) beside the modules that fill in what they found."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

import jinja2

from collwise.common.units import counted, format_seconds, format_size
from collwise.studies.reports.markdown import percent


class Texts:
    """A template whose blocks are paragraphs; blank lines divide those of a block."""

    def __init__(self, template: str, folder: Path = Path(__file__).parent) -> None:
        self._name, self._folder = template, folder

    @cached_property
    def _template(self) -> jinja2.Template:
        # A report without a number that it should have is an error, not a sentence with a gap.
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
        """The paragraphs of a block, each on one line; those that the values leave empty are left out."""
        template = self._template
        text = "".join(template.blocks[block](template.new_context(values)))
        return [" ".join(words) for one in text.split("\n\n") if (words := one.split())]

    def line(self, block: str, /, **values: Any) -> str:
        """A block of one paragraph; empty if the values leave nothing of it."""
        return " ".join(self.paragraphs(block, **values))
