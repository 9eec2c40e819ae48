"""What a command prints of a result, as plain data: tables and sentences for people, rows and facts for programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Table:
    """A table; the arguments of studies.cli.tables.WholeTable."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    left: int = 1
    wrap: bool = False
    keys: int | None = None


@dataclass(frozen=True)
class Shown:
    """What a command prints.

    `parts` are printed in their order; `rows` and `facts` are what --json has of the result. `figures` are drawn into
    the folder of --figures, each by the stem of its file. `problem`, if any, ends the command with exit code 1.
    """

    parts: Sequence[Table | str]
    rows: Sequence[Mapping[str, Any]]
    facts: Mapping[str, Any] = field(default_factory=dict)
    figures: Mapping[str, Callable[[], Figure]] = field(default_factory=dict)
    problem: str = ""


PRESENTERS = {
    "AllTimes": "times",
}
"""The module of collwise.studies.present whose function `shown` presents a type."""


def shown(result: Any) -> Shown:
    """What a command prints of a result. Raises KeyError for a type that has no presenter."""
    module = import_module(f"collwise.studies.present.{PRESENTERS[type(result).__name__]}")
    presented: Shown = module.shown(result)
    return presented
