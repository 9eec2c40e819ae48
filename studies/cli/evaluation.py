"""collwise evaluate: how good models are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from collwise.common.errors import UsageError, note
from collwise.models.registry import MODEL_NAMES, MODELS, ModelKind
from collwise.platforms import HostPlatform, load
from collwise.studies.cli import options, types
from collwise.studies.cli.declare import command, option
from collwise.studies.cli.output import check_failed, print_json, print_table
from collwise.validation.libraries.baselines import Baseline
from collwise.validation.times.defaults import EVALUATED, EVALUATED_SEGMENTS, sizes_of

if TYPE_CHECKING:
    from collwise.validation.compare.scores import Scores
    from collwise.validation.times.grid import Grid

# Those of an evaluation's grid, the common one of the fit first.
_SEGMENTS = tuple(sorted(EVALUATED_SEGMENTS, reverse=True))


@command("evaluate --platforms boba,grisou")
def evaluate(
    platforms: Sequence[str] = option(types.NAMES, required=True),
    collectives: Sequence[str] | None = option(types.COLLECTIVES, said={"evaluated": ",".join(EVALUATED)}),
    models: Sequence[str] | None = option(types.named_choices("model", MODEL_NAMES)),
    procs: Sequence[int] | None = option(types.COUNTS),
    sizes: Sequence[int] | None = option(types.SIZES),
    baseline: Baseline = options.BASELINE,
    simulation: options.SimulationOptions = options.SIMULATION,
    as_json: bool = options.JSON,
) -> None:
    """Scores models: predicted against simulated times, and the slowdown of their picks.

    Models are first estimated on each platform, with one process per node. Slowdowns compare picks with the best of all
    algorithms (unsegmented, and with segments of 1 KiB and 8 KiB) that any of the models covers. Of the untuned library
    there are slowdowns only. All sixteen collectives can be evaluated.
    """
    from collwise.studies.reports.model_scores import SCORE_COLUMNS, remarks, score_records, score_rows
    from collwise.validation.compare.simulated import evaluate as run_evaluation
    from collwise.validation.fitting.models_by_name import models_on

    if not platforms:
        raise UsageError("--platforms: names by commas, for example boba,frodo")
    plans = {load(name): _planned(load(name), collectives, models, procs, sizes) for name in platforms}
    results: list[Scores] = []
    lines: list[str] = []
    with simulation.context() as context:
        for platform, (names, grids) in plans.items():
            fitted = models_on(
                platform, names, 1, _SEGMENTS, context.with_experiments(), [grid.collective for grid in grids]
            )
            found = run_evaluation(platform, fitted, grids, context, baseline)
            lines += [line for grid, one in zip(grids, found, strict=True) for line in remarks(one, grid.names)]
            results += found
    records = [record for one in results for record in score_records(one)]
    if as_json:
        print_json(records)
    else:
        title = "Predicted against simulated times, and the slowdown of picks against the best"
        print_table(title, SCORE_COLUMNS, score_rows(records), left=3)
    for line in lines:
        click.echo(line, err=as_json)
    check_failed([timing for one in results for timing in one.right.failed])


def _planned(
    platform: HostPlatform,
    collectives: Sequence[str] | None,
    models: Sequence[str] | None,
    procs: Sequence[int] | None,
    sizes: Sequence[int] | None,
) -> tuple[list[str], list[Grid]]:
    """The models and grids of a platform. Raises UsageError for what nothing covers and for too many processes."""
    from collwise.validation.compare.simulated import usual_grid

    chosen = [ModelKind.parse(name) for name in models or ()] or [
        kind for kind in MODELS.values() if not kind.printed and (platform.heterogeneous or not kind.heterogeneous)
    ]
    for count in procs or ():
        platform.hosts_for(count, 1)
    covered = [name for name in collectives or EVALUATED if any(kind.covers(name) for kind in chosen)]
    for name in collectives or EVALUATED:
        if name not in covered:
            why = f"none of the models {', '.join(map(str, chosen))} has a formula for {name}"
            if collectives:
                raise UsageError(why)
            note(f"{why}; left out")
    grids = [usual_grid(platform, name, procs or ()) for name in covered]
    if sizes:
        grids = [replace(grid, message_bytes=sizes_of(grid.collective, sizes)) for grid in grids]
    return list(map(str, chosen)), grids
