"""collwise show: message, models, algorithms, schedule, tasks, what untuned libraries run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

import click

import collwise
from collwise import arguments, predictions
from collwise.algorithms.catalogue import Algorithm, Catalogue
from collwise.common.errors import UsageError
from collwise.common.units import format_seconds, format_size
from collwise.platforms import HostPlatform
from collwise.platforms.smpi import charges_overheads
from collwise.simulator.sweeps.context import SimulationContext
from collwise.simulator.timing import Case
from collwise.studies.cli import options, types
from collwise.studies.cli.commands import CommandGroup, example
from collwise.studies.cli.declare import argument, group, option
from collwise.studies.cli.derive import command, derived
from collwise.studies.cli.options import TARGET_IF_NAMED
from collwise.studies.present.shown import Shown, Table, drawing, said
from collwise.validation.hierarchy.space import input_of, label
from collwise.validation.libraries.baselines import Baseline, library_decisions
from collwise.validation.select.consumers import OPENMPI_VERSIONS
from collwise.validation.times.choice import Choice
from collwise.validation.times.defaults import SEGMENT_BYTES
from collwise.validation.times.grid import Grid, case_of, check_thresholds_matter, choice_of, with_thresholds

if TYPE_CHECKING:
    from collwise.models.single_messages import Thresholds
    from collwise.simulator.schedule.library import Schedule
    from collwise.simulator.schedule.tables import NetworkTables


@click.group(cls=CommandGroup, epilog=example("show models"))
def show() -> None:
    """Shows what collwise knows of algorithms and models."""


message = derived(predictions.message, "show message mine.parameters.toml 0,1 --sizes 1KiB", parent=show)
models = derived(predictions.models, "show models --collective bcast", parent=show)


@command("show algorithms bcast", parent=show)
def algorithms(
    collective: str | None = argument(types.COLLECTIVE, required=False, metavar="[COLLECTIVE]"),
) -> Shown:
    """Lists all collectives and algorithms, with their parameters.

    It also shows requirements, ids in Open MPI, and references.
    """
    catalogue = Catalogue.load()
    chosen = [catalogue.collective(collective)] if collective else list(catalogue.collectives.values())
    parts = []
    for entry in chosen:
        rows = [
            (
                *(algorithm.name + reservation_text(algorithm), algorithm.topology, parameters_text(algorithm)),
                *(", ".join(algorithm.requires) or "-", ids_text(algorithm), algorithm.reference),
            )
            for algorithm in entry.algorithms.values()
        ]
        columns = ["algorithm", "topology", "parameters", "requires", "Open MPI ids", "reference"]
        title = f"{entry.title}: {entry.name} (message bytes: {entry.message_bytes})"
        parts.append(Table(title, columns, rows, left=len(columns), wrap=True))
    return Shown(parts, [asdict(algorithm) for entry in chosen for algorithm in entry.algorithms.values()])


def reservation_text(algorithm: Algorithm) -> str:
    """The reason why an algorithm is never offered as a choice, in brackets; empty if it can be chosen."""
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
    """The ids in Open MPI: '3' if all versions have the same id, otherwise the id of each version: '4.1: 3, 5.0: 4'."""
    ids = algorithm.openmpi
    if set(ids) == set(OPENMPI_VERSIONS) and len(set(ids.values())) == 1:
        return str(next(iter(ids.values())))
    return ", ".join(f"{version}: {number}" for version, number in ids.items()) or "-"


_PROTOCOLS = ("an eager message leaves when it is sent", "every send waits for its receive")


def _one_size(
    collective: str,
    procs: int,
    sizes: tuple[int, ...] | None,
    segments: tuple[int, ...] | None,
    root: int,
) -> tuple[int, int]:
    """The one message size and the one segment size. Raises UsageError for several sizes, or if `root` is no rank."""
    if collective == "barrier":
        if sizes not in (None, (0,)):
            raise UsageError("--sizes: a barrier has no message; leave out --sizes")
        sizes = (0,)
    if sizes is None:
        raise UsageError(f"--sizes: needed for {collective}, for example --sizes 8KiB")
    segments = segments or (SEGMENT_BYTES,)
    for name, values in (("--sizes", sizes), ("--segments", segments)):
        if len(values) != 1:
            raise UsageError(f"{name} takes only one size here, not {len(values)}")
    if root >= procs:
        raise UsageError(f"--root {root} is not a rank (valid: 0 to {procs - 1})")
    return sizes[0], segments[0]


def _one_way(entry: Algorithm, within: Sequence[str]) -> int:
    """The number of the given kind of communication within a node.

    Raises UsageError for several kinds, and for a kind that the algorithm does not have.
    """
    ways = arguments.within(within)
    if len(ways) != 1:
        raise UsageError(f"--within takes only one kind here, not {len(ways)}")
    if ways[0] and entry.count_parameter != "within":
        raise UsageError(f"--within: {entry.collective} {entry.name} only sends messages; leave --within out")
    return ways[0]


def _recorded(platform: HostPlatform, case: Case, called: Baseline) -> tuple[Schedule, NetworkTables]:
    """The schedule of a case, and the tables of the platform's network for it."""
    from collwise.simulator.schedule.library import Schedule
    from collwise.simulator.schedule.networks import network_tables

    places = platform.places(case.procs, case.processes_per_node)
    recorded = Schedule(case, places, library_decisions(called))
    return recorded, network_tables(platform, case.procs, case.processes_per_node, recorded.sizes)


@command(
    "show schedule --platform gros --collective bcast --algorithm binomial --procs 16 --sizes 8KiB",
    parent=show,
    draw=True,
)
def schedule(
    platform: HostPlatform = options.placed_platform(),
    collective: str = options.COLLECTIVE,
    algorithm: str = option(types.ALGORITHM, required=True),
    procs: int = options.process_count(2, required=True),
    sizes: tuple[int, ...] | None = option(types.SIZES),
    segments: tuple[int, ...] | None = option(types.SIZES),
    thresholds: Thresholds | None = options.THRESHOLDS,
    within: tuple[str, ...] = option(types.NAMES, "point-to-point"),
    root: int = option(click.IntRange(0), 0),
    ppn: int | None = options.PPN,
    called: Baseline = options.CALLED_LIBRARY,
) -> Shown:
    """Shows an algorithm's messages, rounds and critical path.

    The schedule is recorded from the algorithm's own code and timed by the schedule engine (docs/engine.md). The time
    is the sum of the parts of the critical path. As long as the path stays the same,
    whatever a part takes longer, the collective takes longer.
    """
    from collwise.simulator.schedule.critical_path import path_parts
    from collwise.simulator.schedule.networks import places_of
    from collwise.studies.figures.schedule import schedule_figure

    message_bytes, segment_bytes = _one_size(collective, procs, sizes, segments, root)
    entry = Catalogue.load().algorithm(collective, algorithm)
    if objection := entry.objection(procs, message_bytes):
        raise UsageError(f"{collective} {algorithm} {objection}: P = {procs}")
    cut = segment_bytes if entry.part_parameter == "segment_bytes" else 0
    per_node = ppn or platform.default_processes_per_node
    check_thresholds_matter([entry], thresholds)
    way = _one_way(entry, within)
    (choice,) = with_thresholds(collective, [Choice(algorithm, cut, way)], thresholds)
    case = case_of(collective, choice, procs, message_bytes, per_node, root)
    recorded, network = _recorded(platform, case, called)
    trace, path = path_parts(recorded, network)
    rounds, waiting = recorded.rounds(), recorded.rounds(synchronous_sends=True)
    title = f"{collective} {algorithm}, P = {procs}"
    title += f", m = {format_size(message_bytes)}" if collective != "barrier" else ""
    if entry.bounded:
        bound = f", parts below {format_size(choice.segment_bytes)}"
        title += bound if choice.segment_bytes else ", without bounds: the linear algorithm"
    title += f", segments of {format_size(cut)}" if cut else ""
    facts = {
        "case": vars(case), "messages": recorded.messages, "bytes": recorded.message_bytes, "rounds": rounds,
        "rounds_with_synchronous_sends": waiting, "seconds": trace.seconds, "lost_packets": trace.lost_packets,
        "time_outs": trace.time_outs,
    }  # fmt: skip
    rows = [
        (part, row.count, format_size(int(row.bytes)), format_seconds(row.seconds), f"{100 * row.share:.1f} %")
        for part, row in zip(path.index, path.itertuples(index=False), strict=True)
        if row.seconds > 0
    ]
    heads = ("part", "how often", "bytes", "time", "share")
    apart = {what: trace.bytes_between(where) for what, where in places_of(platform, procs, per_node).items()}
    parts: list[Table | str] = [
        f"{title}: {recorded.messages} messages, {format_size(recorded.message_bytes)} in all, "
        + ", ".join(f"{format_size(count)} between {what}" for what, count in apart.items()),
        f"rounds, the longest chain of dependent messages: {rounds} if {_PROTOCOLS[0]},",
        f"  {waiting} if {_PROTOCOLS[1]}; the algorithm never deadlocks",
        Table(f"critical path on {platform.title}: {format_seconds(trace.seconds)}", heads, rows),
    ]
    free = not charges_overheads(platform.smpi_options())
    parts += said("after_schedule", buffers=network.buffers, trace=trace, free=free)
    figures = {"schedule": partial(schedule_figure, trace, procs, f"{title}, on {platform.title}")}
    return Shown(parts, path.reset_index().to_dict("records"), facts, figures)


@command("show traffic --platform leonardo --ppn 1 --collective allgather --procs 64 --sizes 64KiB", parent=show)
def traffic(
    platform: HostPlatform = options.placed_platform(),
    collective: str = options.COLLECTIVE,
    algorithms: tuple[str, ...] | None = option(types.ALGORITHMS),
    procs: int = options.process_count(2, required=True),
    sizes: tuple[int, ...] | None = option(types.SIZES),
    segments: tuple[int, ...] | None = option(types.SIZES),
    root: int = option(click.IntRange(0), 0),
    ppn: int | None = options.PPN,
    called: Baseline = options.CALLED_LIBRARY,
) -> Shown:
    """Shows the bytes that algorithms send over the network.

    It shows the bytes between nodes, between switches, and between groups of switches. Ranks run as --placement or
    --allocation says. The messages are recorded from the algorithms' own code. Algorithms that send the fewest bytes
    between groups come first (between switches or nodes if there are no groups).
    """
    from collwise.simulator.schedule.networks import places_of

    message_bytes, segment_bytes = _one_size(collective, procs, sizes, segments, root)
    per_node = ppn or platform.default_processes_per_node
    names = arguments.algorithms(collective, algorithms)
    grid = Grid.of(collective, (procs,), (message_bytes,), per_node, (segment_bytes,), names, root=root)
    cases = grid.cases()
    if not cases:
        objection = Catalogue.load().algorithm(collective, names[0]).objection(procs, message_bytes)
        raise UsageError(f"{collective} {names[0]} {objection}: P = {procs}")
    places = places_of(platform, procs, per_node)
    records = []
    for case in cases:
        recorded, network = _recorded(platform, case, called)
        trace = recorded.trace(network)
        between = {f"bytes_between_{what}": trace.bytes_between(where) for what, where in places.items()}
        counts = {"messages": recorded.messages, "bytes": recorded.message_bytes}
        records.append(vars(choice_of(case)) | counts | between | {"seconds": trace.seconds})
    farthest = f"bytes_between_{[*places][-1]}"
    records.sort(key=lambda entry: (entry[farthest], entry["seconds"]))
    rows = [
        (
            *(record["algorithm"], record["messages"], format_size(record["bytes"])),
            *(_share(record[f"bytes_between_{what}"], record["bytes"]) for what in places),
            format_seconds(record["seconds"]),
        )
        for record in records
    ]
    heads = ("algorithm", "messages", "bytes", *(f"between {what}" for what in places), "time")
    title = f"{collective}, P = {procs}" + (f", m = {format_size(message_bytes)}" if message_bytes else "")
    facts = {what: len({*where.tolist()}) for what, where in places.items()}
    used = ", ".join(f"{what}: {count}" for what, count in facts.items())
    parts = (Table(f"{title}, on {platform.title}", heads, rows), f"{procs} processes; {used}")
    return Shown(parts, records, facts)


def _share(part: int, whole: int) -> str:
    """'12 KiB, 25 %'."""
    return f"{format_size(part)}, {100 * part / whole:.0f} %" if whole else "-"


_SHOWN_LEADER = 2
"""The node whose leader's trend is shown."""


@command("show tasks --platform stampede2 --nodes 6 --ppn 12 --engine schedule", parent=show, figures=True)
def tasks(
    collective: str = option(types.COLLECTIVE, "bcast"),
    asked: dict[str, Any] = group(
        dict,
        platform=option(types.PLATFORM),
        nodes=option(click.IntRange(2)),
        ppn=option(click.IntRange(1)),
        segments=option(types.SIZES, "64KiB"),
        algorithms=option(types.NAMES, "chain,binary,binomial"),
        within=option(types.NAMES, "point-to-point"),
        pieces=option(types.SIZES, "0", key="pieces of segments"),
        target=TARGET_IF_NAMED,
        method=options.METHOD,
    ),
    context: SimulationContext = options.SIMULATION,
) -> Shown:
    """Times the tasks of a hierarchical collective.

    It times the tasks of bcast, reduce or allreduce on each node's leader, in a pipeline and alone. Between nodes the
    algorithm is chain, binary, binomial or library. A task is the work of a leader between two waits. In task sbib(3),
    for example, a leader broadcasts segment 2 within its node and segment 3 to other nodes. Each task is timed after
    the tasks before it, so that it starts as it would in the collective. The stabilised cost is the mean time of the
    later tasks. The overlap says how much of a task's shorter part is hidden behind the longer part if both run at
    once.
    """
    if "by-socket" in asked["within"] and len(asked["within"]) > 1:
        raise UsageError("--within: by-socket cannot be combined with others, since its tasks differ")
    studies = collwise.time_tasks(collective, **asked, context=context)
    first = studies[0]
    leader = min(_SHOWN_LEADER, len(first.times.seconds) - 1)
    names = [label(choice_of(study.case)) for study in studies]
    title = f"{collective}, {first.case.nodes} nodes x {first.case.processes_per_node}"
    rows = [
        (
            name,
            *(format_seconds(float(seconds.max())) for seconds in study.probes.values()),
            format_seconds(float(study.stable_seconds.max())),
            f"{study.overlap:.0%}",
        )
        for name, study in zip(names, studies, strict=True)
    ]
    trend = [
        (task, *(format_seconds(float(study.times.seconds[leader, at])) for study in studies))
        for at, task in enumerate(first.times.names)
    ]
    starts = [study.stable_from(leader) for study in studies]
    trend.append(("stable from", *("-" if start is None else str(start) for start in starts)))
    parts = [
        Table(
            f"{title}: parts of tasks, slowest leader", ["configuration", *first.probes, "stabilised", "overlap"], rows
        ),
        Table(f"tasks one after another on leader {leader}", ["task", *names], trend),
    ]
    records = [
        {
            **vars(choice_of(study.case)),
            **vars(input_of(study.case)),
            "tasks": study.times.names,
            "seconds": study.times.seconds.tolist(),
            "stabilised_seconds": study.stable_seconds.tolist(),
            "alone_and_at_once": {name: seconds.tolist() for name, seconds in study.probes.items()},
            "overlap": study.overlap,
        }
        for study in studies
    ]
    figures = {
        "trend": drawing("hierarchy.task_trend", studies, leader, title),
        "overlap": drawing("hierarchy.task_overlap", studies, title),
    }
    return Shown(parts, records, figures=figures)


defaults = derived(
    collwise.defaults,
    "show defaults --baseline openmpi-4.1 --collective allreduce --procs 16,1024",
    parent=show,
    baseline=options.BASELINE,
)
