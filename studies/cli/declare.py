"""Commands that say once what they take: the default value of each parameter is the option or argument that fills it.

@command("compare --platform gros --collective bcast --procs 16")
def compare(procs: Counts = option("Process counts: 50,80,90.", COUNTS, required=True), as_json: bool = JSON) -> None:
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import Any, NamedTuple

import click
from click.core import ParameterSource

from collwise.common.errors import UsageError
from collwise.common.files import new_file, writable_file, writable_folder
from collwise.studies.cli.commands import example

# Whether --force was given, in click's context.
_FORCE = "collwise.force"


class _Single(NamedTuple):
    """An option or an argument; `make` takes the name of the parameter that it fills."""

    make: Callable[[str], click.Parameter]

    def parameters(self, name: str) -> list[click.Parameter]:
        return [self.make(name)]

    def value(self, name: str, given: Mapping[str, Any]) -> Any:
        return given[name]


class _Group(NamedTuple):
    """Options that fill one parameter together."""

    make: Callable[..., Any]
    members: Mapping[str, _Single | _Group]

    def parameters(self, name: str) -> list[click.Parameter]:
        return [one for inner, member in self.members.items() for one in member.parameters(inner)]

    def value(self, name: str, given: Mapping[str, Any]) -> Any:
        return self.make(**{inner: member.value(inner, given) for inner, member in self.members.items()})


def option(
    about: str | None = None, type: Any = None, default: Any = None, *, names: str = "", **attributes: Any
) -> Any:
    """An option, as default value of the parameter that it fills.

    Parameters: `about`, its help; `type`, as click takes it; `default`, which the help shows unless it is empty;
    `names`, as typed, by default --NAME for the parameter NAME; `attributes`, further ones of click.Option.
    """

    def make(name: str) -> click.Parameter:
        attributes.setdefault("show_default", default not in (None, ""))
        declared = [name, *(names or f"--{name.replace('_', '-')}").split()]
        return click.Option(declared, type=type, default=default, help=about, **attributes)

    return _Single(make)


def flag(about: str, names: str = "") -> Any:
    """An option without a value, False unless it is given."""
    return option(about, default=False, names=names, is_flag=True)


def argument(type: Any = None, **attributes: Any) -> Any:
    """A word of the command line without a name, as default value of the parameter that it fills."""
    return _Single(lambda name: click.Argument([name], type=type, **attributes))


def group(make: Callable[..., Any], **members: Any) -> Any:
    """Options that fill one parameter together: with what `make` returns for their values, given by name."""
    return _Group(make, members)


def command(
    words: str, name: str | None = None, parent: click.Group | None = None, **attributes: Any
) -> Callable[[Callable[..., Any]], click.Command]:
    """Makes a command of a function all of whose parameters have an option or argument as their default value.

    Parameters: `words`, the example of its help; `name`, by default the function's; `parent`, the group that it is a
    command of, if any; `attributes`, further ones of click.Command. A command that writes files gets --force.
    """

    def decorate(function: Callable[..., Any]) -> click.Command:
        places = {one.name: one.default for one in signature(function).parameters.values()}
        parameters = [one for inner, place in places.items() for one in place.parameters(inner)]
        written = [number for number, one in enumerate(parameters, start=1) if one.type is NEW_FILE]
        if written:
            parameters.insert(written[-1], _force())

        @wraps(function)
        def callback(**given: Any) -> Any:
            return function(**{inner: place.value(inner, given) for inner, place in places.items()})

        making = (parent or click).command(name, params=parameters, epilog=example(words), **attributes)
        made: click.Command = making(callback)
        return made

    return decorate


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
    """A path that the command writes to, checked before it starts."""

    name = "path"

    def __init__(self, check: Callable[[Path], Path]) -> None:
        self._check = check

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        return self._check(Path(value))


NEW_FILE = _Written(checked_new_file)
"""The type of an option that names a file to write; one that exists needs --force."""
FOLDER = _Written(writable_folder)
"""The type of an option that names a folder to write files into."""


def refuse_options(names: Sequence[str], of: str) -> None:
    """Raises UsageError if one of the running command's options was given, which are for `of` only."""
    context = click.get_current_context()
    for parameter in context.command.params:
        if parameter.name in names and context.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE:
            raise UsageError(f"{parameter.opts[0]} is for {of}")
