"""collwise schedule: the messages of an algorithm, the parts of its time, and a picture of it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import UsageError
from collwise.common.units import format_seconds, format_size
from collwise.studies.cli import options
from collwise.studies.cli.declare import command, option
from collwise.studies.cli.output import check_pictures, print_json, print_table, write_figure
from collwise.studies.cli.types import ALGORITHM, NEW_FILE, SIZES
from collwise.validation.library_defaults.baselines import Baseline, library_decisions
from collwise.validation.times.choice import Choice
from collwise.validation.times.defaults import SEGMENT_BYTES
from collwise.validation.times.grid import case_of

if TYPE_CHECKING:
    from collwise.models.lmo import Thresholds
    from collwise.platforms import HostPlatform

_PROTOCOLS = ("an eager message leaves when it is sent", "every send waits for its receive")


@command("schedule --platform gros --collective bcast --algorithm binomial --procs 16 --size 8KiB")
def schedule(
    platform: HostPlatform = options.placed_platform(),
    collective: str = options.COLLECTIVE,
    algorithm: str = option(ALGORITHM, required=True),
    procs: int = option(click.IntRange(2), required=True),
    size: tuple[int, ...] | None = option(SIZES),
    segments: tuple[int, ...] | None = option(SIZES),
    thresholds: Thresholds | None = options.THRESHOLDS,
    root: int = option(click.IntRange(0), 0),
    ppn: int | None = options.PPN,
    called: Baseline = options.CALLED_LIBRARY,
    draw: Path | None = option(NEW_FILE),
    as_json: bool = options.JSON,
) -> None:
    """Shows an algorithm's messages, its rounds, and what decides its time.

    The schedule is recorded from the algorithm's own code and timed by the schedule engine (docs/engine.md). The time
    consists of the parts of the critical path: if a part is twice as slow, the whole takes longer by its seconds, as
    long as the path stays the same.
    """
    from collwise.platforms.smpi import charges_overheads
    from collwise.simulator.schedule.critical_path import path_parts
    from collwise.simulator.schedule.library import Schedule
    from collwise.simulator.schedule.networks import network_tables
    from collwise.simulator.schedule.shared import proportions_for
    from collwise.validation.times.thresholds import check_thresholds_matter, with_thresholds

    if collective == "barrier":
        if size not in (None, (0,)):
            raise UsageError("--size: a barrier has no message; leave it out")
        size = (0,)
    if size is None:
        raise UsageError(f"--size: needed for {collective}, for example --size 8KiB")
    for name, values in (("--size", size), ("--segments", segments or (0,))):
        if len(values) != 1:
            raise UsageError(f"{name} takes one size here, not {len(values)}")
    check_pictures(draw=draw)
    entry = Catalogue.load().algorithm(collective, algorithm)
    if objection := entry.objection(procs, size[0]):
        raise UsageError(f"{collective} {algorithm} {objection}: P = {procs}")
    if root >= procs:
        raise UsageError(f"--root {root} is not a rank (valid: 0 to {procs - 1})")
    cut = (segments[0] if segments else SEGMENT_BYTES) if entry.part_parameter == "segment_bytes" else 0
    per_node = ppn or platform.default_processes_per_node
    check_thresholds_matter([entry], thresholds)
    (choice,) = with_thresholds(collective, [Choice(algorithm, cut)], thresholds)
    case = case_of(collective, choice, procs, size[0], per_node, root)
    tables_of = partial(network_tables, platform, procs, per_node)
    proportions = proportions_for(case, tables_of)
    recorded = Schedule(case, platform.places(procs, per_node), library_decisions(called), proportions=proportions)
    network = tables_of(recorded.sizes)
    trace, parts = path_parts(recorded, network)
    rounds, waiting = recorded.rounds(), recorded.rounds(every_send_waits=True)
    title = f"{collective} {algorithm}, P = {procs}"
    title += f", m = {format_size(size[0])}" if collective != "barrier" else ""
    if entry.bounded:
        bound = f", parts below {format_size(choice.segment_bytes)}"
        title += bound if choice.segment_bytes else ", without bounds: the linear algorithm"
    title += f", segments of {format_size(cut)}" if cut else ""
    if draw is not None:
        from collwise.studies.figures.schedule import MOST_PROCS, schedule_figure

        if procs > MOST_PROCS:
            raise UsageError(f"--draw: {procs} processes cannot be told apart in a picture (valid: up to {MOST_PROCS})")
        write_figure(schedule_figure(trace, procs, f"{title}, on {platform.title}"), draw)
    if as_json:
        facts = {
            "case": vars(case), "messages": recorded.messages, "bytes": recorded.message_bytes, "rounds": rounds,
            "rounds_with_synchronous_sends": waiting, "seconds": trace.seconds, "lost_packets": trace.lost_packets,
            "time_outs": trace.time_outs,
        }  # fmt: skip
        print_json(parts.reset_index().to_dict("records"), facts)
        return
    click.echo(f"{title}: {recorded.messages} messages, {format_size(recorded.message_bytes)} in all")
    click.echo(f"rounds, the most messages that follow from one another: {rounds} if {_PROTOCOLS[0]},")
    click.echo(f"  {waiting} if {_PROTOCOLS[1]}; it never deadlocks")
    rows = [
        (part, row.count, format_size(int(row.bytes)), format_seconds(row.seconds), f"{100 * row.share:.1f} %")
        for part, row in zip(parts.index, parts.itertuples(index=False), strict=True)
        if row.seconds > 0
    ]
    heads = ("part", "how often", "bytes", "time", "share")
    print_table(f"critical path on {platform.title}: {format_seconds(trace.seconds)}", heads, rows)
    if network.buffers is not None:
        lost = f"{trace.lost_packets} packets, {trace.time_outs} retransmission time-outs"
        click.echo(f"lost in buffers of {format_size(network.buffers.buffer_bytes)}: {lost}")
    if not charges_overheads(platform.smpi_options()):
        click.echo(
            "The platform has no overheads: messages cost the processors nothing, and small ones seem too cheap."
        )
    if draw is not None:
        click.echo(f"written: {draw}")
