"""Hierarchical collectives made of tasks: `time_tasks`, `search_tasks`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from collwise import arguments
from collwise.algorithms.catalogue import Catalogue
from collwise.arguments import Names, Numbers, PlatformLike
from collwise.common.errors import UsageError, check_name
from collwise.decisions import Decisions
from collwise.platforms import HostPlatform
from collwise.platforms.smpi import warn_of_free_messages
from collwise.simulator.bench import Bench, Measured, Simulated, Timer
from collwise.simulator.execution.targets import ExecutionTarget
from collwise.simulator.schedule.tasks import BY_SOCKET, parts_of
from collwise.simulator.sweeps.context import SCHEDULE, SCHEDULE_LIKE_SMPI, SimulationContext
from collwise.simulator.sweeps.method import Method
from collwise.targets import TARGET_OPTIONS, TargetLike, TargetOptions, target_from
from collwise.validation.hierarchy.space import (
    BETWEEN,
    BUDGET,
    PREDICT,
    PREFIX,
    SEARCHES,
    SEGMENTS,
    Space,
)

if TYPE_CHECKING:
    from collwise.validation.hierarchy.cost_model import TaskStudy
    from collwise.validation.hierarchy.tuning import Tuning

SIZES = "4KiB:4MiB:x4"
SEGMENT_SIZES = "16KiB:1MiB:x4"
ALGORITHMS = "chain,binary,binomial"
POINT_TO_POINT = "point-to-point"


class TaskStudies(list["TaskStudy"]):
    """Times of the tasks of each configuration."""


class TaskSearches(dict[str, "Tuning"]):
    """Results of searches for the best configurations, by collective."""

    @property
    def decisions(self) -> Decisions:
        """The decisions of the last search. A collective has one table for each number of processes per node."""
        from collwise.validation.hierarchy.tuning import decision_tables

        return Decisions(tuple(table for tuning in self.values() for table in decision_tables(tuning)))

    def save(self, path: str | Path) -> None:
        """Writes the decisions into a file. Raises UsageError when it cannot be written."""
        self.decisions.save(path)


def _reached(target: TargetLike | None, ppn: Numbers | None) -> ExecutionTarget | None:
    """The target. If options name it, a single `ppn` also sets the number of processes on each node of the target."""
    if isinstance(target, TargetOptions) and (target.hosts or target.testbed or target.launcher):
        counts = () if ppn is None else arguments.counts(ppn)
        target = replace(target, ppn=counts[0] if len(counts) == 1 else None)
    return None if target is None else target_from(target)


def _bench(
    platform: HostPlatform | None, target: ExecutionTarget | None, method: Method | None, context: SimulationContext
) -> Bench:
    """The timer of tasks and collectives: a target if there is one, else the platform."""
    if target is not None:
        return Measured(target, context, method or Method())
    if platform is None:
        raise UsageError(f"name --platform to simulate, or a target to measure on: {TARGET_OPTIONS}")
    return Simulated(platform, context)


def _without(algorithms: Names, exclude: Names) -> tuple[str, ...]:
    """The algorithms between nodes that are not excluded. Names may have the prefix that tables and rules use."""
    left_out = [name.removeprefix(PREFIX) for name in arguments.names(exclude)]
    for name in left_out:
        check_name("algorithm between nodes", name, BETWEEN)
    left = tuple(name for name in arguments.names(algorithms) if name not in left_out)
    if not left:
        raise UsageError(f"no algorithm between nodes is left to choose; valid: {', '.join(BETWEEN)}")
    return left


def space_of(
    collective: str,
    bench: Bench,
    nodes: Numbers | None,
    ppn: Numbers | None,
    sizes: Numbers,
    segments: Numbers,
    algorithms: Names,
    within: Names,
    pieces: Numbers,
) -> Space:
    """The space of configurations. Raises UsageError for those that the bench cannot run."""
    per_node: tuple[int, ...]
    ways = arguments.within(within)
    if isinstance(bench, Measured):
        target = bench.target
        per_node = (target.processes_per_node(target.usual_procs),)
        if ppn is not None and arguments.counts(ppn) != per_node:
            raise UsageError(
                f"{target.name} has {per_node[0]} processes on each node; --ppn must equal that or be left out"
            )
        counts = arguments.counts(nodes) if nodes is not None else (target.usual_procs // per_node[0],)
    else:
        platform = bench.platform
        per_node = arguments.counts(ppn) if ppn is not None else (platform.default_processes_per_node,)
        counts = arguments.counts(nodes) if nodes is not None else (len(platform.hosts),)
        for processes in per_node:
            platform.hosts_for(max(counts) * processes, processes)
        bench.context.engine.check_windows(ways)
        if BY_SOCKET in ways and platform.sockets_per_node == 1:
            raise UsageError(
                f"--within by-socket: the nodes of platform '{platform.name}' have one socket; valid: point-to-point"
            )
        warn_of_free_messages(platform)
    if min(counts) < 2:
        raise UsageError("a hierarchical collective needs at least 2 nodes")
    parts_of(collective)
    return Space(
        collective,
        counts,
        per_node,
        arguments.sizes(sizes),
        arguments.sizes(segments),
        arguments.names(algorithms),
        ways,
        arguments.sizes(pieces),
    )


def time_tasks(
    collective: str,
    *,
    platform: PlatformLike | None = None,
    nodes: int | None = None,
    ppn: int | None = None,
    segments: Numbers = "64KiB",
    algorithms: Names = ALGORITHMS,
    within: Names = POINT_TO_POINT,
    pieces: Numbers = "0",
    tasks: int = SEGMENTS,
    target: TargetLike | None = None,
    method: Method | None = None,
    context: SimulationContext | None = None,
) -> TaskStudies:
    """Times the tasks of a hierarchical collective.

    It times the tasks of bcast, reduce or allreduce on each node's leader, in a pipeline and alone. Between nodes the
    algorithm is chain, binary, binomial or library. A task is the work of a leader between two waits. In task sbib(3),
    for example, a leader broadcasts segment 2 within its node and segment 3 to other nodes. Each task is timed after
    the tasks before it, so that it starts as it would in the collective. The stabilised cost is the mean time of the
    later tasks. The overlap says how much of a task's shorter part is hidden behind the longer part if both run at
    once.

    Returns a TaskStudy for each configuration, with `times` (the seconds of each leader and task), `stable_seconds`,
    `probes` (tasks that run alone, and tasks that run at the same time) and `overlap`.

    >>> import collwise
    >>> with collwise.session(engine="schedule") as context:
    ...     [study] = collwise.time_tasks(
    ...         "bcast", platform="stampede2", nodes=4, ppn=2, algorithms="chain", context=context
    ...     )
    >>> study.times.names[:3]
    ['ib(0)', 'sbib(1)', 'sbib(2)']
    """
    from collwise.validation.hierarchy.cost_model import study_tasks

    if len(ways := arguments.within(within)) > 1 and BY_SOCKET in ways:
        raise UsageError("--within: by-socket cannot be combined with others, since its tasks differ")
    where, place = None if platform is None else arguments.platform(platform), _reached(target, ppn)
    cut = arguments.sizes(segments)
    with arguments.opened(context) as opened:
        bench = _bench(where, place, method, opened)
        name = Catalogue.load().our_name(collective)
        space = space_of(name, bench, nodes, ppn, max(cut), cut, algorithms, within, pieces)
        return TaskStudies(study_tasks(space.cases(), bench, tasks))


def search_tasks(
    collective: Names = "bcast",
    *,
    platform: PlatformLike | None = None,
    nodes: Numbers | None = None,
    ppn: Numbers | None = None,
    sizes: Numbers = SIZES,
    segments: Numbers = SEGMENT_SIZES,
    algorithms: Names = ALGORITHMS,
    exclude: Names = (),
    within: Names = POINT_TO_POINT,
    pieces: Numbers = "0",
    searches: Names = PREDICT,
    budget: float = BUDGET,
    tasks: int = SEGMENTS,
    drawn: int | None = None,
    target: TargetLike | None = None,
    method: Method | None = None,
    context: SimulationContext | None = None,
) -> TaskSearches:
    """Finds the best configuration of hierarchical collectives.

    It does so for bcast, reduce or allreduce, and each number of nodes n, processes per node p and message size m.
    Between nodes the algorithm is chain, binary, binomial or library. The searches are those of Luo et al. 2020, and
    one that predicts all configurations by the schedule engine and times only the decisive ones. Times are stored, so
    that a stopped search resumes. The machine time of a search is the time of its benchmarks on the machine. If the
    exhaustive search also runs, the output shows how much slower the choices of the other searches are, and the errors
    of the times by which these searches chose. The search by tasks chooses by the cost model of the paper, equations
    (3) and (4). Between two sampled sizes, the choice changes at the size where both choices would take equally long.

    Returns TaskSearches, which maps each collective to the results that each search `found`, with the `best` choice for
    each input, and `scores`; `decisions` are the decisions of the last search. Raises UsageError for wrong arguments,
    and for 'predict' on the schedule engine, which would predict itself unless a machine is drawn.

    >>> import collwise
    >>> with collwise.session(engine="schedule") as context:
    ...     found = collwise.search_tasks(
    ...         "bcast", platform="stampede2", nodes=4, ppn=2, searches="exhaustive,tasks", context=context
    ...     )
    >>> [score.search for score in found["bcast"].scores]
    ['exhaustive', 'tasks']
    """
    from collwise.validation.hierarchy.drawn import draw
    from collwise.validation.hierarchy.tuning import tune

    where, place = None if platform is None else arguments.platform(platform), _reached(target, ppn)
    asked = arguments.names(searches)
    asked = SEARCHES if asked == ("all",) else asked
    left = _without(algorithms, exclude)
    with arguments.opened(context) as opened:
        _check_searches(asked, where, place, drawn, opened)
        bench = _bench(where, place, method, opened)
        spaces = {
            name: space_of(name, bench, nodes, ppn, sizes, segments, left, within, pieces)
            for name in dict.fromkeys(map(Catalogue.load().our_name, arguments.names(collective)))
        }
        maker = opened.engine.name if place is None else place.installation.label
        names = {"platform": bench.name, "source": bench.source, "maker": maker}
        timer: Timer = bench
        true: Timer | None = None
        predictor = None if where is None else Simulated(where, replace(opened, engine=SCHEDULE))
        if drawn is not None and where is not None:
            machine = draw(where, drawn)
            rules = SCHEDULE_LIKE_SMPI if machine.like_smpi else SCHEDULE
            engine = rules if opened.engine.name == SCHEDULE.name else opened.engine
            exact = Simulated(machine.platform, replace(opened, engine=engine))
            timer, true = machine.measured(exact), machine.true(exact)
            names["maker"] += f", drawn by seed {drawn}"
        return TaskSearches(
            {name: tune(space, asked, timer, predictor, budget, true, tasks, **names) for name, space in spaces.items()}
        )


def _check_searches(
    names: tuple[str, ...],
    platform: HostPlatform | None,
    target: ExecutionTarget | None,
    drawn: int | None,
    context: SimulationContext,
) -> None:
    """Raises UsageError for unknown searches, and if 'predict' has no platform or would predict its own engine."""
    if not names:
        raise UsageError(f"name a search; valid: {', '.join(SEARCHES)}")
    for name in names:
        check_name("search", name, SEARCHES)
    if drawn is not None and target is not None:
        raise UsageError("--drawn simulates a random machine; it cannot be combined with an execution target")
    if PREDICT not in names:
        return
    if platform is None:
        raise UsageError("the search 'predict' needs a platform for the predictions of the schedule engine")
    if target is None and drawn is None and context.engine.name == SCHEDULE.name:
        raise UsageError(
            "the search 'predict' uses the schedule engine for its predictions, so the times need another source; "
            "use --engine smpi, an execution target, --drawn, or another search"
        )
