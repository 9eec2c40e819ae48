"""Predictions judged by measured machines: regrets by machine, collective and size, and the worst cells."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from collwise.checks import JudgedMachines
from collwise.common.units import counted, format_size
from collwise.studies.present.shown import Shown, Table
from collwise.studies.reports.markdown import percent
from collwise.validation.measurement.judging import (
    DECIDERS,
    FEW_ITERATIONS,
    PREDICTED,
    SIZE_CLASSES,
    Cell,
    Regrets,
    regrets_of,
)

_BY_MACHINE = (
    *("machine", "chosen by", "cells", "jobs", "mean", "of jobs drawn again", "median", "geometric mean"),
    *("95th percentile", "worst", "by seconds", "median error", "floor of iterations"),
)
_PARTS = ("cells", "median error", *(f"mean regret, {name}" for name in DECIDERS))
_WORST = ("machine", "job", "collective", "P", "m", "chosen", "fastest", "regret")


class _Part(NamedTuple):
    """The cells of a machine, of one of its collectives or size classes ('': all), and what each decider lost there."""

    machine: str
    collective: str
    sizes: str
    cells: Sequence[Cell]
    regrets: Mapping[str, Regrets]

    @property
    def error(self) -> float:
        """The median error of the predicted times."""
        return float(np.median([error for cell in self.cells for error in cell.errors]))

    @property
    def floor(self) -> float:
        """The median half-width of measured medians."""
        return float(np.median([cell.floor for cell in self.cells]))


def shown(found: JudgedMachines) -> Shown:
    """The tables, a sentence on how they are made, and a row for each machine, part of its cells and decider."""
    every = [part for name in sorted({cell.place.machine for cell in found.cells}) for part in _parts(found, name)]
    whole = [part for part in every if not part.collective and not part.sizes]
    collectives, classes = [part for part in every if part.collective], [part for part in every if part.sizes]
    few = sum(cell.iterations < FEW_ITERATIONS for cell in found.cells)
    parts: list[Table | str] = [
        Table("Time lost by choices, against the fastest (regret)", _BY_MACHINE, list(_by_machine(whole)), left=2),
        Table("By collective", ("machine", "collective", *_PARTS), list(map(_by_part, collectives)), left=2),
        Table("By message size", ("machine", "size", *_PARTS), list(map(_by_part, classes)), left=2),
        Table("The worst choices by predictions", _WORST, list(_worst(whole)), left=3),
        "described by: " + ", ".join(f"{machine} by {name}" for machine, name in sorted(found.platforms.items())),
        f"predictions: {found.file}, SHA-256 {found.sha256}, written before measured times were read",
        f"{counted(few, 'cell')} with fewer than {FEW_ITERATIONS} iterations, left out of the worst",
        "best fixed: each collective's best algorithm by size class on that machine; best candidate: the fastest "
        "in each cell of those that the catalogue has; both are known with hindsight only",
        "floor of iterations: the median half-width of measured medians in a job; another allocation differs by more",
        *found.notes,
    ]
    problem = "" if found.cells else "no cell has two algorithms that the catalogue has and that were predicted"
    facts = {"sha256": found.sha256, "platforms": dict(found.platforms)}
    return Shown(parts, [row for part in every for row in _rows(part)], facts, problem=problem)


def _parts(found: JudgedMachines, machine: str) -> Iterator[_Part]:
    """A machine's cells: all, by collective, and by size class."""
    cells = [cell for cell in found.cells if cell.place.machine == machine]
    groups = [("", "", cells)]
    for name in sorted({cell.place.collective for cell in cells}):
        groups.append((name, "", [cell for cell in cells if cell.place.collective == name]))
    groups += [("", name, [cell for cell in cells if cell.size_class == name]) for name in SIZE_CLASSES]
    for collective, sizes, some in groups:
        if some:
            known = {name: one for name in DECIDERS if (one := regrets_of(some, name)) is not None}
            yield _Part(machine, collective, sizes, some, known)


def _by_machine(whole: Sequence[_Part]) -> Iterator[tuple[object, ...]]:
    for part in whole:
        for decider, one in part.regrets.items():
            drawn = "one job" if math.isnan(one.low) else f"{percent(one.low)} to {percent(one.high)}"
            numbers = (one.median, one.geometric_mean, one.percentile_95, one.worst, one.by_seconds)
            errors = (part.error, part.floor) if decider == PREDICTED else (math.nan, math.nan)
            row = (part.machine, decider, one.cells, one.jobs, percent(one.mean), drawn)
            yield (*row, *map(percent, (*numbers, *errors)))


def _by_part(part: _Part) -> tuple[object, ...]:
    means = (percent(part.regrets[name].mean) if name in part.regrets else "-" for name in DECIDERS)
    return (part.machine, part.collective or part.sizes, len(part.cells), percent(part.error), *means)


def _worst(whole: Sequence[_Part]) -> Iterator[tuple[object, ...]]:
    for part in whole:
        cell = part.regrets[PREDICTED].worst_cell if PREDICTED in part.regrets else None
        if cell is not None:
            place = (cell.place.job, cell.place.collective, cell.place.procs, format_size(cell.message_bytes))
            yield (part.machine, *place, cell.chosen, cell.oracle, percent(cell.regrets[PREDICTED]))


def _rows(part: _Part) -> Iterator[dict[str, Any]]:
    for decider, one in part.regrets.items():
        numbers = {name: value for name, value in vars(one).items() if name != "worst_cell"}
        numbers |= {"median_error": part.error, "floor": part.floor}
        plain = {name: None if math.isnan(value) else value for name, value in numbers.items()}
        yield {"machine": part.machine, "collective": part.collective, "sizes": part.sizes, "decider": decider, **plain}
