"""Commands that say once what they take: the default value of each parameter is the option or argument that fills it.

@command("compare --platform gros --collective bcast --procs 16")
def compare(procs: Counts = option("Process counts: 50,80,90.", COUNTS, required=True), as_json: bool = JSON) -> None:
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from collwise import arguments
from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import UsageError, unknown_name
from collwise.common.files import new_file, writable_file, writable_folder
from collwise.common.folders import is_clone
from collwise.common.program import as_called
from collwise.common.project import find_project
from collwise.common.units import parse_size
from collwise.platforms.names import known
from collwise.studies.cli.commands import COMMANDS, WORDS, example, required_groups

if TYPE_CHECKING:
    from collwise.platforms import HostPlatform

# The key in click's context under which --force is kept.
_FORCE = "collwise.force"


class _Place(NamedTuple):
    """The options or argument that fill a parameter of a command, and the value it gets. Both take its name."""

    parameters: Callable[[str], list[click.Parameter]]
    value: Callable[[str, Mapping[str, Any]], Any]


def _single(make: Callable[[str], click.Parameter]) -> _Place:
    return _Place(lambda name: [make(name)], lambda name, given: given[name])


class _ProjectOption(click.Option):
    """An option whose default the project's file may give, under the name of the option."""

    def get_default(self, ctx: click.Context, call: bool = True) -> Any:
        """The text in the project's file, else the option's own default."""
        project = find_project()
        text = getattr(project, str(self.name)) if project is not None else None
        return super().get_default(ctx, call) if text is None else text

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        """The value of a text. Raises UsageError, which names the project's file if it has the text."""
        try:
            return super().type_cast_value(ctx, value)
        except UsageError as problem:
            project = find_project()
            if project is None or ctx.get_parameter_source(str(self.name)) is not ParameterSource.DEFAULT:
                raise
            raise UsageError(f"{project.marker}: {problem}") from None


def option(
    about: str | None = None,
    type: Any = None,
    default: Any = None,
    *,
    names: str = "",
    in_project: bool = False,
    **attributes: Any,
) -> Any:
    """An option, as the default value of the parameter that it fills.

    `about` is its help, `type` its type as click takes it. The help shows `default` unless that is empty. `names` are
    the options as typed, by default --NAME for the parameter NAME; `attributes` are further ones of click.Option.
    With `in_project` the project's file may give the default of an option that is required.
    """
    kind = _ProjectOption if in_project else click.Option

    def make(name: str) -> click.Parameter:
        attributes.setdefault("show_default", default not in (None, ""))
        declared = [name, *(names or f"--{name.replace('_', '-')}").split()]
        # A default of None would be the value of a missing option that is required.
        given = {} if attributes.get("required") else {"default": default}
        return kind(declared, type=type, help=about and as_called(about), **given, **attributes)

    return _single(make)


def flag(about: str, names: str = "") -> Any:
    """An option without a value, False unless it is given."""
    return option(about, default=False, names=names, is_flag=True)


def argument(type: Any = None, **attributes: Any) -> Any:
    """A word of the command line without a name, as the default value of the parameter that it fills."""
    return _single(lambda name: click.Argument([name], type=type, **attributes))


def group(make: Callable[..., Any], **members: Any) -> Any:
    """Options that fill one parameter together with the result of `make` for their values, given by name."""

    def parameters(_: str) -> list[click.Parameter]:
        return [one for name, member in members.items() for one in member.parameters(name)]

    def value(_: str, given: Mapping[str, Any]) -> Any:
        return make(**{name: member.value(name, given) for name, member in members.items()})

    return _Place(parameters, value)


def command(
    words: str, name: str | None = None, parent: click.Group | None = None, **attributes: Any
) -> Callable[[Callable[..., Any]], click.Command]:
    """Makes a command of a function all of whose parameters have an option or argument as their default value.

    `words` is the example in its help, `name` by default that of the function. `parent` is the group that it belongs
    to, if any; `attributes` are further ones of click.Command. A command that writes files gets --force.
    """

    def decorate(function: Callable[..., Any]) -> click.Command:
        places = {one.name: one.default for one in signature(function).parameters.values()}
        parameters = [one for inner, place in places.items() for one in place.parameters(inner)]
        written = [number for number, one in enumerate(parameters, start=1) if one.type is NEW_FILE]
        if written:
            parameters.insert(written[-1], _force())

        @wraps(function)
        def callback(**given: Any) -> Any:
            _require_packages(click.get_current_context().find_root())
            for one in parameters:
                if isinstance(one.type, _Written) and one.name is not None and given[one.name] is not None:
                    one.type.check(given[one.name])
            return function(**{inner: place.value(inner, given) for inner, place in places.items()})

        attributes.setdefault("help", as_called(function.__doc__ or ""))
        making = (parent or click).command(name, params=parameters, epilog=example(words), **attributes)
        made: click.Command = making(callback)
        return made

    return decorate


def _require_packages(root: click.Context) -> None:
    """Raises UsageError if system packages are missing that the command needs. In a clone the launcher does this.

    Those that only build the C programs may be missing where that is done.
    """
    from collwise.simulator.execution.packages import missing_packages, require_packages

    if root.invoked_subcommand in COMMANDS and not is_clone():
        groups = required_groups(root.invoked_subcommand, root.meta[WORDS])
        if missing_packages(group for group in groups if group != "build"):
            require_packages(groups)


def _force() -> click.Option:
    return click.Option(
        ["--force"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=lambda context, _, given: context.meta.__setitem__(_FORCE, given),
        help="Overwrite a file that exists.",
    )


def checked_new_file(path: Path) -> Path:
    """The path of a file that the command writes. Raises UsageError if it cannot, or if the file needs --force."""
    return writable_file(new_file(path, click.get_current_context().meta.get(_FORCE, False)))


class _Written(click.ParamType):
    """A path that the command writes to, checked before it starts, when all of its options have been read."""

    name = "path"

    def __init__(self, check: Callable[[Path], Path], kind: str) -> None:
        self.check = check
        self._kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        return Path(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Leaves the names of files to the shell."""
        return [CompletionItem(incomplete, type=self._kind)]


NEW_FILE = _Written(checked_new_file, "file")
"""The type of an option that names a file to write; one that exists needs --force."""
FOLDER = _Written(writable_folder, "dir")
"""The type of an option that names a folder to write files into."""


def was_given(name: str) -> bool:
    """Whether the running command's parameter of this name was given on the command line."""
    return click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE


def refuse_options(names: Sequence[str], of: str) -> None:
    """Raises UsageError if one of the running command's options was given, which are for `of` only."""
    context = click.get_current_context()
    for parameter in context.command.params:
        if parameter.name in names and was_given(parameter.name):
            raise UsageError(f"{parameter.opts[0]} is for {of}")


Offer = Callable[[click.Context], Iterable[str]]
"""Gives the names that a shell offers for an option, from what else the command line has."""


class Parsed(click.ParamType):
    """An option's type: `parse` makes the value, or raises UsageError, which then names the option.

    A shell completes the names that `offer` gives, each after a comma if they are `listed`.
    """

    def __init__(self, name: str, parse: Callable[[str], Any], offer: Offer | None = None, listed: bool = True) -> None:
        self.name = name
        self._parse = parse
        self._offer = offer
        self._listed = listed

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Returns what `parse` makes of text, and any other value, which is a default, as it is."""
        return parsed(self._parse, value, param) if isinstance(value, str) else value

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The names that are offered and begin with the last word typed, without those that stand before it."""
        before, comma, last = incomplete.rpartition(",") if self._listed else ("", "", incomplete)
        offered = self._offer(ctx) if self._offer is not None else ()
        given = before.split(",")
        return [
            CompletionItem(before + comma + name) for name in offered if name.startswith(last) and name not in given
        ]


class _Platform(Parsed):
    """A platform, by its name or that of a file."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The names of known platforms, and files."""
        return super().shell_complete(ctx, param, incomplete) or [CompletionItem(incomplete, type="file")]


def _collectives(_: click.Context) -> Iterable[str]:
    return Catalogue.load().collectives


def _algorithms(context: click.Context) -> Iterable[str]:
    """The algorithms of the collectives on the command line, of all if there are none yet."""
    given = context.params.get("collective") or context.params.get("collectives")
    collectives = [given] if isinstance(given, str) else given or [None]
    return dict.fromkeys(one.name for name in collectives for one in Catalogue.load().algorithms(name))


def _one_name(text: str) -> str:
    """A name. Raises UsageError for a list of names."""
    if "," in text:
        raise UsageError(f"'{text}' is a list; valid: one collective")
    return text


def parsed(parse: Callable[[str], Any], text: str, param: click.Parameter | None) -> Any:
    """Parses the text. The UsageError that `parse` may raise also names the option."""
    try:
        return parse(text)
    except UsageError as problem:
        raise UsageError(f"{param.opts[0]}: {problem}" if param is not None else str(problem)) from None


class NamedChoice(click.Choice):
    """A choice of one name; the error for an unknown name suggests the nearest. `kind` is a noun ("model")."""

    def __init__(self, kind: str, names: Iterable[str]) -> None:
        super().__init__(tuple(names))
        self._kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Returns the name. Raises UsageError, with the near names, for one that is not a choice."""
        return str(parsed(self._known, value, param))

    def _known(self, name: str) -> str:
        if name not in self.choices:
            raise unknown_name(self._kind, name, self.choices)
        return name


def named_choices(kind: str, valid: Iterable[str]) -> click.ParamType:
    """Some of these names, by commas, each once; the error for another one suggests the nearest. `kind` is a noun."""
    valid = tuple(valid)

    def parse(text: str) -> tuple[str, ...]:
        given = tuple(name.strip() for name in text.split(",") if name.strip())
        for name in given:
            if name not in valid:
                raise unknown_name(kind, name, valid)
        if not given or len(set(given)) < len(given):
            raise UsageError(f"name each {kind} once, by commas; valid: {', '.join(valid)}")
        return given

    return Parsed("names", parse, lambda _: valid)


class FiniteRange(click.FloatRange):
    """A range of numbers without nan and infinities, which click lets through."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Returns the number. Fails for one that is not finite."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number", param, ctx)
        return number


class Scaled(FiniteRange):
    """A number above 0, or from `least` on, that is multiplied by `scale`: an option's unit in that of the code."""

    def __init__(self, scale: float, least: float | None = None, most: float | None = None) -> None:
        super().__init__(0 if least is None else least, most, min_open=least is None)
        self._scale = scale

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Returns the number in the code's unit."""
        return float(f"{super().convert(value, param, ctx) * self._scale:.12g}")


PATH = click.Path(path_type=Path)
SIZE = Parsed("size", parse_size)
SIZES = Parsed("sizes", arguments.sizes)
COUNTS = Parsed("counts", arguments.counts)
NAMES = Parsed("names", arguments.names)
ALGORITHM = Parsed("text", str, _algorithms, listed=False)
ALGORITHMS = Parsed("names", arguments.names, _algorithms)
COLLECTIVE = Parsed("text", _one_name, _collectives, listed=False)
COLLECTIVES = Parsed("collectives", arguments.collectives, lambda context: ("all", *_collectives(context)))
PLATFORM = _Platform("platform", arguments.platform, lambda _: known(), listed=False)


class Unknown(str):
    """A name that no platform has, which may be one of measured times; `problem` is the error that says so."""

    problem: UsageError


def _platform_or_name(text: str) -> HostPlatform | Unknown:
    try:
        return arguments.platform(text)
    except UsageError as problem:
        if Path(text).exists():
            raise
        unknown = Unknown(text)
        unknown.problem = UsageError(f"--platform: {problem}")
        return unknown


PLATFORM_OR_NAME = _Platform("platform", _platform_or_name, lambda _: known(), listed=False)
"""A platform, or a name that only the store has."""
