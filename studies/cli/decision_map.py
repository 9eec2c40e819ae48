"""collwise decision-map: decision maps, and maps of the slowdown of models' picks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from collwise.common.errors import UsageError
from collwise.common.files import writable_folder
from collwise.common.units import format_size
from collwise.models.registry import MODEL_NAMES, check_formulas
from collwise.platforms import HostPlatform
from collwise.studies.cli.commands import example
from collwise.studies.cli.options import (
    COUNTS,
    NAMES,
    SIZES,
    NamedChoices,
    SimulationOptions,
    algorithm_names,
    collective_option,
    json_option,
    platform_option,
    ppn_option,
    print_json,
    processes_per_node,
    segments_option,
    simulation_options,
)
from collwise.studies.cli.tables import stdout_console, table
from collwise.validation.fitting.models_by_name import model_of, models_on
from collwise.validation.selection.cases import CaseGrid
from collwise.validation.selection.defaults import sizes_of
from collwise.validation.selection.maps import DecisionMaps, decision_maps


@click.command(
    "decision-map", epilog=example("decision-map --platform gros --collective bcast --procs 3:16:+1 --figures figures")
)
@platform_option
@collective_option
@click.option("--procs", required=True, type=COUNTS, help="Process counts: 3:32:+1.")
@click.option("--sizes", type=SIZES, help="Message sizes: 1:8MiB:x2. Default: 12 by doubling, by collective.")
@segments_option("0,1KiB,8KiB")
@click.option("--algorithms", type=NAMES, help="Names by commas. Default: all that can be chosen.")
@click.option("--models", type=NamedChoices("model", MODEL_NAMES), default="by_parts", show_default=True)
@click.option(
    "--parameters", type=NAMES, metavar="FILE,...",
    help="From 'collwise fit': one file for all models, or one for each. Default: fitted now, in minutes.",
)  # fmt: skip
@click.option("--figures", type=click.Path(path_type=Path), help="Write the maps into this folder.")
@ppn_option
@simulation_options
@json_option
def decision_map(
    platform: HostPlatform,
    collective: str,
    procs: tuple[int, ...],
    sizes: tuple[int, ...] | None,
    segments: tuple[int, ...],
    algorithms: Sequence[str] | None,
    models: Sequence[str],
    parameters: Sequence[str] | None,
    figures: Path | None,
    ppn: int | None,
    simulation: SimulationOptions,
    as_json: bool,
) -> None:
    """The best method over (m, P) by simulation and by models, and the slowdown of the models' picks.

    A method is an algorithm at a segment size. Slowdowns compare simulated times of the picks with those of the best
    methods, as in figures 6 and 7 of Pješivac-Grbović et al. 2007.
    """
    ppn = processes_per_node(platform, ppn)
    names = algorithm_names(collective, algorithms)
    files = _files(models, parameters)
    for name in models:
        check_formulas(name, [collective])
    sizes = sizes_of(collective, sizes)
    if sizes[0] < 1:
        why = "a barrier has no message sizes" if collective == "barrier" else "there is no place for m = 0 on its axis"
        raise UsageError(f"no map of {collective}: {why}; the least is --sizes 1")
    for count in procs:
        platform.hosts_for(count, ppn)
    if figures is not None:
        writable_folder(figures)
    grid = CaseGrid(collective, procs, sizes, ppn, segments, names)
    with simulation.context() as context:
        loaded = (
            [
                model_of(name, file, platform, ppn, segments, context, [collective])
                for name, file in zip(models, files, strict=True)
            ]
            if files
            else models_on(platform, models, ppn, segments, context, [collective])
        )
        made = decision_maps(platform, grid, loaded, context)
    for remark in (remark for found in made.models.values() for remark in found.remarks):
        click.echo(f"collwise: {remark}", err=True)
    if figures is not None:
        _draw(made, platform, figures)
    if as_json:
        print_json(_document(made))
    else:
        _print(made, platform)
        if figures is not None:
            click.echo(f"figures: {figures}")
    made.sweep.complete()


def _files(models: Sequence[str], parameters: Sequence[str] | None) -> list[Path]:
    """A parameter file for each model, or none. Raises UsageError where they do not pair."""
    files = [Path(name) for name in parameters or ()]
    if len(files) not in (0, 1, len(models)):
        raise UsageError(f"--parameters: {len(files)} files for {len(models)} models; give one for all or one for each")
    return files * len(models) if len(files) == 1 else files


def _draw(made: DecisionMaps, platform: HostPlatform, folder: Path) -> None:
    from collwise.studies.figures.maps import decision_figure, slowdown_figure
    from collwise.studies.figures.style import save

    what = f"{made.grid.collective} on {platform.title}"
    stem = f"{platform.name}-{made.grid.collective}"
    save(decision_figure(made, f"Best method: {what}"), folder / f"{stem}-decisions.png")
    save(slowdown_figure(made, f"Slowdown of the models' picks: {what}"), folder / f"{stem}-slowdowns.png")


def _print(made: DecisionMaps, platform: HostPlatform) -> None:
    rows = []
    for name in made.models:
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
    points = f"{len(made.grid.procs)} x {len(made.grid.message_bytes)} points, {len(made.methods)} methods"
    title = f"{made.grid.collective} on {platform.title}, {points}, {made.sweep.configuration.maker}"
    columns = ["model", "worst at", "picks the best", "mean slowdown", "worst"]
    stdout_console().print(table(title, columns, rows, left=2))
    best = [made.best == index for index in range(len(made.methods))]
    shares = {choice.label: np.mean(mine) for choice, mine in zip(made.methods, best, strict=True)}
    leading = sorted(((share, name) for name, share in shares.items() if share > 0), reverse=True)
    click.echo("Best by simulation: " + "; ".join(f"{name} {share * 100:.0f} %" for share, name in leading))


def _document(made: DecisionMaps) -> dict[str, Any]:
    """Picks are indices into `methods`, -1 where there is none; arrays have the shape (P, m)."""
    least = np.min(np.where(np.isnan(made.seconds), np.inf, made.seconds), axis=0)
    return {
        "collective": made.grid.collective,
        "procs": list(made.grid.procs),
        "message_bytes": list(made.grid.message_bytes),
        "methods": [vars(choice) for choice in made.methods],
        "simulated": {"best": made.best.tolist(), "seconds": least.tolist()},
        "models": {
            name: {
                "picks": found.winners.tolist(),
                "slowdown": found.slowdown.tolist(),
                "summary": {**vars(made.summary(name)), "worst_pick": vars(made.summary(name).worst_pick)},
            }
            for name, found in made.models.items()
        },
    }
