"""collwise algorithms, defaults and schedule: the catalogue, what untuned libraries run, what an algorithm sends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from collwise.algorithms.catalogue import Algorithm, Catalogue
from collwise.common.errors import CollwiseError, UsageError, note
from collwise.common.units import counted, format_seconds, format_size
from collwise.platforms import HostPlatform
from collwise.platforms.smpi import charges_overheads
from collwise.studies.cli import options
from collwise.studies.cli.declare import argument, command, flag, option
from collwise.studies.cli.output import check_pictures, print_json, print_table, write_figure
from collwise.studies.cli.types import ALGORITHM, COLLECTIVE, COUNTS, NEW_FILE, SIZES
from collwise.validation.libraries.baselines import Baseline, library_decisions
from collwise.validation.libraries.installed import check
from collwise.validation.select.consumers import OPENMPI_VERSIONS
from collwise.validation.times.choice import Choice
from collwise.validation.times.defaults import SEGMENT_BYTES, sizes_of
from collwise.validation.times.grid import case_of
from collwise.validation.times.thresholds import check_thresholds_matter, with_thresholds

if TYPE_CHECKING:
    from collwise.models.lmo import Thresholds


@command("algorithms --collective bcast")
def algorithms(
    named: str | None = argument(COLLECTIVE, required=False, metavar="[COLLECTIVE]"),
    collective: str | None = option(COLLECTIVE),
    as_json: bool = options.JSON,
) -> None:
    """Lists every collective and algorithm: parameters, requirements, ids in Open MPI, reference."""
    catalogue = Catalogue.load()
    name = collective or named
    chosen = [catalogue.collective(name)] if name else list(catalogue.collectives.values())
    if as_json:
        print_json([asdict(algorithm) for entry in chosen for algorithm in entry.algorithms.values()])
        return
    for entry in chosen:
        rows = [
            (
                *(one.name + reservation_text(one), one.topology, parameters_text(one)),
                *(", ".join(one.requires) or "-", ids_text(one), one.reference),
            )
            for one in entry.algorithms.values()
        ]
        columns = ["algorithm", "topology", "parameters", "requires", "Open MPI ids", "reference"]
        title = f"{entry.title}: {entry.name} (message bytes: {entry.message_bytes})"
        print_table(title, columns, rows, left=len(columns), wrap=True)


def reservation_text(algorithm: Algorithm) -> str:
    """The reason why an algorithm is never offered as a choice, in brackets; empty for the others."""
    if algorithm.selectable:
        return ""
    if algorithm.by_node:
        return " (by node)"
    if algorithm.guideline:
        return f" (mock-up of {algorithm.guideline})"
    return " (needs bounds)" if algorithm.bounded else " (building block)"


def parameters_text(algorithm: Algorithm) -> str:
    """The parameters of an algorithm with their defaults: 'segment_bytes, chains=4'."""
    defaults = algorithm.defaults
    return ", ".join(f"{name}={defaults[name]}" if name in defaults else name for name in algorithm.parameters) or "-"


def ids_text(algorithm: Algorithm) -> str:
    """'1' if all versions of Open MPI have one id, else '4.1: 3, 5.0: 3'."""

    ids = algorithm.openmpi
    if set(ids) == set(OPENMPI_VERSIONS) and len(set(ids.values())) == 1:
        return str(next(iter(ids.values())))
    return ", ".join(f"{version}: {number}" for version, number in ids.items()) or "-"


@command("defaults --baseline openmpi-4.1 --collective allreduce --procs 16,1024")
def defaults(
    baseline: Baseline = options.BASELINE,
    collectives: Sequence[str] = options.COLLECTIVES,
    procs: tuple[int, ...] = option(COUNTS, required=True),
    sizes: tuple[int, ...] | None = option(SIZES),
    checked: bool = flag(),
    as_json: bool = options.JSON,
) -> None:
    """Shows the algorithms that an MPI library runs untuned, for each P and from each message size on.

    'in the catalogue' is the choice that sends the same messages, with which compare, report, decision-map and evaluate
    time the library. Decisions are for one process on each node, a commutative operation, and blocks of one size. With
    --check Open MPI itself is asked, for any number of processes, without running the algorithms; of MPICH the tables
    are read by which it selects them. The exit code is 1 if one decides otherwise.
    """
    points = [(name, count, size) for name in collectives for count in procs for size in sizes_of(name, sizes)]
    decisions = {point: baseline.decide(*point) for point in points if point[1] > 1}
    if as_json:
        print_json(
            [
                {
                    "baseline": baseline.name,
                    "collective": collective,
                    "procs": count,
                    "message_bytes": size,
                    "algorithm": decision.algorithm,
                    "choice": None if decision.choice is None else vars(decision.choice),
                }
                for (collective, count, size), decision in decisions.items()
            ]
        )
    else:
        rows: list[tuple[object, ...]] = []
        before: tuple[object, ...] = ()
        for (collective, count, size), decision in decisions.items():
            now = (collective, count, decision.algorithm, _described(collective, decision.choice))
            if now != before:
                rows.append((collective, count, format_size(size), *now[2:]))
            before = now
        columns = ["collective", "P", "from m", "algorithm", "in the catalogue"]
        print_table(f"{baseline.title}, untuned", columns, rows, left=1, keys=3)
    if baseline.nodes:
        note(baseline.nodes)
    if checked:
        _check(baseline, list(decisions))


def _described(collective: str, choice: Choice | None) -> str:
    """The choice with its parameters: 'linear_sync max_requests=15'; '-' for none."""
    if choice is None:
        return "-"
    algorithm = Catalogue.load().algorithm(collective, choice.algorithm)
    named = algorithm.named_parameters(choice.segment_bytes, choice.fanout)
    return " ".join([choice.algorithm, *(f"{name}={value}" for name, value in named.items() if name != "first_bytes")])


def _check(baseline: Baseline, points: Sequence[tuple[str, int, int]]) -> None:

    found = check(baseline, points)
    wrong = [one for one in found if not one.agrees]
    for one in wrong:
        collective, count, size = one.point
        click.echo(f"{collective}, P = {count}, {format_size(size)}: {one.found}, not {one.expected}", err=True)
    if wrong:
        raise CollwiseError(
            f"the installed library decides otherwise for {counted(len(wrong), 'call')} of {len(found)}"
        )
    others = f"; {counted(len(points) - len(found), 'call')} could not be asked" if len(found) < len(points) else ""
    click.echo(f"the installed library decides the same for {counted(len(found), 'call')}{others}", err=True)


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
    from collwise.simulator.schedule.critical_path import path_parts
    from collwise.simulator.schedule.library import Schedule
    from collwise.simulator.schedule.networks import network_tables
    from collwise.simulator.schedule.shared import proportions_for

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
