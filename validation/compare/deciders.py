"""Deciders, which name a choice for a call: for example decision tables and untuned libraries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol

from collwise.validation.times.choice import LIBRARY_DECIDES, Choice

if TYPE_CHECKING:
    from collwise.validation.libraries.baselines import Baseline
    from collwise.validation.select.decisions import DecisionTable
    from collwise.validation.times.grid import Grid


class Decider(Protocol):
    """Says which choice a call runs."""

    @property
    def title(self) -> str:
        """The name in tables and figures."""

    def choice(self, collective: str, procs: int, message_bytes: int) -> Choice | None:
        """The choice for a call; None if nothing is decided, or if the catalogue lacks the algorithm."""


@dataclass(frozen=True)
class Deciding:
    """A decider that calls a function of the collective, P and m."""

    title: str
    choose: Callable[[str, int, int], Choice | None]

    def choice(self, collective: str, procs: int, message_bytes: int) -> Choice | None:
        """The function's choice."""
        return self.choose(collective, procs, message_bytes)


def untuned(baseline: Baseline, grid: Grid) -> list[Decider]:
    """The deciders for an untuned library: the library with its own segment sizes, and for Open MPI 3.1 one more.

    The additional decider names the algorithms that Nuriyev & Lastovetsky 2021 list for Open MPI 3.1, with the common
    segment size of the grid, as in the paper's comparison.
    """
    from collwise.validation.libraries.baselines import PAPERS
    from collwise.validation.libraries.openmpi_3 import decide_as_listed

    def listed(collective: str, procs: int, message_bytes: int) -> Choice | None:
        name = decide_as_listed(collective, procs, message_bytes)
        return next((choice for choice in grid.choices if choice.algorithm == name), None)

    baseline.decide(grid.collective, *grid.points[0])
    return [*([Deciding(f"{baseline.title}, common segments", listed)] if baseline is PAPERS else []), baseline]


def timed_besides(grid: Grid, deciders: Sequence[Decider]) -> Grid:
    """The grid, to which the choices of deciders are added so that they are timed as well."""
    for decider in deciders:
        grid = grid.with_besides(partial(decider.choice, grid.collective))
    return grid


@dataclass(frozen=True)
class Rules:
    """Decision tables, one per collective; calls that they leave to the library are decided by `untuned`, if given."""

    tables: Sequence[DecisionTable]
    title: str = "rules"
    untuned: Decider | None = None

    def choice(self, collective: str, procs: int, message_bytes: int) -> Choice | None:
        """The choice of the collective's table, or of the untuned library."""
        found = next(
            (table.choice_at(procs, message_bytes) for table in self.tables if table.collective == collective), None
        )
        if found == LIBRARY_DECIDES and self.untuned is not None:
            return self.untuned.choice(collective, procs, message_bytes) or found
        return found
