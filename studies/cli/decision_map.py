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
from collwise.validation.times.defaults import sizes_of
from collwise.validation.times.grid import CaseGrid

if TYPE_CHECKING:
    from collwise.platforms import HostPlatform
    from collwise.validation.compare.maps import DecisionMaps, ModelMap


@command("decision-map --platform gros --collective bcast --procs 3:16:+1 --figures figures")
def decision_map(
    platform: HostPlatform = options.placed_platform(),
    collective: str = options.COLLECTIVE,
    procs: tuple[int, ...] = option("Process counts: 3:32:+1.", COUNTS, required=True, in_project=True),
    sizes: tuple[int, ...] | None = option("Message sizes: 1:8MiB:x2. Default: 12 by doubling, by collective.", SIZES),
    segments: tuple[int, ...] = options.segments("0,1KiB,8KiB"),
    algorithms: Sequence[str] | None = options.ALGORITHMS,
    models: Sequence[str] | None = option(
        f"Models, names by commas. Default: that of each file, {DEFAULT_MODEL} without one.",
        named_choices("model", MODEL_NAMES),
    ),
    parameters: Sequence[str] | None = option(
        "Files from 'collwise fit': one for all models, or one for each. Default: parameters fitted now, in minutes.",
        NAMES,
        metavar="FILE,...",
    ),
    figures: Path | None = option("Write the maps into this folder.", FOLDER),
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
    from collwise.validation.compare.maps import decision_maps
    from collwise.validation.fitting.models_by_name import model_of, models_on
    from collwise.validation.times.points import asked_points

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
    (grid,) = asked_points(platform, [CaseGrid(collective, procs, sizes, ppn, segments, names)])
    check_message_sizes(grid.cases())
    with simulation.context() as context:
        loaded = (
            [model_of(name, file, platform, ppn, segments, context, [collective]) for name, file in asked]
            if parameters
            else models_on(
                platform, [name for name, _ in asked if name], ppn, segments, context.with_experiments(), [collective]
            )
        )
        made = decision_maps(platform, grid, loaded, context, baseline)
    for remark in (remark for found in made.maps.values() for remark in found.remarks):
        note(remark)
    if figures is not None:
        from collwise.studies.figures.maps import decision_figure, slowdown_figure

        what, stem = f"{collective} on {platform.title}", f"{platform.name}-{collective}"
        write_figure(decision_figure(made, f"Best method: {what}"), figures / f"{stem}-decisions.png")
        slowdowns = slowdown_figure(made, f"Slowdown of the models' picks: {what}")
        write_figure(slowdowns, figures / f"{stem}-slowdowns.png")
    if as_json:
        print_json(*_document(made))
    else:
        _print(made, platform)
        if figures is not None:
            click.echo(f"figures: {figures}")
    check_failed(made.sweep.failed)


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


def _print(made: DecisionMaps, platform: HostPlatform) -> None:
    import numpy as np

    rows = []
    for name, drawn in made.maps.items():
        if np.isnan(drawn.slowdown).all():
            rows.append((name, *["-"] * 4))
            continue
        found = made.summary(name)
        where = f"P = {found.worst_procs}, m = {format_size(found.worst_bytes)}: {found.worst_pick.label}"
        if found.worst_slowdown == 0:
            where = "-"
        rows.append(
            (
                name, where, f"{found.best_share * 100:.0f} %",
                f"{found.mean_slowdown * 100:.1f} %", f"{found.worst_slowdown * 100:.1f} %",
            )
        )  # fmt: skip
    points = f"{len(made.grid.procs)} x {len(made.grid.message_bytes)} points, {len(made.grid.candidates)} methods"
    title = f"{made.grid.collective} on {platform.title}, {points}, {made.sweep.configuration.maker}"
    columns = ["model or library", "worst at", "picks the best", "mean slowdown", "worst"]
    print_table(title, columns, rows, left=2)
    best = [made.best == index for index in range(len(made.grid.candidates))]
    shares = {one.label: np.mean(mine) for one, mine in zip(made.grid.candidates.values(), best, strict=True)}
    leading = sorted(((share, name) for name, share in shares.items() if share > 0), reverse=True)
    click.echo("Best by simulation: " + "; ".join(f"{name} {share * 100:.0f} %" for share, name in leading))


def _document(made: DecisionMaps) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The points of the maps, and beside them the methods, to which picks are indices, and the summary of each map.

    A pick is -1 where there is none.
    """
    import numpy as np

    least = np.min(np.where(np.isnan(made.seconds), np.inf, made.seconds), axis=0)
    maps = {**made.models, **made.library}
    rows = [
        {
            "procs": count,
            "message_bytes": size,
            "best": int(made.best[i, j]),
            "seconds": float(least[i, j]),
            "picks": {name: int(one.winners[i, j]) for name, one in maps.items()},
            "slowdowns": {name: float(one.slowdown[i, j]) for name, one in maps.items()},
        }
        for i, count in enumerate(made.grid.procs)
        for j, size in enumerate(made.grid.message_bytes)
    ]
    facts = {
        "collective": made.grid.collective,
        "methods": [vars(choice) for choice in made.methods],
        "models": {name: _summary(made, name, found) for name, found in made.models.items()},
        "libraries": {name: _summary(made, name, found) for name, found in made.library.items()},
    }
    return rows, facts


def _summary(made: DecisionMaps, name: str, found: ModelMap) -> dict[str, Any] | None:
    import numpy as np

    if np.isnan(found.slowdown).all():
        return None
    return {**vars(made.summary(name)), "worst_pick": vars(made.summary(name).worst_pick)}
