"""collwise compare: the best algorithm beside the picks of models and libraries."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
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
from collwise.validation.times.choice import Choice
from collwise.validation.times.defaults import SEGMENTS, SEGMENTS_TEXT, sizes_of
from collwise.validation.times.grid import Grid

if TYPE_CHECKING:
    from collwise.models.piecewise import Array
    from collwise.platforms import HostPlatform
    from collwise.validation.compare.scores import Picked, Scores
    from collwise.validation.times.times import Times

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
        option(types.PLATFORM_OR_NAME, required=True, in_project=True)
    ),
    collective: str = options.COLLECTIVE,
    procs: tuple[int, ...] | None = option(COUNTS),
    sizes: tuple[int, ...] | None = options.SIZES,
    algorithms: Sequence[str] | None = options.ALGORITHMS,
    segments: tuple[int, ...] = option(types.SIZES, SEGMENTS_TEXT),
    parameters: Path | None = option(PATH),
    model: str | None = option(types.NamedChoice("model", MODEL_NAMES), said={"default_model": DEFAULT_MODEL}),
    figures: Path | None = option(FOLDER),
    baseline: Baseline = options.BASELINE,
    sources: tuple[str, str] | None = option(types.Parsed("sources", _sources)),
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
    from collwise.studies.reports.comparison_table import compared_places, summary_line, table_columns, table_row
    from collwise.validation.compare.simulated import beside_simulation, remarks
    from collwise.validation.fitting.models_by_name import model_of
    from collwise.validation.times.measured import asked_of
    from collwise.validation.times.points import asked_points
    from collwise.validation.times.sources import predicted

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
            given = _Given(platform, collective, ppn, model, parameters, context)
            measured = given.measured() if _MEASURED in sources else None
            if measured is not None:
                grid = asked_of(measured, names, procs, sizes, cut or None)
            elif procs is None:
                raise UsageError("--procs is needed unless measured times are compared")
            else:
                ppn = ppn or known_platform(platform).default_processes_per_node
                grid = Grid.of(collective, procs, sizes_of(collective, sizes), ppn, cut or SEGMENTS, names)
            times = [measured if source == _MEASURED else given.by(source, grid) for source in sources]
        place = known_platform(platform).name if measured is None else measured.platform
        _show_sources(sources, [one.of_grid(grid) for one in times if one is not None], place, as_json)
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
    grid = Grid.of(collective, procs, sizes_of(collective, sizes), ppn, segments, names)
    (grid,) = asked_points(platform, [grid])
    check_message_sizes(grid.cases())
    for count in procs:
        platform.hosts_for(count, ppn)
    predictions: list[Times] = []
    made_by = ""
    with simulation.context() as context:
        if model is not None or parameters is not None:
            fitted = model_of(model, parameters, platform, ppn, segments, context, [collective])
            predictions.append(predicted(fitted, grid, progress=context.progress))
            grid = predictions[0].grid
            made_by = getattr(getattr(fitted, "parameters", None), "made_by", "")
        scores = beside_simulation(platform, grid, predictions, context, baseline)
    places = compared_places(scores)
    if figures is not None:
        _write_figures(figures, platform, scores, baseline, made_by)
    if as_json:
        print_json([_row_record(scores, baseline, *place) for place in places])
        for line in (line for remark in remarks(scores) for line in remark.splitlines()):
            note(line)
    elif places:
        widths = ", ".join(map(format_size, segments))
        title = f"{collective} on {platform.title}, segments of {widths}, {scores.right.maker}"
        rows = [table_row(scores, baseline, *place) for place in places]
        print_table(title, table_columns(scores, baseline), rows, left=0, keys=2)
        click.echo(summary_line(scores, baseline, made_by))
        if figures is not None:
            click.echo(f"figures: {figures}")
    check_failed(scores.right.failed)


def _write_figures(folder: Path, platform: HostPlatform, scores: Scores, baseline: Baseline, made_by: str) -> None:
    from collwise.studies.figures import picks as draw
    from collwise.studies.reports.comparison_table import compared_places

    right, places = scores.right, compared_places(scores)
    collective, segment = right.collective, right.grid.segments[0]
    title = f"{collective} on {platform.title}, simulated by {right.maker}"
    stem = f"{platform.name}-{collective}"
    if len({i for i, _ in places}) > 3 or collective == "barrier":
        write_figure(draw.picks_by_procs(scores, baseline, title), folder / f"{stem}-by-procs.png")
    if collective == "barrier":
        return
    write_figure(draw.picks_by_size(scores, baseline, title), folder / f"{stem}-by-size.png")
    largest = max(right.procs[i] for i, _ in places)
    cut = f", segments of {format_size(segment)}" if segment else ""
    name = f"{collective} on {platform.title}, P = {largest}{cut}"
    figure = draw.algorithms_by_size(scores, largest, name, right.maker, made_by)
    write_figure(figure, folder / f"{stem}-algorithms.png")


def _row_record(scores: Scores, baseline: Baseline, i: int, j: int) -> dict[str, object]:
    from collwise.studies.reports.comparison_table import library_pick

    right = scores.right
    model = next(iter(scores.times), None)
    listed = next((title for title in scores.deciders if title != baseline.title), None)
    shipped = library_pick(scores, baseline, i, j)
    known = baseline.choice(right.collective, right.procs[i], right.message_bytes[j]) is not None

    def seconds(times: Times) -> dict[str, float]:
        return {
            right.grid.labels[one]: float(value) for one, value in zip(right.choices, times.array[:, i, j], strict=True)
        }

    return {
        "collective": right.collective,
        "procs": right.procs[i],
        "message_bytes": right.message_bytes[j],
        "best": _pick_record(scores.pick(None, i, j)),
        "model": None if model is None else _pick_record(scores.pick(model, i, j)),
        "baseline": {"name": baseline.name, "in_catalogue": known, **_pick_record(shipped)},
        **({} if listed is None else {"listed": _pick_record(scores.pick(listed, i, j))}),
        "simulated_seconds": seconds(right),
        "predicted_seconds": {} if model is None else seconds(scores.times[model]),
    }


def _pick_record(one: Picked) -> dict[str, object]:
    return {**vars(one.choice or Choice("-")), "seconds": one.seconds, "slowdown": one.slowdown}


@dataclass(frozen=True)
class _Given:
    """What the options of a comparison of two sources say of them."""

    platform: HostPlatform | types.Unknown
    collective: str
    ppn: int | None
    model: str | None
    parameters: Path | None
    context: SimulationContext

    def measured(self) -> Times:
        """The measured times of the platform, or the only ones that there are."""
        from collwise.validation.times.measured import measured_names, measured_platform, stored_times

        store, platform = self.context.store, self.platform
        name = measured_platform(store, str(platform) if isinstance(platform, types.Unknown) else platform.name)
        others = measured_names(store)
        # Hosts seldom have the name that somebody gave to the description of their cluster.
        if not isinstance(platform, types.Unknown) and name not in others and len(others) == 1:
            (name,) = others
            note(f"measured times are those of {name}, the only ones that the store has")
        return stored_times(store, _MEASURED, name, self.collective, self.ppn)

    def by(self, source: str, grid: Grid) -> Times:
        """The times of a grid by one of _SOURCES that is not measured."""
        from collwise.validation.fitting.models_by_name import model_of
        from collwise.validation.times.sources import predicted, simulate

        known, context = known_platform(self.platform), self.context
        if source == _PREDICTED:
            name = None if self.parameters is not None else self.model or DEFAULT_MODEL
            fitted = model_of(
                name, self.parameters, known, grid.processes_per_node, grid.segments, context, [grid.collective]
            )
            return predicted(fitted, grid, progress=context.progress)
        how = context if source == _SIMULATED else replace(context, engine=ENGINES[source])
        (found,) = simulate(known, [replace(grid, besides=())], how)
        return found


def _show_sources(sources: tuple[str, str], times: Sequence[Times], place: str, as_json: bool) -> None:
    """Prints the choices by both sources, judged by measured times if these are one of them, else by the second."""
    import numpy as np

    from collwise.validation.compare.scores import Errors, compare

    judge = _MEASURED if _MEASURED in sources else sources[1]
    first, second = times[0].known_to(times[1]), times[1].known_to(times[0])
    scores = compare(first if judge == sources[0] else second, first, second)
    titles = dict(zip(sources, scores.others, strict=True))
    places, collective = scores.places(), first.collective
    if not places:
        both = " and ".join(sources)
        raise UsageError(f"{collective}: there is no point for which both {both} times are known")
    if missing := int(sum(np.isnan(one.array).sum() for one in times)):
        note(f"{collective}: {missing} times are not known; only choices with both are compared")
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(second.array > 0, first.array / second.array, np.nan)
    if as_json:
        print_json([_sides_record(scores, titles, ratios, *place) for place in places])
        return
    right = scores.right

    def cell(pick: Picked) -> str:
        return f"{pick.label} ({'?' if math.isnan(pick.slowdown) else f'{pick.slowdown * 100:.1f}'})"

    rows = [
        (
            *(right.procs[i], format_size(right.message_bytes[j]), scores.pick(None, i, j).label),
            *(cell(scores.pick(title, i, j)) for title in titles.values()),
        )
        for i, j in places
    ]
    heads = ["P", "m", f"best by {judge} times", *(f"by {source} times" for source in sources)]
    print_table(f"{collective} on {place}, judged by {judge} times", heads, rows, left=0, keys=2)
    for source, title in titles.items():
        summary = scores.summary(title, 0.0)
        click.echo(
            f"choices by {source} times: {summary.mean * 100:.1f} % slower than the best on average, at most "
            f"{summary.worst * 100:.1f} %; the best one at {summary.best_chosen} of {summary.points} points"
        )
    errors = Errors.of(ratios - 1)
    median = math.nan if errors is None else errors.median
    click.echo(f"{sources[0]} times differ from {sources[1]} ones by {median * 100:.1f} % in the median")


def _sides_record(scores: Scores, titles: Mapping[str, str], ratios: Array, i: int, j: int) -> dict[str, object]:
    right = scores.right
    return {
        "procs": right.procs[i],
        "message_bytes": right.message_bytes[j],
        "best": _pick_record(scores.pick(None, i, j)),
        **{source: _pick_record(scores.pick(title, i, j)) for source, title in titles.items()},
        "ratios": {
            right.grid.labels[one]: float(ratio)
            for one, ratio in zip(right.choices, ratios[:, i, j], strict=True)
            if math.isfinite(ratio)
        },
    }
