"""collwise calibrate and validate: a platform from measured messages, and all three kinds of times side by side."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from collwise import targets
from collwise.common.errors import CollwiseError, UsageError, note, unknown_name
from collwise.common.files import write_text
from collwise.common.project import results_folder
from collwise.common.units import format_seconds, format_size, parse_size
from collwise.platforms import HostPlatform, Platform, load_description, write_description
from collwise.simulator.execution.cluster import TRANSPORTS as OF_HOSTS
from collwise.simulator.store import Store
from collwise.studies.cli import declare, options, target_options, types
from collwise.studies.cli.declare import command, flag, group, option
from collwise.studies.cli.output import check_failed, print_json, print_table
from collwise.studies.cli.testbed import RATE
from collwise.studies.cli.types import COLLECTIVES, COUNTS, FOLDER, NEW_FILE, PATH, PLATFORM, SIZES, NamedChoice
from collwise.validation.testbed.bed import running
from collwise.validation.testbed.platform import simulated_platform
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

if TYPE_CHECKING:
    from collwise.validation.calibration.calibration import CalibrationResult

_DESCRIPTION = types.Parsed("platform", load_description)


def _ends(text: str) -> tuple[int, int]:
    least, colon, most = text.partition(":")
    if not colon:
        raise UsageError(f"'{text}' is not a range; an example: 1B:4MiB")
    return parse_size(least), parse_size(most)


@command("calibrate --testbed -o bed.toml --figures figures")
def calibrate(
    published: bool = flag(),
    platform: Platform | None = option(_DESCRIPTION),
    procs: int | None = option(click.IntRange(2)),
    where: targets.TargetOptions = target_options.TARGET,
    nominal: HostPlatform | None = option(PLATFORM),
    name: str | None = option(),
    nodes: int | None = option(click.IntRange(2)),
    sizes: tuple[int, int] | None = option(types.Parsed("sizes", _ends)),
    together: bool = option(default=True),
    quick: bool = flag(),
    points: Path | None = option(PATH),
    output: Path | None = option(NEW_FILE),
    figures: Path | None = option(FOLDER),
    simulation: options.SimulationOptions = options.SIMULATION,
    as_json: bool = options.JSON,
) -> None:
    """Fits a platform's description: to measured messages between two nodes, or to published figures.

    From measurements it fits SMPI's os, or, ois, eager limit, latency and bandwidth factors to the times of MPI_Send,
    MPI_Isend, MPI_Recv and ping-pongs, never to collectives. Finished measurements are in the store, so that a stopped
    command resumes; all points are also written beside the description, as CSV.
    With --published, for clusters that one cannot measure, it fits three numbers to the figures that a paper gives, and
    says how well each is met. It then writes a description only with -o.
    """

    if published:
        declare.refuse_others(
            ("published", "platform", "procs", "ppn", "output"), "measured messages, not for --published"
        )
        if platform is None:
            raise UsageError("--published needs --platform NAME")
        _calibrate_published(platform, procs, where.ppn, output, as_json)
        return
    declare.refuse_options(("platform", "procs"), "--published; a description to start from is --nominal")
    from collwise.validation.calibration.calibration import measure_points, refit
    from collwise.validation.calibration.plan import QUICK, USUAL
    from collwise.validation.calibration.points import read_points, write_points

    start = time.monotonic()
    whole = _nominal(where, nominal, name)
    described = replace(whole, nodes=nodes or whole.nodes)
    file = output or types.checked_new_file(Path(f"{described.name}.toml"))
    if points is not None:
        declare.refuse_options(("quick", "sizes", "together"), "measuring; --points measures nothing")
        points_file = points
        measured = read_points(points)
    else:
        grid = QUICK if quick else USUAL
        if sizes is not None:
            grid = replace(grid, least_bytes=sizes[0], most_bytes=sizes[1])
        if not where.named:
            raise UsageError(
                f"where to measure is missing: {targets.TARGET_OPTIONS}; or --points FILE.csv, measured before"
            )
        points_file = types.checked_new_file(file.with_suffix(".points.csv"))
    with simulation.context() as simulations:
        if points is None:
            target = targets.target_from(where)
            with simulations.progress(f"calibration, {target.name}") as advance:
                measured = measure_points(
                    target, described, grid, simulations.store, together=together, on_progress=advance
                )
            write_points(points_file, measured)
        result = refit(measured, described, simulations)
    made = result.platform
    write_text(file, write_description(replace(made, nodes=whole.nodes)))
    drawn = []
    if figures is not None:
        from collwise.studies.figures.calibration import write_figures

        drawn = write_figures(result, figures)
    if as_json:
        facts = {
            "platform": made.name,
            "file": str(file),
            "points": str(points_file),
            "figures": [str(path) for path in drawn],
            "link_bytes_per_second": made.link_bytes_per_second,
            "link_latency_seconds": made.link_latency_seconds,
            "eager_limit_bytes": made.calibration.eager_limit_bytes,
            "segments": {kind: [asdict(one) for one in found] for kind, found in result.segments.items()},
        }
        print_json(result.residuals.to_dict("records"), facts)
        return
    _print(result)
    took = time.monotonic() - start
    link = f"link {made.link_bytes_per_second / 1e6:.4g} MB/s, one way {2e6 * made.link_latency_seconds:.3g} us"
    eager = f"eager below {format_size(made.calibration.eager_limit_bytes)}"
    click.echo(f"{file}: {link} beside overheads, {eager}; points in {points_file}; {took:.0f} s")
    for path in drawn:
        click.echo(str(path))


def _calibrate_published(
    platform: Platform, procs: int | None, ppn: int | None, output: Path | None, as_json: bool
) -> None:
    from collwise.validation.calibration.published import PAPER_GATHER_PROCS
    from collwise.validation.calibration.published import calibrate as run_calibration

    ppn = ppn or platform.default_processes_per_node
    procs = procs or PAPER_GATHER_PROCS.get(platform.name, platform.max_procs(ppn) // 2)
    calibrated, targets = run_calibration(platform, procs, ppn)
    if as_json:
        print_json([vars(target) | {"relative_error": target.relative_error} for target in targets])
    else:
        rows = [
            (t.name, f"{t.published:.4g}", f"{t.simulated:.4g}", f"{t.relative_error * 100:+.1f} %") for t in targets
        ]
        title = f"{platform.title}: published figures and the calibrated simulation (gather times in seconds)"
        print_table(title, ["figure", "published", "simulated", "error"], rows)
    if output is not None:
        write_text(output, write_description(calibrated))


def _nominal(where: targets.TargetOptions, nominal: HostPlatform | None, name: str | None) -> Platform:

    chosen = nominal
    if chosen is None:
        if where.testbed is None:
            raise UsageError(
                "--nominal PLATFORM is missing: hosts and their rate; make one: collwise platforms describe"
            )
        chosen = simulated_platform(running(where.testbed).shape)
    if not isinstance(chosen, Platform):
        raise UsageError(f"--nominal {chosen.name}: valid: a description of equal nodes behind one switch, in TOML")
    name = name or chosen.name
    return replace(chosen, name=name, title=chosen.title if name == chosen.name else name)


def _print(result: CalibrationResult) -> None:
    rows = [
        (
            kind.replace("_", "-") + (" within a node" if within else ""),
            len(of_kind),
            len(result.segments.get(kind, ())) or "-" if not within else "-",
            f"{100 * result.median_error(kind, within_node=within):.1f} %",
        )
        for (kind, within), of_kind in result.residuals.groupby(["kind", "within_node"])
    ]
    title = "Simulated against measured: median relative error; rows and exchanges are not fitted"
    print_table(title, ["times of", "points", "segments", "error"], rows)


@command("validate --testbed --quick")
def validate(
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
    as_json: bool = options.JSON,
) -> None:
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
