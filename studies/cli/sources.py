"""collwise compare --sources: the choices by two sources of times side by side."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from collwise import arguments
from collwise.common.errors import UsageError, check_name, note
from collwise.common.units import format_size
from collwise.simulator.sweeps.context import ENGINES, SimulationContext
from collwise.studies.cli import types
from collwise.studies.cli.output import print_json, print_table
from collwise.validation.selection.cases import CaseGrid
from collwise.validation.selection.defaults import SEGMENTS

if TYPE_CHECKING:
    from collwise.models.piecewise import Array
    from collwise.platforms import HostPlatform
    from collwise.validation.selection.comparison import Pick
    from collwise.validation.selection.sources import SideBySide

MEASURED, PREDICTED, SIMULATED = "measured", "predicted", "simulated"
SOURCES = (MEASURED, SIMULATED, PREDICTED, *ENGINES)
"""Names of sources: an engine's name is simulated times by this engine."""


def parse_sources(text: str) -> tuple[str, str]:
    """Two names of SOURCES. Raises UsageError."""
    names = arguments.names(text)
    for name in names:
        check_name("source of times", name, SOURCES)
    if len(names) != 2:
        raise UsageError(f"'{text}' names {len(names)} sources; name two, for example measured,simulated")
    return names[0], names[1]


@dataclass(frozen=True)
class Asked:
    """What is to be compared; None, and no segments: what is measured, or the defaults."""

    collective: str
    procs: tuple[int, ...] | None
    sizes: tuple[int, ...] | None
    algorithms: tuple[str, ...]
    segments: tuple[int, ...]
    processes_per_node: int | None
    model: str
    parameters: Path | None


def compare_sources(
    sources: tuple[str, str],
    platform: HostPlatform | types.Unknown,
    asked: Asked,
    default_sizes: tuple[int, ...],
    context: SimulationContext,
    as_json: bool,
) -> None:
    """Prints the choices by both sources, judged by measured times if these are one of them, else by the second."""
    import numpy as np

    from collwise.validation.fitting.models_by_name import model_of
    from collwise.validation.selection.measured import (
        measured_grid,
        measured_names,
        measured_platform,
        measured_times,
        measurement_of,
    )
    from collwise.validation.selection.predictions import predicted_seconds, simulated_seconds
    from collwise.validation.selection.sources import median_difference, side_by_side, slowdowns_of

    judge = MEASURED if MEASURED in sources else sources[1]
    name = str(platform) if isinstance(platform, types.Unknown) else platform.name
    if MEASURED in sources:
        name = measured_platform(context.store, name)
        others = measured_names(context.store)
        # Hosts seldom have the name that somebody gave to the description of their cluster.
        if not isinstance(platform, types.Unknown) and name not in others and len(others) == 1:
            (name,) = others
            note(f"measured times are those of {name}, the only ones that the store has")
        measurement = measurement_of(context.store, name, asked.collective, asked.processes_per_node)
        grid = measured_grid(measurement, asked.algorithms, asked.procs, asked.sizes, asked.segments or None)
    else:
        if asked.procs is None:
            raise UsageError("--procs is needed unless measured times are compared")
        per_node = asked.processes_per_node or _known(platform).default_processes_per_node
        sizes = asked.sizes or default_sizes
        grid = CaseGrid(asked.collective, asked.procs, sizes, per_node, asked.segments or SEGMENTS, asked.algorithms)

    def simulated(engine: str | None) -> Array:
        how = context if engine is None else replace(context, engine=ENGINES[engine])
        known = _known(platform)
        sweep = how.simulate(known, grid.cases(), f"{known.name}: simulating {grid.collective}")
        return simulated_seconds(grid, sweep)

    def predicted() -> Array:
        known = _known(platform)
        fitted = model_of(
            asked.model if asked.parameters is None else None,
            *(asked.parameters, known, grid.processes_per_node, grid.segments, context, [grid.collective]),
        )
        return predicted_seconds(fitted, grid, context.progress)

    makers: Mapping[str, Callable[[], Array]] = {
        MEASURED: lambda: measured_times(grid, measurement).seconds,
        PREDICTED: predicted,
        SIMULATED: lambda: simulated(None),
        **{engine: lambda engine=engine: simulated(engine) for engine in ENGINES},  # type: ignore[misc]
    }
    times = [makers[source]() for source in sources]
    rows = side_by_side(grid, times[0], times[1], times[sources.index(judge)])
    if not rows:
        both = " and ".join(sources)
        raise UsageError(f"{grid.collective}: there is no point for which both {both} times are known")
    if missing := int(np.isnan(times[0]).sum() + np.isnan(times[1]).sum()):
        note(f"{grid.collective}: {missing} times are not known; only choices with both are compared")
    if as_json:
        print_json([_record(row, sources) for row in rows])
        return
    title = f"{grid.collective} on {name}, judged by {judge} times"
    heads = ["P", "m", f"best by {judge} times", *(f"by {source} times" for source in sources)]
    print_table(title, heads, [_row(row) for row in rows], left=0, keys=2)
    for number, source in enumerate(sources):
        summary = slowdowns_of(rows, number)
        click.echo(
            f"choices by {source} times: {summary.mean * 100:.1f} % slower than the best on average, at most "
            f"{summary.worst * 100:.1f} %; the best one at {summary.best_chosen} of {summary.points} points"
        )
    click.echo(
        f"{sources[0]} times differ from {sources[1]} ones by {median_difference(rows) * 100:.1f} % in the median"
    )


def _known(platform: HostPlatform | types.Unknown) -> HostPlatform:
    if isinstance(platform, types.Unknown):
        raise platform.problem
    return platform


def _row(row: SideBySide) -> Sequence[object]:
    def cell(pick: Pick) -> str:
        return f"{pick.choice.label} ({'?' if math.isnan(pick.slowdown) else f'{pick.slowdown * 100:.1f}'})"

    return (row.procs, format_size(row.message_bytes), row.best.choice.label, *map(cell, row.picks))


def _record(row: SideBySide, sources: tuple[str, str]) -> dict[str, object]:
    def pick(one: Pick) -> dict[str, object]:
        return {**vars(one.choice), "seconds": one.seconds, "slowdown": one.slowdown}

    return {
        "procs": row.procs,
        "message_bytes": row.message_bytes,
        "best": pick(row.best),
        **{source: pick(one) for source, one in zip(sources, row.picks, strict=True)},
        "ratios": row.ratios,
    }
