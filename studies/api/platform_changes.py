"""Answers what-if questions about a platform: `whatif`, `sweep`, `live_map` and `explorer`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from collwise import arguments
from collwise.arguments import ClusterLike, DecisionsLike, Names, Numbers, PlatformLike
from collwise.common.errors import UsageError, check_name, warn
from collwise.platforms import HostPlatform, Platform
from collwise.platforms.changes import Change, changed, parse_change
from collwise.platforms.hosts import PlacedPlatform
from collwise.platforms.smpi import warn_of_free_messages
from collwise.platforms.xml_clusters import description_of
from collwise.simulator.sweeps.context import SCHEDULE, SimulationContext
from collwise.timings import check_can_ask_for, check_windows
from collwise.validation.compare.deciders import Decider, Deciding, Rules
from collwise.validation.libraries.sayable import for_consumer
from collwise.validation.select.consumers import ALL_CONSUMERS, grid_for, untuned_of
from collwise.validation.select.decisions import DecisionTable
from collwise.validation.times.choice import LIBRARY_DECIDES, Choice
from collwise.validation.times.defaults import SEGMENTS_TEXT, TOLERANCE_PERCENT, USUAL_COLLECTIVES, sizes_of
from collwise.validation.times.grid import Grid, candidates

if TYPE_CHECKING:
    from collwise.studies.figures.explorer import Explorer
    from collwise.validation.whatif.live_map import LiveMap
    from collwise.validation.whatif.sweep import Factors
    from collwise.whatif_results import Sweeps, WhatIfs

Changes = str | Change | Sequence[str | Change]
"""Changes of a platform: 'bandwidth=x2', or several in a list."""

_MIN_PROCS = 4


def whatif(
    platform: ClusterLike,
    changes: Changes,
    collective: Names = USUAL_COLLECTIVES,
    procs: Numbers | None = None,
    sizes: Numbers | None = None,
    *,
    segments: Numbers = SEGMENTS_TEXT,
    algorithms: Names | None = None,
    exclude: Names = (),
    within: Names | None = None,
    doubtful: bool = False,
    decisions: DecisionsLike | None = None,
    consumer: str | None = None,
    limits: bool = True,
    ppn: int | None = None,
    context: SimulationContext | None = None,
) -> WhatIfs:
    """Shows how choices and times change, and why.

    It times a platform before and after the change. It shows the changed choices, how times change, the cost of keeping
    rules from before the change, and what limits each choice: latency, overhead, gap, bandwidth or reduction. A gap is
    the wait for a resource that other messages use: node ports, memory, the path between sockets, or uplinks of
    switches. The schedule engine finds the critical path, which says what limits a choice. docs/whatif.md says how to
    write each change.

    Returns a WhatIf for each collective, whose `times` have the dimension `change`.

    >>> import collwise
    >>> answer = collwise.whatif("gros", "bandwidth=x0.125", "allreduce", procs="31,64", sizes="1KiB,1MiB")
    >>> answer.frame()[["before", "after", "limited_before", "limited_after"]].iloc[1].tolist()
    ['rabenseifner', 'ring', 'bandwidth', 'bandwidth']
    >>> print(answer.summary()[0])
    The best choice changes at ... of 4 points.
    """
    from collwise.validation.whatif.sweep import before_and_after
    from collwise.whatif_results import WhatIf, WhatIfs

    made = changes_of(changes)
    where = _described(platform, ppn, procs, *(change.name for change in made))
    grids = _grids(where, collective, procs, sizes, segments, (algorithms, exclude), ppn, made, within, consumer)
    tables = None if decisions is None else {item.collective: item for item in arguments.decisions(decisions).tables}
    if tables is not None and (lacking := [item.collective for item in grids if item.collective not in tables]):
        raise UsageError(f"{decisions} has no decisions for {lacking[0]} (valid: {', '.join(tables)})")
    new = changed(where, made)

    def answer(grid: Grid) -> WhatIf:
        kept = None if tables is None else _kept(tables[grid.collective], consumer)
        times = before_and_after(where, new, grid, simulations, kept, doubtful)
        return WhatIf(times, made, where, new, kept, limits)

    with arguments.opened(context, SCHEDULE.name) as simulations:
        check_windows(simulations.engine, grids)
        answers = WhatIfs({grid.collective: answer(grid) for grid in grids})
    warn_of_free_messages(where)
    return answers


def sweep(
    platform: ClusterLike,
    factors: str | Factors,
    collective: Names = USUAL_COLLECTIVES,
    procs: Numbers | None = None,
    sizes: Numbers | None = None,
    *,
    changes: Changes = (),
    segments: Numbers = SEGMENTS_TEXT,
    algorithms: Names | None = None,
    exclude: Names = (),
    within: Names | None = None,
    doubtful: bool = False,
    consumer: str | None = None,
    ppn: int | None = None,
    tolerance: float = TOLERANCE_PERCENT,
    context: SimulationContext | None = None,
) -> Sweeps:
    """Finds how large a change must be before the best choice differs.

    It also says why the choice differs. The factors cover a range, such as bandwidth=x0.25:x8; 'collwise whatif change
    --help' lists all changes. With a tolerance, choices that are almost equally fast do not alternate.

    Returns a Sweep for each collective, whose `times` have the dimension `factor`.

    >>> import collwise
    >>> swept = collwise.sweep("gros", "bandwidth=x0.125:x1", "allreduce", procs=62, sizes="1MiB")
    >>> [(row.below, row.above, round(row.factor, 2)) for row in swept.crossovers().itertuples()]
    [('ring', 'rabenseifner', 0.17)]
    """
    from collwise.validation.whatif.sweep import Factors, parse_factors, sweep_over
    from collwise.whatif_results import Sweep, Sweeps

    arguments.check_percent("tolerance", tolerance)
    others = changes_of(changes)
    over = replace(factors if isinstance(factors, Factors) else parse_factors(factors), others=others)
    where = _described(platform, ppn, procs, over.name)
    grids = _grids(where, collective, procs, sizes, segments, (algorithms, exclude), ppn, others, within, consumer)

    def swept(grid: Grid) -> Sweep:
        times, found = sweep_over(where, over, grid, simulations, tolerance / 100, doubtful)
        return Sweep(times, tuple(found), where, over, tolerance / 100)

    with arguments.opened(context, SCHEDULE.name) as simulations:
        check_windows(simulations.engine, grids)
        sweeps = Sweeps({grid.collective: swept(grid) for grid in grids})
    warn_of_free_messages(where)
    return sweeps


def live_map(
    platform: PlatformLike,
    collective: str,
    procs: Numbers | None = None,
    sizes: Numbers | None = None,
    *,
    segments: Numbers = "8KiB",
    algorithms: Names | None = None,
    ppn: int | None = None,
    jobs: int | None = None,
) -> LiveMap:
    """A map of a collective's best choices that is updated within a fraction of a second, for sliders.

    Parameters: as for `whatif`; `jobs`, the number of threads, by default one per core.

    Returns a LiveMap. Its `on(changes)` gives the Times of the best choice and of choices about as fast. Inexact times
    have half-widths (docs/whatif.md). `on(changes, every=True)` gives the times of every choice.

    >>> import collwise
    >>> from collwise.platforms.changes import parse_change
    >>> live = collwise.live_map("gros", "allreduce", procs="8:64:+8", sizes="1KiB:1MiB:x4")
    >>> times = live.on([parse_change("bandwidth=x2")])
    >>> times.best.shape, bool((times.best_seconds <= live.base.best_seconds).all())
    ((8, 6), True)
    """
    from collwise.validation.whatif.live_map import LiveMap

    where = _described(platform, ppn, procs)
    (grid,) = _grids(where, collective, procs, sizes, segments, (algorithms, ()), ppn, ())
    return LiveMap(where, grid, jobs)


_MAX_LIVE_PROCS, _LIVE_COUNTS = 64, 8
"""The largest P and the number of process counts that sliders have by default; recording more takes minutes."""


def explorer(
    platform: PlatformLike,
    collective: str,
    procs: Numbers | None = None,
    sizes: Numbers | None = None,
    *,
    segments: Numbers = "8KiB",
) -> Explorer:
    """Sliders for a notebook: the map of a collective's best choices follows changes of its platform.

    Parameters: as for `live_map`; `procs` are by default eight counts of up to 64 processes. Another platform or
    collective can be chosen above the sliders.

    Returns an Explorer, which a notebook shows. The packages of the extra `notebooks` must be installed.

    >>> import collwise
    >>> sliders = collwise.explorer("gros", "allreduce", procs="8,16", sizes="8KiB:1MiB:x4")
    """
    from collwise.studies.figures.explorer import Explorer

    where = arguments.platform(platform)

    def live(where: PlatformLike, collective: str) -> LiveMap:
        found = arguments.platform(where)
        most = min(found.max_procs(found.default_processes_per_node), _MAX_LIVE_PROCS)
        counts = sorted({max(2, most * k // _LIVE_COUNTS) for k in range(1, _LIVE_COUNTS + 1)})
        return live_map(found, collective, procs or counts, sizes, segments=segments)

    return Explorer(live(where, collective), live)


def _kept(table: DecisionTable, consumer: str | None) -> Decider:
    """The choices of a table, as rules for the consumer express them; None for calls that no known choice runs."""
    title = f"the table made by {table.made_by}"
    rules = Rules([table], title)
    if consumer is not None:
        rules = Rules(for_consumer([table], consumer)[0], f"those for {consumer} of {title}", untuned_of(consumer))

    def known(collective: str, procs: int, message_bytes: int) -> Choice | None:
        found = rules.choice(collective, procs, message_bytes)
        return None if found == LIBRARY_DECIDES else found

    return Deciding(rules.title, known)


def changes_of(given: Changes) -> tuple[Change, ...]:
    """The given changes, parsed if they are text. Raises UsageError for unknown changes."""
    several = [given] if isinstance(given, str | Change) else given
    return tuple(item if isinstance(item, Change) else parse_change(item) for item in several)


def default_procs(platform: HostPlatform, processes_per_node: int) -> tuple[int, ...]:
    """Powers of two, starting at 4, and the platform's largest process count."""
    most = platform.max_procs(processes_per_node)
    powers = [2**k for k in range(most.bit_length()) if _MIN_PROCS <= 2**k < most]
    return (*powers, most)


def _described(platform: ClusterLike, ppn: int | None, procs: Numbers | None, *varied: str) -> HostPlatform:
    """The platform, with a description that can be changed. Raises UsageError for platform XML without one.

    An assumed rate of memory is named, unless memory is among the changes in `varied`.
    """
    found = arguments.cluster(platform, ppn, procs)
    placed = found if isinstance(found, PlacedPlatform) else None
    base = description_of(found if placed is None else placed.base)
    # A platform that `cluster` made from an interconnect has this warning already.
    rate = base.assumed_memory_bytes_per_second if isinstance(base, Platform) and "memory" not in varied else None
    if rate is not None and isinstance(platform, HostPlatform) and (ppn or found.default_processes_per_node) > 1:
        warn(
            f"the processes of a node of '{base.name}' are assumed to share {rate / 1e9:g} GB/s of memory; "
            "'collwise whatif sweep --factors memory=x0.5:x5' shows at which rate choices change"
        )
    return base if placed is None else replace(placed, base=base)


def _grids(
    platform: HostPlatform,
    collective: Names,
    procs: Numbers | None,
    sizes: Numbers | None,
    segments: Numbers,
    algorithms: tuple[Names | None, Names],
    ppn: int | None,
    changes: Sequence[Change],
    within: Names | None = None,
    consumer: str | None = None,
) -> list[Grid]:
    """The requested points, by collective; by default points that fit on the platform before and after the change.

    `algorithms` are the requested names and the names to exclude. Of these, a consumer gets those it can be asked for.
    """
    from collwise.validation.times.memory_limits import asked_points, warn_of_doubtful

    if consumer is not None:
        check_name("library", consumer, ALL_CONSUMERS)
    check_can_ask_for(consumer, within)
    per_node = ppn or platform.default_processes_per_node
    if procs is None:
        new = changed(platform, changes)
        sides = default_procs(platform, per_node), default_procs(new.platform, new.processes_per_node or per_node)
        counts = min(sides, key=max)
    else:
        counts = arguments.counts(procs)
    asked, cut = None if sizes is None else arguments.sizes(sizes), arguments.sizes(segments)
    wanted, left_out = arguments.with_nodes(algorithms[0], within), algorithms[1]
    ways = {} if within is None else {"within": arguments.within(within)}

    def choices(name: str) -> tuple[Choice, ...]:
        return candidates(name, cut, arguments.algorithms(name, wanted, left_out), ways)

    grids = asked_points(
        platform,
        [
            Grid(name, choices(name), counts, sizes_of(name, asked), per_node)
            for name in arguments.collectives(collective)
        ],
    )
    grids = [grid_for(consumer, grid) for grid in grids]
    warn_of_doubtful(platform, grids)
    return grids
