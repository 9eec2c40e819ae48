"""What commands share: option types with one-line errors, progress, JSON."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click
from click.core import ParameterSource
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from collwise import arguments
from collwise.common.errors import UsageError, unknown_name
from collwise.common.files import new_file
from collwise.common.units import parse_size
from collwise.platforms import HostPlatform, load
from collwise.simulator.store import Store, default_store_path
from collwise.simulator.sweeps.context import ENGINES, SimulationContext
from collwise.simulator.sweeps.method import Precision
from collwise.simulator.sweeps.runner import Progress as SweepProgress
from collwise.simulator.timing import Timing

if TYPE_CHECKING:
    from collwise.models.lmo import Thresholds

# How often a sweep without a terminal says how far it is.
_TELL_EVERY_SECONDS = 30.0

# Whether --force was given, in click's context.
_FORCE = "collwise.force"

F = TypeVar("F", bound=Callable[..., Any])


class _Parsed(click.ParamType):
    """An option read by one of our parsers, whose message already says what is valid."""

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)
        except UsageError as problem:
            option = param.opts[0] if param is not None else self.name
            raise UsageError(f"{option}: {problem}") from None


def parsed(name: str, parse: Callable[[str], Any]) -> click.ParamType:
    """An option's type: `parse` makes the value, or raises UsageError, which then names the option."""
    return _Parsed(name, parse)


class NamedChoice(click.Choice):
    """One of some names; for another one the error names the nearest, too. `kind` is a noun ("model")."""

    def __init__(self, kind: str, names: Iterable[str]) -> None:
        super().__init__(tuple(names))
        self._kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Returns the name. Raises UsageError, with the near names, for one that is not a choice."""
        if value not in self.choices:
            option = param.opts[0] if param is not None else self.name
            raise UsageError(f"{option}: {unknown_name(self._kind, str(value), self.choices)}")
        return str(value)


class NamedChoices(click.ParamType):
    """Some of these names, by commas, each once; for another one the error names the nearest. `kind` is a noun."""

    name = "names"

    def __init__(self, kind: str, names: Iterable[str]) -> None:
        self._kind, self._valid = kind, tuple(names)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        """Returns the names in the order given. Raises UsageError for one that is not a choice and for none at all."""
        if not isinstance(value, str):
            return tuple(value)
        option = param.opts[0] if param is not None else self.name
        given = tuple(name.strip() for name in value.split(",") if name.strip())
        for name in given:
            if name not in self._valid:
                raise UsageError(f"{option}: {unknown_name(self._kind, name, self._valid)}")
        if not given or len(set(given)) < len(given):
            raise UsageError(f"{option}: name each {self._kind} once, by commas; valid: {', '.join(self._valid)}")
        return given


class FiniteRange(click.FloatRange):
    """A range of numbers without nan and infinities, which click lets through."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Returns the number. Fails for one that is not finite."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number", param, ctx)
        return number


class _NewFile(click.ParamType):
    """A file to write; one that exists needs --force."""

    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        return checked_new_file(Path(value))


def checked_new_file(path: Path) -> Path:
    """The path of a file that the command writes. Raises UsageError if it exists and --force was not given."""
    return new_file(path, click.get_current_context().meta.get(_FORCE, False))


def file_option(*names: str, **attributes: Any) -> Callable[[F], F]:
    """An option that names a file to write, and, once a command, --force."""

    def decorate(function: F) -> F:
        if not any("--force" in known.opts for known in getattr(function, "__click_params__", ())):
            function = click.option(
                "--force",
                is_flag=True,
                is_eager=True,
                expose_value=False,
                callback=lambda context, _, given: context.meta.__setitem__(_FORCE, given),
                help="Overwrite a file that exists.",
            )(function)
        return click.option(*names, type=_NewFile(), **attributes)(function)

    return decorate


def refuse_options(context: click.Context, names: Sequence[str], of: str) -> None:
    """Raises UsageError if one of the options was given, which are for `of` only."""
    for parameter in context.command.params:
        if parameter.name in names and context.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE:
            raise UsageError(f"{parameter.opts[0]} is for {of}")


SIZE = _Parsed("size", parse_size)
SIZES = _Parsed("sizes", arguments.sizes)
COUNTS = _Parsed("counts", arguments.counts)
NAMES = _Parsed("names", arguments.names)
COLLECTIVES = _Parsed("collectives", arguments.collectives)
PLATFORM = _Parsed("platform", load)

algorithm_names = arguments.algorithms
"""The algorithms asked for; nothing and 'all' stand for every one that can be chosen."""


def _repetitions(text: str) -> tuple[int, int]:
    least, colon, most = text.partition(":")
    if not least.isdecimal() or not (most if colon else least).isdecimal():
        raise UsageError(f"malformed '{text}': write one number, or LEAST:MOST, for example 5:100")
    return int(least), int(most if colon else least)


REPETITIONS = _Parsed("repetitions", _repetitions)


def platform_option(function: F) -> F:
    """--platform NAME|FILE."""
    help_text = "A known platform (see 'collwise platforms list') or a .toml or .xml file."
    return click.option("--platform", required=True, type=PLATFORM, help=help_text)(function)


def ppn_option(function: F) -> F:
    """--ppn N."""
    help_text = "Processes per node. Default: one per CPU, as the platform says."
    return click.option("--ppn", type=click.IntRange(1), help=help_text)(function)


@dataclass(frozen=True)
class SimulationOptions:
    """The options of `simulation_options`."""

    store: Path
    engine: str
    simgrid: str | None
    jobs: int | None

    @contextmanager
    def context(self) -> Iterator[SimulationContext]:
        """The context of all simulations of a command, with its store open and progress on stderr."""
        with Store(self.store) as opened:
            yield SimulationContext(opened, ENGINES[self.engine], self.simgrid, self.jobs, sweep_progress)


def simulation_options(function: F) -> F:
    """--store, --engine, --simgrid, --jobs: how simulations run and where their times go, as parameter `simulation`."""

    @wraps(function)
    def command(*args: Any, store: Path, engine: str, simgrid: str | None, jobs: int | None, **others: Any) -> Any:
        return function(*args, simulation=SimulationOptions(store, engine, simgrid, jobs), **others)

    for option in (
        click.option("--jobs", type=click.IntRange(1), help="Simulations side by side. Default: the number of cores."),
        simgrid_option,
        click.option(
            "--engine", type=NamedChoice("engine", ENGINES), default="smpi", show_default=True, help="What simulates."
        ),
        store_option,
    ):
        command = option(command)
    return cast("F", command)


def store_option(function: F) -> F:
    """--store FILE."""
    return click.option(
        "--store",
        type=click.Path(path_type=Path),
        default=default_store_path,
        show_default="results/timings.sqlite",
        envvar="COLLWISE_STORE",
        help="The SQLite file of timings; finished cases are kept there.",
    )(function)


def segments_option(default: str | None, about: str = "", default_text: str = "") -> Callable[[F], F]:
    """--segments SIZE[,SIZE...]; `default_text` says what the default is where it depends on other options."""
    text = " ".join(
        filter(None, ("Segment sizes; 0: unsegmented.", about, default_text and f"Default: {default_text}."))
    )
    return click.option("--segments", type=SIZES, default=default, show_default=default is not None, help=text)


def simgrid_option(function: F) -> F:
    """--simgrid VERSION."""
    help_text = "Version of SimGrid, for example 4.1. Default: the system's."
    return click.option("--simgrid", metavar="VERSION", help=help_text)(function)


def repetitions_option(default: int) -> Callable[[F], F]:
    """--repetitions N, for what is repeated a fixed number of times."""
    help_text = "Exactly so many of every measurement."
    return click.option("--repetitions", type=click.IntRange(1), default=default, show_default=True, help=help_text)


PRECISION = ("repetitions", "confidence", "relative_error")
"""The parameters of `precision_options`, for `refuse_options`."""


def precision_options(usual: Precision) -> Callable[[F], F]:
    """--repetitions, --confidence, --relative-error: how exactly times are measured, as parameter `precision`."""

    def decorate(function: F) -> F:
        @wraps(function)
        def command(
            *args: Any, repetitions: tuple[int, int], confidence: float, relative_error: float, **others: Any
        ) -> Any:
            return function(*args, precision=Precision(*repetitions, confidence, relative_error), **others)

        for option in (
            click.option(
                "--relative-error", type=float, default=usual.relative_error, show_default=True,
                help="Repeat until the half-width of the mean's interval is below this share of it.",
            ),
            click.option(
                "--confidence", type=float, default=usual.confidence, show_default=True,
                help="Confidence of the mean's interval, by Student's t.",
            ),
            click.option(
                "--repetitions", type=REPETITIONS, default=f"{usual.min_repetitions}:{usual.max_repetitions}",
                show_default=True, metavar="N|LEAST:MOST", help="Exactly N, or as many as the precision takes.",
            ),
        ):  # fmt: skip
            command = option(command)
        return cast("F", command)

    return decorate


def _read_thresholds(text: str) -> Thresholds:
    from collwise.models.parameter_file import read_thresholds

    return read_thresholds(Path(text))


def thresholds_option(function: F) -> F:
    """--thresholds FILE."""
    help_text = "M1, M2 and S for the lmo algorithms (collwise fit --model lmo). Without them they are linear."
    return click.option("--thresholds", metavar="FILE", type=parsed("thresholds", _read_thresholds), help=help_text)(
        function
    )


def collective_option(function: F) -> F:
    """--collective NAME."""
    return click.option("--collective", required=True, help="A name (see 'collwise algorithms').")(function)


def collectives_option(function: F) -> F:
    """--collective NAME[,NAME...]|all."""
    help_text = "Names by commas (see 'collwise algorithms'), or all."
    return click.option("--collective", "collectives", required=True, type=COLLECTIVES, help=help_text)(function)


def json_option(function: F) -> F:
    """--json."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")(function)


def processes_per_node(platform: HostPlatform, ppn: int | None) -> int:
    """The option, or the platform's default."""
    return ppn or platform.default_processes_per_node


def several(collectives: Sequence[str]) -> str:
    """'bcast', 'bcast, gather', '16 collectives': for titles."""
    return ", ".join(collectives) if len(collectives) <= 3 else f"{len(collectives)} collectives"


def print_json(document: Any) -> None:
    """JSON on standard output; nan and infinity, which JSON has not, become null."""
    click.echo(json.dumps(_finite(document), indent=2))


def _finite(value: Any) -> Any:
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(entry) for entry in value]
    return value


@contextmanager
def sweep_progress(label: str) -> Iterator[SweepProgress]:
    """A progress bar on stderr with cases done and time left; failures are printed as they come."""
    console = Console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TextColumn("{task.fields[cases]} cases"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    with bar:
        task = bar.add_task(label, total=1.0, cases=0)
        done = 0
        told = time.monotonic()

        def advance(timing: Timing, fraction: float) -> None:
            nonlocal done, told
            done += 1
            bar.update(task, completed=fraction, cases=done)
            if not console.is_terminal and time.monotonic() - told > _TELL_EVERY_SECONDS:
                told = time.monotonic()
                click.echo(f"collwise: {label}: {fraction * 100:.0f} %, {done} cases", err=True)
            if not timing.ok:
                console.print(f"collwise: failed: {describe(timing)}", highlight=False, soft_wrap=True)

        yield advance


def describe(timing: Timing) -> str:
    """A failed case in one line."""
    case = timing.case
    return (
        f"{case.collective} {case.algorithm} P={case.procs} m={case.message_bytes} m_s={case.segment_bytes}: "
        f"{timing.error}"
    )
