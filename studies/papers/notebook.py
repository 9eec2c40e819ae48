"""Runs a study's notebook in a fresh kernel, and writes its page, figures and results from what its cells show.

A notebook is Python text in percent format. A paper's notebook shows things through
`collwise.studies.papers.study.Study`, other notebooks show them as any notebook does.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click
import jupytext
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode

from collwise.common.errors import CollwiseError, UsageError, check_name
from collwise.common.files import note_replaced, writable_folder, write_text

_CONCLUSIONS, _TAKE_AWAY = "## Conclusions", "## What to take away"

OnCell = Callable[[str, float], None]
"""Takes the last heading and the share of the cells that are done."""


def known_studies() -> dict[str, Path]:
    """The notebook of every study by name: papers/NAME/NAME.py, and notebooks/NAME.py."""
    papers = Path(__file__).parent
    found = {folder.name: folder / f"{folder.name}.py" for folder in sorted(papers.iterdir())}
    found |= {path.stem: path for path in sorted((papers.parent / "notebooks").glob("[a-z]*.py"))}
    return {name: notebook for name, notebook in found.items() if notebook.is_file()}


def run(name: str, settings: Mapping[str, str], folder: Path, on_cell: OnCell) -> tuple[dict[str, Any], list[Path]]:
    """Executes a study's notebook and writes NAME.md, NAME.json, NAME.ipynb and the figures into a folder.

    `settings` are environment variables of the notebook's kernel. Returns the results and the files. When a cell fails,
    the notebook is written with the output of the cells before it.
    """
    known = known_studies()
    check_name("study", name, known)
    notebook = known[name]
    writable_folder(folder)
    note_replaced(folder / f"{name}.md")
    document = document_of(notebook)
    try:
        _execute(document, notebook, settings, on_cell)
    finally:
        write_text(folder / f"{name}.ipynb", jupytext.writes(document, fmt="ipynb"))
    text, results, pictures = _shown(document, name)
    for picture, data in pictures.items():
        (folder / picture).write_bytes(data)
    page, numbers = folder / f"{name}.md", folder / f"{name}.json"
    write_text(page, text)
    write_text(numbers, json.dumps(results, indent=2) + "\n")
    return results, [page, numbers, *(folder / picture for picture in pictures), folder / f"{name}.ipynb"]


def document_of(notebook: Path) -> NotebookNode:
    """The notebook of a text in percent format, with the kernel that it runs in."""
    document = jupytext.read(notebook, fmt="py:percent")
    document.metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    return document


class _Client(NotebookClient):
    """Passes on what the kernel writes to stderr, such as the progress of simulations, and keeps it out of cells."""

    def process_message(self, msg: dict[str, Any], cell: NotebookNode, cell_index: int) -> NotebookNode | None:
        if msg["msg_type"] == "stream" and msg["content"]["name"] == "stderr":
            sys.stderr.write(msg["content"]["text"])
            return None
        return super().process_message(msg, cell, cell_index)


def _execute(document: NotebookNode, notebook: Path, settings: Mapping[str, str], on_cell: OnCell) -> None:
    heading = ""

    def show_progress(cell: NotebookNode, cell_index: int) -> None:
        nonlocal heading
        titles = [line.lstrip("# ") for line in cell.source.splitlines() if line.startswith("#")]
        if cell.cell_type == "markdown" and titles:
            heading = titles[-1]
        on_cell(heading, cell_index / len(document.cells))

    where = {"metadata": {"path": str(notebook.parent)}}
    # The kernel's sockets are in a private folder of this user, since other users of the machine could listen on TCP.
    with tempfile.TemporaryDirectory(prefix="collwise-") as folder, Path(folder, "log").open("w+") as log:
        kernel = AsyncKernelManager(transport="ipc", connection_file=f"{folder}/kernel.json")
        client = _Client(document, km=kernel, timeout=None, resources=where, on_cell_start=show_progress)
        try:
            client.execute(env={**os.environ, **settings}, stderr=log, cleanup_kc=True)
        except CellExecutionError as problem:
            kinds = {item.__name__: item for item in (CollwiseError, UsageError)}
            if problem.ename in kinds:
                raise kinds[problem.ename](problem.evalue) from None
            click.echo(str(problem), err=True)
            raise CollwiseError(f"{notebook.name} failed: {problem.ename}: {problem.evalue}") from None
        except (AssertionError, RuntimeError) as problem:
            # After Ctrl-C the client ends the kernel, and then fails because the kernel is gone.
            if kernel.shutting_down:
                raise KeyboardInterrupt from None
            log.seek(0)
            sys.stderr.write(log.read())
            raise CollwiseError(f"{notebook.name} failed: {problem}") from None


def _shown(document: NotebookNode, name: str) -> tuple[str, dict[str, Any], dict[str, bytes]]:
    """The page of an executed notebook, the results that it published, and its pictures by file name.

    The notebook's conclusions are its last printed output, unless the notebook publishes other conclusions. The section
    of conclusions comes second on the page, although a notebook can only compute it last.
    """
    page: list[str] = []
    first: list[str] = []
    results: dict[str, Any] = {"conclusions": []}
    pictures: dict[str, bytes] = {}
    parts = page
    for cell in document.cells:
        if cell.cell_type == "markdown":
            if cell.source.startswith("## "):
                parts = first if cell.source.startswith(_CONCLUSIONS) else page
            parts.append(cell.source.replace(_CONCLUSIONS, _TAKE_AWAY))
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if output.output_type == "stream":
                results["conclusions"] = output.text.splitlines()
                parts.append(f"```text\n{output.text}```")
            elif "image/png" in data:
                picture = f"{output.metadata.get('name', f'{name}-{len(pictures) + 1}')}.png"
                pictures[picture] = base64.b64decode(data["image/png"])
                parts.append(f"![{output.metadata.get('alt', '')}]({picture})")
            elif "text/markdown" in data:
                parts.append(data["text/markdown"])
            elif "application/json" in data:
                results |= data["application/json"]
            elif "text/plain" in data and "application/vnd.jupyter.widget-view+json" not in data:
                parts.append(f"```text\n{data['text/plain']}\n```")
    return "\n\n".join([*page[:1], *first, *page[1:]]) + "\n", results, pictures
