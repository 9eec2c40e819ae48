"""What predictions are worth by measured machines: regrets by machine, collective and size, and the worst cells."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

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


def shown(found: JudgedMachines) -> Shown:
    """The tables, a sentence on how they are made, and a row for each machine, part of its cells and decider."""
    machines = sorted({cell.place.machine for cell in found.cells})
    rows = [row for machine in machines for row in _rows(machine, _of(found.cells, machine))]
    few = sum(cell.iterations < FEW_ITERATIONS for cell in found.cells)
    parts: list[Table | str] = [
        Table("Time lost by choices, against the fastest (regret)", _BY_MACHINE, _by_machine(found, machines), left=2),
        Table("By collective", ("machine", "collective", *_PARTS), _by_part(found, machines, _collectives), left=2),
        Table("By message size", ("machine", "size", *_PARTS), _by_part(found, machines, _classes), left=2),
        Table("The worst choices by predictions", _WORST, list(_worst(found, machines)), left=3),
        "described by: " + ", ".join(f"{machine} by {name}" for machine, name in sorted(found.platforms.items())),
        f"predictions: {found.file}, SHA-256 {found.sha256}, written before measured times were read",
        f"{counted(few, 'cell')} with fewer than {FEW_ITERATIONS} iterations, left out of the worst",
        "best fixed: each collective's best algorithm by size class on that machine; best candidate: the fastest "
        "in each cell of those that the catalogue has; both are known with hindsight only",
        "floor of iterations: the median half-width of measured medians in a job; another allocation differs by more",
        *found.notes,
    ]
    problem = "" if found.cells else "no cell has two algorithms that the catalogue has and that were predicted"
    return Shown(parts, rows, {"sha256": found.sha256, "platforms": dict(found.platforms)}, problem=problem)


def _of(cells: Sequence[Cell], machine: str) -> list[Cell]:
    return [cell for cell in cells if cell.place.machine == machine]


def _error(cells: Sequence[Cell]) -> float:
    return float(np.median([error for cell in cells for error in cell.errors]))


def _floor(cells: Sequence[Cell]) -> float:
    return float(np.median([cell.floor for cell in cells]))


def _by_machine(found: JudgedMachines, machines: Sequence[str]) -> list[tuple[object, ...]]:
    rows = []
    for machine in machines:
        cells = _of(found.cells, machine)
        for decider in DECIDERS:
            one = regrets_of(cells, decider)
            if one is not None:
                drawn = "one job" if math.isnan(one.low) else f"{percent(one.low)} to {percent(one.high)}"
                numbers = (one.median, one.geometric_mean, one.percentile_95, one.worst, one.by_seconds)
                errors = (_error(cells), _floor(cells)) if decider == PREDICTED else (math.nan, math.nan)
                rows.append(
                    (
                        machine,
                        decider,
                        one.cells,
                        one.jobs,
                        percent(one.mean),
                        drawn,
                        *map(percent, (*numbers, *errors)),
                    )
                )
    return rows


def _collectives(cells: Sequence[Cell]) -> Iterator[tuple[str, list[Cell]]]:
    for name in sorted({cell.place.collective for cell in cells}):
        yield name, [cell for cell in cells if cell.place.collective == name]


def _classes(cells: Sequence[Cell]) -> Iterator[tuple[str, list[Cell]]]:
    for name in SIZE_CLASSES:
        if some := [cell for cell in cells if cell.size_class == name]:
            yield name, some


def _by_part(found: JudgedMachines, machines: Sequence[str], parts: Any) -> list[tuple[object, ...]]:
    return [
        (machine, name, len(cells), percent(_error(cells)), *(_mean(regrets_of(cells, one)) for one in DECIDERS))
        for machine in machines
        for name, cells in parts(_of(found.cells, machine))
    ]


def _mean(regrets: Regrets | None) -> str:
    return "-" if regrets is None else percent(regrets.mean)


def _worst(found: JudgedMachines, machines: Sequence[str]) -> Iterator[tuple[object, ...]]:
    for machine in machines:
        regrets = regrets_of(_of(found.cells, machine), PREDICTED)
        cell = None if regrets is None else regrets.worst_cell
        if cell is not None:
            place = (machine, cell.place.job, cell.place.collective, cell.place.procs, format_size(cell.message_bytes))
            yield (*place, cell.chosen, cell.oracle, percent(cell.regrets[PREDICTED]))


def _rows(machine: str, cells: Sequence[Cell]) -> Iterator[dict[str, Any]]:
    parts = [("", "", list(cells))]
    parts += [(name, "", some) for name, some in _collectives(cells)]
    parts += [("", name, some) for name, some in _classes(cells)]
    for collective, sizes, some in parts:
        for decider in DECIDERS:
            one = regrets_of(some, decider)
            if one is None:
                continue
            numbers = {name: value for name, value in vars(one).items() if name != "worst_cell"}
            numbers |= {"median_error": _error(some), "floor": _floor(some)}
            plain = {name: None if math.isnan(value) else value for name, value in numbers.items()}
            yield {"machine": machine, "collective": collective, "sizes": sizes, "decider": decider, **plain}
