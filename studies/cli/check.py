"""collwise check: recovery."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING

import click

from collwise.common.errors import CollwiseError
from collwise.platforms import HostPlatform, load
from collwise.simulator.bench import Simulated
from collwise.studies.cli import options, types
from collwise.studies.cli.commands import CommandGroup, example
from collwise.studies.cli.declare import command, option
from collwise.studies.cli.output import print_json, print_table

if TYPE_CHECKING:
    from collwise.validation.fitting.recovery import Recovered


@click.group(cls=CommandGroup, epilog=example("check recovery --platform exact"))
def check() -> None:
    """Checks collwise's own parts against what is known to be true."""


@command("check recovery --platform exact", parent=check)
def recovery(
    platform: HostPlatform | None = option(types.PLATFORM),
    simulation: options.SimulationOptions = options.SIMULATION,
    as_json: bool = options.JSON,
) -> None:
    """Estimates the known parameters of a platform by every procedure, and shows the errors.

    A procedure is left out if the platform is not as its paper assumes. The exit code is 1 if a parameter is off by
    more than 2 % (LMO: 5 %).
    """
    from collwise.platforms.truth import point_to_point
    from collwise.studies.reports.model_scores import RECOVERED_COLUMNS, recovered_cells
    from collwise.validation.fitting.models_by_name import parameters_on
    from collwise.validation.fitting.recovery import LMO_TOLERANCE, PLATFORMS, TOLERANCE, objection, requests
    from collwise.validation.fitting.recovery import recover as run_recovery

    rows: list[Recovered] = []
    left_out: list[str] = []
    with simulation.context() as context:
        for one in [platform] if platform is not None else map(load, PLATFORMS):
            wanted, truth = requests(one.heterogeneous), point_to_point(one)
            for asked in wanted:
                if why := objection(asked, truth):
                    left_out.append(f"{one.name}: {asked.family} by {asked.procedure} {why}; left out")
            rows += run_recovery(one, wanted, partial(parameters_on, Simulated(one, context)))
    if as_json:
        print_json([asdict(row) | {"ok": row.ok} for row in rows])
    else:
        title = "Estimated parameters beside the true ones, in seconds (per byte)"
        print_table(title, RECOVERED_COLUMNS, [recovered_cells(row) for row in rows], left=4)
    for line in left_out:
        click.echo(line, err=as_json)
    wrong = [row for row in rows if not row.ok]
    if wrong:
        first = wrong[0]
        raise CollwiseError(
            f"{len(wrong)} of {len(rows)} parameters are off by more than {TOLERANCE * 100:.0f} % "
            f"(LMO: {LMO_TOLERANCE * 100:.0f} %); first: {first.platform}, {first.family} by {first.procedure}, "
            f"{first.parameter}"
        )
