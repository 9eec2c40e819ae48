"""collwise validate: predicted, simulated and measured times side by side, from nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from collwise.common.errors import UsageError, note
from collwise.common.units import format_seconds
from collwise.simulator.store import Store
from collwise.studies.cli import options
from collwise.studies.cli.declare import COLLECTIVES, FOLDER, SIZES, command, flag, group, option
from collwise.studies.cli.output import check_failed, print_json, print_table
from collwise.studies.cli.testbed import RATE
from collwise.validation.testbed.shape import format_rate
from collwise.validation.three_way.plan import BITS_PER_SECOND, NODES, RATES, usual_plan
from collwise.validation.three_way.plan import COLLECTIVES as COMPARED


@command("validate --testbed --quick")
def validate(
    testbed: bool = flag("On test beds of network namespaces, which are made and removed."),
    planned: dict[str, Any] = group(
        dict,
        nodes=option("Of the main test bed.", click.IntRange(2, 64), NODES),
        bits_per_second=option(
            f"Of every port. Default: the highest of {', '.join(map(format_rate, RATES))} at which the network limits "
            f"messages, not the processors; with --quick {format_rate(BITS_PER_SECOND)}.",
            RATE,
            names="--rate",
        ),
        collectives=option(
            f"Names by commas, of {', '.join(COMPARED)}.",
            COLLECTIVES,
            ",".join(COMPARED),
            names="--collective",
            show_default="all seven",
        ),
        sizes=option("Message sizes: 8KiB:1MiB:x2. Default: 8 or 10 by collective, with --quick 3.", SIZES),
        quick=flag("Three sizes, one test bed, fewer repeated and explained: some minutes."),
        models=option("Fit the models there and compare them.", default=True, names="--models/--no-models"),
    ),
    output: Path = option(
        "Folder of the report: validation.html, validation.md and figures.", FOLDER, Path("results") / "validation"
    ),
    store: Path = options.STORE,
    as_json: bool = options.JSON,
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
    given = planned.pop("bits_per_second")
    plan = usual_plan(**planned, bits_per_second=given or BITS_PER_SECOND)
    if given is None and not plan.quick:
        plan = usual_plan(**planned, bits_per_second=_highest_rate(plan.main.nodes))
    with Store(store) as opened:
        result = ThreeWayComparison(plan, opened, output, _tell).run()
    page, _ = report.write_validation(result, output)
    if as_json:
        print_json(report.document(result))
    else:
        [promises] = report.limits(result).tables
        columns, rows = promises.columns[:-1], [row[:-1] for row in promises.rows]
        print_table("Simulated against measured", columns, rows, left=promises.left)
        click.echo(f"{page}: {format_seconds(sum(stage.seconds for stage in result.stages))}")
    check_failed(result.failed)


def _highest_rate(nodes: int) -> float:
    """The rate of the main test bed."""
    from collwise.validation.testbed.check import Check, highest_rate
    from collwise.validation.testbed.shape import Shape
    from collwise.validation.three_way.pipeline import USUAL_NAME

    def tell(rate: float, found: Check) -> None:
        scaling = " and ".join(f"{one.scaling:.0%}" for one in found.exchanges)
        note(f"{nodes} nodes at {format_rate(rate)}: an alltoall at half the rate takes {scaling} of twice the time")

    rate = highest_rate(Shape(nodes), RATES, USUAL_NAME, tell)
    note(f"the main test bed has {format_rate(rate)} (--rate {format_rate(rate).replace(' ', '').replace('/s', '')})")
    return rate


def _tell(stage: str, seconds: float | None) -> None:
    note(f"{stage}{' ...' if seconds is None else f': {format_seconds(seconds)}'}")
