"""collwise platforms calibrate: a description of a platform from measured messages, or from published figures."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from collwise import targets
from collwise.common.errors import UsageError
from collwise.common.files import write_text
from collwise.common.units import format_size, parse_size
from collwise.platforms import HostPlatform, Platform, load_description, write_description
from collwise.studies.cli import declare, options, target_options, types
from collwise.studies.cli.declare import flag, option
from collwise.studies.cli.derive import shows
from collwise.studies.cli.types import NEW_FILE, PATH, PLATFORM
from collwise.studies.present.shown import Shown, Table, drawing
from collwise.validation.testbed.bed import running
from collwise.validation.testbed.platform import simulated_platform

if TYPE_CHECKING:
    from collwise.simulator.sweeps.context import SimulationContext


def _ends(text: str) -> tuple[int, int]:
    least, colon, most = text.partition(":")
    if not colon:
        raise UsageError(f"'{text}' is not a range; an example: 1B:4MiB")
    return parse_size(least), parse_size(most)


@shows("platforms calibrate --testbed -o bed.toml --figures figures", figures=True)
def calibrate(
    published: bool = flag(),
    platform: Platform | None = option(types.Parsed("platform", load_description)),
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
    context: SimulationContext = options.SIMULATION,
) -> Shown:
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
        return _published(platform, procs, where.ppn, output)
    declare.refuse_options(("platform", "procs"), "--published; a description to start from is --nominal")
    from collwise.validation.calibration.calibration import measure_points, refit
    from collwise.validation.calibration.plan import QUICK, USUAL
    from collwise.validation.calibration.points import read_points, write_points

    whole = _nominal(where, nominal, name)
    described = replace(whole, nodes=nodes or whole.nodes)
    file = output or types.checked_new_file(Path(f"{described.name}.toml"))
    points_file = points or types.checked_new_file(file.with_suffix(".points.csv"))
    if points is not None:
        declare.refuse_options(("quick", "sizes", "together"), "measuring; --points measures nothing")
        measured = read_points(points)
    elif not where.named:
        raise UsageError(
            f"where to measure is missing: {targets.TARGET_OPTIONS}; or --points FILE.csv, measured before"
        )
    else:
        grid = QUICK if quick else USUAL
        if sizes is not None:
            grid = replace(grid, least_bytes=sizes[0], most_bytes=sizes[1])
        target = targets.target_from(where)
        with context.progress(f"calibration, {target.name}") as advance:
            measured = measure_points(target, described, grid, context.store, together=together, on_progress=advance)
        write_points(points_file, measured)
    result = refit(measured, described, context)
    made = result.platform
    write_text(file, write_description(replace(made, nodes=whole.nodes)))
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
    link = f"link {made.link_bytes_per_second / 1e6:.4g} MB/s, one way {2e6 * made.link_latency_seconds:.3g} us"
    eager = f"eager below {format_size(made.calibration.eager_limit_bytes)}"
    facts = {
        "platform": made.name,
        "file": str(file),
        "points": str(points_file),
        "link_bytes_per_second": made.link_bytes_per_second,
        "link_latency_seconds": made.link_latency_seconds,
        "eager_limit_bytes": made.calibration.eager_limit_bytes,
        "segments": {kind: [asdict(one) for one in found] for kind, found in result.segments.items()},
    }
    return Shown(
        [
            Table(title, ["times of", "points", "segments", "error"], rows),
            f"{file}: {link} beside overheads, {eager}; points in {points_file}",
        ],
        result.residuals.to_dict("records"),
        facts,
        {
            f"calibration-{kind.replace('_', '-')}": drawing("calibration.figure_of", result, kind)
            for kind in result.segments
        },
    )


def _published(platform: Platform, procs: int | None, ppn: int | None, output: Path | None) -> Shown:
    from collwise.validation.calibration.published import PAPER_GATHER_PROCS
    from collwise.validation.calibration.published import calibrate as fit_published

    ppn = ppn or platform.default_processes_per_node
    procs = procs or PAPER_GATHER_PROCS.get(platform.name, platform.max_procs(ppn) // 2)
    calibrated, figures = fit_published(platform, procs, ppn)
    if output is not None:
        write_text(output, write_description(calibrated))
    rows = [
        (one.name, f"{one.published:.4g}", f"{one.simulated:.4g}", f"{one.relative_error * 100:+.1f} %")
        for one in figures
    ]
    title = f"{platform.title}: published figures and the calibrated simulation (gather times in seconds)"
    table = Table(title, ["figure", "published", "simulated", "error"], rows)
    return Shown([table], [vars(one) | {"relative_error": one.relative_error} for one in figures])


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
