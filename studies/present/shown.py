"""The output of a command as plain data: tables and sentences for people, rows and facts for programs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from collwise.common.units import counted
from collwise.studies.reports.markdown import Texts, markdown_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from collwise.simulator.timing import Timing


@dataclass(frozen=True)
class Table:
    """A table, whose first `left` columns are aligned left.

    For `wrap` and `keys` see studies.cli.tables.WholeTable. In reports, the cells in `bad` (row, column) are marked. In
    HTML, a `folded` table is hidden behind its title.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    left: int = 1
    wrap: bool = False
    keys: int | None = None
    bad: Collection[tuple[int, int]] = ()
    folded: bool = False

    def markdown(self) -> str:
        """The table as Markdown, with marked cells in bold."""
        rows = [
            [f"**{cell}**" if (i, j) in self.bad and str(cell) else cell for j, cell in enumerate(row)]
            for i, row in enumerate(self.rows)
        ]
        table = markdown_table(self.columns, rows, self.left)
        return f"{self.title}:\n\n{table}" if self.title else table


@dataclass(frozen=True)
class Shown:
    """The output of a command.

    `parts` are printed in their order; --json prints `rows` and `facts`. `figures` maps the names of files (without
    ending) in the folder of --figures to functions that draw these figures. `problem`, if not empty, ends the command
    with exit code 1.
    """

    parts: Sequence[Table | str]
    rows: Sequence[Mapping[str, Any]]
    facts: Mapping[str, Any] = field(default_factory=dict)
    figures: Mapping[str, Callable[[], Figure]] = field(default_factory=dict)
    problem: str = ""


MAX_ROWS = 200
"""The largest number of rows of a table that people see."""


def cut(table: Table, most: int = MAX_ROWS) -> list[Table | str]:
    """The table, or its first `most` rows and a sentence that says that there are more."""
    if len(table.rows) <= most:
        return [table]
    more = f"The table has the first {most} of {len(table.rows)} rows; --json prints all."
    return [replace(table, rows=table.rows[:most]), more]


_TEXTS = Texts("sentences.md.j2", Path(__file__).parent)


def said(block: str, /, **values: Any) -> list[str]:
    """The sentences of a block of sentences.md.j2 for these values."""
    return _TEXTS.paragraphs(block, **values)


def problem_of(failed: Sequence[Timing]) -> str:
    """The text on the number of failed cases, with the first of them; empty if none failed."""
    return f"{counted(len(failed), 'case')} failed; first: {describe(failed[0])}" if failed else ""


def markdown_of(presented: Shown, titled: bool = False) -> str:
    """The tables and sentences as Markdown; with `titled`, tables have their titles."""
    titles = {
        part.title: f"\n**{part.title}**\n" if titled else "" for part in presented.parts if isinstance(part, Table)
    }
    parts = (
        f"{titles[part.title]}\n{markdown_table(part.columns, part.rows)}\n"
        if isinstance(part, Table)
        else f"- {part}\n"
        for part in presented.parts
    )
    return "".join(parts).lstrip()


PRESENTERS = {
    "AllScores": "scores",
    "AllTimes": "times",
    "ApplicationTimes": "programs.application",
    "DataFrame": "frame",
    "Decisions": "decisions",
    "Deleted": "times.deleted",
    "ExportedRules": "decisions.rules",
    "FittedFigures": "fitted.figures",
    "FittedModel": "fitted",
    "Guidelines": "guidelines",
    "JudgedMachines": "machines",
    "MeasuredGain": "programs.gain",
    "OwnChecked": "guidelines.combinations",
    "ProfileResult": "programs.profile",
    "Script": "times.script",
    "Searched": "searches.searched",
    "Sweeps": "whatif.sweeps",
    "TaskSearches": "searches.tasks",
    "TaskStudies": "searches.studies",
    "Tuned": "decisions.tuned",
    "UntunedDecisions": "decisions.untuned",
    "WhatIfs": "whatif",
}
"""The module of collwise.studies.present that presents each type, and the function, unless its name is `shown`."""


def describe(timing: Timing) -> str:
    """A failed case in one line."""
    case = timing.case
    return (
        f"{case.collective} {case.algorithm} P={case.procs} m={case.message_bytes} m_s={case.segment_bytes}: "
        f"{timing.error}"
    )


def shown(result: Any) -> Shown:
    """The output for a result, which may be an output already. Raises KeyError for a type without a presenter."""
    if isinstance(result, Shown):
        return result
    module, _, function = PRESENTERS[type(result).__name__].partition(".")
    presented: Shown = getattr(import_module(f"collwise.studies.present.{module}"), function or "shown")(result)
    return presented


def drawing(figure: str, *arguments: Any) -> Callable[[], Figure]:
    """Returns a function that draws `figure`, which names a 'module.function' of collwise.studies.figures.

    The module is imported only when the figure is drawn.
    """

    def draw() -> Figure:
        module, _, function = figure.partition(".")
        drawn: Figure = getattr(import_module(f"collwise.studies.figures.{module}"), function)(*arguments)
        return drawn

    return draw
