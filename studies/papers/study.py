"""The interface with which a study's notebook simulates, and shows tables, figures and results."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pandas as pd
from IPython.display import display
from matplotlib.figure import Figure

from collwise.arguments import store_path
from collwise.simulator.sweeps.context import SCHEDULE, SCHEDULE_WITH_EXPERIMENTS, SimulationContext
from collwise.studies.cli.options import SimulationOptions
from collwise.studies.figures.style import png
from collwise.studies.reports.markdown import Texts, markdown_table

_SETTINGS = "COLLWISE_STUDY"
_MAX_ROWS = 8
"""Longer tables are folded."""


def environment(simulation: SimulationOptions, quick: bool) -> dict[str, str]:
    """The environment that tells a notebook how to simulate. `quick` asks for fewer points in long studies."""
    store = str(simulation.store.resolve())
    options = asdict(simulation) | {"store": store, "quick": quick}
    return {_SETTINGS: json.dumps(options), "COLLWISE_STORE": store}


class Study:
    """Shows paragraphs, tables and figures below a notebook's cells, and publishes the results of the study.

    The sentences of a paper's study are blocks of NAME.md.j2 in the study's folder. These blocks use `values`, the
    variables of the notebook. `quick` is true if fewer points are wanted.
    """

    def __init__(self, name: str = "", values: Mapping[str, Any] = MappingProxyType({})) -> None:
        given: dict[str, Any] = {"store": store_path(), "quick": False} | json.loads(os.environ.get(_SETTINGS, "{}"))
        self.quick = bool(given.pop("quick"))
        self._simulation = SimulationOptions(**given | {"store": Path(given["store"])})
        self._texts, self._values = Texts(f"{name}.md.j2", Path(__file__).parent / name), values
        self._conclusions: list[str] = []

    @contextmanager
    def context(self, engine: str | None = None) -> Iterator[SimulationContext]:
        """The context of the study's simulations, with its store open. `engine` replaces the requested engine.

        With either engine, the context also makes the experiments that models are fitted to.
        """
        with replace(self._simulation, engine=engine or self._simulation.engine).context() as found:
            yield replace(found, engine=SCHEDULE_WITH_EXPERIMENTS) if found.engine is SCHEDULE else found

    def text(self, paragraph: str) -> None:
        """Shows a paragraph; line breaks in it do not matter."""
        self._show(" ".join(paragraph.split()))

    def say(self, block: str, **values: Any) -> None:
        """Shows the paragraphs of a block, which can use these values in addition to the notebook's variables."""
        for paragraph in self._texts.paragraphs(block, **{**self._values, **values}):
            self._show(paragraph)

    def _show(self, markdown: str) -> None:
        display({"text/markdown": markdown, "text/plain": markdown}, raw=True)

    def table(
        self,
        title: str,
        rows: pd.DataFrame | Iterable[Sequence[object]],
        floats: str = "{}",
        columns: Sequence[str] | None = None,
    ) -> None:
        """Shows rows under these heads, or a frame without its index; true and false become yes and no.

        `floats` is the format of floats. A long table is folded until readers unfold it.
        """
        table = rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(rows, columns=columns)

        def shown(cell: object) -> object:
            if isinstance(cell, bool):
                return "yes" if cell else "no"
            return floats.format(cell) if isinstance(cell, float) else cell

        cells = ([shown(cell) for cell in row] for row in table.itertuples(index=False, name=None))
        text = markdown_table(list(table.columns), cells).rstrip("\n")
        if len(table) > _MAX_ROWS:
            self._show(f"<details>\n<summary>{title}</summary>\n\n{text}\n\n</details>")
        else:
            self._show(f"**{title}**\n\n{text}")

    def figure(self, figure: Figure, caption: str, name: str = "") -> None:
        """Shows a figure with its caption; the `name` of its file is by default 'figure-2-1' for 'Figure 2.1: ...'."""
        name = name or caption.partition(":")[0].lower().replace(" ", "-").replace(".", "-")
        data = {"image/png": base64.b64encode(png(figure)).decode(), "text/plain": caption}
        display(data, metadata={"name": name, "alt": caption.partition(":")[0]}, raw=True)
        self._show(caption)

    def conclude(self, sentence: str) -> None:
        """Shows a conclusion as an item of a list."""
        self._conclusions.append(" ".join(sentence.split()))
        self._show(f"- {self._conclusions[-1]}")

    def conclude_all(self, block: str, **values: Any) -> None:
        """Shows the paragraphs of a block as conclusions."""
        for paragraph in self._texts.paragraphs(block, **{**self._values, **values}):
            self.conclude(paragraph)

    def publish(self, results: Mapping[str, Any]) -> None:
        """Shows the results with all conclusions as JSON. Raises ValueError for a value that is not finite."""
        published = json.loads(json.dumps({**results, "conclusions": self._conclusions}, allow_nan=False))
        display({"application/json": published, "text/plain": "The study's results."}, raw=True)
