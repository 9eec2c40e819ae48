"""collwise show: message, models, algorithms, schedule, tasks, what untuned libraries run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING

import click

import collwise
from collwise import predictions
from collwise.algorithms.catalogue import Algorithm, Catalogue
from collwise.common.errors import UsageError
from collwise.common.units import format_seconds, format_size
from collwise.platforms import HostPlatform
from collwise.platforms.smpi import charges_overheads
from collwise.simulator.timing import Case
from collwise.studies.cli import options, types
from collwise.studies.cli.commands import CommandGroup, example
from collwise.studies.cli.declare import argument, option
from collwise.studies.cli.derive import command, derived
from collwise.studies.present.shown import Shown, Table, said
from collwise.timings import choices, nothing_runs
from collwise.validation.libraries.baselines import Baseline, library_decisions
from collwise.validation.select.consumers import OPENMPI_VERSIONS
from collwise.validation.times.defaults import SEGMENT_BYTES
from collwise.validation.times.grid import Grid, choice_of, without_repeats

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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


def _one_size(collective: str, sizes: tuple[int, ...] | None) -> int:
    """The only message size; 0 for a barrier. Raises UsageError for several sizes."""
    if collective == "barrier":
        if sizes not in (None, (0,)):
            raise UsageError("--sizes: a barrier has no message; leave out --sizes")
        return 0
    if sizes is None:
        raise UsageError(f"--sizes: needed for {collective}, for example --sizes 8KiB")
    if len(sizes) != 1:
        raise UsageError(f"--sizes takes only one size here, not {len(sizes)}")
    return sizes[0]


def _recorded(platform: HostPlatform, case: Case, called: Baseline) -> tuple[Schedule, NetworkTables]:
    """The schedule of a case, and the tables of the platform's network for it."""
    from collwise.simulator.schedule.library import Schedule
    from collwise.simulator.schedule.networks import network_tables

    places = platform.places(case.procs, case.processes_per_node)
    recorded = Schedule(case, places, library_decisions(called))
    return recorded, network_tables(platform, case.procs, case.processes_per_node, recorded.sizes)


@command(
    "show schedule --platform gros --collective bcast --algorithms binomial --procs 16 --sizes 8KiB",
    parent=show,
    draw=True,
)
def schedule(
    platform: HostPlatform = options.placed_platform(),
    collective: str = options.COLLECTIVE,
    algorithms: tuple[str, ...] | None = option(types.ALGORITHMS),
    procs: int = options.process_count(2, required=True),
    sizes: tuple[int, ...] | None = option(types.SIZES),
    segments: tuple[int, ...] = option(types.SIZES, format_size(SEGMENT_BYTES)),
    thresholds: Thresholds | None = options.THRESHOLDS,
    within: tuple[str, ...] | None = option(types.NAMES),
    root: int = option(click.IntRange(0), 0),
    ppn: int | None = options.PPN,
    called: Baseline = options.CALLED_LIBRARY,
) -> Shown:
    """Shows the messages of algorithms, and critical paths.

    Several algorithms are compared by their times, and by the bytes that they send between nodes, between switches, and
    between groups of switches. Algorithms that send the fewest bytes between groups come first (between switches or
    nodes if there are no groups). The time of a single algorithm is the sum of the parts of its critical path. As long
    as the path stays the same, whatever a part takes longer, the collective takes longer. Messages are recorded from
    the algorithms' own code and timed by the schedule engine (docs/engine.md). Ranks run as --placement or --allocation
    says.
    """
    from collwise.simulator.schedule.networks import places_of

    message_bytes = _one_size(collective, sizes)
    if root >= procs:
        raise UsageError(f"--root {root} is not a rank (valid: 0 to {procs - 1})")
    competing = choices([collective], algorithms, segments, {"within": within}, thresholds)
    known = Catalogue.load().collective(collective).algorithms
    if within is not None and all(known[one.algorithm].count_parameter != "within" for one in competing[collective]):
        raise UsageError(f"--within: these algorithms of {collective} only send messages; leave --within out")
    per_node = ppn or platform.default_processes_per_node
    grid = Grid(collective, competing[collective], (procs,), (message_bytes,), per_node, root)
    cases = without_repeats(grid.cases())
    if not cases:
        raise nothing_runs(competing, (procs,), (message_bytes,))
    places = places_of(platform, procs, per_node)
    if len(cases) == 1:
        return _one_schedule(platform, cases[0], called, places)
    return _compared(platform, cases, called, places)


def _one_schedule(
    platform: HostPlatform, case: Case, called: Baseline, places: Mapping[str, NDArray[np.int64]]
) -> Shown:
    """The messages, rounds and critical path of a case."""
    from collwise.simulator.schedule.critical_path import path_parts
    from collwise.studies.figures.schedule import schedule_figure

    recorded, network = _recorded(platform, case, called)
    trace, path = path_parts(recorded, network)
    rounds, waiting = recorded.rounds(), recorded.rounds(synchronous_sends=True)
    title = f"{case.collective} {case.algorithm}, {_point(case)}"
    if Catalogue.load().algorithm(case.collective, case.algorithm).bounded:
        bound = f", parts below {format_size(case.segment_bytes)}"
        title += bound if case.segment_bytes else ", without bounds: the linear algorithm"
    elif case.segment_bytes:
        title += f", segments of {format_size(case.segment_bytes)}"
    between = {what: trace.bytes_between(where) for what, where in places.items()}
    facts = {
        "case": vars(case), "messages": recorded.messages, "bytes": recorded.message_bytes, "rounds": rounds,
        "rounds_with_synchronous_sends": waiting, "seconds": trace.seconds, "lost_packets": trace.lost_packets,
        "time_outs": trace.time_outs, **{f"bytes_between_{what}": count for what, count in between.items()},
    }  # fmt: skip
    rows = [
        (part, row.count, format_size(int(row.bytes)), format_seconds(row.seconds), f"{100 * row.share:.1f} %")
        for part, row in zip(path.index, path.itertuples(index=False), strict=True)
        if row.seconds > 0
    ]
    heads = ("part", "how often", "bytes", "time", "share")
    parts: list[Table | str] = [
        f"{title}: {recorded.messages} messages, {format_size(recorded.message_bytes)} in all, "
        + ", ".join(f"{format_size(count)} between {what}" for what, count in between.items()),
        f"rounds, the longest chain of dependent messages: {rounds} if {_PROTOCOLS[0]},",
        f"  {waiting} if {_PROTOCOLS[1]}; the algorithm never deadlocks",
        Table(f"critical path on {platform.title}: {format_seconds(trace.seconds)}", heads, rows),
    ]
    free = not charges_overheads(platform.smpi_options())
    parts += said("after_schedule", buffers=network.buffers, trace=trace, free=free)
    figures = {"schedule": partial(schedule_figure, trace, case.procs, f"{title}, on {platform.title}")}
    return Shown(parts, path.reset_index().to_dict("records"), facts, figures)


def _compared(
    platform: HostPlatform, cases: Sequence[Case], called: Baseline, places: Mapping[str, NDArray[np.int64]]
) -> Shown:
    """The bytes and times of cases; those that send the fewest bytes over the longest steps come first."""
    found = []
    for case in cases:
        recorded, network = _recorded(platform, case, called)
        trace = recorded.trace(network)
        between = [trace.bytes_between(where) for where in places.values()]
        found.append((choice_of(case), recorded.messages, recorded.message_bytes, between, trace.seconds))
    found.sort(key=lambda one: (one[3][-1], one[-1]))
    rows = [
        (choice.label, messages, format_size(sent), *(_share(part, sent) for part in between), format_seconds(seconds))
        for choice, messages, sent, between, seconds in found
    ]
    names = [f"bytes_between_{what}" for what in places]
    records = [
        {**vars(choice), "messages": messages, "bytes": sent, **dict(zip(names, between, strict=True)), "seconds": time}
        for choice, messages, sent, between, time in found
    ]
    heads = ("algorithm", "messages", "bytes", *(f"between {what}" for what in places), "time")
    facts = {what: len({*where.tolist()}) for what, where in places.items()}
    used = ", ".join(f"{what}: {count}" for what, count in facts.items())
    title = f"{cases[0].collective}, {_point(cases[0])}, on {platform.title}"
    return Shown((Table(title, heads, rows), f"{cases[0].procs} processes; {used}"), records, facts)


def _point(case: Case) -> str:
    """'P = 16, m = 8 KiB'; 'P = 16' for a barrier."""
    return f"P = {case.procs}" + (f", m = {format_size(case.message_bytes)}" if case.collective != "barrier" else "")


def _share(part: int, whole: int) -> str:
    """'12 KiB, 25 %'."""
    return f"{format_size(part)}, {100 * part / whole:.0f} %" if whole else "-"


tasks = derived(
    collwise.time_tasks,
    "show tasks --platform stampede2 --nodes 6 --ppn 12 --engine schedule",
    name="tasks",
    parent=show,
    figures=True,
    collective=option(types.COLLECTIVE, "bcast"),
    platform=types.PLATFORM,
    nodes=click.IntRange(2),
    algorithms=types.NAMES,
    pieces=types.SIZES,
    tasks=None,
    target=options.TARGET_IF_NAMED,
)
defaults = derived(
    collwise.defaults, "show defaults --baseline openmpi-4.1 --collective allreduce --procs 16,1024", parent=show
)
