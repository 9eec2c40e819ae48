"""Hierarchical collectives made of tasks: `time_tasks`, `model_tasks`, `tune_hierarchy`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from collwise import arguments
from collwise.arguments import Names, Numbers, PlatformLike
from collwise.common.errors import UsageError, check_name
from collwise.platforms import HostPlatform
from collwise.platforms.smpi import warn_of_free_messages
from collwise.simulator.execution.targets import ExecutionTarget
from collwise.simulator.schedule.tasks import BY_SOCKET, parts_of
from collwise.simulator.sweeps.context import SCHEDULE, SCHEDULE_LIKE_SMPI, SimulationContext
from collwise.simulator.sweeps.method import Method
from collwise.simulator.sweeps.mpi_runner import measure
from collwise.simulator.timing import Case, Timing
from collwise.validation.hierarchy.drawn import draw
from collwise.validation.hierarchy.overlap import TaskStudy, study_tasks
from collwise.validation.hierarchy.searches import BUDGET, PREDICT, SEARCHES, Machine, Predictor, Timer
from collwise.validation.hierarchy.space import SIMULATED, WITHIN, Space
from collwise.validation.hierarchy.tasks import SEGMENTS
from collwise.validation.hierarchy.tuning import ModelCheck, Tuning, check_model, tune

SIZES = "4KiB:4MiB:x4"
SEGMENT_SIZES = "16KiB:1MiB:x4"
ALGORITHMS = "chain,binary,binomial"


@dataclass(frozen=True)
class MachineOptions:
    """The machine on which tasks and collectives are timed: a platform that is simulated, or an execution target.

    With the seed `drawn` it is another machine than the platform describes, see validation/hierarchy/drawn.py.
    """

    platform: HostPlatform | None = None
    target: ExecutionTarget | None = None
    method: Method | None = None
    drawn: int | None = None

    @contextmanager
    def timers(self, context: SimulationContext | None) -> Iterator[Machines]:
        """The timer, with the store open, and predictions by the schedule engine where there is a platform."""
        platform, target = self.platform, self.target
        with arguments.opened(context) as simulations:
            predict = None
            if platform is not None:
                predict = Machine(_simulated(platform, replace(simulations, engine=SCHEDULE))).whole
            if target is not None:
                yield Machines(_measured(target, self.method, simulations), predict, target.installation.label)
                return
            assert platform is not None, "`space_of` has refused this"
            maker = simulations.engine.name
            if self.drawn is None:
                yield Machines(_simulated(platform, simulations), predict, maker)
                return
            machine = draw(platform, self.drawn)
            rules = SCHEDULE_LIKE_SMPI if machine.like_smpi else SCHEDULE
            engine = rules if maker == SCHEDULE.name else simulations.engine
            timer = _simulated(machine.platform, replace(simulations, engine=engine))
            drawn = f"{maker}, drawn by seed {self.drawn}"
            yield Machines(machine.measured(timer), predict, drawn, machine.true(timer))


@dataclass(frozen=True)
class Machines:
    """A timer, the predictions that cost it nothing, the name of what times, and the true times if these are known."""

    timer: Timer
    predict: Predictor | None
    maker: str
    true: Timer | None = None


def _simulated(platform: HostPlatform, simulations: SimulationContext) -> Timer:
    label = f"{platform.name}, {simulations.engine.name}"
    return lambda cases: simulations.simulate(platform, cases, label).timings


def _measured(target: ExecutionTarget, method: Method | None, simulations: SimulationContext) -> Timer:

    def timer(cases: Sequence[Case]) -> Mapping[Case, Timing]:
        with simulations.progress(f"measuring on {target.name}") as advance:
            timings = measure(target, cases, simulations.store, method or Method(), on_progress=advance)
        return dict(zip(cases, timings, strict=True))

    return timer


def within_codes(given: Names) -> tuple[int, ...]:
    """The ways within a node as numbers. Raises UsageError for an unknown one."""
    names = arguments.names(given)
    valid = {name.replace(" ", "-"): number for number, name in enumerate(WITHIN)}
    for name in names:
        check_name("way within a node", name, valid)
    return tuple(valid[name] for name in names)


def space_of(
    collective: str,
    machine: MachineOptions,
    nodes: Numbers | None,
    ppn: Numbers | None,
    sizes: Numbers = SIZES,
    segments: Numbers = SEGMENT_SIZES,
    algorithms: Names = ALGORITHMS,
    within: Names = "point-to-point",
    pieces: Numbers = "0",
) -> Space:
    """The space of configurations. Raises UsageError for what the machine cannot hold."""
    target, platform = machine.target, machine.platform
    per_node: tuple[int, ...]
    if target is not None:
        per_node = (target.processes_per_node(target.usual_procs),)
        if ppn is not None and arguments.counts(ppn) != per_node:
            raise UsageError(f"{target.name} has {per_node[0]} processes on each node; --ppn has no other value there")
        counts = arguments.counts(nodes) if nodes is not None else (target.usual_procs // per_node[0],)
    elif platform is not None:
        per_node = arguments.counts(ppn) if ppn is not None else (platform.default_processes_per_node,)
        counts = arguments.counts(nodes) if nodes is not None else (len(platform.hosts),)
        for processes in per_node:
            platform.hosts_for(max(counts) * processes, processes)
        ways = within_codes(within)
        if not set(ways) <= set(SIMULATED):
            raise UsageError(
                "--within: the processes of a simulated node always send messages; valid: point-to-point and "
                "by-socket, and all with an execution target"
            )
        if BY_SOCKET in ways and platform.sockets_per_node == 1:
            raise UsageError(
                f"--within by-socket: the nodes of platform '{platform.name}' have one socket; valid: point-to-point"
            )
        warn_of_free_messages(platform)
    else:
        raise UsageError("name a platform to simulate, or an execution target to measure on")
    if min(counts) < 2:
        raise UsageError("a hierarchical collective needs 2 nodes at least")
    parts_of(collective)
    return Space(
        collective,
        counts,
        per_node,
        arguments.sizes(sizes),
        arguments.sizes(segments),
        arguments.names(algorithms),
        within_codes(within),
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
    within: Names = "point-to-point",
    pieces: Numbers = "0",
    tasks: int = SEGMENTS,
    target: ExecutionTarget | None = None,
    method: Method | None = None,
    context: SimulationContext | None = None,
) -> list[TaskStudy]:
    """Times of the tasks of which a hierarchical collective consists, on the leader of each node.

    Parameters: `collective`, 'bcast', 'reduce' or 'allreduce'; `platform`, on which `context` simulates, see
    `platform` and `session`; `nodes` and `ppn`, processes per node, by default all of the platform's; `segments`, sizes
    of the segments; `algorithms` between nodes; `within`, how the processes of a node communicate: 'point-to-point',
    'shared-memory', 'one-sided', or 'by-socket', which is a third level; `pieces`, in which a segment goes between
    nodes, 0 for whole ones; `tasks`, with how many segments tasks are timed; `target` and `method`, to measure on an
    execution target instead.

    Returns a TaskStudy for each configuration: `times`, the seconds of each leader and task, `stable_seconds`,
    `probes`, tasks alone and at once, and `overlap`. Raises UsageError for wrong arguments.

    >>> import collwise
    >>> with collwise.session(engine="schedule") as context:
    ...     [study] = collwise.time_tasks(
    ...         "bcast", platform="stampede2", nodes=4, ppn=2, algorithms="chain", context=context
    ...     )
    >>> study.times.names[:3]
    ['ib(0)', 'sbib(1)', 'sbib(2)']
    """
    machine = MachineOptions(None if platform is None else arguments.platform(platform), target, method)
    cut = arguments.sizes(segments)
    space = space_of(collective, machine, nodes, ppn, max(cut), cut, algorithms, within, pieces)
    with machine.timers(context) as machines:
        return study_tasks(list(space.points()), machines.timer, tasks)


def model_tasks(
    collective: str,
    *,
    platform: PlatformLike | None = None,
    nodes: Numbers | None = None,
    ppn: Numbers | None = None,
    sizes: Numbers = "4MiB",
    segments: Numbers = SEGMENT_SIZES,
    algorithms: Names = ALGORITHMS,
    within: Names = "point-to-point",
    pieces: Numbers = "0",
    tasks: int = SEGMENTS,
    target: ExecutionTarget | None = None,
    method: Method | None = None,
    context: SimulationContext | None = None,
) -> ModelCheck:
    """The cost model of tasks, equations (3) and (4) of Luo et al. 2020, beside the times of whole collectives.

    Parameters: as for `time_tasks`, and message `sizes`. Returns a ModelCheck: `modelled` and `measured` seconds of
    each configuration, `errors`, `median_error`, and `picks`, the model's choice and the best one for each input.
    Raises UsageError for wrong arguments.

    >>> import collwise
    >>> with collwise.session(engine="schedule") as context:
    ...     check = collwise.model_tasks("bcast", platform="stampede2", nodes=4, ppn=2, sizes="1MiB", context=context)
    >>> check.median_error < 0.5
    True
    """
    machine = MachineOptions(None if platform is None else arguments.platform(platform), target, method)
    space = space_of(collective, machine, nodes, ppn, sizes, segments, algorithms, within, pieces)
    with machine.timers(context) as machines:
        return check_model(space, machines.timer, tasks)


def tune_hierarchy(
    collective: str,
    *,
    platform: PlatformLike | None = None,
    nodes: Numbers | None = None,
    ppn: Numbers | None = None,
    sizes: Numbers = SIZES,
    segments: Numbers = SEGMENT_SIZES,
    algorithms: Names = ALGORITHMS,
    within: Names = "point-to-point",
    pieces: Numbers = "0",
    searches: Names = PREDICT,
    budget: float = BUDGET,
    drawn: int | None = None,
    target: ExecutionTarget | None = None,
    method: Method | None = None,
    context: SimulationContext | None = None,
) -> Tuning:
    """Searches the best configuration of a hierarchical collective for each number of nodes and processes, and size.

    Parameters: as for `model_tasks`, and `searches`: 'exhaustive', 'tasks', 'predict', several by commas; `budget`, the
    share of the exhaustive search's machine time that 'predict' may take; `drawn`, the seed of a machine that is
    simulated in place of the one that the platform describes, for judging searches. With a `target` the `platform` is
    the one on which 'predict' predicts.

    Returns a Tuning: `found`, by search, with the `best` choice for each input, and `scores`. Raises UsageError for
    wrong arguments, also for 'predict' on the schedule engine, which would predict itself unless a machine is drawn.

    >>> import collwise
    >>> with collwise.session(engine="schedule") as context:
    ...     tuning = collwise.tune_hierarchy(
    ...         "bcast", platform="stampede2", nodes=4, ppn=2, searches="exhaustive,tasks", context=context
    ...     )
    >>> [score.search for score in tuning.scores]
    ['exhaustive', 'tasks']
    """
    machine = MachineOptions(None if platform is None else arguments.platform(platform), target, method, drawn)
    names = arguments.names(searches)
    check_searches(names, machine, context)
    space = space_of(collective, machine, nodes, ppn, sizes, segments, algorithms, within, pieces)
    with machine.timers(context) as machines:
        return tune(space, names, machines.timer, machines.predict, budget, machines.true)


def check_searches(names: tuple[str, ...], machine: MachineOptions, context: SimulationContext | None) -> None:
    """Raises UsageError for unknown searches, and where predictions would be of themselves or have no platform."""
    if not names:
        raise UsageError(f"name a search; valid: {', '.join(SEARCHES)}")
    for name in names:
        check_name("search", name, SEARCHES)
    if machine.drawn is not None and machine.target is not None:
        raise UsageError("a machine is drawn to be simulated; an execution target is what it is")
    if PREDICT not in names:
        return
    if machine.platform is None:
        raise UsageError("the search 'predict' needs a platform, on which the schedule engine predicts")
    by_engine = context is not None and context.engine.name == SCHEDULE.name
    if machine.target is None and machine.drawn is None and by_engine:
        raise UsageError(
            "the search 'predict' predicts by the schedule engine, which cannot be the machine as well; "
            "take --engine smpi, an execution target, a machine that differs (--drawn), or another search"
        )
