"""collwise compare: the best algorithm beside the picks of models and libraries."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from collwise import arguments
from collwise.common.errors import UsageError, check_name, note
from collwise.common.units import format_size
from collwise.models.registry import DEFAULT_MODEL, MODEL_NAMES, check_formulas
from collwise.simulator.limits import check_message_sizes
from collwise.simulator.sweeps.context import ENGINES, SCHEDULE, SimulationContext
from collwise.studies.cli import declare, options, types
from collwise.studies.cli.declare import command, option
from collwise.studies.cli.output import check_failed, print_json, print_table, write_figure
from collwise.studies.cli.types import COUNTS, FOLDER, PATH, known_platform
from collwise.validation.library_defaults.baselines import Baseline
from collwise.validation.times.defaults import SEGMENTS, SEGMENTS_TEXT, sizes_of
from collwise.validation.times.grid import CaseGrid

if TYPE_CHECKING:
    from collwise.models.piecewise import Array
    from collwise.platforms import HostPlatform
    from collwise.simulator.store import Store
    from collwise.validation.compare.comparison import Comparison, ComparisonResult, Pick
    from collwise.validation.compare.sources import SideBySide
    from collwise.validation.times.measured import Measurement

_MEASURED, _PREDICTED, _SIMULATED = "measured", "predicted", "simulated"
_SOURCES = (_MEASURED, _SIMULATED, _PREDICTED, *ENGINES)
"""Names of sources: an engine's name is simulated times by this engine."""


def _sources(text: str) -> tuple[str, str]:
    """The two sources that are named. Raises UsageError for unknown names, and for fewer or more of them."""
    names = arguments.names(text)
    for name in names:
        check_name("source of times", name, _SOURCES)
    if len(names) != 2:
        raise UsageError(f"'{text}' names {len(names)} sources; name two, for example measured,simulated")
    return names[0], names[1]


@command("compare --platform gros --collective bcast --procs 16,64")
def compare(
    platform: HostPlatform | types.Unknown = options.placed_platform(
        option(
            "A known platform (see 'collwise platforms list') or a .toml or .xml file; with measured --sources a name "
            "that the store has.",
            types.PLATFORM_OR_NAME,
            required=True,
            in_project=True,
        )
    ),
    collective: str = options.COLLECTIVE,
    procs: tuple[int, ...] | None = option(
        "Process counts: 50,80,90. Needed, unless measured --sources have some.", COUNTS
    ),
    sizes: tuple[int, ...] | None = options.SIZES,
    algorithms: Sequence[str] | None = options.ALGORITHMS,
    segments: tuple[int, ...] = options.segments(SEGMENTS_TEXT, options.ONE_OR_MORE),
    parameters: Path | None = option("A file from 'collwise fit'. Default: parameters fitted now.", PATH),
    model: str | None = option(
        f"A model's name. Default: that of the file; without one {DEFAULT_MODEL}, or no model with --engine schedule.",
        types.NamedChoice("model", MODEL_NAMES),
    ),
    figures: Path | None = option("Write figures into this folder.", FOLDER),
    baseline: Baseline = options.BASELINE,
    sources: tuple[str, str] | None = option(
        "Instead compare the choices by two sources of times: measured, simulated, predicted, or an engine's name.",
        types.Parsed("sources", _sources),
        metavar="A,B",
    ),
    ppn: int | None = options.PPN,
    simulation: options.SimulationOptions = options.SIMULATION,
    as_json: bool = options.JSON,
) -> None:
    """Shows the best choice by simulated time for each P and m, and the slowdowns of a model's and a library's picks.

    All sixteen collectives can be compared, among those of their algorithms that the model covers; the default model
    covers all. Times are simulated by SMPI or, with --engine schedule, by the schedule engine. A choice is an algorithm
    and, where that cuts messages, one of --segments; in brackets its slowdown against the best one in percent. The
    library decides untuned, with what it ships, which may not be among the choices and beat them (negative). See
    'collwise defaults' for its decisions.

    With --sources measured,simulated the choices by these times stand side by side, each with its slowdown by measured
    times (without any, by the second source's).
    """
    from collwise.studies.reports.comparison_table import summary_line, table_columns, table_row
    from collwise.validation.compare.comparison import compare as run_comparison
    from collwise.validation.fitting.models_by_name import model_of
    from collwise.validation.times.measured import measured_grid
    from collwise.validation.times.points import asked_points

    if sources is not None:
        declare.refuse_options(("figures", "baseline"), "comparisons of a model and Open MPI with simulated times")
        if _PREDICTED not in sources:
            declare.refuse_options(("model", "parameters"), f"--sources with {_PREDICTED}")
        if _SIMULATED not in sources and _PREDICTED not in sources:
            declare.refuse_options(("engine",), f"--sources with {_SIMULATED} or {_PREDICTED}")
        if _MEASURED in sources:
            simulation.check_store()
        cut = segments if declare.was_given("segments") else ()
        names = arguments.algorithms(collective, algorithms)
        with simulation.context() as context:
            measurement = _measurement(context.store, platform, collective, ppn) if _MEASURED in sources else None
            if measurement is not None:
                grid = measured_grid(measurement, names, procs, sizes, cut or None)
            elif procs is None:
                raise UsageError("--procs is needed unless measured times are compared")
            else:
                ppn = ppn or known_platform(platform).default_processes_per_node
                grid = CaseGrid(collective, procs, sizes_of(collective, sizes), ppn, cut or SEGMENTS, names)
            times = _Times(platform, grid, measurement, model, parameters, context)
            _show_sources(sources, grid, [times.by(source) for source in sources], times.place, as_json)
        return
    platform = known_platform(platform)
    if procs is None:
        raise click.UsageError("Missing option '--procs'.")
    ppn = ppn or platform.default_processes_per_node
    names = arguments.algorithms(collective, algorithms)
    if model is None and parameters is None and simulation.engine != SCHEDULE.name:
        model = DEFAULT_MODEL
    if model is not None:
        check_formulas(model, [collective])
    (grid,) = asked_points(platform, [CaseGrid(collective, procs, sizes_of(collective, sizes), ppn, segments, names)])
    check_message_sizes(grid.cases())
    for count in procs:
        platform.hosts_for(count, ppn)
    with simulation.context() as context:
        compares_model = model is not None or parameters is not None
        wanted = (model, parameters, platform, ppn, segments, context, [collective])
        fitted = model_of(*wanted) if compares_model else None
        result = run_comparison(platform, grid, fitted, context, baseline)
    made_by = getattr(getattr(fitted, "parameters", None), "made_by", "")
    if figures is not None:
        _write_figures(figures, platform, result, made_by)
    if as_json:
        print_json([_row_record(row, baseline) for row in result.rows])
        for line in result.left_out.splitlines():
            note(line)
    elif result.rows:
        widths = ", ".join(map(format_size, segments))
        title = f"{collective} on {platform.title}, segments of {widths}, {result.sweep.configuration.maker}"
        rows = [table_row(row) for row in result.rows]
        print_table(title, table_columns(result), rows, left=0, keys=2)
        click.echo(summary_line(result, made_by))
        if figures is not None:
            click.echo(f"figures: {figures}")
    check_failed(result.sweep.failed)


def _write_figures(folder: Path, platform: HostPlatform, result: ComparisonResult, made_by: str) -> None:
    from collwise.studies.figures import picks as draw

    collective, rows = result.grid.collective, result.rows
    maker = result.sweep.configuration.maker
    title = f"{collective} on {platform.title}, simulated by {maker}"
    cut = f", segments of {format_size(result.grid.segments[0])}" if result.grid.segments[0] else ""
    stem = f"{platform.name}-{collective}"
    if len({row.procs for row in rows}) > 3 or collective == "barrier":
        write_figure(draw.picks_by_procs(result, title), folder / f"{stem}-by-procs.png")
    if collective == "barrier":
        return
    write_figure(draw.picks_by_size(result, title), folder / f"{stem}-by-size.png")
    largest = max(row.procs for row in rows)
    here = [row for row in rows if row.procs == largest]
    name = f"{collective} on {platform.title}, P = {largest}{cut}"
    write_figure(draw.algorithms_by_size(here, name, maker, made_by), folder / f"{stem}-algorithms.png")


def _row_record(row: Comparison, baseline: Baseline) -> dict[str, object]:
    def pick(chosen: Pick) -> dict[str, object]:
        seconds, slowdown = (None, None) if chosen.missing else (chosen.seconds, chosen.slowdown)
        return {**vars(chosen.choice), "seconds": seconds, "slowdown": slowdown}

    return {
        "collective": row.collective,
        "procs": row.procs,
        "message_bytes": row.message_bytes,
        "best": pick(row.best),
        "model": pick(row.model) if row.predicted else None,
        "baseline": {"name": baseline.name, "in_catalogue": not row.baseline.missing, **pick(row.baseline)},
        **({} if row.listed is None else {"listed": pick(row.listed)}),
        "simulated_seconds": dict(row.simulated),
        "predicted_seconds": dict(row.predicted),
    }


def _measurement(store: Store, platform: HostPlatform | types.Unknown, collective: str, ppn: int | None) -> Measurement:
    """The measured times of a platform, or the only ones that there are."""
    from collwise.validation.times.measured import measured_names, measured_platform, measurement_of

    name = measured_platform(store, str(platform) if isinstance(platform, types.Unknown) else platform.name)
    others = measured_names(store)
    # Hosts seldom have the name that somebody gave to the description of their cluster.
    if not isinstance(platform, types.Unknown) and name not in others and len(others) == 1:
        (name,) = others
        note(f"measured times are those of {name}, the only ones that the store has")
    return measurement_of(store, name, collective, ppn)


@dataclass(frozen=True)
class _Times:
    """The times of a grid by any source: of shape (candidates, P, m)."""

    platform: HostPlatform | types.Unknown
    grid: CaseGrid
    measurement: Measurement | None
    model: str | None
    parameters: Path | None
    context: SimulationContext

    @property
    def place(self) -> str:
        """The name of the platform, or of the one that was measured."""
        if self.measurement is not None:
            return self.measurement.platform
        return known_platform(self.platform).name

    def by(self, source: str) -> Array:
        """The seconds by one of _SOURCES."""
        from collwise.validation.fitting.models_by_name import model_of
        from collwise.validation.times.measured import measured_times
        from collwise.validation.times.predictions import predicted_seconds, simulated_seconds

        grid, context = self.grid, self.context
        if source == _MEASURED and self.measurement is not None:
            return measured_times(grid, self.measurement).seconds
        known = known_platform(self.platform)
        if source == _PREDICTED:
            name = None if self.parameters is not None else self.model or DEFAULT_MODEL
            wanted = (known, grid.processes_per_node, grid.segments, context, [grid.collective])
            return predicted_seconds(model_of(name, self.parameters, *wanted), grid, context.progress)
        how = context if source == _SIMULATED else replace(context, engine=ENGINES[source])
        return simulated_seconds(grid, how.simulate(known, grid.cases(), f"{known.name}: simulating {grid.collective}"))


def _show_sources(sources: tuple[str, str], grid: CaseGrid, times: Sequence[Array], place: str, as_json: bool) -> None:
    """Prints the choices by both sources, judged by measured times if these are one of them, else by the second."""
    import numpy as np

    from collwise.validation.compare.sources import median_difference, side_by_side, slowdowns_of

    judge = _MEASURED if _MEASURED in sources else sources[1]
    rows = side_by_side(grid, times[0], times[1], times[sources.index(judge)])
    if not rows:
        both = " and ".join(sources)
        raise UsageError(f"{grid.collective}: there is no point for which both {both} times are known")
    if missing := int(np.isnan(times[0]).sum() + np.isnan(times[1]).sum()):
        note(f"{grid.collective}: {missing} times are not known; only choices with both are compared")
    if as_json:
        print_json([_sides_record(row, sources) for row in rows])
        return
    title = f"{grid.collective} on {place}, judged by {judge} times"
    heads = ["P", "m", f"best by {judge} times", *(f"by {source} times" for source in sources)]
    print_table(title, heads, [_sides(row) for row in rows], left=0, keys=2)
    for number, source in enumerate(sources):
        summary = slowdowns_of(rows, number)
        click.echo(
            f"choices by {source} times: {summary.mean * 100:.1f} % slower than the best on average, at most "
            f"{summary.worst * 100:.1f} %; the best one at {summary.best_chosen} of {summary.points} points"
        )
    click.echo(
        f"{sources[0]} times differ from {sources[1]} ones by {median_difference(rows) * 100:.1f} % in the median"
    )


def _sides(row: SideBySide) -> Sequence[object]:
    def cell(pick: Pick) -> str:
        return f"{pick.choice.label} ({'?' if math.isnan(pick.slowdown) else f'{pick.slowdown * 100:.1f}'})"

    return (row.procs, format_size(row.message_bytes), row.best.choice.label, *map(cell, row.picks))


def _sides_record(row: SideBySide, sources: tuple[str, str]) -> dict[str, object]:
    def pick(one: Pick) -> dict[str, object]:
        return {**vars(one.choice), "seconds": one.seconds, "slowdown": one.slowdown}

    return {
        "procs": row.procs,
        "message_bytes": row.message_bytes,
        "best": pick(row.best),
        **{source: pick(one) for source, one in zip(sources, row.picks, strict=True)},
        "ratios": row.ratios,
    }
