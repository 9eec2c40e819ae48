"""collwise validate: predicted, simulated and measured times side by side, from nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from collwise.common.errors import CollwiseError, UsageError
from collwise.common.files import writable_folder
from collwise.common.units import format_seconds
from collwise.simulator.store import Store
from collwise.studies.cli.commands import example
from collwise.studies.cli.options import COLLECTIVES, SIZES, describe, json_option, parsed, print_json, store_option
from collwise.studies.cli.tables import stdout_console, table
from collwise.validation.testbed.shape import parse_rate
from collwise.validation.three_way.plan import BITS_PER_SECOND, NODES, usual_plan
from collwise.validation.three_way.plan import COLLECTIVES as COMPARED


@click.command(epilog=example("validate --testbed --quick"))
@click.option("--testbed", is_flag=True, help="On test beds of network namespaces, which are made and removed.")
@click.option("--nodes", type=click.IntRange(2, 64), default=NODES, show_default=True, help="Of the main test bed.")
@click.option(
    "--rate", type=parsed("rate", parse_rate), default=BITS_PER_SECOND, show_default="100Mbit", help="Of every port."
)
@click.option(
    "--collective", "collectives", type=COLLECTIVES, default=",".join(COMPARED), show_default="all seven",
    help=f"Names by commas, of {', '.join(COMPARED)}.",
)  # fmt: skip
@click.option(
    "--sizes", type=SIZES, help="Message sizes: 8KiB:1MiB:x2. Default: 8 or 10 by collective, with --quick 3."
)
@click.option("--quick", is_flag=True, help="Three sizes, one test bed, fewer repeated and explained: some minutes.")
@click.option("--models/--no-models", default=True, show_default=True, help="Fit the models there and compare them.")
@click.option(
    "--output", type=click.Path(path_type=Path), default=Path("results") / "validation", show_default=True,
    help="Folder of the report: validation.html, validation.md and figures.",
)  # fmt: skip
@store_option
@json_option
def validate(
    testbed: bool,
    nodes: int,
    rate: float,
    collectives: Sequence[str],
    sizes: Sequence[int] | None,
    quick: bool,
    models: bool,
    output: Path,
    store: Path,
    as_json: bool,
) -> None:
    """Compares predicted, simulated and measured times on a test bed, and writes a report.

    A platform is calibrated there from messages between two nodes, and models are fitted by their own experiments; then
    all algorithms are measured, simulated and predicted. Needs the right to make network namespaces. Finished cases are
    stored: a run that was stopped resumes from there.
    """
    from collwise.studies.reports import validation_report as report
    from collwise.validation.three_way.pipeline import ThreeWayComparison

    if not testbed:
        raise UsageError("name where to measure: --testbed")
    plan = usual_plan(
        nodes=nodes,
        bits_per_second=rate,
        collectives=collectives,
        sizes=sizes or (),
        quick=quick,
        models=models,
    )
    writable_folder(output)
    with Store(store) as opened:
        result = ThreeWayComparison(plan, opened, output, _tell).run()
    page, _ = report.write_validation(result, output)
    if as_json:
        print_json(report.document(result))
    else:
        [promises] = report.limits(result).tables
        columns, rows = promises.columns[:-1], [row[:-1] for row in promises.rows]
        stdout_console().print(table("Simulated against measured", columns, rows, left=promises.left))
        click.echo(f"{page}: {format_seconds(sum(stage.seconds for stage in result.stages))}")
    if result.failed:
        raise CollwiseError(f"{len(result.failed)} cases failed; first: {describe(result.failed[0])}")


def _tell(stage: str, seconds: float | None) -> None:
    click.echo(f"collwise: {stage}{' ...' if seconds is None else f': {format_seconds(seconds)}'}", err=True)
