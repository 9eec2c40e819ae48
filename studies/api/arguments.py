"""Reads the arguments of public functions, in all forms in which people write them."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import fields
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from collwise.algorithms.catalogue import GUIDELINES, Catalogue
from collwise.common.errors import UsageError, check_name, note, unknown_name, warn
from collwise.common.files import write_text
from collwise.common.project import default_store_path
from collwise.common.units import parse_counts, parse_size, parse_sizes
from collwise.studies.present.progress import sweep_progress

if TYPE_CHECKING:
    from collwise.decisions import Decisions
    from collwise.platforms import HostPlatform
    from collwise.simulator.sweeps.context import SimulationContext
    from collwise.simulator.sweeps.runner import Pool, Progress
    from collwise.validation.times.times import Times

_Made = TypeVar("_Made")
Numbers = str | int | Iterable[int | str]
"""Sizes or process counts: '8KiB:4MiB:x2', 8192, [8192, '64KiB']."""
Names = str | Iterable[str]
"""Names: 'chain', 'chain,binary', ['chain', 'binary']."""
PlatformLike: TypeAlias = "HostPlatform | str | Path"
"""A platform, the name of a known one, or a .toml or .xml file."""
ClusterLike: TypeAlias = "PlatformLike | int"
"""A platform, its name or file, the name of an interconnect, or a number of nodes."""
FIGURES = {"nodes": "--nodes", "cpus": "--cpus", "memory_bytes_per_second": "--memory-gbytes"}
"""The options, by parameter, that describe a cluster given only by its interconnect or number of nodes."""
_MIN_MEMORY_BYTES_PER_SECOND = 1e8
NODES, INTERCONNECT = 16, "infiniband-hdr"
"""The least number of nodes, and the interconnect, that are assumed for a cluster if they are not given."""
TimesLike: TypeAlias = "Times | Mapping[str, Times] | str | Path"
"""Times of one collective, or of several by name, or a file of times, or store:QUERY."""
STORED = "store:"
"""The prefix of a word that names times in the store; a query follows it."""


GROUPS = {"all": "selectable", "by-node": "by_node", GUIDELINES: "mock_ups"}
"""Names of groups of algorithms: all that can be chosen, algorithms that treat the processes of a node differently from
others, and the mock-ups of performance guidelines.
"""

Paths = str | Path | Sequence[str | Path]
"""A file, or several."""
NewFile: TypeAlias = "str | Path"
"""A file that is written."""
DecisionsLike: TypeAlias = "Decisions | str | Path"
"""Decisions, or the path of a file that they were saved in."""


def platform(name: PlatformLike) -> HostPlatform:
    """The cluster that has the given name, or that the given file describes.

    Parameters: `name` is a known platform ('grisou', 'gros', 'boba', ...; `collwise platforms show` has all of them),
    or the path of a .toml description or of a SimGrid platform XML.

    Returns a platform, which has `name`, `title`, `hosts`, `default_processes_per_node`, and
    `max_procs(processes_per_node)`.

    >>> import collwise
    >>> collwise.platform("gros").max_procs(1)
    124
    """
    from collwise.platforms import HostPlatform, load

    return name if isinstance(name, HostPlatform) else load(name)


def platform_or_interconnect(given: ClusterLike) -> HostPlatform | str:
    """The platform of that name or file; names of interconnects and numbers of nodes are returned unchanged.

    Raises UsageError for an unknown name.
    """
    from collwise.platforms import interconnect_names, known

    word = str(given)
    if word.isdecimal() or word in interconnect_names():
        return word
    is_name = isinstance(given, str) and not Path(given).suffix
    if is_name and word not in known() and Path(word).is_dir():
        raise UsageError(f"'{word}' is a folder; name a file in it (.toml, .xml or times), or a platform")
    if is_name and word not in known() and not any(Path(f"{word}{end}").is_file() for end in (".toml", ".xml")):
        valid = ["a number of nodes", *interconnect_names(), *known()]
        where = "see 'collwise platforms show'; files: .toml or .xml"
        raise unknown_name("cluster", word, valid, where)
    return platform(cast("PlatformLike", given))


def cluster(
    given: ClusterLike, ppn: int | None = None, procs: Numbers | None = None, **figures: float | None
) -> HostPlatform:
    """The platform `given`, or a new platform for an interconnect or a number of nodes.

    The new platform has room for `procs` processes, `ppn` on each node; a warning names its assumed values. `figures`
    has the parameters in FIGURES for which the caller has options, with None for values that are not given. Raises
    UsageError for an unknown name.
    """
    from collwise.platforms import Node, new_platform

    found = platform_or_interconnect(given)
    if not isinstance(found, str):
        for option in given_figures(figures):
            raise UsageError(f"{option} applies only to an interconnect or a number of nodes; {given} is described")
        return found
    interconnect, number = (INTERCONNECT, int(found)) if found.isdecimal() else (found, 0)
    nodes = int(figures.get("nodes") or number)
    assumed = [] if interconnect == found else [f"the interconnect {interconnect}"]
    if not nodes:
        nodes = max(NODES, -(-max(counts(procs or 1)) // (ppn or 1)))
        assumed.append(f"{nodes} nodes{_option_of('nodes', figures)}")
    assumed.append("one switch for all nodes, with room for all messages")
    cpus, rate = int(figures.get("cpus") or 0), figures.get("memory_bytes_per_second")
    assumed += [] if cpus else [f"one CPU in each node{_option_of('cpus', figures)}"]
    assumed += [] if ppn else ["one process on each node (--ppn)"]
    if rate is not None and rate < _MIN_MEMORY_BYTES_PER_SECOND:
        raise UsageError(
            f"the memory of a node ({FIGURES['memory_bytes_per_second']}) cannot be as slow as {rate:g} bytes/s; "
            f"the least is {_MIN_MEMORY_BYTES_PER_SECOND:g} bytes/s, 0.1 Gbyte/s"
        )
    node = Node(cpus or 1, ppn, processes=ppn, memory_bytes_per_second=rate)
    made = new_platform(f"{interconnect}-x{nodes}", nodes, node, interconnect_name=interconnect)
    warn(
        f"assumed for {made.name}: {', '.join(assumed)}; figures of {interconnect}: {made.calibration.note}. "
        f"'collwise platforms new' describes your cluster"
    )
    return made


def _option_of(figure: str, figures: Mapping[str, float | None]) -> str:
    """The option for a figure, in brackets; empty if the caller does not have this option."""
    return f" ({FIGURES[figure]})" if figure in figures else ""


def given_figures(figures: Mapping[str, float | None]) -> dict[str, float]:
    """The values that were given to describe a cluster, by option."""
    return {FIGURES[name]: value for name, value in figures.items() if value is not None}


def describe(
    name: str,
    nodes: int,
    interconnect: str | None = None,
    *,
    link_bytes_per_second: float | None = None,
    latency_seconds: float | None = None,
    output: NewFile | None = None,
    **figures: Any,
) -> HostPlatform:
    """A cluster of equal nodes, described by a few figures.

    Parameters: `name`, made of small letters, digits and -; `nodes`, their number; `interconnect`, a name that
    `collwise platforms new --help` lists, which sets overheads, protocol, link and latency; `link_bytes_per_second` and
    `latency_seconds` (one way, between two nodes at one switch), which override the interconnect's values; `output`, a
    .toml file that gets the description; `figures`, the fields of `collwise.platforms.Node` (`cpus`, `cores`, ...), the
    `topology`, and the keys of this topology in a description (docs/platforms.md).

    Returns a platform, which functions accept in place of a platform's name. Raises UsageError for values that are
    missing or contradict each other.

    >>> import collwise
    >>> mine = collwise.describe("mine", 64, "infiniband-hdr", cpus=2, cores=32)
    >>> mine.max_procs(processes_per_node=32)
    2048
    """
    from collwise.platforms import Node, new_platform, write_description

    of_node = {field.name: figures.pop(field.name) for field in fields(Node) if field.name in figures}
    made = new_platform(name, nodes, Node(**of_node), link_bytes_per_second, latency_seconds, interconnect, **figures)
    if output is not None:
        write_text(Path(output), write_description(made))
    return made


@contextmanager
def session(
    store: str | Path | None = None,
    engine: str = "smpi",
    simgrid: str | None = None,
    jobs: int | None = None,
    progress: Callable[[str], AbstractContextManager[Progress | None]] = sweep_progress,
    library: str = "openmpi-4.1",
    executor: str | Any = None,
) -> Iterator[SimulationContext]:
    """A context that several calls can share as their argument `context`. The store is closed at the end.

    Parameters: `store`, the SQLite file of timings, by default the file that COLLWISE_STORE names, otherwise
    results/timings.sqlite in the project or the working directory; `engine`, the simulator; `simgrid`, a version of
    SimGrid, by default the system's; `jobs`, the number of simultaneous simulations, by default one per core;
    `progress`, which shows the progress of a simulation under a label, by default on stderr; `library`, the baseline
    whose decisions the schedule engine follows when a mock-up of a performance guideline calls a collective;
    `executor`, where simulations run: 'local', 'dask:ADDRESS' or 'slurm:jobs=4,cores=8' as on the command line, by
    default the value of COLLWISE_EXECUTOR, otherwise 'local'. It may also be an executor of concurrent.futures, or
    Dask's Client, on which `jobs` tasks run at a time.

    >>> import collwise
    >>> with collwise.session(store="timings.sqlite", jobs=2) as context:
    ...     times = collwise.simulate("gros", "bcast", procs=4, sizes="8KiB", context=context)
    """
    from collwise.simulator.store import Store
    from collwise.simulator.sweeps.context import ENGINES, SMPI, SimulationContext
    from collwise.validation.libraries.baselines import baseline, library_decisions

    check_name("engine", engine, ENGINES)
    if simgrid is not None and engine != SMPI.name:
        raise UsageError(f"--simgrid is for --engine {SMPI.name} only, not {engine}")
    with Store(store_path(store)) as opened, _pool(executor, jobs) as pool:
        decisions = library_decisions(baseline(library))
        yield SimulationContext(opened, ENGINES[engine], simgrid, jobs, progress, library=decisions, executor=pool)


def _pool(executor: str | Any, jobs: int | None) -> AbstractContextManager[Pool | None]:
    """A context of the executor's pool; it gives None if simulations run in threads of this process."""
    from collwise.simulator.sweeps.executors import parse_place

    if executor is not None and not isinstance(executor, str):
        from collwise.simulator.sweeps.dask_workers import pool_on

        return pool_on(executor, jobs)
    place = parse_place(executor or os.environ.get("COLLWISE_EXECUTOR") or "local")
    if place.is_local:
        return nullcontext()
    if jobs is not None:
        raise UsageError(f"--jobs is for --executor local; with {place.kind} the workers determine the number of jobs")
    from collwise.simulator.sweeps.dask_workers import pool_at

    return pool_at(place)


def store_path(given: str | Path | None = None) -> Path:
    """The path of the store: the given one, else COLLWISE_STORE, else the project's, else the working directory's."""
    return Path(given or os.environ.get("COLLWISE_STORE") or default_store_path())


def opened(context: SimulationContext | None, engine: str = "smpi") -> AbstractContextManager[SimulationContext]:
    """The given context, which stays open, or else a new session with `engine`."""
    return session(engine=engine) if context is None else nullcontext(context)


def times(*given: TimesLike) -> dict[str, Times]:
    """Times by collective. Raises UsageError for words that name no times, and for a collective given twice."""
    found: dict[str, Times] = {}
    for item in given:
        several = _named_times(str(item)) if isinstance(item, (str, Path)) else item
        for name, each in (several if isinstance(several, Mapping) else {several.collective: several}).items():
            if name in found:
                raise UsageError(f"times of {name} are given twice: on {found[name].platform} and on {each.platform}")
            found[name] = each
    return found


def _named_times(word: str) -> Mapping[str, Times]:
    from collwise.platforms import known
    from collwise.store_contents import stored
    from collwise.validation.times.files import AllTimes

    if word.startswith(STORED):
        return stored(word.removeprefix(STORED))
    if Path(word).suffix in (".toml", ".xml") if Path(word).exists() else word in known():
        raise UsageError(
            f"'{word}' is a platform, not times; make some with 'collwise simulate --platform {word} ... -o "
            f"{Path(word).stem}.times', or let 'collwise tune {word}' do everything"
        )
    return AllTimes.load(word)


def decisions(given: DecisionsLike) -> Decisions:
    """The given decisions, or those in the given file. Raises UsageError for a file without decisions."""
    from collwise.decisions import Decisions

    return given if isinstance(given, Decisions) else Decisions.load(given)


def check_percent(what: str, percent: float) -> None:
    """Raises UsageError for anything but a percentage of at least 0."""
    if not (math.isfinite(percent) and percent >= 0):
        raise UsageError(f"the {what} must be a percentage of at least 0, not {percent}")


def sizes(given: Numbers) -> tuple[int, ...]:
    """Sizes in bytes, ascending. Raises UsageError for anything that is not a size."""
    return _numbers(given, parse_sizes, parse_size, "size in bytes", 0)


def counts(given: Numbers) -> tuple[int, ...]:
    """Process counts, ascending. Raises UsageError for anything that is not a count."""
    return _numbers(given, parse_counts, lambda text: parse_counts(text)[0], "process count", 1)


def within(given: Names) -> tuple[int, ...]:
    """The numbers of the kinds of communication within a node that `given` names.

    Raises UsageError for an unknown name.
    """
    from collwise.validation.hierarchy.space import WITHIN

    asked = names(given)
    valid = {name.replace(" ", "-"): number for number, name in enumerate(WITHIN)}
    for name in asked:
        check_name("kind of communication within a node", name, valid)
    return tuple(valid[name] for name in asked)


def with_nodes(algorithms: Names | None, ways: Names | None) -> Names | None:
    """The algorithms that are meant: those by node as well, if ways within a node are given but no algorithms."""
    return ("all", "by-node") if algorithms is None and ways is not None else algorithms


def _numbers(
    given: Numbers, parse: Callable[[str], list[int]], parse_one: Callable[[str], int], kind: str, least: int
) -> tuple[int, ...]:
    if isinstance(given, str):
        return tuple(parse(given))
    values: set[int] = set()
    for item in given if isinstance(given, Iterable) else (given,):
        number = parse_one(item) if isinstance(item, str) else item
        if not isinstance(number, Integral) or isinstance(number, bool) or number < least:
            raise UsageError(
                f"{item!r} is not a {kind}; valid: whole numbers of at least {least}, or text such as '8KiB'"
            )
        values.add(int(number))
    if not values:
        raise UsageError(f"no {kind} was given")
    return tuple(sorted(values))


def names(given: Names) -> tuple[str, ...]:
    """Names in the order given, each once. Raises UsageError for anything but names."""
    parts = given.split(",") if isinstance(given, str) else given
    wrong = [given] if not isinstance(parts, Iterable) else [part for part in parts if not isinstance(part, str)]
    if wrong:
        raise UsageError(f"{wrong[0]!r} is no name; write names as in 'bcast,reduce' or ['bcast', 'reduce']")
    return tuple(dict.fromkeys(name.strip() for name in parts if name.strip()))


def collectives(given: Names) -> tuple[str, ...]:
    """Names of collectives, also as in MPI; 'all' stands for every one. Raises UsageError for an unknown name."""
    catalogue = Catalogue.load()
    if given == "all":
        return tuple(catalogue.collectives)
    wanted = names(given)
    if not wanted:
        raise UsageError(f"name a collective; valid: all, {', '.join(catalogue.collectives)}")
    return tuple(dict.fromkeys(catalogue.collective(catalogue.our_name(name)).name for name in wanted))


def algorithms(collective: str, given: Names | None, exclude: Names = ()) -> tuple[str, ...]:
    """Names of algorithms. A name in GROUPS stands for several algorithms; without names, 'all' is meant.

    Algorithms in `exclude` are left out; they may belong to other collectives. Raises UsageError for an unknown name,
    for groups without an algorithm of the collective, and if nothing is left.
    """
    catalogue = Catalogue.load()
    known = catalogue.collective(collective)
    wanted = (names(given) if given is not None else ()) or ("all",)
    found = [item for name in wanted for item in (getattr(known, GROUPS[name]) if name in GROUPS else (name,))]
    if not found:
        others = [
            item.name for item in catalogue.collectives.values() if any(getattr(item, GROUPS[name]) for name in wanted)
        ]
        raise UsageError(
            f"{collective} has no algorithms in the group {', '.join(wanted)}; valid collectives: {', '.join(others)}"
        )
    left_out = names(exclude)
    every = dict.fromkeys(name for item in catalogue.collectives.values() for name in item.algorithms)
    for name in left_out:
        check_name("algorithm", name, every)
    left = [one for name in found if (one := catalogue.algorithm(collective, name).name) not in left_out]
    if not left:
        raise UsageError(f"all algorithms of {collective} that were asked for are excluded")
    return tuple(dict.fromkeys(left))


def possible(names: Iterable[str], make: Callable[[str], _Made]) -> dict[str, _Made]:
    """The results of `make` by name. Names for which it raises UsageError are left out, and a note says why.

    Raises the first of these errors if nothing is left.
    """
    found, problems = {}, []
    for name in names:
        try:
            found[name] = make(name)
        except UsageError as problem:
            problems.append(problem)
    if problems and not found:
        raise problems[0]
    for error in problems:
        note(f"{error}; left out")
    return found


def several(collectives: Sequence[str]) -> str:
    """The collectives in a title: 'bcast', 'bcast, gather', '16 collectives'."""
    return ", ".join(collectives) if len(collectives) <= 3 else f"{len(collectives)} collectives"
