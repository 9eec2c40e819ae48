"""collwise check three-way: predicted, simulated and measured times side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from collwise import targets
from collwise.common.errors import UsageError, note, unknown_name
from collwise.common.project import results_folder
from collwise.common.units import format_seconds
from collwise.platforms import HostPlatform
from collwise.simulator.execution.cluster import TRANSPORTS as OF_HOSTS
from collwise.simulator.store import Store
from collwise.studies.cli import declare, options, target_options
from collwise.studies.cli.declare import flag, group, option
from collwise.studies.cli.derive import shows
from collwise.studies.cli.testbed import RATE
from collwise.studies.cli.types import COLLECTIVES, COUNTS, FOLDER, PLATFORM, SIZES, NamedChoice
from collwise.studies.present.shown import Shown, Table, problem_of
from collwise.validation.testbed.shape import TRANSPORTS, format_rate
from collwise.validation.three_way.plan import (
    BITS_PER_SECOND,
    NODES,
    RATES,
    Scenario,
    ThreeWayPlan,
    cluster_plan,
    usual_plan,
)
from collwise.validation.three_way.plan import COLLECTIVES as COMPARED


@shows("check three-way --testbed --quick")
def three_way(
    testbed: bool = flag(),
    where: targets.TargetOptions = target_options.TARGET_BESIDE_TESTBEDS,
    platform: HostPlatform | None = option(PLATFORM),
    nominal: HostPlatform | None = option(PLATFORM),
    procs: Sequence[int] | None = option(COUNTS),
    planned: dict[str, Any] = group(
        dict,
        nodes=option(click.IntRange(2, 64), NODES),
        ranks_per_node=option(click.IntRange(1, 64)),
        bits_per_second=option(
            RATE, said={"rates": map(format_rate, RATES), "bits_per_second": format_rate(BITS_PER_SECOND)}
        ),
        collectives=option(COLLECTIVES, ",".join(COMPARED), show_default="all seven", said={"compared": COMPARED}),
        sizes=option(SIZES),
        quick=flag(),
        one_bed=flag(),
        transport=option(
            NamedChoice("transport", dict.fromkeys((*TRANSPORTS, *OF_HOSTS))),
            said={"transports": " or ".join(TRANSPORTS), "of_hosts": " or ".join(OF_HOSTS)},
        ),
        models=option(default=True),
    ),
    output: Path = option(FOLDER, lambda: results_folder() / "validation", show_default="results/validation"),
    store: Path = options.STORE,
) -> Shown:
    """Compares predicted, simulated and measured times, on a test bed or on your own cluster, and writes a report.

    On a test bed a platform is calibrated from messages between two nodes, and models are fitted by their own
    experiments; then all algorithms are measured, simulated and predicted. That needs the right to make network
    namespaces. With --hosts, --launcher srun or --launcher oar the same is done there, beside simulation on --platform
    as it is, or on --nominal calibrated there. Finished cases are stored, so that a run that was stopped resumes.
    """
    if testbed == where.named:
        raise UsageError(
            "--testbed and another target; give one"
            if testbed
            else "name where to measure: --testbed, --hosts FILE|A,B,... or --launcher srun|oar"
        )
    declare.refuse_options(
        _OF_CLUSTERS if testbed else _OF_TESTBEDS, "--hosts or --launcher" if testbed else "--testbed"
    )
    from collwise.simulator.sweeps.context import SimulationContext
    from collwise.studies.reports import validation_report as report
    from collwise.validation.three_way.pipeline import ThreeWayComparison

    plan, how = _on_testbed(planned) if testbed else _on_cluster(where, (platform, nominal), procs or (), planned)
    with Store(store) as opened:
        result = ThreeWayComparison(plan, SimulationContext(opened), output, _tell, **how).run()
    page, _ = report.write_validation(result, output)
    [promises] = report.limits(result).tables
    columns, rows = promises.columns[:-1], [row[:-1] for row in promises.rows]
    table = Table("Simulated against measured", columns, rows, left=promises.left)
    wrong = [one for one in result.verified if not one.ok]
    problem = f"{len(wrong)} algorithms are wrong; first: {wrong[0].name}: {wrong[0].first_failure}" if wrong else ""
    facts = report.document(result)
    took = f"{page}: {format_seconds(sum(stage.seconds for stage in result.stages))}"
    return Shown([table, took], facts.pop("rows"), facts, problem=problem_of(result.failed) or problem)


_OF_CLUSTERS = ("platform", "nominal", "procs", "remote_shell", "eager_limit", "mpirun_args", "reach", "any_nodes")
_OF_TESTBEDS = ("nodes", "bits_per_second", "one_bed")
_Planned = tuple[ThreeWayPlan, dict[str, Any]]
"""A plan, and what ThreeWayComparison needs besides."""


def _on_testbed(planned: dict[str, Any]) -> _Planned:
    rate = planned["bits_per_second"]
    asked = planned | {
        "transport": planned["transport"] or TRANSPORTS[0],
        "ranks_per_node": planned["ranks_per_node"] or 1,
        "bits_per_second": rate or BITS_PER_SECOND,
    }
    if asked["transport"] not in TRANSPORTS:
        raise unknown_name("transport of a test bed", asked["transport"], TRANSPORTS)
    plan = usual_plan(**asked)
    _check_models(plan, asked["models"])
    if rate is None and not plan.quick:
        plan = usual_plan(**asked | {"bits_per_second": _highest_rate(plan.main)})
    return plan, {}


def _on_cluster(
    where: targets.TargetOptions,
    described: tuple[HostPlatform | None, HostPlatform | None],
    procs: Sequence[int],
    planned: dict[str, Any],
) -> _Planned:
    given = [one for one in described if one is not None]
    if len(given) != 1:
        raise UsageError("name what is simulated: --platform, as it is, or --nominal, which is calibrated there first")
    if planned["transport"] not in (None, *OF_HOSTS):
        raise unknown_name("transport of hosts", planned["transport"], OF_HOSTS)
    asked = {name: planned[name] for name in ("collectives", "sizes", "quick", "models")}
    target = targets.target_from(replace(where, ppn=planned["ranks_per_node"], transport=planned["transport"]))
    plan = cluster_plan(target, procs, **asked)
    _check_models(plan, asked["models"])
    return plan, {"target": target, "platform": given[0], "calibrate": described[0] is None}


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
