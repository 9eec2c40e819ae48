"""Options that several commands take."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from collwise import arguments
from collwise.common.errors import UsageError
from collwise.common.project import default_store_path
from collwise.models.registry import MODEL_NAMES
from collwise.simulator.sweeps.context import ENGINES, SimulationContext
from collwise.simulator.sweeps.method import SYNCHRONISATIONS, TIMINGS, Method, Precision
from collwise.simulator.sweeps.places import BATCH_SYSTEMS, DASK, LOCAL, parse_place
from collwise.studies.cli import types
from collwise.studies.cli.declare import flag, group, option
from collwise.studies.cli.output import CSV, sweep_progress
from collwise.studies.cli.types import NamedChoice, Parsed
from collwise.validation.library_defaults.baselines import BASELINES
from collwise.validation.library_defaults.baselines import baseline as find_baseline

if TYPE_CHECKING:
    from collwise.models.lmo import Thresholds
    from collwise.platforms import HostPlatform


def _keep_csv(context: click.Context, _: click.Parameter, given: bool) -> bool:
    context.meta[CSV] = given
    return given


JSON_ALONE = flag("Print JSON for scripts ('collwise schema' describes it).", "--json")
"""The option --json of a command whose --csv names a file."""
JSON = group(
    lambda as_json, as_csv: as_json or as_csv,
    as_json=JSON_ALONE,
    as_csv=option("Print the rows of --json as CSV.", default=False, names="--csv", is_flag=True, callback=_keep_csv),
)
"""Whether to print for programs: --json or --csv, between which `print_json` chooses."""
PLATFORM = option(
    "A known platform (see 'collwise platforms list') or a .toml or .xml file.",
    types.PLATFORM,
    required=True,
    in_project=True,
)
_PLACEMENT = option(
    "Where ranks run: block, cyclic, or a file with each rank's host on a line.", default="block", metavar="HOW"
)


def _placed(platform: HostPlatform | types.Unknown | None, placement: str) -> HostPlatform | types.Unknown | None:
    from collwise.platforms import placed

    if platform is not None and not isinstance(platform, types.Unknown):
        return placed(platform, placement)
    if placement != "block":
        raise UsageError("--placement needs --platform") if platform is None else platform.problem
    return platform


def placed_platform(platform: Any = PLATFORM) -> Any:
    """--placement beside --platform, which is the option given: a platform with ranks placed on its nodes."""
    return group(_placed, platform=platform, placement=_PLACEMENT)


COLLECTIVE = option("A name (see 'collwise algorithms').", types.COLLECTIVE, required=True)
COLLECTIVES = option(
    "Names by commas (see 'collwise algorithms'), or all.", types.COLLECTIVES, names="--collective", required=True
)
SIZES = option(
    "Message sizes m: 8KiB:4MiB:x2; for gather, alltoall and the like the size of one process's block. Default: 12 by "
    "doubling, by collective.",
    types.SIZES,
)
ALGORITHMS = option("Algorithms, names by commas. Default: all that can be chosen.", types.ALGORITHMS)
MODEL = option(
    "One of the models in the file. Default: the one that it was made for.",
    NamedChoice("model", MODEL_NAMES),
    names="--model",
)
PPN = option(
    "Processes per node. Default: processes_per_node of the platform's description, or one per CPU.", click.IntRange(1)
)
SIMGRID = option("The version of SimGrid, for example 4.1. Default: the system's.", metavar="VERSION")
BASELINE = option(
    f"What the choice is compared with: the fixed decisions of an untuned library, {', '.join(BASELINES)}. Default: "
    "those of the installed Open MPI.",
    Parsed("baseline", find_baseline),
    find_baseline,
    show_default=False,
    metavar="NAME",
)


def default_library(about: str) -> Any:
    """--baseline NAME: the untuned library that decides by default, whose name stays text."""
    return option(
        f"{about}: {', '.join(BASELINES)}. Default: the installed Open MPI.",
        NamedChoice("baseline", BASELINES),
        names="--baseline",
        metavar="NAME",
    )


CALLED_LIBRARY = option(
    "For mock-ups with --engine schedule, which has no MPI library: the untuned one whose decisions hold for the "
    f"collectives that they call, {', '.join(BASELINES)}.",
    Parsed("baseline", find_baseline),
    next(iter(BASELINES)),
    names="--baseline",
    metavar="NAME",
)
STORE = option(
    "The SQLite file of timings; finished cases are kept there.",
    types.PATH,
    default_store_path,
    show_default="results/timings.sqlite",
    envvar="COLLWISE_STORE",
)


EXECUTOR = option(
    "Where simulations run: local, here; dask:HOST:PORT, by the workers of a Dask scheduler; slurm or oar, "
    "in batch jobs, with keys for these: slurm:jobs=4,cores=8.",
    Parsed("executor", types.checked(parse_place), lambda _: (LOCAL, f"{DASK}:", *BATCH_SYSTEMS), listed=False),
    LOCAL,
    envvar="COLLWISE_EXECUTOR",
    metavar="WHERE",
)


@dataclass(frozen=True)
class SimulationOptions:
    """The way in which simulations run, and the store of their times."""

    store: Path
    engine: str = "smpi"
    simgrid: str | None = None
    jobs: int | None = None
    executor: str = "local"

    def context(self, library: str = next(iter(BASELINES))) -> AbstractContextManager[SimulationContext]:
        """The context of all simulations of a command, with its store open and progress on stderr."""
        return arguments.session(
            self.store, self.engine, self.simgrid, self.jobs, sweep_progress, library, self.executor
        )

    def check_store(self) -> None:
        """Raises UsageError where there is no store that measured times could be in; none is made for them."""
        if not self.store.exists():
            raise UsageError(f"there is no store {self.store}; fill one with 'collwise measure' or 'collwise import'")


def simulation(engine: str = "smpi", about: str = "The program that simulates.") -> Any:
    """--store, --engine, --simgrid, --jobs and --executor, as SimulationOptions.

    `engine` is the default one, `about` its help.
    """
    return group(
        SimulationOptions,
        store=STORE,
        engine=option(about, NamedChoice("engine", ENGINES), engine),
        simgrid=SIMGRID,
        jobs=option("The number of simultaneous simulations. Default: the number of cores.", click.IntRange(1)),
        executor=EXECUTOR,
    )


SIMULATION = simulation()

SIMULATING = ("engine", "simgrid", "jobs", "executor")
"""The parameters of `simulation` that say how times are simulated, for `refuse_options`."""


ONE_OR_MORE = "A choice may have any of them; the least is the common one."
"""The meaning of several segment sizes to commands that choose."""


def segments(default: str | None, about: str = "", default_text: str = "") -> Any:
    """--segments SIZE[,SIZE...]; `default_text` describes the default if it depends on other options."""
    parts = ("Segment sizes; 0: unsegmented.", about, default_text and f"Default: {default_text}.")
    return option(" ".join(filter(None, parts)), types.SIZES, default)


def _numbers(least: int) -> types.Parsed:
    """The type of one or several numbers from `least` on."""

    def parse(text: str) -> tuple[int, ...]:
        found = arguments.counts(text)
        if min(found) < least:
            raise UsageError(f"{min(found)} is too small; valid: whole numbers from {least} on, by commas")
        return found

    return Parsed("numbers", parse)


COUNTS = group(
    dict,
    chains=option("Numbers of chains of K-chain trees: 2,4,8. Default: 4.", _numbers(1)),
    radix=option("Radices of k-nomial trees: 2,4,8. Default: 4.", _numbers(2)),
    max_requests=option("Numbers of simultaneous exchanges of alltoall linear_sync: 2,4. Default: 4.", _numbers(1)),
    leaders=option("Numbers of leaders on each node of multi_leader algorithms: 1,2. Default: 2.", _numbers(1)),
)
"""Numbers that some algorithms take, each of which makes a case, by the name of the parameter."""


def repetitions(default: int) -> Any:
    """--repetitions N, for measurements that are repeated a fixed number of times."""
    return option("The number of repetitions of every measurement.", click.IntRange(1), default)


def _least_and_most(text: str) -> tuple[int, int]:
    least, colon, most = text.partition(":")
    if not least.isdecimal() or not (most if colon else least).isdecimal():
        raise UsageError(f"malformed '{text}': write one number, or LEAST:MOST, for example 5:100")
    return int(least), int(most if colon else least)


def precision(usual: Precision) -> Any:
    """--repetitions, --confidence, --relative-error: the precision of measured times, as a Precision."""
    return group(
        lambda repetitions, **others: Precision(*repetitions, **others),
        repetitions=option(
            "Exactly N repetitions, or as many as the precision takes.",
            Parsed("repetitions", _least_and_most),
            f"{usual.min_repetitions}:{usual.max_repetitions}",
            metavar="N|LEAST:MOST",
        ),
        confidence=option("The confidence of the mean's interval, by Student's t.", float, usual.confidence),
        relative_error=option(
            "Repeat until the half-width of the mean's interval is below this share of it.", float, usual.relative_error
        ),
    )


PRECISION = ("repetitions", "confidence", "relative_error")
"""The parameters of `precision`, for `refuse_options`."""

_USUAL = Method()
METHOD = group(
    Method,
    timing=option(
        "root: the root's clock until a closing barrier; maximum: the slowest process; global: on a global clock.",
        NamedChoice("timing", TIMINGS),
        _USUAL.timing,
    ),
    synchronisation=option(
        "Two barriers before each repetition, or rounds that start at an agreed instant.",
        NamedChoice("synchronisation", SYNCHRONISATIONS),
        _USUAL.synchronisation,
    ),
    late_seconds=option(
        "For rounds: the start skew beyond which a process is late. Take more if processes share cores.",
        float,
        _USUAL.late_seconds,
    ),
    precision=precision(_USUAL.precision),
    nrep=option(
        "Instead repeat as often as one-byte messages take to this relative standard error (Hunold's NREP): 0.01.",
        float,
        metavar="RSE",
    ),
    limit_seconds=option("The longest time for one case; 0: no limit.", float, _USUAL.limit_seconds),
    warmup=option("Untimed repetitions first.", click.IntRange(1), _USUAL.warmup),
    launches=option(
        "Separate executions of MPI; with several, the result is the mean of their means.",
        click.IntRange(1),
        _USUAL.launches,
    ),
)
"""The options of how collectives are measured, as a Method."""

MEASURING = ("timing", "synchronisation", "late_seconds", *PRECISION, "nrep", "limit_seconds", "warmup", "launches")
"""The parameters of METHOD, for `refuse_options`."""


def _read_thresholds(text: str) -> Thresholds:
    from collwise.models.parameters import read_thresholds

    return read_thresholds(Path(text))


THRESHOLDS = option(
    "M1, M2 and S for the lmo algorithms (collwise fit --model lmo). Without them they are linear.",
    Parsed("thresholds", _read_thresholds),
    metavar="FILE",
)
