"""The interface of a study's notebook: settings from the environment, and showing tables, figures and results."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from IPython.display import display
from matplotlib.figure import Figure

from collwise.common.errors import UsageError
from collwise.simulator.store import default_store_path
from collwise.simulator.sweeps.context import SimulationContext
from collwise.studies.cli.options import SimulationOptions
from collwise.studies.figures.style import png
from collwise.studies.reports.markdown import markdown_table

_STORE, _ENGINE, _SIMGRID = "COLLWISE_STORE", "COLLWISE_ENGINE", "COLLWISE_SIMGRID"
_JOBS, _QUICK = "COLLWISE_JOBS", "COLLWISE_QUICK"


@dataclass(frozen=True)
class StudySettings(SimulationOptions):
    """The settings of a study's simulations. `quick` asks for fewer points where all of them take many minutes."""

    quick: bool = False

    def environment(self) -> dict[str, str]:
        """The environment variables that `from_environment` reads."""
        return {
            _STORE: str(self.store.resolve()),
            _ENGINE: self.engine,
            _SIMGRID: self.simgrid or "",
            _JOBS: str(self.jobs or ""),
            _QUICK: "1" * self.quick,
        }

    @classmethod
    def from_environment(cls) -> StudySettings:
        """The settings of this process. Raises UsageError when COLLWISE_JOBS is not a number."""
        jobs = os.environ.get(_JOBS) or None
        if jobs is not None and not (jobs.isdecimal() and int(jobs)):
            raise UsageError(f"{_JOBS}: '{jobs}' is not a number of simulations, such as 2")
        return cls(
            Path(os.environ.get(_STORE) or default_store_path()),
            os.environ.get(_ENGINE) or "smpi",
            os.environ.get(_SIMGRID) or None,
            int(jobs) if jobs else None,
            bool(os.environ.get(_QUICK)),
        )


class Study:
    """Shows paragraphs, tables and figures below a notebook's cells, and publishes the results of the study."""

    def __init__(self) -> None:
        self._settings = StudySettings.from_environment()
        self._conclusions: list[str] = []

    @property
    def quick(self) -> bool:
        """Whether fewer points are wanted."""
        return self._settings.quick

    def context(self) -> AbstractContextManager[SimulationContext]:
        """The context of the study's simulations, with its store open."""
        return self._settings.context()

    def text(self, markdown: str) -> None:
        """Shows a paragraph."""
        display({"text/markdown": markdown, "text/plain": markdown}, raw=True)

    def table(self, title: str, table: pd.DataFrame, floats: str = "{}") -> None:
        """Shows a table without its index; true and false become yes and no, and `floats` is a float's format."""

        def shown(cell: object) -> object:
            if isinstance(cell, bool):
                return "yes" if cell else "no"
            return floats.format(cell) if isinstance(cell, float) else cell

        rows = ([shown(cell) for cell in row] for row in table.itertuples(index=False, name=None))
        self.text(f"**{title}**\n\n{markdown_table(list(table.columns), rows)}".rstrip("\n"))

    def figure(self, figure: Figure, name: str, caption: str) -> None:
        """Shows a figure with its caption; `name` is that of its file, without the ending."""
        data = {"image/png": base64.b64encode(png(figure)).decode(), "text/plain": caption}
        display(data, metadata={"name": name, "alt": caption}, raw=True)
        self.text(caption)

    def conclude(self, sentence: str) -> None:
        """Shows a conclusion as an item of a list."""
        self._conclusions.append(sentence)
        self.text(f"- {sentence}")

    def publish(self, results: Mapping[str, Any]) -> None:
        """Shows the results with all conclusions as JSON. Raises ValueError for a value that is not finite."""
        published = json.loads(json.dumps({**results, "conclusions": self._conclusions}, allow_nan=False))
        display({"application/json": published, "text/plain": "The study's results."}, raw=True)
