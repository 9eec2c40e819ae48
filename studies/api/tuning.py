"""The whole job for a cluster: `tune` simulates it, decides, says how sure the choices are, and writes the rules."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, cast

from collwise import arguments
from collwise.arguments import ClusterLike, Names, Numbers, TimesLike
from collwise.common.errors import UsageError, check_name, note
from collwise.common.files import note_replaced, writable_folder, write_text
from collwise.decisions import Decisions, ExportedRules, export, select
from collwise.platforms import HostPlatform, Platform, known, write_description
from collwise.platforms.changes import Change, changed
from collwise.platforms.hosts import unplaced
from collwise.platforms.xml_clusters import description_of
from collwise.simulator.sweeps.context import SCHEDULE, SimulationContext
from collwise.timings import simulate
from collwise.validation.compare.deciders import Decider, Rules
from collwise.validation.libraries.baselines import Baseline
from collwise.validation.libraries.collwise_table import collwise_rules
from collwise.validation.libraries.formats import FORMATS
from collwise.validation.libraries.sayable import Substitution, for_consumer, left_to_library, with_untuned
from collwise.validation.select.consumers import (
    ALL_CONSUMERS,
    COLLWISE,
    OPENMPI,
    openmpi_version,
    sees_sizes,
    untuned_of,
)
from collwise.validation.select.decisions import DecisionTable, without_doubtful
from collwise.validation.times.defaults import SEGMENTS_TEXT, TOLERANCE_PERCENT, USUAL_COLLECTIVES

if TYPE_CHECKING:
    from collwise.models.piecewise import Array
    from collwise.simulator.store import Store
    from collwise.validation.compare.scores import AllScores
    from collwise.validation.times.files import AllTimes
    from collwise.validation.times.times import Times

Cluster: TypeAlias = "ClusterLike | TimesLike"
"""A platform or its file, an interconnect, a number of nodes, or times."""
RULES = "rules"
"""The title of the rules among scores."""
_TABLE = "-libcollwise.table"
_MEMORY_FACTORS = ("x0.5", "x5")
"""The factors of an assumed rate of memory with which sure choices are checked."""
MAX_PROCS = 4096
"""The largest P that is tuned by default."""


@dataclass(frozen=True)
class Tuned:
    """The choices for a cluster as rules for an MPI library, and what they gain.

    `scores` compare, by the times, the choices of the rules (RULES) and of the untuned library. `baseline` is this
    library, or the default baseline if the rules are for any MPI library; None if the library's decisions are not
    known. `said` holds the decisions as the rules express them, and `replaced` the choices that the rules cannot
    express. `measured` holds the measured times of the same cluster in the store, by collective. `over_allocations`
    are sentences on what the rules lose if the nodes of a job are drawn at random. `unsettled` are the points (of a
    collective, P and message size) that would be sure if the assumed rate of memory were: there the choice loses over
    5 % on memory half or five times as fast.
    """

    consumer: str
    times: AllTimes
    decisions: Decisions
    rules: ExportedRules
    scores: AllScores
    baseline: Baseline | None
    said: tuple[DecisionTable, ...]
    replaced: tuple[Substitution, ...] = ()
    platform: HostPlatform | None = None
    measured: Mapping[str, Times] = field(default_factory=dict)
    folder: Path | None = None
    over_allocations: tuple[str, ...] = ()
    unsettled: frozenset[tuple[str, int, int]] = frozenset()

    @property
    def assumed_memory(self) -> float | None:
        """The rate of a node's memory, bytes per second, if processes share the memory and the rate is assumed."""
        return _assumed_memory(self.platform, self.per_node)

    @property
    def is_fitted(self) -> bool:
        """True if the description's figures were fitted to measured collectives, or nothing is known about them."""
        from collwise.validation.calibration.figures import PUBLISHED

        if self.platform is None:
            return True
        base = unplaced(self.platform)
        if not isinstance(base, Platform):
            return False
        return PUBLISHED in base.published or any(source.what.startswith(PUBLISHED) for source in base.sources)

    @property
    def name(self) -> str:
        """The name of the platform."""
        return next(iter(self.times.values())).platform

    @property
    def per_node(self) -> int:
        """The number of processes on each node."""
        return next(iter(self.times.values())).processes_per_node

    def gains(self, collective: str) -> Array:
        """Seconds of the untuned library divided by seconds of the rules, shape (P, m); nan if one is missing."""
        right, picks = self.scores[collective].right, self.scores[collective].picks
        untuned = picks.get(self.baseline.title if self.baseline else "")
        own = right.best_seconds * math.nan if untuned is None else right.at(untuned)
        found: Array = (own / right.at(picks[RULES])).values
        return found

    def file(self, ending: str) -> Path:
        """A file of the results. Raises UsageError if they were not written."""
        if self.folder is None:
            raise UsageError("nothing was written; call tune with an output")
        return self.folder / f"{self.name}{ending}"

    def __repr__(self) -> str:
        return f"<Rules for {self.consumer} on {self.name}: {', '.join(self.times)}>"


def tune(
    cluster: Cluster,
    /,
    collective: Names = USUAL_COLLECTIVES,
    procs: Numbers | None = None,
    sizes: Numbers | None = None,
    *,
    consumer: str = "openmpi-4.1",
    nodes: int | None = None,
    ppn: int | None = None,
    cpus: int | None = None,
    memory_bytes_per_second: float | None = None,
    algorithms: Names | None = None,
    exclude: Names = (),
    segments: Numbers = SEGMENTS_TEXT,
    within: Names | None = None,
    tolerance: float = TOLERANCE_PERCENT,
    doubtful: bool = False,
    robust: bool = False,
    allocations: int | None = None,
    output: str | Path | None = None,
    context: SimulationContext | None = None,
) -> Tuned:
    """Simulates a cluster, chooses algorithms, says how sure choices are, and writes rules and a report.

    CLUSTER is a known platform or its file, the name of an interconnect, or a number of nodes; unknown values are
    assumed, with a warning. CLUSTER may also be your own times (a file or store:QUERY), which are used unchanged. Gains
    are relative to the untuned library that the rules are for. The folder of results contains the rules, a table for
    libcollwise under any MPI library, the decisions, the times and a report. If the cluster had no description, the
    folder also contains the assumed description. With `within`, node-aware algorithms compete as well; only
    libcollwise's own table can select these.

    Returns a Tuned: its `decisions`, `rules`, `times` and `scores`, and `gains(collective)`.

    >>> import collwise
    >>> found = collwise.tune("exact", "bcast", procs="4,8", sizes="8KiB:64KiB:x8", output="tuned")
    >>> found.rules.path.name, found.gains("bcast").shape
    ('exact-openmpi-4.1.rules', (2, 2))
    """
    from collwise.validation.compare.scores import AllScores, compare
    from collwise.validation.times.allocations import ALLOCATION, over_allocations, said_of_losses
    from collwise.validation.times.files import AllTimes

    check_name("library", consumer, ALL_CONSUMERS)
    baseline = untuned_of(consumer)
    figures = {"nodes": nodes, "cpus": cpus, "memory_bytes_per_second": memory_bytes_per_second}
    platform: HostPlatform | None = None
    measured: dict[str, Times] = {}
    times = _given_times(cluster)
    if times is None:
        platform = arguments.cluster(cast("ClusterLike", cluster), ppn, procs, **figures)
        per_node = ppn or platform.default_processes_per_node
        counts = _counts(platform, per_node) if procs is None else arguments.counts(procs)
        platform.hosts_for(max(counts), per_node)
        if output is not None:
            note_replaced(writable_folder(Path(output)) / f"{platform.name}.html")
        with arguments.opened(context, SCHEDULE.name) as opened:
            times = simulate(
                *(platform, arguments.collectives(collective), counts, sizes),
                algorithms=algorithms,
                segments=segments,
                counts={"within": within},
                ppn=per_node,
                consumer=consumer,
                deciders=[baseline] if baseline else (),
                allocations=allocations,
                context=opened,
            )
            measured = _measured(opened.store, times)
    elif given := [
        name
        for name, item in {
            "--procs": procs,
            "--sizes": sizes,
            "--within": within,
            "--allocations": allocations,
            **arguments.given_figures(figures),
        }.items()
        if item
    ]:
        raise UsageError(f"{given[0]} is for simulated clusters; given times are used unchanged")
    elif output is not None:
        note_replaced(Path(output) / f"{next(iter(times.values())).platform}.html")
    decisions = select(
        times,
        consumer=consumer,
        tolerance=tolerance,
        algorithms=algorithms if platform is None else None,
        exclude=exclude,
        doubtful=doubtful,
        robust=robust,
    )
    said, replaced = for_consumer(decisions.tables, consumer)
    drawn = [
        said_of_losses(times[table.collective], times[table.collective].picks_of(table.choice_at))
        for table in said
        if ALLOCATION in times[table.collective].seconds.dims
    ]
    times = AllTimes.of(over_allocations(item) for item in times.values())
    deciders: list[Decider] = [Rules(said, RULES, baseline), *([baseline] if baseline else [])]
    judging = times if doubtful else {name: without_doubtful(item) for name, item in times.items()}
    scores = AllScores(compare(judging[table.collective], *deciders) for table in said)
    unsettled: frozenset[tuple[str, int, int]] = frozenset()
    if (
        platform is not None
        and not allocations
        and _assumed_memory(platform, next(iter(times.values())).processes_per_node)
    ):
        with arguments.opened(context, SCHEDULE.name) as opened:
            unsettled = _unsettled(platform, said, doubtful, opened)
    folder = None if output is None else writable_folder(Path(output))
    wanted = OPENMPI if openmpi_version(consumer) else consumer
    form = next(item for item in FORMATS.values() if item.consumer == wanted)
    rules = export(
        decisions,
        output=None if folder is None else folder / f"{next(iter(times.values())).platform}{_ending(consumer)}",
        format_name=form.name,
        version=openmpi_version(consumer),
        procs=max(max(item.procs) for item in times.values()) if form.one_procs else None,
    )
    found = Tuned(
        *(consumer, times, decisions, rules, scores, baseline, tuple(said), replaced, platform, measured, folder),
        tuple(filter(None, drawn)),
        unsettled,
    )
    if folder is not None:
        _write(found)
    return found


def _assumed_memory(platform: HostPlatform | None, per_node: int) -> float | None:
    base = None if platform is None else unplaced(platform)
    return base.assumed_memory_bytes_per_second if per_node > 1 and isinstance(base, Platform) else None


def _unsettled(
    platform: HostPlatform, tables: Sequence[DecisionTable], doubtful: bool, context: SimulationContext
) -> frozenset[tuple[str, int, int]]:
    """Points at which choices seem sure, but lose over 5 % on memory half or five times as fast."""
    from collwise.studies.reports.sureness import sure_points
    from collwise.validation.measurement.confidence import CLOSE
    from collwise.validation.times.sources import simulate as simulate_grids

    grids = []
    for table in tables:
        sure = [point for point, is_sure in sure_points(table).items() if is_sure]
        for procs in sorted({procs for procs, _ in sure}):
            sizes = tuple(size for count, size in sure if count == procs)
            assert table.times is not None
            chosen = tuple((procs, size, choice) for size in sizes if (choice := table.choice_at(procs, size)))
            grids.append(replace(table.times.grid, procs=(procs,), message_bytes=sizes, besides=chosen))
    found = set()
    for factor in _MEMORY_FACTORS if grids else ():
        there = changed(platform, [Change("memory", factor)]).platform
        margins = {grid.collective: CLOSE for grid in grids}
        for times in simulate_grids(there, grids, context, margins, f"{platform.name}, memory {factor}"):
            seconds = times if doubtful else without_doubtful(times)
            for procs, size, choice in times.grid.besides:
                best = float(seconds.best_seconds.sel(procs=procs, message_bytes=size))
                if seconds.seconds_of(choice, procs, size) > (1 + CLOSE) * best:
                    found.add((times.collective, procs, size))
    return frozenset(found)


def _ending(consumer: str) -> str:
    """The end of the name of the rules' file, after the platform."""
    return _TABLE if consumer == COLLWISE else f"-{consumer}.rules"


def _given_times(cluster: Cluster) -> AllTimes | None:
    from collwise.validation.times.files import AllTimes
    from collwise.validation.times.times import Times

    if isinstance(cluster, Times | Mapping):
        return AllTimes(arguments.times(cluster))
    word = str(cluster)
    is_file = isinstance(cluster, str | Path) and Path(word).is_file() and Path(word).suffix not in (".toml", ".xml")
    return AllTimes(arguments.times(word)) if is_file or word.startswith(arguments.STORED) else None


def _counts(platform: HostPlatform, per_node: int) -> tuple[int, ...]:
    """The process counts that are tuned: all processes of the platform, a quarter and a sixteenth of them."""
    most = platform.max_procs(per_node)
    if most > MAX_PROCS:
        note(f"tuned for up to {MAX_PROCS} of the {most} processes that {platform.name} holds; see --procs for others")
        most = MAX_PROCS
    return tuple(sorted({max(2, most // 16), max(2, most // 4), most}))


def _measured(store: Store, times: Mapping[str, Times]) -> dict[str, Times]:
    """The measured times that the store has of the same cluster, by collective."""
    from collwise.validation.times.measured import measured_platform, stored_times

    found = {}
    for name, item in times.items():
        try:
            where = measured_platform(store, item.platform)
            found[name] = stored_times(store, "measured", where, name, item.processes_per_node)
        except UsageError:
            continue  # The store has no measured times of this collective.
    return found


def _for_libcollwise(tuned: Tuned) -> list[DecisionTable]:
    """The decisions for libcollwise. As in the rules for Open MPI, Open MPI decides where its own choice is faster."""
    if openmpi_version(tuned.consumer) is None:
        return [*tuned.decisions.tables]
    tables = (with_untuned(table, tuned.baseline) for table in tuned.decisions.tables)
    return [left_to_library(table, sees_sizes(COLLWISE, table.collective)) for table in tables]


def _write(tuned: Tuned) -> None:
    """Writes what is not written yet: the table, the decisions, the times, a new description and the report."""
    from collwise.studies.reports.tuning import write_report

    if tuned.consumer != COLLWISE:
        write_text(tuned.file(_TABLE), collwise_rules(_for_libcollwise(tuned)))
    tuned.decisions.save(tuned.file("-decisions.json"))
    tuned.times.save(tuned.file(".times"))
    if tuned.platform is not None and tuned.name not in known():
        with suppress(UsageError):  # Platform XML may have no description; SMPI also simulates such platforms.
            write_text(tuned.file(".toml"), write_description(description_of(unplaced(tuned.platform))))
    write_report(tuned)
