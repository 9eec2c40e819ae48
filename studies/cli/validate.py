"""collwise validate: predicted, simulated and measured times side by side, from nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from collwise.common.errors import CollwiseError, UsageError, note, unknown_name
from collwise.common.project import results_folder
from collwise.common.units import format_seconds
from collwise.simulator.execution.cluster import TRANSPORTS as OF_HOSTS
from collwise.simulator.store import Store
from collwise.studies.cli import declare, options
from collwise.studies.cli.declare import command, flag, group, option
from collwise.studies.cli.output import check_failed, print_json, print_table
from collwise.studies.cli.target_options import TARGET_BESIDE_TESTBEDS, TargetOptions, target_from
from collwise.studies.cli.testbed import RATE
from collwise.studies.cli.types import COLLECTIVES, COUNTS, FOLDER, PLATFORM, SIZES, NamedChoice
from collwise.validation.testbed.shape import TRANSPORTS, format_rate
from collwise.validation.three_way.plan import BITS_PER_SECOND, NODES, RATES, Scenario, ThreeWayPlan, usual_plan
from collwise.validation.three_way.plan import COLLECTIVES as COMPARED

if TYPE_CHECKING:
    from collwise.platforms import HostPlatform
    from collwise.validation.three_way.pipeline import ThreeWayComparison


@command("validate --testbed --quick")
def validate(
    testbed: bool = flag("Measure on test beds of network namespaces, which are made and removed."),
    where: TargetOptions = TARGET_BESIDE_TESTBEDS,
    platform: HostPlatform | None = option("With --hosts or --launcher: the platform that is simulated.", PLATFORM),
    nominal: HostPlatform | None = option(
        "With --hosts or --launcher: a description to start from, which is calibrated there and then simulated.",
        PLATFORM,
    ),
    procs: Sequence[int] | None = option(
        "With --hosts or --launcher: process counts, of which the largest has most sizes. Default: all there is room "
        "for.",
        COUNTS,
    ),
    planned: dict[str, Any] = group(
        dict,
        nodes=option("The number of nodes of the main test bed.", click.IntRange(2, 64), NODES),
        ranks_per_node=option(
            "Processes on each node. With several on a test bed, hierarchical algorithms are verified and compared, "
            "too, and Open MPI's components tuned and HAN beside them; there are no models. Default: one, or as the "
            "hosts say.",
            click.IntRange(1, 64),
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
        one_bed=flag("Measure all sizes on the main test bed, and nothing on others.", names="--one-bed"),
        transport=option(
            f"The settings of Open MPI on the main test bed, {' or '.join(TRANSPORTS)} (see 'collwise testbed up'), or "
            f"the transport on hosts, {' or '.join(OF_HOSTS)}.",
            NamedChoice("transport", dict.fromkeys((*TRANSPORTS, *OF_HOSTS))),
        ),
        models=option("Fit the models where times are measured.", default=True, names="--models/--no-models"),
    ),
    output: Path = option(
        "The folder of the report: validation.html, validation.md and figures.",
        FOLDER,
        lambda: results_folder() / "validation",
        show_default="results/validation",
    ),
    store: Path = options.STORE,
    as_json: bool = options.JSON,
) -> None:
    """Compares predicted, simulated and measured times, on a test bed or on your own cluster, and writes a report.

    On a test bed a platform is calibrated from messages between two nodes, and models are fitted by their own
    experiments; then all algorithms are measured, simulated and predicted. That needs the right to make network
    namespaces. With --hosts, --launcher srun or --launcher oar the same is done there, beside simulation on --platform
    as it is, or on --nominal calibrated there. Finished cases are stored, so that a run that was stopped resumes.
    """
    from collwise.studies.reports import validation_report as report

    if testbed == where.named:
        raise UsageError(
            "--testbed and another target; give one"
            if testbed
            else "name where to measure: --testbed, --hosts FILE|A,B,... or --launcher srun|oar"
        )
    declare.refuse_options(
        _OF_CLUSTERS if testbed else _OF_TESTBEDS, "--hosts or --launcher" if testbed else "--testbed"
    )
    if testbed:
        comparison = _on_testbed(planned, output)
    else:
        comparison = _on_cluster(where, (platform, nominal), procs or (), planned, output)
    with Store(store) as opened:
        result = comparison(opened).run()
    page, _ = report.write_validation(result, output)
    if as_json:
        facts = report.document(result)
        print_json(facts.pop("rows"), facts)
    else:
        [promises] = report.limits(result).tables
        columns, rows = promises.columns[:-1], [row[:-1] for row in promises.rows]
        print_table("Simulated against measured", columns, rows, left=promises.left)
        click.echo(f"{page}: {format_seconds(sum(stage.seconds for stage in result.stages))}")
    check_failed(result.failed)
    if wrong := [one for one in result.verified if not one.ok]:
        raise CollwiseError(f"{len(wrong)} algorithms are wrong; first: {wrong[0].name}: {wrong[0].first_failure}")


_OF_CLUSTERS = ("platform", "nominal", "procs", "remote_shell", "eager_limit", "mpirun_args", "reach", "any_nodes")
_OF_TESTBEDS = ("nodes", "bits_per_second", "one_bed")
_Comparison = Callable[[Store], "ThreeWayComparison"]


def _on_testbed(planned: dict[str, Any], output: Path) -> _Comparison:
    from collwise.validation.three_way.pipeline import ThreeWayComparison

    given = planned.pop("bits_per_second")
    asked = {
        **planned,
        "transport": planned["transport"] or TRANSPORTS[0],
        "ranks_per_node": planned["ranks_per_node"] or 1,
    }
    if asked["transport"] not in TRANSPORTS:
        raise unknown_name("transport of a test bed", asked["transport"], TRANSPORTS)
    plan = usual_plan(**asked, bits_per_second=given or BITS_PER_SECOND)
    _check_models(plan, asked["models"])
    if given is None and not plan.quick:
        plan = usual_plan(**asked, bits_per_second=_highest_rate(plan.main))
    return lambda store: ThreeWayComparison(plan, store, output, _tell)


def _on_cluster(
    where: TargetOptions,
    described: tuple[HostPlatform | None, HostPlatform | None],
    procs: Sequence[int],
    planned: dict[str, Any],
    output: Path,
) -> _Comparison:
    from collwise.validation.three_way.pipeline import ThreeWayComparison
    from collwise.validation.three_way.plan import cluster_plan

    given = [one for one in described if one is not None]
    if len(given) != 1:
        raise UsageError("name what is simulated: --platform, as it is, or --nominal, which is calibrated there first")
    if planned["transport"] not in (None, *OF_HOSTS):
        raise unknown_name("transport of hosts", planned["transport"], OF_HOSTS)
    asked = {name: planned[name] for name in ("collectives", "sizes", "quick", "models")}
    target = target_from(replace(where, ppn=planned["ranks_per_node"], transport=planned["transport"]))
    plan = cluster_plan(target, procs, **asked)
    _check_models(plan, asked["models"])
    return lambda store: ThreeWayComparison(
        plan, store, output, _tell, target=target, platform=given[0], calibrate=described[0] is None
    )


def _check_models(plan: ThreeWayPlan, asked: bool) -> None:
    if asked and not plan.models:
        declare.refuse_options(("models",), "one process on each node; there are several")


def _highest_rate(main: Scenario) -> float:
    """The rate of the main test bed."""
    from collwise.validation.testbed.check import Check, highest_rate
    from collwise.validation.three_way.pipeline import USUAL_NAME

    def tell(rate: float, found: Check) -> None:
        scaling = " and ".join(f"{one.scaling:.0%}" for one in found.exchanges)
        note(
            f"{main.nodes} nodes at {format_rate(rate)}: an alltoall at half the rate takes {scaling} of twice the time"
        )

    assert main.shape is not None
    rate = highest_rate(main.shape, RATES, USUAL_NAME, tell)
    note(f"the main test bed has {format_rate(rate)} (--rate {format_rate(rate).replace(' ', '').replace('/s', '')})")
    return rate


def _tell(stage: str, seconds: float | None) -> None:
    note(f"{stage}{' ...' if seconds is None else f': {format_seconds(seconds)}'}")
