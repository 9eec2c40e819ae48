"""What a study's notebook and the command line share: where results go, and running a notebook without Jupyter.

A notebook is Python text in percent format (cells start with '# %%'). Its code calls `study(NAME)` and shows tables,
figures and sentences through what it gets. In JupyterLab these appear below the cells; run by `run`, they are gathered
with the narrative into a Markdown page.
"""

from __future__ import annotations

import builtins
import importlib
import importlib.util
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from collwise.common.errors import CollwiseError, unknown_name
from collwise.common.files import write_text
from collwise.simulator.store import Store, default_store_path
from collwise.simulator.sweeps.context import SimulationContext, no_progress
from collwise.simulator.sweeps.runner import Progress

_STORE, _SIMGRID, _JOBS, _QUICK = "COLLWISE_STORE", "COLLWISE_SIMGRID", "COLLWISE_JOBS", "COLLWISE_QUICK"
_JUPYTER = ("jupytext", "nbclient", "ipykernel")


@dataclass
class Study:
    """The study that runs: its settings for simulations, and what it has shown so far.

    `quick` asks for fewer points where all of them take many minutes. `results` becomes the JSON file; `conclusions`
    are repeated on the terminal.
    """

    name: str
    folder: Path
    store: Path
    simgrid: str | None = None
    jobs: int | None = None
    progress: Callable[[str], AbstractContextManager[Progress]] = no_progress
    quick: bool = False
    page: list[str] = field(default_factory=list)
    figures: list[Path] = field(default_factory=list)
    results: dict[str, Any] = field(default_factory=dict)
    conclusions: list[str] = field(default_factory=list)

    @contextmanager
    def context(self) -> Iterator[SimulationContext]:
        """The context of the study's simulations, with its store open."""
        with Store(self.store) as opened:
            yield SimulationContext(opened, simgrid=self.simgrid, jobs=self.jobs, progress=self.progress)

    def text(self, markdown: str) -> None:
        """Shows a paragraph."""
        self.page.append(markdown)
        self._display("Markdown", markdown)

    def conclude(self, sentence: str) -> None:
        """Shows a conclusion as an item of a list."""
        self.conclusions.append(sentence)
        self.text(f"- {sentence}")

    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Shows a table."""
        lines = [columns, ["---"] * len(columns), *rows]
        body = "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)
        self.text(f"**{title}**\n\n{body}")

    def figure(self, figure: Figure, name: str, caption: str) -> None:
        """Shows a figure; outside Jupyter it is written as NAME.png."""
        from collwise.studies.figures.style import save

        if _in_jupyter():
            with tempfile.TemporaryDirectory(prefix="collwise-") as directory:
                data = save(figure, Path(directory, f"{name}.png")).read_bytes()
            display = importlib.import_module("IPython.display")
            display.display(display.Image(data))
            self.text(caption)
            return
        path = save(figure, self.folder / f"{name}.png")
        self.figures.append(path)
        self.page.append(f"![{caption}]({path.name})\n\n{caption}")

    def _display(self, kind: str, content: str) -> None:
        if _in_jupyter():
            display = importlib.import_module("IPython.display")
            display.display(getattr(display, kind)(content))


_running: Study | None = None


def study(name: str) -> Study:
    """The study being run; in JupyterLab one with settings from the environment (COLLWISE_STORE and its like)."""
    if _running is not None:
        return _running
    jobs = os.environ.get(_JOBS)
    store = Path(os.environ.get(_STORE) or default_store_path())
    found = Study(name, Path("results") / name, store, os.environ.get(_SIMGRID) or None, int(jobs) if jobs else None)
    found.quick = bool(os.environ.get(_QUICK))
    return found


def _in_jupyter() -> bool:
    return hasattr(builtins, "get_ipython") or "ipykernel" in sys.modules


def known_studies() -> dict[str, Path]:
    """Every study's notebook by name: studies/NAME/NAME.py."""
    here = Path(__file__).parent
    found = {folder.name: folder / f"{folder.name}.py" for folder in sorted(here.iterdir()) if folder.is_dir()}
    return {name: notebook for name, notebook in found.items() if notebook.is_file()}


def notebook_of(name: str) -> Path:
    """The notebook of a study. Raises UsageError for an unknown name."""
    known = known_studies()
    if name not in known:
        raise unknown_name("study", name, known)
    return known[name]


@dataclass(frozen=True)
class Cell:
    """A cell of a percent-format notebook; `line` is that of its first line of text, from 1."""

    is_markdown: bool
    text: str
    line: int


def cells(source: str) -> Iterator[Cell]:
    """The cells of a percent-format text. What comes before the first '# %%' is its header and left out."""
    lines = source.splitlines()
    starts = [number for number, line in enumerate(lines) if line.startswith("# %%")]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        body = lines[start + 1 : end]
        is_markdown = "[markdown]" in lines[start]
        if is_markdown:
            body = [line.removeprefix("#").removeprefix(" ") for line in body]
        yield Cell(is_markdown, "\n".join(body).strip("\n"), start + 2)


def run(settings: Study) -> list[Path]:
    """Runs a study's notebook cell by cell and writes its page, figures and results; returns the files.

    Where Jupyter's tools are installed (the 'studio' extra), the executed notebook is written too.
    Raises UsageError for an unknown study or an unwritable folder, CollwiseError when a simulated case fails.
    """
    global _running
    notebook = notebook_of(settings.name)
    page, results = settings.folder / f"{settings.name}.md", settings.folder / f"{settings.name}.json"
    write_text(results, "{}\n")
    namespace: dict[str, Any] = {"__name__": f"collwise.studies.{settings.name}"}
    _running = settings
    try:
        for cell in cells(notebook.read_text(encoding="utf-8")):
            if cell.is_markdown:
                settings.page.append(cell.text)
            else:
                lines_before = "\n" * (cell.line - 1)
                exec(compile(lines_before + cell.text, str(notebook), "exec"), namespace)
    finally:
        _running = None
    write_text(page, "\n\n".join(settings.page) + "\n")
    write_text(results, json.dumps(settings.results, indent=2, allow_nan=False) + "\n")
    return [page, results, *settings.figures, *_executed(notebook, settings)]


def _executed(notebook: Path, settings: Study) -> list[Path]:
    if any(importlib.util.find_spec(name) is None for name in _JUPYTER):
        return []
    jupytext, nbclient = importlib.import_module("jupytext"), importlib.import_module("nbclient")
    document = jupytext.read(notebook)
    environment = os.environ | {_STORE: str(settings.store.resolve())}
    environment |= {_SIMGRID: settings.simgrid or "", _JOBS: str(settings.jobs or ""), _QUICK: "1" * settings.quick}
    try:
        nbclient.NotebookClient(document, timeout=None, kernel_name="python3").execute(env=environment)
    except nbclient.exceptions.CellExecutionError as problem:
        raise CollwiseError(f"{notebook.name} failed in Jupyter: {problem.ename}: {problem.evalue}") from None
    path = settings.folder / f"{settings.name}.ipynb"
    write_text(path, jupytext.writes(document, fmt="ipynb"))
    return [path]
