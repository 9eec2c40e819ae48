"""collwise validate: predicted, simulated and measured times side by side, from nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from collwise.common.errors import CollwiseError, UsageError, note
from collwise.common.units import format_seconds
from collwise.simulator.store import Store
from collwise.studies.cli import options
from collwise.studies.cli.declare import COLLECTIVES, FOLDER, SIZES, NamedChoice, command, flag, group, option
from collwise.studies.cli.output import check_failed, print_json, print_table
from collwise.studies.cli.testbed import RATE
from collwise.validation.testbed.shape import TRANSPORTS, format_rate
from collwise.validation.three_way.plan import BITS_PER_SECOND, NODES, RATES, Scenario, usual_plan
from collwise.validation.three_way.plan import COLLECTIVES as COMPARED


@command("validate --testbed --quick")
def validate(
    testbed: bool = flag("Measure on test beds of network namespaces, which are made and removed."),
    planned: dict[str, Any] = group(
        dict,
        nodes=option("The number of nodes of the main test bed.", click.IntRange(2, 64), NODES),
        ranks_per_node=option(
            "Processes on each node. With several, hierarchical algorithms are verified and compared, too, and Open "
            "MPI's components tuned and HAN beside them; there are no models.",
            click.IntRange(1, 64),
            1,
            names="--ppn",
        ),
        bits_per_second=option(
            f"The rate of every port. Default: the highest of {', '.join(map(format_rate, RATES))} at which the "
            f"network limits messages, not the processors; with --quick {format_rate(BITS_PER_SECOND)}.",
            RATE,
            names="--rate",
        ),
        collectives=option(
            f"Collectives, names by commas, of {', '.join(COMPARED)}.",
            COLLECTIVES,
            ",".join(COMPARED),
            names="--collective",
            show_default="all seven",
        ),
        sizes=option("Message sizes: 8KiB:1MiB:x2. Default: 8 or 10 by collective, with --quick 3.", SIZES),
        quick=flag("Take some minutes only: three sizes, one test bed, fewer cases repeated and explained."),
        transport=option(
            "The settings of Open MPI on the main test bed (see 'collwise testbed up').",
            NamedChoice("transport", TRANSPORTS),
            TRANSPORTS[0],
        ),
        models=option("Fit the models on the test beds and compare them.", default=True, names="--models/--no-models"),
    ),
    output: Path = option(
        "The folder of the report: validation.html, validation.md and figures.", FOLDER, Path("results") / "validation"
    ),
    store: Path = options.STORE,
    as_json: bool = options.JSON,
) -> None:
    """Compares predicted, simulated and measured times on a test bed, and writes a report.

    A platform is calibrated there from messages between two nodes, and models are fitted by their own experiments; then
    all algorithms are measured, simulated and predicted. The command needs the right to make network namespaces.
    Finished cases are stored, so that a run that was stopped resumes from there.
    """
    from collwise.studies.reports import validation_report as report
    from collwise.validation.three_way.pipeline import ThreeWayComparison

    if not testbed:
        raise UsageError("name where to measure: --testbed")
    given = planned.pop("bits_per_second")
    plan = usual_plan(**planned, bits_per_second=given or BITS_PER_SECOND)
    if given is None and not plan.quick:
        plan = usual_plan(**planned, bits_per_second=_highest_rate(plan.main))
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
    if wrong := [one for one in result.verified if not one.ok]:
        raise CollwiseError(f"{len(wrong)} algorithms are wrong; first: {wrong[0].name}: {wrong[0].first_failure}")


def _highest_rate(main: Scenario) -> float:
    """The rate of the main test bed."""
    from collwise.validation.testbed.check import Check, highest_rate
    from collwise.validation.three_way.pipeline import USUAL_NAME

    def tell(rate: float, found: Check) -> None:
        scaling = " and ".join(f"{one.scaling:.0%}" for one in found.exchanges)
        note(
            f"{main.nodes} nodes at {format_rate(rate)}: an alltoall at half the rate takes {scaling} of twice the time"
        )

    rate = highest_rate(main.shape, RATES, USUAL_NAME, tell)
    note(f"the main test bed has {format_rate(rate)} (--rate {format_rate(rate).replace(' ', '').replace('/s', '')})")
    return rate


def _tell(stage: str, seconds: float | None) -> None:
    note(f"{stage}{' ...' if seconds is None else f': {format_seconds(seconds)}'}")
