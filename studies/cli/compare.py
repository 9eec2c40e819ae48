"""collwise compare and decision-map: the best algorithm beside the picks of models and libraries."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from collwise import arguments
from collwise.common.errors import UsageError, check_name, note
from collwise.common.units import format_size
from collwise.models.registry import DEFAULT_MODEL, MODEL_NAMES, check_formulas
from collwise.platforms import HostPlatform
from collwise.simulator.limits import check_message_sizes
from collwise.simulator.sweeps.context import ENGINES, SCHEDULE, SimulationContext
from collwise.studies.cli import declare, options, types
from collwise.studies.cli.declare import command, option
from collwise.studies.cli.output import check_failed, print_json, print_table, write_figure
from collwise.studies.cli.types import COUNTS, FOLDER, PATH, known_platform
from collwise.validation.libraries.baselines import Baseline
from collwise.validation.times.choice import Choice
from collwise.validation.times.defaults import SEGMENTS, SEGMENTS_TEXT, sizes_of
from collwise.validation.times.grid import Grid
from collwise.validation.times.points import asked_points

if TYPE_CHECKING:
    from collwise.models.piecewise import Array
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
    if model is None and parameters is None and simulation.engine != SCHEDULE.name:
        model = DEFAULT_MODEL
    grid = _simulated_grid(platform, collective, procs, sizes, ppn, segments, algorithms, [model])
    predictions: list[Times] = []
    made_by = ""
    with simulation.context() as context:
        if model is not None or parameters is not None:
            fitted = model_of(model, parameters, platform, grid.processes_per_node, segments, context, [collective])
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


def _simulated_grid(
    platform: HostPlatform,
    collective: str,
    procs: Sequence[int],
    sizes: Sequence[int] | None,
    ppn: int | None,
    segments: Sequence[int],
    algorithms: Sequence[str] | None,
    models: Sequence[str | None],
) -> Grid:
    """The points to simulate. Raises UsageError for what the platform cannot hold or one of the models not predict."""

    names = arguments.algorithms(collective, algorithms)
    for name in filter(None, models):
        check_formulas(name, [collective])
    per_node = ppn or platform.default_processes_per_node
    (grid,) = asked_points(
        platform, [Grid.of(collective, procs, sizes_of(collective, sizes), per_node, segments, names)]
    )
    check_message_sizes(grid.cases())
    for count in procs:
        platform.hosts_for(count, per_node)
    return grid


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


@command("decision-map --platform gros --collective bcast --procs 3:16:+1 --figures figures")
def decision_map(
    platform: HostPlatform = options.placed_platform(),
    collective: str = options.COLLECTIVE,
    procs: tuple[int, ...] = option(COUNTS, required=True, in_project=True),
    sizes: tuple[int, ...] | None = option(types.SIZES),
    segments: tuple[int, ...] = option(types.SIZES, "0,1KiB,8KiB"),
    algorithms: Sequence[str] | None = options.ALGORITHMS,
    models: Sequence[str] | None = option(
        types.named_choices("model", MODEL_NAMES), said={"default_model": DEFAULT_MODEL}
    ),
    parameters: Sequence[str] | None = option(types.NAMES),
    figures: Path | None = option(FOLDER),
    baseline: Baseline = options.BASELINE,
    ppn: int | None = options.PPN,
    simulation: options.SimulationOptions = options.SIMULATION,
    as_json: bool = options.JSON,
) -> None:
    """Maps the best method over (m, P) by simulation, by models and by an untuned library, and what their picks cost.

    All sixteen collectives have maps; that of a barrier, which has no sizes, is a table only. A method is an algorithm
    at a segment size. Slowdowns compare simulated times of the picks with those of the best methods, as in figures 6
    and 7 of Pješivac-Grbović et al. 2007.
    """
    from collwise.validation.compare.simulated import beside_simulation, one_segment_is_none, remarks
    from collwise.validation.fitting.models_by_name import model_of, models_on
    from collwise.validation.times.sources import predicted

    asked = _asked(models, parameters)
    if sizes_of(collective, sizes)[0] < 1 and figures is not None:
        why = "a barrier has no message sizes" if collective == "barrier" else "there is no place for m = 0 on its axis"
        raise UsageError(f"no figure of {collective}: {why}; leave out --figures or the size 0")
    named = [name for name, _ in asked]
    grid = _simulated_grid(platform, collective, procs, sizes, ppn, segments, algorithms, named)
    per_node = grid.processes_per_node
    with simulation.context() as context:
        if parameters:
            fitted = [model_of(*one, platform, per_node, segments, context, [collective]) for one in asked]
        else:
            here = context.with_experiments()
            fitted = models_on(platform, list(filter(None, named)), per_node, segments, here, [collective])
        predictions = [one_segment_is_none(predicted(one, grid, progress=context.progress)) for one in fitted]
        scores = beside_simulation(platform, grid, predictions, context, baseline)
    for remark in remarks(scores):
        note(remark)
    if figures is not None:
        from collwise.studies.figures.maps import decision_figure, slowdown_figure

        what, stem = f"{collective} on {platform.title}", f"{platform.name}-{collective}"
        write_figure(decision_figure(scores, f"Best method: {what}"), figures / f"{stem}-decisions.png")
        slowdowns = slowdown_figure(scores, f"Slowdown of the models' picks: {what}")
        write_figure(slowdowns, figures / f"{stem}-slowdowns.png")
    if as_json:
        print_json(*_maps_document(scores))
    else:
        _print_maps(scores, platform)
        if figures is not None:
            click.echo(f"figures: {figures}")
    check_failed(scores.right.failed)


def _asked(models: Sequence[str] | None, parameters: Sequence[str] | None) -> list[tuple[str | None, Path | None]]:
    """The models' names, None for that of the file, each with its parameter file or None.

    Raises UsageError if the numbers of models and files do not match.
    """
    files = [Path(name) for name in parameters or ()]
    if not files:
        return [(name, None) for name in models or (DEFAULT_MODEL,)]
    if models is None:
        return [(None, file) for file in files]
    if len(files) not in (1, len(models)):
        raise UsageError(f"--parameters: {len(files)} files for {len(models)} models; give one for all or one for each")
    return list(zip(models, files * len(models) if len(files) == 1 else files, strict=True))


def _print_maps(scores: Scores, platform: HostPlatform) -> None:
    import numpy as np

    rows = []
    for name in scores.others:
        found = _summary(scores, name)
        if found is None:
            rows.append((name, *["-"] * 4))
            continue
        pick = Choice(**found["worst_pick"])
        where = f"P = {found['worst_procs']}, m = {format_size(found['worst_bytes'])}: {pick.label}"
        slowdowns = (f"{found[which] * 100:.1f} %" for which in ("mean_slowdown", "worst_slowdown"))
        rows.append((name, where if found["worst_slowdown"] else "-", f"{found['best_share'] * 100:.0f} %", *slowdowns))
    right = scores.right
    points = f"{len(right.procs)} x {len(right.message_bytes)} points, {len(right.choices)} methods"
    title = f"{right.collective} on {platform.title}, {points}, {right.maker}"
    columns = ["model or library", "worst at", "picks the best", "mean slowdown", "worst"]
    print_table(title, columns, rows, left=2)
    leads = {one.label: float(np.mean(right.best.values == index)) for index, one in enumerate(right.choices)}
    leading = sorted(((share, name) for name, share in leads.items() if share > 0), reverse=True)
    click.echo("Best by simulation: " + "; ".join(f"{name} {share * 100:.0f} %" for share, name in leading))


def _maps_document(scores: Scores) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The points of the maps, and beside them the methods, to which picks are indices, and the summary of each map.

    A pick is -1 where there is none.
    """
    right = scores.right
    rows = [
        {
            "procs": count,
            "message_bytes": size,
            "best": int(right.best.values[i, j]),
            "seconds": float(right.best_seconds.values[i, j]),
            "picks": {name: int(picks.values[i, j]) for name, picks in scores.picks.items()},
            "slowdowns": {name: float(lost.values[i, j]) for name, lost in scores.slowdown.items()},
        }
        for i, count in enumerate(right.procs)
        for j, size in enumerate(right.message_bytes)
    ]
    facts = {
        "collective": right.collective,
        "methods": [vars(choice) for choice in right.grid.timed],
        "models": {name: _summary(scores, name) for name in scores.times},
        "libraries": {name: _summary(scores, name) for name in scores.deciders},
    }
    return rows, facts


def _summary(scores: Scores, name: str) -> dict[str, Any] | None:
    """What a source's picks are worth; None where it picks nothing that was timed."""
    from collwise.validation.compare.scores import CLOCK

    found = scores.summary(name, CLOCK)
    if not found.points:
        return None
    i, j = found.worst_at
    choice = scores.pick(name, i, j).choice
    return {
        "best_share": found.best_share,
        "mean_slowdown": found.mean,
        "worst_slowdown": found.worst,
        "worst_procs": scores.right.procs[i],
        "worst_bytes": scores.right.message_bytes[j],
        "worst_pick": vars(choice),
    }
