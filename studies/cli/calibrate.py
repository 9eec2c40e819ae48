"""collwise calibrate: a platform from point-to-point measurements, or from figures that a paper publishes."""

from __future__ import annotations

import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from collwise.common.errors import UsageError
from collwise.common.files import write_text
from collwise.common.units import format_size, parse_size
from collwise.platforms import load_description
from collwise.studies.cli import declare, options, types
from collwise.studies.cli.declare import command, flag, option
from collwise.studies.cli.output import print_json, print_table
from collwise.studies.cli.target_options import TARGET, TARGET_OPTIONS, TargetOptions, target_from
from collwise.studies.cli.types import FOLDER, NEW_FILE, PATH, PLATFORM

if TYPE_CHECKING:
    from collwise.platforms import HostPlatform, Platform
    from collwise.validation.calibration.calibration import CalibrationResult

_DESCRIPTION = types.Parsed("platform", load_description)
_OF_PUBLISHED = ("published", "platform", "procs", "ppn", "output", "as_json", "as_csv")


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
    where: TargetOptions = TARGET,
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
    from collwise.platforms import write_description

    if published:
        others = [str(one.name) for one in click.get_current_context().command.params if one.name not in _OF_PUBLISHED]
        declare.refuse_options(others, "measured messages, not for --published")
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
            raise UsageError(f"where to measure is missing: {TARGET_OPTIONS}; or --points FILE.csv, measured before")
        points_file = types.checked_new_file(file.with_suffix(".points.csv"))
    with simulation.context() as simulations:
        if points is None:
            target = target_from(where)
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
    from collwise.platforms import write_description
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


def _nominal(where: TargetOptions, nominal: HostPlatform | None, name: str | None) -> Platform:
    from collwise.platforms import Platform
    from collwise.validation.testbed.bed import running
    from collwise.validation.testbed.platform import simulated_platform

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
