"""Times that are made now: `simulate`, `measure`, `search_algorithms`."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from collwise import arguments
from collwise.algorithms.catalogue import GUIDELINES, Catalogue
from collwise.arguments import Names, Numbers, PlatformLike
from collwise.common.errors import UsageError, check_name, note
from collwise.common.files import write_text
from collwise.common.units import counted, format_seconds
from collwise.platforms import HostPlatform, scattered
from collwise.platforms.smpi import charges_overheads, warn_of_free_messages
from collwise.simulator.execution.cluster import split_arguments
from collwise.simulator.execution.installations import MPI_LIBRARIES
from collwise.simulator.execution.targets import ExecutionTarget
from collwise.simulator.sweeps.context import Engine, SimulationContext
from collwise.simulator.sweeps.method import Method
from collwise.simulator.timing import Case
from collwise.targets import TargetLike, TargetOptions, refuse_details, target_from
from collwise.validation.adaptive import Goal
from collwise.validation.libraries.baselines import DEFAULT
from collwise.validation.select.consumers import (
    ALL_CONSUMERS,
    COLLWISE,
    PGMPI,
    grid_for,
    needs_one_choice,
    segments_for,
)
from collwise.validation.times.choice import LIBRARY_DECIDES, Choice
from collwise.validation.times.defaults import MIN_DECIDED, SEGMENTS_TEXT, sizes_of
from collwise.validation.times.grid import (
    LIBRARY,
    Grid,
    candidates,
    check_thresholds_matter,
    with_thresholds,
    without_repeats,
)
from collwise.validation.times.memory_limits import asked_points, cases_within_memory, remark_on_sizes, warn_of_doubtful

if TYPE_CHECKING:
    from collwise.comparisons import DeciderLike
    from collwise.models.single_messages import Thresholds
    from collwise.predictions import ModelLike
    from collwise.validation.adaptive.search import Searched
    from collwise.validation.times.files import AllTimes


def simulate(
    platform: PlatformLike,
    collective: Names,
    procs: Numbers,
    sizes: Numbers | None = None,
    *,
    algorithms: Names | None = None,
    segments: Numbers = SEGMENTS_TEXT,
    counts: Mapping[str, Numbers | None] | None = None,
    between_segment: int = 0,
    thresholds: Thresholds | None = None,
    root: int = 0,
    ppn: int | None = None,
    consumer: str | None = None,
    deciders: Names | Sequence[DeciderLike] = (),
    margin: float | None = None,
    allocations: int | None = None,
    context: SimulationContext | None = None,
) -> AllTimes:
    """Simulates algorithms at every process count P, message size m and segment size.

    Cases in the store are not simulated again, so a stopped run resumes when it is started again. `algorithms` may also
    be groups: all (that can be chosen), by-node (hierarchical and other node-aware algorithms), guidelines (mock-ups of
    performance guidelines). If `consumer` is a version of Open MPI, the algorithms that untuned Open MPI 4.1 chooses
    are timed as well.

    Returns Times by collective; with `allocations` they have the dimension `allocation`. `frame()` has a row for each
    case, with its `seconds`, or its `error` if it failed. `facts` say how many rows were in the store before (`reused`)
    and how many simulator processes ran (`processes_started`).

    >>> import collwise
    >>> times = collwise.simulate("gros", "bcast", procs="4,8", sizes="8KiB:64KiB:x8", segments=8192)
    >>> frame = times.frame()
    >>> frame.pivot(index=["procs", "message_bytes"], columns="algorithm", values="seconds").loc[8, 65536].idxmin()
    '...'
    """
    from collwise.comparisons import decider
    from collwise.validation.compare.deciders import timed_besides
    from collwise.validation.times import sources
    from collwise.validation.times.allocations import ALLOCATION
    from collwise.validation.times.files import AllTimes
    from collwise.validation.times.times import joined

    where = arguments.platform(platform)
    per_node = ppn or where.default_processes_per_node
    asked = arguments.collectives(collective)
    if consumer is not None:
        check_name("library", consumer, ALL_CONSUMERS)
    check_can_ask_for(consumer, cast("Names | None", (counts or {}).get("within")))
    pieces = segments_for(consumer, arguments.sizes(segments))
    wanted = f"all,{GUIDELINES}" if algorithms is None and consumer == PGMPI else algorithms
    competing = choices(asked, wanted, pieces, counts or {}, thresholds, between_segment=between_segment)
    asked_sizes = None if sizes is None else arguments.sizes(sizes)
    process_counts = arguments.counts(procs)
    if root >= min(process_counts):
        raise UsageError(f"--root: rank {root} does not exist with P = {min(process_counts)}")
    if margin is not None:
        arguments.check_percent("margin", margin)

    def grid_of(text: str) -> Grid:
        grid = Grid(text, competing[text], process_counts, sizes_of(text, asked_sizes), per_node, root)
        kept = grid_for(consumer, grid)
        return timed_besides(kept, [DEFAULT]) if kept.for_openmpi else kept

    grids = asked_points(where, arguments.possible(competing, grid_of).values())
    if not any(grid.cases() for grid in grids):
        raise nothing_runs(competing, process_counts, sizes_of(asked[0], asked_sizes))
    also = [decider(item) for item in (arguments.names(deciders) if isinstance(deciders, str) else deciders)]
    grids = [timed_besides(grid, also) for grid in grids]
    by_size = (
        {} if margin is None else {name: margin / 100 for name in competing if not needs_one_choice(name, consumer)}
    )
    if allocations is not None and margin is not None:
        raise UsageError(
            "--margin leaves out choices that may be fast on another allocation; give either --margin or --allocations"
        )
    draws = [where] if allocations is None else scattered(where, allocations)
    label = f"{where.name} {arguments.several(asked)}"
    with arguments.opened(context) as simulations:
        if margin is not None and not simulations.engine.leaves_out:
            raise UsageError("--margin needs the schedule engine, which ends cases early (--engine schedule)")
        check_windows(simulations.engine, grids)
        each = [sources.simulate(draw, grids, simulations, by_size, label) for draw in draws]
    found = each[0]
    if allocations is not None:
        sums = {name: sum(item[0].facts[name] for item in each) for name in ("reused", "processes_started")}
        numbers = range(1, allocations + 1)
        found = [joined(drawn, ALLOCATION, numbers).with_facts(**sums) for drawn in zip(*each, strict=True)]
    warn_of_free_messages(where)
    warn_of_doubtful(where, grids)
    if not charges_overheads(where.smpi_options()):
        # If messages are free, the barrier with the most messages would win.
        least = MIN_DECIDED if asked_sizes is None else {}
        found = [times.with_facts(trusted_from={**least, "barrier": 1}.get(times.collective, 0)) for times in found]
    return AllTimes.of(found)


@dataclass(frozen=True)
class Script:
    """A script that measures where collwise is not installed, and the command line that runs it there."""

    path: Path
    cases: int
    words: str


def measure(
    collective: Names,
    procs: Numbers,
    sizes: Numbers | None = None,
    *,
    algorithms: Names | None = None,
    segments: Numbers = SEGMENTS_TEXT,
    counts: Mapping[str, Numbers | None] | None = None,
    thresholds: Thresholds | None = None,
    target: TargetLike = "openmpi",
    platform: PlatformLike | None = None,
    method: Method | None = None,
    raw: str | Path | None = None,
    script: str | Path | None = None,
    confirm: Callable[[str], None] = lambda what: None,
    context: SimulationContext | None = None,
) -> AllTimes | Script:
    """Measures our algorithms under Open MPI or MPICH: on this machine, hosts, a batch job's nodes or a test bed.

    Without a target, times are those of this machine's shared memory and cores, not of a cluster's network.
    docs/measuring.md says which method to use when. `search_algorithms` takes less time: it measures only decisive
    cases. If `algorithms` contains 'library', MPI's own collective is measured too, beside the other algorithms named,
    or beside all of ours if no other is named. Cases that do not fit in the memory of the platform's nodes are left
    out.

    Returns Times by collective; `frame()` has a row for each case: `seconds`, the median (for several launches the
    median of their medians), `half_width_seconds` of its confidence interval, `mean_seconds`, `repetitions`,
    `least_seconds`, `greatest_seconds`, `precise` (whether the precision was reached) and `error`. With `script` it
    returns the written script.

    >>> import collwise
    >>> from collwise.simulator.sweeps.method import Method, Precision
    >>> quick = Method(precision=Precision(2, 2))
    >>> times = collwise.measure("bcast", procs=2, sizes="8KiB", algorithms="linear", method=quick).frame()
    >>> list(times.algorithm), int(times.repetitions[0])
    (['linear'], 2)
    """
    from collwise.simulator.sweeps.mpi_runner import measure_launches, samples_csv
    from collwise.validation.times.files import AllTimes
    from collwise.validation.times.measured import times_of_launches

    asked = arguments.collectives(collective)
    ours, with_own = with_library(algorithms)
    competing = choices(asked, ours, segments, counts or {}, thresholds)
    pieces, asked_sizes = arguments.sizes(segments), None if sizes is None else arguments.sizes(sizes)
    remark_on_sizes(
        [Grid.of(name, arguments.counts(procs), sizes_of(name, asked_sizes), segments=pieces) for name in asked]
    )
    described = None if platform is None else arguments.platform(platform)
    how = replace(method or Method(), keep_samples=raw is not None)
    if script is not None:
        if with_own or raw is not None:
            raise UsageError("--algorithms library and --raw are for commands that measure, not for --script")
        where = TargetOptions(target) if isinstance(target, str) else target
        if isinstance(where, ExecutionTarget):
            raise UsageError(
                f"--script: the script's variable LAUNCHER says where it runs; leave out the target {where.name}"
            )
        cases = cases_to_measure(competing, procs, sizes, None, platform=described, ppn=where.ppn)
        return _script(Path(script), cases, how, where)
    place = target_from(target)
    _ask_if_crowded(place, arguments.counts(procs), confirm)
    wanted = cases_to_measure(competing, procs, sizes, place, with_own, described)
    label = f"{arguments.several(asked)}, {place.name}"
    with arguments.opened(context) as opened, opened.progress(label) as advance:
        launches = measure_launches(place, wanted, opened.store, method=how, on_progress=advance)
    if raw is not None:
        write_text(Path(raw), samples_csv(launches))
    every = list(zip(*launches, strict=True))
    confidence, maker = how.precision.confidence, place.installation.label
    return AllTimes.of(
        times_of_launches([each for each in every if each[0].case.collective == name], place.name, maker, confidence)
        for name in competing
    )


def _script(path: Path, cases: Sequence[Case], method: Method, where: TargetOptions) -> Script:
    """Writes a script for the launcher that the options name. Raises UsageError for options that name a target."""
    from collwise.validation.measurement.scripts import batch_lines, launcher_words, write_script

    if where.named and where.launcher not in ("mpirun", "srun"):
        raise UsageError("--script takes --launcher mpirun or srun; the script's variable LAUNCHER says where it runs")
    refuse_details(where, ("remote_shell", "transport", "eager_limit", "any_nodes"), "targets")
    procs = max(case.procs for case in cases)
    launcher, per_node = where.launcher or "mpirun", where.ppn or 0
    started = launcher_words(launcher, where.library or MPI_LIBRARIES[0], procs, per_node)
    words = " ".join([*started, *split_arguments(where.mpirun_args, "--mpirun-args")])
    batch = batch_lines(launcher, procs, per_node)
    file = write_script(path, cases, method, launcher=words, batch=batch)
    if launcher == "srun" and not per_node:
        note("without --ppn, the job sets the number of processes per node: salloc --exclusive --ntasks-per-node N")
    name = shlex.quote(file.name)
    return Script(file, len(cases), f"sbatch {name}, or within a job bash {name}" if batch else f"bash {name}")


def with_library(algorithms: Names | None) -> tuple[Names | None, bool]:
    """The names of algorithms without 'library', and whether it was among them.

    If no other name is left, None is returned for the names, which stands for all algorithms.
    """
    if algorithms is None or LIBRARY not in (wanted := arguments.names(algorithms)):
        return algorithms, False
    return tuple(name for name in wanted if name != LIBRARY) or None, True


def search_algorithms(
    collective: Names,
    procs: Numbers,
    sizes: Numbers | None = None,
    *,
    goal: Goal | None = None,
    algorithms: Names | None = None,
    exclude: Names = (),
    segments: Numbers = SEGMENTS_TEXT,
    counts: Mapping[str, Numbers | None] | None = None,
    thresholds: Thresholds | None = None,
    target: TargetLike = "openmpi",
    platform: PlatformLike | None = None,
    model: ModelLike | None = None,
    method: Method | None = None,
    confirm: Callable[[str], None] = lambda what: None,
    context: SimulationContext | None = None,
) -> Searched:
    """Measures only where the choice is in doubt, within a budget.

    The budget is machine time (docs/measuring.md). With `platform`, an engine predicts the times, and cases that do not
    fit in the memory of the platform's nodes are left out. Without a platform or a model to predict times, the search
    starts without knowledge.

    Returns the choices found, their expected loss, and the saved machine time. The times are in the store as one
    measurement, from which `select` can decide, and from which a stopped search resumes. A line on stderr says when a
    round begins.

    >>> import collwise
    >>> from collwise.validation.adaptive import Goal
    >>> found = collwise.search_algorithms("bcast", 2, "8KiB", algorithms="linear,chain", goal=Goal(loss=0.5))
    >>> [point.message_bytes for point in found.points]
    [8192]
    """
    from collwise.predictions import model_from, predicted_times
    from collwise.validation.adaptive.search import search_on

    if with_library(algorithms)[1]:
        raise UsageError(
            f"--algorithms {LIBRARY}: only our algorithms are searched; to time the library's own, use 'collwise "
            f"measure --algorithms {LIBRARY}'"
        )
    place = target_from(target)
    _ask_if_crowded(place, arguments.counts(procs), confirm)
    asked = arguments.collectives(collective)
    competing = choices(asked, algorithms, segments, counts or {}, thresholds, exclude)
    described = None if platform is None else arguments.platform(platform)
    wanted = cases_to_measure(competing, procs, sizes, place, platform=described)
    with arguments.opened(context) as opened:
        predictions = []
        if described is not None:
            algorithm = Catalogue.load().algorithm
            simulated = [item for item in wanted if not algorithm(item.collective, item.algorithm).real_mpi_only]
            sweep = opened.simulate(described, simulated)
            predictions.append({case: timing.seconds for case, timing in sweep.timings.items() if timing.ok})
        if model is not None:
            predictions.append(predicted_times(model_from(model), wanted))
        how = method or Method()
        return search_on(place, wanted, opened.store, predictions, goal or Goal(), how, _tell)


_MAX_PROCESSES_PER_CORE = 32


def _ask_if_crowded(place: ExecutionTarget, procs: Sequence[int], confirm: Callable[[str], None]) -> None:
    """Lets `confirm` stop a measurement with far more processes than this machine has cores."""
    from collwise.simulator.execution.launchers import LocalMachine

    cores = len(os.sched_getaffinity(0))
    if isinstance(place, LocalMachine) and max(procs) > _MAX_PROCESSES_PER_CORE * cores:
        confirm(f"{max(procs)} processes on the {counted(cores, 'core')} of this machine")


def _tell(number: int, cases: int, spent: float) -> None:
    """Prints a note that a round of this many cases begins, after this many seconds."""
    after = f" after {format_seconds(spent)} of machine time" if spent else ""
    note(f"round {number}: {counted(cases, 'case')}{after}")


def choices(
    collectives: Sequence[str],
    algorithms: Names | None,
    segments: Numbers,
    counts: Mapping[str, Numbers | None],
    thresholds: Thresholds | None,
    exclude: Names = (),
    between_segment: int = 0,
) -> dict[str, tuple[Choice, ...]]:
    """The choices that compete, by collective, with the bounds that the thresholds give some algorithms.

    Raises UsageError for unknown names, and for names of algorithms if there are several collectives.
    """
    if algorithms is not None and len(collectives) > 1 and not {*arguments.names(algorithms)} <= {*arguments.GROUPS}:
        raise UsageError("--algorithms: names belong to one collective; several collectives were asked for")
    given = {
        name: arguments.within(cast("Names", asked)) if name == "within" else arguments.counts(asked)
        for name, asked in counts.items()
        if asked is not None
    }
    cut = arguments.sizes(segments)
    wanted = arguments.with_nodes(algorithms, cast("Names | None", counts.get("within")))
    names = arguments.possible(collectives, lambda text: arguments.algorithms(text, wanted, exclude))
    found = {text: candidates(text, cut, each, given, between_segment) for text, each in names.items()}
    entries = [Catalogue.load().algorithm(text, each.algorithm) for text, among in found.items() for each in among]
    check_thresholds_matter(entries, thresholds)
    return {text: with_thresholds(text, among, thresholds) for text, among in found.items()}


def check_windows(engine: Engine, grids: Iterable[Grid]) -> None:
    """Raises UsageError if cases use the memory of a node, and the engine cannot simulate it."""
    cases = (case for grid in grids for case in grid.cases())
    engine.check_windows(case.parameter for case in cases if case.uses_windows)


def check_can_ask_for(consumer: str | None, within: Names | None) -> None:
    """Raises UsageError if rules for the consumer cannot say how the processes of a node communicate."""
    if within is not None and consumer not in (None, COLLWISE):
        raise UsageError(
            f"--within: rules for {consumer} cannot say how processes of a node communicate; valid: --for {COLLWISE}"
        )


def cases_to_measure(
    competing: Mapping[str, Sequence[Choice]],
    procs: Numbers,
    sizes: Numbers | None,
    target: ExecutionTarget | None,
    with_own: bool = False,
    platform: HostPlatform | None = None,
    ppn: int | None = None,
) -> list[Case]:
    """The cases of all choices at every P and m; of choices that send the same messages, only one is included.

    There are as many processes per node as on the target, or one if there is no target. If `with_own` is true, the
    cases that call the library's own collectives follow. Cases that the memory of the platform's nodes cannot hold are
    left out; if there is no target, this assumes `ppn` processes on each node. Raises UsageError for a collective of
    which no case can run.
    """
    counts = arguments.counts(procs)
    asked_sizes = None if sizes is None else arguments.sizes(sizes)
    per_node = {count: target.processes_per_node(count) if target else 1 for count in counts}

    def cases(collective: str, among: Sequence[Choice]) -> list[Case]:
        sizes = sizes_of(collective, asked_sizes)
        grids = (Grid(collective, tuple(among), (p,), sizes, per_node[p]) for p in counts)
        return [case for grid in grids for case in grid.cases()]

    ours: list[Case] = []
    for collective, among in competing.items():
        if not (wanted := cases(collective, among)):
            raise nothing_runs({collective: among}, counts, sizes_of(collective, asked_sizes))
        ours += without_repeats(wanted)
    own = [case for name in competing for case in cases(name, [LIBRARY_DECIDES])] if with_own else []
    if platform is None:
        return ours + own
    on_a_node = max(per_node.values()) if target else ppn or platform.default_processes_per_node
    return cases_within_memory(platform, ours + own, on_a_node)


def nothing_runs(
    competing: Mapping[str, Sequence[Choice]], procs: Sequence[int], message_bytes: Sequence[int]
) -> UsageError:
    """The error for process counts and sizes on which no algorithm runs, with the reasons."""
    entries = {
        choice.algorithm: Catalogue.load().algorithm(collective, choice.algorithm)
        for collective, among in competing.items()
        for choice in among
    }
    reasons = (f"{name} {entry.objection(procs[0], message_bytes[0])}" for name, entry in entries.items())
    what = next(iter(entries)) if len(entries) == 1 else f"any of {', '.join(entries)}"
    return UsageError(f"no case of {what} can run on P = {', '.join(map(str, procs))}: {'; '.join(reasons)}")
