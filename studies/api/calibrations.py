"""Platforms whose figures are fitted to measured times of messages and collectives: `fitted_to_times`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from collwise.common.errors import UsageError
from collwise.common.experiments import ROUNDTRIP
from collwise.common.files import write_text
from collwise.common.units import counted, format_size
from collwise.platforms import Platform, Source, write_description
from collwise.simulator.timing import Case
from collwise.validation.times.grid import Grid

if TYPE_CHECKING:
    from collwise.validation.calibration.from_times import Fitted, PredictedCells, TimedCases
    from collwise.validation.measurement.runs import MeasuredRun

_FAR, _ALWAYS = 5.0, 10.0
"""Two limits of the factor by which times may change a figure; the larger limit applies. The first is a multiple of the
spread of the figure's logarithm, the second a factor.
"""
_TO_MEASURE = (64, 4096, 262144, 8388608)
"""The message sizes of the cases from which the most useful further measurements are chosen."""
_USUAL_COLLECTIVES, _USUAL_PROCS = ("allgather", "allreduce", "alltoall", "bcast"), 32
"""The collectives and P of further measurements, if no collective was measured."""


@dataclass(frozen=True)
class FittedFigures:
    """A platform whose figures are multiplied by factors that fit measured times.

    The factors were fitted to `used` of `measured` times. `figures` maps the name of a figure to its amount `before`
    the fit, its `fitted` amount, the `factor` with its 95 % interval (`low`, `high`), and `told`, which is true if the
    times determine the figure. `crossed` predicts each collective, and each kind of messages, from the times of all
    others. `telling` lists the cases whose measurement would help most to choose. `notes` are sentences about the
    messages.
    """

    platform: Platform
    figures: Mapping[str, Mapping[str, Any]]
    crossed: Mapping[str, PredictedCells]
    telling: Sequence[Case]
    used: int
    measured: int
    notes: Sequence[str] = ()

    def save(self, path: Path) -> None:
        """Writes the description, with its source."""
        source = Source("figures: fitted to measured times", "collwise platforms calibrate --times")
        described = replace(self.platform, sources=(*self.platform.sources, source))
        write_text(path, write_description(described))


def fitted_to_times(nominal: Platform, paths: Sequence[Path], procs: int = 0) -> FittedFigures:
    """Fits the figures of a platform to times of messages between two nodes, and of collectives.

    Collectives must have one process on each node. A size at which the messages' latency jumps is used as the eager
    limit. `procs` is the number of processes, for files that do not say it.
    """
    from collwise.store_contents import measured_runs
    from collwise.validation.calibration.figures import multiplied, six_digits, with_eager_limit
    from collwise.validation.calibration.from_times import fit, jump, most_telling, without_each_collective
    from collwise.validation.measurement.imports.reading import MissingFacts
    from collwise.validation.times.times import State

    measured = measured_runs(paths, missing=MissingFacts(nominal.name, procs))
    messages = {case: seconds for run in measured for case, seconds in run.messages.items()}
    leap = jump(messages)
    start = nominal if leap is None else with_eager_limit(nominal, leap[0])
    runs = _timed(start, measured)
    described, fitted = runs[0].platform, fit({nominal.name: runs})
    factors = fitted.of_machine[nominal.name]
    _check_factors(nominal, factors)
    made = multiplied(described, factors, six_digits)
    figures = _figures(described, made, fitted, nominal.name)
    if not any(figure["told"] for figure in figures.values()):
        raise UsageError(
            f"--times: the times do not determine any parameter of {nominal.name}; give more sizes, messages or "
            "collectives"
        )
    used = sum(len(run.cases) for run in runs)
    given = sum(
        len(run.messages) + sum(int((times.state == State.TIMED).sum()) for times in run.times) for run in measured
    )
    return FittedFigures(
        replace(made, sources=nominal.sources),
        figures,
        without_each_collective(nominal.name, runs),
        most_telling(described, fitted, _not_measured(runs)),
        used,
        given,
        [*_left_out(given - used), *_notes(nominal, made, messages, leap)],
    )


def _timed(nominal: Platform, measured: Sequence[MeasuredRun]) -> list[TimedCases]:
    """The cases of measured runs. Raises UsageError if none of them can be used."""
    from collwise.validation.measurement.training import timed

    given = (timed(run, nominal, as_described=True, messages=True) for run in measured)
    runs = [item for item in given if item is not None]
    if not runs:
        raise UsageError(
            "--times: found no usable times; expected times with one process per node, on at most "
            f"{nominal.nodes} nodes, of messages between two nodes, or two algorithms of one collective; give archives "
            "or folders of PICO, or files that 'collwise times import' reads"
        )
    return runs


def _left_out(count: int) -> Iterator[str]:
    if count > 0:
        yield (
            f"{counted(count, 'time')} not fitted: collectives count with one process on each node, two forced "
            "algorithms at a size, and not too many messages"
        )


def _notes(
    nominal: Platform, made: Platform, messages: Mapping[Case, float], leap: tuple[int, float] | None
) -> Iterator[str]:
    """Sentences on the eager limit, and on figures that the messages cannot determine."""
    if leap is not None:
        limit = made.calibration.eager_limit_bytes
        stays = "stays" if limit == nominal.calibration.eager_limit_bytes else "becomes"
        where = f"the latency curve jumps by {100 * leap[1]:.0f} % at {format_size(leap[0])}"
        yield f"{where}: the eager limit {stays} {format_size(limit)}"
    if messages and all(case.experiment == ROUNDTRIP for case in messages):
        yield "latencies determine only the sum of latency and overheads; streams (osu_bw) would separate the two"


def _check_factors(nominal: Platform, factors: Mapping[str, float]) -> None:
    """Raises UsageError for factors so large that the times must be in another unit."""
    from collwise.validation.calibration.figures import FIGURES

    for name, factor in factors.items():
        most = max(math.exp(_FAR * FIGURES[name].spread), _ALWAYS)
        if not 1 / most <= factor <= most:
            raise UsageError(
                f"--times: {FIGURES[name].title} of {nominal.name} would have to be multiplied by {factor:.3g} (valid: "
                f"{1 / most:.2g} to {most:.3g}); check the unit in the column header"
            )


def _figures(before: Platform, made: Platform, fitted: Fitted, machine: str) -> dict[str, dict[str, Any]]:
    from collwise.validation.calibration.figures import amounts

    found = {}
    for name, factor in fitted.of_machine[machine].items():
        low, high = fitted.interval(machine, name)
        told = fitted.tells(machine, name)
        values = {"before": amounts(before)[name], "fitted": amounts(made)[name]}
        found[name] = {**values, "factor": factor, "low": low, "high": high, "told": told}
    return found


def _not_measured(runs: Sequence[TimedCases]) -> list[Case]:
    """Unsegmented cases at the largest P that were not measured, of the measured or else of the usual collectives."""
    known = {case for run in runs for case in run.cases if case.collective != "-"}
    names = sorted({case.collective for case in known}) or _USUAL_COLLECTIVES
    procs = max((case.procs for case in known), default=min(runs[0].platform.nodes, _USUAL_PROCS))
    grids = [Grid.of(name, (procs,), _TO_MEASURE, 1, (0,)) for name in names]
    return [case for grid in grids for case in grid.cases() if case not in known]
