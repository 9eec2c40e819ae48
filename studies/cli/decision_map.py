"""collwise decision-map: decision maps, and maps of the slowdown of models' picks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from collwise import arguments
from collwise.common.errors import UsageError, note
from collwise.common.units import format_size
from collwise.models.registry import DEFAULT_MODEL, MODEL_NAMES, check_formulas
from collwise.simulator.limits import check_message_sizes
from collwise.studies.cli import options
from collwise.studies.cli.declare import command, option
from collwise.studies.cli.output import check_failed, print_json, print_table, write_figure
from collwise.studies.cli.types import COUNTS, FOLDER, NAMES, SIZES, named_choices
from collwise.validation.library_defaults.baselines import Baseline
from collwise.validation.times.choice import Choice
from collwise.validation.times.defaults import sizes_of
from collwise.validation.times.grid import Grid

if TYPE_CHECKING:
    from collwise.platforms import HostPlatform
    from collwise.validation.compare.scores import Scores


@command("decision-map --platform gros --collective bcast --procs 3:16:+1 --figures figures")
def decision_map(
    platform: HostPlatform = options.placed_platform(),
    collective: str = options.COLLECTIVE,
    procs: tuple[int, ...] = option(COUNTS, required=True, in_project=True),
    sizes: tuple[int, ...] | None = option(SIZES),
    segments: tuple[int, ...] = option(SIZES, "0,1KiB,8KiB"),
    algorithms: Sequence[str] | None = options.ALGORITHMS,
    models: Sequence[str] | None = option(named_choices("model", MODEL_NAMES), said={"default_model": DEFAULT_MODEL}),
    parameters: Sequence[str] | None = option(NAMES),
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
    from collwise.validation.times.points import asked_points
    from collwise.validation.times.sources import predicted

    ppn = ppn or platform.default_processes_per_node
    names = arguments.algorithms(collective, algorithms)
    asked = _asked(models, parameters)
    for name, _ in asked:
        if name is not None:
            check_formulas(name, [collective])
    sizes = sizes_of(collective, sizes)
    if sizes[0] < 1 and figures is not None:
        why = "a barrier has no message sizes" if collective == "barrier" else "there is no place for m = 0 on its axis"
        raise UsageError(f"no figure of {collective}: {why}; leave out --figures or the size 0")
    for count in procs:
        platform.hosts_for(count, ppn)
    (grid,) = asked_points(platform, [Grid.of(collective, procs, sizes, ppn, segments, names)])
    check_message_sizes(grid.cases())
    with simulation.context() as context:
        loaded = (
            [model_of(name, file, platform, ppn, segments, context, [collective]) for name, file in asked]
            if parameters
            else models_on(
                platform, [name for name, _ in asked if name], ppn, segments, context.with_experiments(), [collective]
            )
        )
        predictions = [one_segment_is_none(predicted(one, grid, progress=context.progress)) for one in loaded]
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
        print_json(*_document(scores))
    else:
        _print(scores, platform)
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


def _print(scores: Scores, platform: HostPlatform) -> None:
    import numpy as np

    rows = []
    for name in scores.others:
        found = _summary(scores, name)
        if found is None:
            rows.append((name, *["-"] * 4))
            continue
        pick = Choice(**found["worst_pick"])
        where = f"P = {found['worst_procs']}, m = {format_size(found['worst_bytes'])}: {pick.label}"
        shares = (found["best_share"] * 100, found["mean_slowdown"] * 100, found["worst_slowdown"] * 100)
        texts = (f"{value:.{digits}f} %" for value, digits in zip(shares, (0, 1, 1), strict=True))
        rows.append((name, "-" if found["worst_slowdown"] == 0 else where, *texts))
    right = scores.right
    points = f"{len(right.procs)} x {len(right.message_bytes)} points, {len(right.choices)} methods"
    title = f"{right.collective} on {platform.title}, {points}, {right.maker}"
    columns = ["model or library", "worst at", "picks the best", "mean slowdown", "worst"]
    print_table(title, columns, rows, left=2)
    leads = {one.label: float(np.mean(right.best.values == index)) for index, one in enumerate(right.choices)}
    leading = sorted(((share, name) for name, share in leads.items() if share > 0), reverse=True)
    click.echo("Best by simulation: " + "; ".join(f"{name} {share * 100:.0f} %" for share, name in leading))


def _document(scores: Scores) -> tuple[list[dict[str, Any]], dict[str, Any]]:
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
