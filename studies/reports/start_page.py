"""The folder that `collwise studio` opens: the notebooks, and the page with the questions that they answer."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import NamedTuple

import jinja2
import jupytext

from collwise.common.files import writable_folder, write_text
from collwise.common.folders import SOURCES
from collwise.common.program import program_name
from collwise.studies.papers.notebook import document_of, known_studies

START = "start.html"
EXECUTED = SOURCES / "docs" / "notebooks"
"""The folder of executed notebooks about questions, with the output of their cells; docs/regenerate.py writes it."""
SLIDERS = "whatif_sliders"
"""The notebook that is also a page without code."""
_QUESTION = re.compile(r"\*\*([^*]+\?)\*\*")


class Entry(NamedTuple):
    """A notebook on the start page: its name, its title, and the question that it answers."""

    name: str
    title: str
    question: str

    @classmethod
    def of(cls, name: str, notebook: Path) -> Entry:
        """The entry of a notebook in percent format: the heading and the bold question, if any, of its first cell."""
        first = document_of(notebook).cells[0].source
        title, _, text = first.removeprefix("# ").partition("\n")
        found = _QUESTION.search(text)
        return cls(name, title, " ".join(found[1].split()) if found else "")


def write_studio(folder: Path) -> None:
    """Writes the start page and the notebooks into a folder; existing notebooks stay as they are.

    Raises UsageError for a folder that cannot be written.
    """
    writable_folder(folder)
    known = known_studies()
    for name, text in known.items():
        notebook, executed = folder / f"{name}.ipynb", EXECUTED / f"{name}.ipynb"
        if notebook.exists():
            continue
        if executed.exists():
            shutil.copyfile(executed, notebook)
        else:
            write_text(notebook, jupytext.writes(document_of(text), fmt="ipynb"))
    entries = [Entry.of(*entry) for entry in known.items()]
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=jinja2.StrictUndefined
    )
    page = environment.get_template(START).render(
        questions=[entry for entry in entries if entry.question and entry.name != SLIDERS],
        papers=[entry for entry in entries if not entry.question],
        sliders=SLIDERS,
        program=program_name(),
    )
    write_text(folder / START, page)
