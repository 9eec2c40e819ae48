"""Platforms whose figures are fitted to measured times of collectives: `fitted_to_times`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from collwise.common.errors import UsageError
from collwise.common.files import write_text
from collwise.platforms import Platform, Source, write_description
from collwise.simulator.timing import Case
from collwise.validation.times.grid import Grid

if TYPE_CHECKING:
    from collwise.validation.calibration.from_times import Fitted, PredictedCells, TimedCases

_TOLD = 0.5
"""Times tell a figure if its deviation afterwards is less than this share of its spread before."""
_FAR = 5.0
"""The factors of figures that times may have at most, as a multiple of the spread of their logarithm."""
_TO_MEASURE = (64, 4096, 262144, 8388608)
"""The message sizes of which the most telling are named."""


@dataclass(frozen=True)
class FittedFigures:
    """A platform whose figures are multiplied by what fits `used` of the measured times.

    `figures` has for each one, by name, its amount before and as `fitted`, the `factor` with its 95 % interval (`low`,
    `high`), and whether the times have `told` it. `crossed` predicts each collective from the others, and `telling` are
    the cases that would tell most of what to choose.
    """

    platform: Platform
    figures: Mapping[str, Mapping[str, Any]]
    crossed: Mapping[str, PredictedCells]
    telling: Sequence[Case]
    used: int
    measured: int

    def save(self, path: Path) -> None:
        """Writes the description, with its source."""
        source = Source("figures: fitted to measured times of collectives", "collwise platforms calibrate --times")
        described = replace(self.platform, sources=(*self.platform.sources, source))
        write_text(path, write_description(described))


def fitted_to_times(nominal: Platform, paths: Sequence[Path]) -> FittedFigures:
    """Multiplies the figures of a platform by what fits times of collectives, with one process on each node."""
    from collwise.validation.calibration.figures import multiplied, six_digits
    from collwise.validation.calibration.from_times import fit, without_each_collective
    from collwise.validation.calibration.next_measurements import most_telling

    runs = _timed(nominal, paths)
    described, fitted = runs[0].platform, fit({nominal.name: runs})
    factors = fitted.of_machine[nominal.name]
    _check_factors(nominal, factors)
    made = multiplied(described, factors, six_digits)
    return FittedFigures(
        replace(made, sources=nominal.sources),
        _figures(described, made, fitted, nominal.name),
        without_each_collective(nominal.name, runs),
        most_telling(described, fitted, _not_measured(runs)),
        sum(len(run.cases) for run in runs),
        sum(len(run.measured) for run in runs),
    )


def _timed(nominal: Platform, paths: Sequence[Path]) -> list[TimedCases]:
    """The cases of files and folders of measured runs. Raises UsageError where none can be used."""
    from collwise.validation.measurement.runs import runs_in
    from collwise.validation.measurement.training import timed

    runs = [found for run in runs_in(paths) if (found := timed(run, nominal, as_described=True)) is not None]
    if not runs:
        raise UsageError(
            f"--times: no times of two algorithms of a collective, with one process on each of up to {nominal.nodes} "
            "nodes (valid: archives and folders of PICO, tables of `times import`)"
        )
    return runs


def _check_factors(nominal: Platform, factors: Mapping[str, float]) -> None:
    """Raises UsageError for factors so large that the times must be in another unit."""
    from collwise.validation.calibration.figures import FIGURES

    for name, factor in factors.items():
        most = math.exp(_FAR * FIGURES[name].spread)
        if not 1 / most <= factor <= most:
            raise UsageError(
                f"--times: {FIGURES[name].title} of {nominal.name} would have to be multiplied by {factor:.3g} (valid: "
                f"{1 / most:.2g} to {most:.3g}); are the times in the unit that their column names?"
            )


def _figures(before: Platform, made: Platform, fitted: Fitted, machine: str) -> dict[str, dict[str, Any]]:
    from collwise.validation.calibration.figures import FIGURES, amounts

    found = {}
    for name, factor in fitted.of_machine[machine].items():
        low, high = fitted.interval(machine, name)
        told = fitted.deviations[machine][name] < _TOLD * FIGURES[name].spread
        values = {"before": amounts(before)[name], "fitted": amounts(made)[name]}
        found[name] = {**values, "factor": factor, "low": low, "high": high, "told": told}
    return found


def _not_measured(runs: Sequence[TimedCases]) -> list[Case]:
    """Unsegmented cases of the runs' collectives, at their largest P and some sizes, that they lack."""
    procs = max(case.procs for run in runs for case in run.cases)
    known = {case for run in runs for case in run.cases}
    grids = [Grid.of(name, (procs,), _TO_MEASURE, 1, (0,)) for name in sorted({case.collective for case in known})]
    return [case for grid in grids for case in grid.cases() if case not in known]
