"""Options that several commands take, including the options that name an execution target."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from collwise import arguments
from collwise.common.errors import UsageError, check_name
from collwise.common.program import program_name
from collwise.common.project import default_store_path, results_folder
from collwise.simulator.execution.cluster import REACH_SECONDS, TRANSPORTS
from collwise.simulator.execution.installations import MPI_LIBRARIES
from collwise.simulator.sweeps.context import ENGINES, SimulationContext
from collwise.simulator.sweeps.executors import BATCH_SYSTEMS, DASK, LOCAL, parse_place
from collwise.simulator.sweeps.method import SYNCHRONISATIONS, TIMINGS, Method, Precision
from collwise.studies.cli import types
from collwise.studies.cli.declare import flag, group, names_in, option, refuse_options
from collwise.studies.cli.output import CSV, confirm
from collwise.studies.cli.types import NamedChoice, Parsed
from collwise.studies.present.progress import sweep_progress
from collwise.targets import TARGET_OPTIONS, TargetOptions, refuse_target_details, target_from
from collwise.validation.libraries.baselines import BASELINES, Baseline, baseline as find_baseline

if TYPE_CHECKING:
    from collwise.models.single_messages import Thresholds
    from collwise.platforms import HostPlatform


def _keep_csv(context: click.Context, _: click.Parameter, given: bool) -> bool:
    context.meta[CSV] = given
    return given


JSON = group(
    lambda as_json, as_csv: as_json or as_csv,
    as_json=flag(),
    as_csv=option(default=False, is_flag=True, callback=_keep_csv),
)
"""The options --json and --csv, between which `print_json` chooses."""
PLATFORM = option(types.PLATFORM, required=True, in_project=True)
BLOCK = "block"
PLACES: dict[str, Any] = {
    "placement": option(default=BLOCK),
    "allocation": option(),
    "node_map": option(types.PATH),
}


def placed(
    platform: HostPlatform | str | None, placement: str, allocation: str | None, node_map: Path | None
) -> HostPlatform | str | None:
    """The platform with ranks placed as the options say. The name of an interconnect is returned unchanged.

    Raises UsageError for options that do not go together.
    """
    from collwise.platforms import allocated, placed as by_placement

    given = {"--placement": placement != BLOCK, "--allocation": allocation, "--node-map": node_map}
    asked = [name for name, item in given.items() if item]
    if platform is None and asked:
        raise UsageError(f"{asked[0]} needs --platform")
    if isinstance(platform, str):
        if asked:
            network = arguments.INTERCONNECT if platform.isdecimal() else platform
            raise UsageError(
                f"{asked[0]} needs the description of a cluster, which '{platform}' is not; make one with "
                f"'{program_name()} platforms new NAME --interconnect {network} --nodes N'"
            )
        return platform
    if node_map is not None and allocation is None:
        raise UsageError("--node-map works only with --allocation")
    if placement != BLOCK and allocation is not None:
        raise UsageError("--placement and --allocation both say where ranks run; give only one")
    if platform is None or allocation is None:
        return None if platform is None else by_placement(platform, placement)
    return allocated(platform, allocation, node_map)


def placed_platform(platform: Any = PLATFORM) -> Any:
    """--platform with --placement, --allocation and --node-map: a platform with ranks placed on its nodes."""
    return group(placed, platform=platform, **PLACES)


COLLECTIVE = option(types.COLLECTIVE, required=True)
PPN = option(click.IntRange(1))
SIMGRID = option()
_BASELINE = partial(option, key="baseline", said={"baselines": BASELINES})
DEFAULT_LIBRARY = _BASELINE(NamedChoice("baseline", BASELINES))
"""The option --baseline, whose value is the name of an untuned library."""
CALLED_LIBRARY = _BASELINE(Parsed("baseline", find_baseline), next(iter(BASELINES)))


def process_count(least: int = 1, **attributes: Any) -> Any:
    """The option --procs of a command that takes one number of processes, of at least `least`."""
    return option(click.IntRange(least), key="number of processes", **attributes)


def model(names: Iterable[str], default: str | None = None) -> Any:
    """The option --model, one of `names`."""
    return option(NamedChoice("model", names), default, key="name of a model")


def results(name: str) -> Any:
    """The option -o for a folder, by default the folder `name` of the project's results."""
    return option(
        types.FOLDER, lambda: results_folder() / name, key="folder of results", show_default=f"results/{name}"
    )


STORE = option(types.PATH, default_store_path, show_default="results/timings.sqlite", envvar="COLLWISE_STORE")


EXECUTOR = option(
    Parsed("executor", types.checked(parse_place), lambda _: (LOCAL, f"{DASK}:", *BATCH_SYSTEMS), listed=False),
    LOCAL,
    envvar="COLLWISE_EXECUTOR",
)


@dataclass(frozen=True)
class SimulationOptions:
    """The settings of simulations, and the store of their times."""

    store: Path
    engine: str = "smpi"
    simgrid: str | None = None
    jobs: int | None = None
    executor: str = "local"
    called: Baseline | None = None
    """The untuned library whose algorithms are used for the collectives that mock-ups call."""

    def context(self, library: str = next(iter(BASELINES))) -> AbstractContextManager[SimulationContext]:
        """The context of all simulations of a command, with its store open and progress on stderr."""
        library = library if self.called is None else self.called.name
        return arguments.session(
            self.store, self.engine, self.simgrid, self.jobs, sweep_progress, library, self.executor
        )


def simulation(engine: str = "smpi", called: bool = False) -> Any:
    """--store, --engine, --simgrid, --jobs and --executor, as SimulationOptions. `engine` is the default engine.

    If `called` is true, there is also --baseline: the library whose algorithms are used for collectives called by
    mock-ups.
    """
    return group(
        SimulationOptions,
        **({"called": CALLED_LIBRARY} if called else {}),
        store=STORE,
        engine=option(NamedChoice("engine", ENGINES), engine),
        simgrid=SIMGRID,
        jobs=option(click.IntRange(1)),
        executor=EXECUTOR,
    )


SIMULATION = simulation()
STORED = group(SimulationOptions, store=STORE)
"""The store alone, for a command that simulates nothing."""


_LEAST = {"radix": 2, "chains": 1, "max_requests": 1, "leaders": 1}
"""The smallest value of each parameter of --parameter."""


def _parameter(text: str) -> tuple[str, tuple[int, ...]]:
    name, _, values = text.partition("=")
    check_name("parameter", name, _LEAST)
    try:
        found = arguments.counts(values)
    except UsageError:
        raise UsageError(f"malformed {text}: write whole numbers, for example {name}=2,4") from None
    if min(found) < _LEAST[name]:
        raise UsageError(f"{name}={min(found)} is too small; valid: whole numbers of at least {_LEAST[name]}")
    return name, found


def _counts(counts: Sequence[tuple[str, tuple[int, ...]]], within: Any) -> dict[str, Any]:
    names = [name for name, _ in counts]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(f"--parameter {twice} is given twice; give all values at once, for example {twice}=2,4")
    return {**dict(counts), "within": within}


COUNTS = group(
    _counts,
    counts=option(Parsed("parameter", _parameter, lambda _: (f"{name}=" for name in _LEAST)), multiple=True),
    within=option(types.NAMES),
)
"""The values of some algorithms' parameters, by name. Each value makes a case."""


def _min_and_max(text: str) -> tuple[int, int]:
    least, colon, most = text.partition(":")
    if not least.isdecimal() or not (most if colon else least).isdecimal():
        raise UsageError(f"malformed '{text}': write one number, or MIN:MAX, for example 5:100")
    return int(least), int(most if colon else least)


def precision(usual: Precision) -> Any:
    """--repetitions, --confidence, --relative-error: the precision of measured times, as a Precision."""
    return group(
        lambda repetitions, **others: Precision(*repetitions, **others),
        repetitions=option(
            Parsed("repetitions", _min_and_max),
            f"{usual.min_repetitions}:{usual.max_repetitions}",
            key="repetitions for a precision",
        ),
        confidence=option(float, usual.confidence),
        relative_error=option(float, usual.relative_error),
    )


def method(usual: Method, *without: str) -> Any:
    """The options for measuring collectives, except `without`, as a Method. `usual` has the defaults."""
    members = {
        "timing": option(NamedChoice("timing", TIMINGS), usual.timing),
        "synchronisation": option(NamedChoice("synchronisation", SYNCHRONISATIONS), usual.synchronisation),
        "late_seconds": option(float, usual.late_seconds),
        "precision": precision(usual.precision),
        "nrep": option(float),
        "limit_seconds": option(float, usual.limit_seconds),
        "warmup": option(click.IntRange(1), usual.warmup),
        "calls": option(click.IntRange(1), usual.calls),
        "launches": option(click.IntRange(1), usual.launches),
    }
    return group(Method, **{name: member for name, member in members.items() if name not in without})


def asked(question: str, consequence: str) -> Any:
    """The option --yes. The parameter gets a function that asks unless --yes is given; its argument replaces {}."""

    def answer(yes: bool) -> Callable[[str], None]:
        return lambda what: confirm(question.format(what), consequence.format(what), yes)

    return group(answer, yes=flag())


METHOD = method(Method())
"""The options for measuring collectives, as a Method."""
METHOD_OF_ROUNDS = method(Method(), "nrep", "calls", "launches")
"""The options for measuring in a search, whose rounds are launches with few repetitions."""


def _read_thresholds(text: str) -> Thresholds:
    from collwise.models.parameters import read_thresholds

    return read_thresholds(Path(text))


THRESHOLDS = option(Parsed("thresholds", _read_thresholds))


_OF_TARGETS: dict[str, Any] = {
    "library": option(NamedChoice("MPI library", MPI_LIBRARIES)),
    "hosts": option(),
    "launcher": option(NamedChoice("launcher", ("mpirun", "srun", "oar"))),
    "testbed": option(is_flag=False, flag_value="bed"),
    "ppn": PPN,
    "remote_shell": option(default=""),
    "transport": option(NamedChoice("transport", TRANSPORTS)),
    "eager_limit": option(types.SIZE),
    "mpirun_args": option(default=""),
    "host_timeout": option(types.FiniteRange(1), REACH_SECONDS),
    "any_nodes": flag(),
}


def _if_named(**named: Any) -> TargetOptions | None:
    """The options of a target, or None if they name no target. Raises UsageError for options that need a target."""
    where = TargetOptions(**named)
    if where.named:
        return where
    refuse_target_details(where)
    refuse_options(names_in(METHOD), f"measured times ({TARGET_OPTIONS})")
    return None


def _bench(platform: HostPlatform | None, **named: Any) -> HostPlatform | TargetOptions:
    """The platform or target of experiments. Raises UsageError for options that only the other kind takes."""
    where = TargetOptions(**named)
    if (platform is None) == (not where.named):
        raise UsageError(f"name either --platform, to simulate, or an execution target to measure on: {TARGET_OPTIONS}")
    if platform is None:
        refuse_options([name for name in names_in(SIMULATION) if name != "store"], "--platform")
        return where
    refuse_options(names_in(precision(Precision())), f"an execution target: {TARGET_OPTIONS}; simulated time is exact")
    return platform


def _targets(make: Callable[..., Any], *without: str, **more: Any) -> Any:
    """The options that name a target, except `without`, and `more` options. `make` takes their values."""
    return group(make, **more, **{name: item for name, item in _OF_TARGETS.items() if name not in without})


def target(*without: str) -> Any:
    """The ExecutionTarget from the options that name a target, except `without`."""
    return _targets(lambda **given: target_from(TargetOptions(**given)), *without)


TARGET = _targets(TargetOptions)
"""The options that name a target, as TargetOptions for `target_from`."""
TARGET_BESIDE_TESTBEDS = _targets(TargetOptions, "testbed", "transport", "ppn")
"""TARGET for a command whose own options describe test beds."""
TARGET_IF_NAMED = _targets(_if_named, "ppn")
"""The target of a command that also simulates, and has a --ppn of its own."""
BENCH = _targets(_bench, "ppn", platform=option(types.PLATFORM))
"""The place of experiments: --platform, which is simulated, or the target that the other options name."""
BENCH_WITH_PPN = _targets(_bench, platform=option(types.PLATFORM))
"""BENCH with the --ppn of a target."""
