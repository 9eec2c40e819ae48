"""Declares options and arguments, as the default values of the parameters that they fill.

@command("platforms show grisou -o grisou.xml", parent=platforms)
def show(platform: HostPlatform = argument(PLATFORM), output: Path | None = option(NEW_FILE)) -> Shown:

options.toml contains the help of options. `command` is in derive.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import click
from click.core import ParameterSource

from collwise.common.errors import UsageError
from collwise.common.folders import is_clone
from collwise.common.program import as_called
from collwise.common.project import find_project
from collwise.studies.cli.commands import COMMANDS, WORDS, example, required_groups
from collwise.studies.cli.option_texts import text_of
from collwise.studies.cli.types import FOLDER, FORCE, Written


class Filling(NamedTuple):
    """The options or the argument that fill a parameter of a command, and the value that the parameter gets.

    `parameters` takes the parameter's name and the command's words, `value` the name and the given values.
    """

    parameters: Callable[[str, str], list[click.Parameter]]
    value: Callable[[str, Mapping[str, Any]], Any]


def _single(make: Callable[[str, str], click.Parameter]) -> Filling:
    return Filling(lambda name, command: [make(name, command)], lambda name, given: given[name])


class _ProjectOption(click.Option):
    """An option whose default the project's file may give, under the name of the option."""

    def get_default(self, ctx: click.Context, call: bool = True) -> Any:
        """The text in the project's file, or the option's own default."""
        project = find_project()
        text = getattr(project, str(self.name)) if project is not None else None
        return super().get_default(ctx, call) if text is None else text

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        """The value of a text. Raises UsageError, which names the project's file if the text is from there."""
        try:
            return super().type_cast_value(ctx, value)
        except UsageError as problem:
            project = find_project()
            if project is None or ctx.get_parameter_source(str(self.name)) is not ParameterSource.DEFAULT:
                raise
            raise UsageError(f"{project.marker}: {problem}") from None


def option(
    type: Any = None,
    default: Any = None,
    *,
    key: str = "",
    said: Mapping[str, Any] | None = None,
    in_project: bool = False,
    **attributes: Any,
) -> Any:
    """An option, as the default value of the parameter that it fills.

    options.toml contains the option's help, and its names as typed (by default --KEY). `key` is the option's entry in
    options.toml, by default the parameter's name. `said` maps words in braces in the texts to their values; several
    values of a word are joined by commas. `type` is a type that click takes. The help shows `default`; if `default` is
    empty or a function, it shows the text `default` in options.toml. `attributes` are further attributes of
    click.Option. If `in_project` is true, the project's file may give the default of a required option.
    """
    kind = _ProjectOption if in_project else click.Option
    values = {
        word: item if isinstance(item, str | int | float) else ", ".join(item) for word, item in (said or {}).items()
    }

    def make(name: str, command: str) -> click.Parameter:
        text = text_of(command, key or name)
        about, described = (text.get(part, "").replace("\n", " ").format(**values) for part in ("help", "default"))
        known = default not in (None, "", ()) and not callable(default)
        shown = {"show_default": known or described or False, "metavar": text.get("metavar") or None} | attributes
        declared = [name, *(text.get("names") or f"--{(key or name).replace('_', '-')}").split()]
        # With a default of None, click would not notice that a required option is missing.
        given = {} if attributes.get("required") else {"default": default}
        return kind(declared, type=type, help=as_called(about) or None, **given, **shown)

    return _single(make)


def flag() -> Any:
    """An option without a value, False unless it is given."""
    return option(default=False, is_flag=True)


def argument(type: Any = None, **attributes: Any) -> Any:
    """An argument of the command line, as the default value of the parameter that it fills."""
    return _single(lambda name, _: click.Argument([name], type=type, **attributes))


def group(make: Callable[..., Any], **members: Any) -> Any:
    """Options that together fill one parameter. `make` takes their values by name and returns the parameter's value."""

    def parameters(_: str, command: str) -> list[click.Parameter]:
        return [parameter for name, member in members.items() for parameter in member.parameters(name, command)]

    def value(_: str, given: Mapping[str, Any]) -> Any:
        return make(**{name: member.value(name, given) for name, member in members.items()})

    return Filling(parameters, value)


def names_in(place: Filling) -> list[str]:
    """The names of the parameters of the options in a place, for `refuse_options`."""
    return [str(parameter.name) for parameter in place.parameters("", "")]


def made(
    function: Callable[..., Any],
    places: Mapping[str, Any],
    words: str,
    name: str,
    parent: click.Group | None,
    description: str,
    **attributes: Any,
) -> click.Command:
    """The command that calls a function. `places` fill the function's parameters, by name.

    `words` is the example in the command's help, and starts with the words that call the command. `attributes` are
    further attributes of click.Command. A command that writes files gets --force.
    """
    called = words.partition(" --")[0].split()
    full = " ".join(called[: called.index(name) + 1])
    parameters = [parameter for inner, place in places.items() for parameter in place.parameters(inner, full)]
    files = [
        parameter for parameter in parameters if isinstance(parameter.type, Written) and parameter.type is not FOLDER
    ]
    if files:
        parameters.insert(parameters.index(files[-1]) + 1, _force())

    def callback(**given: Any) -> Any:
        _require_packages(click.get_current_context().find_root())
        for parameter in parameters:
            if isinstance(parameter.type, Written) and parameter.name is not None and given[parameter.name] is not None:
                parameter.type.check(given[parameter.name])
        return function(**{inner: place.value(inner, given) for inner, place in places.items()})

    making = (parent or click).command(
        name, params=parameters, epilog=example(words), help=as_called(description), **attributes
    )
    command: click.Command = making(callback)
    return command


def _require_packages(root: click.Context) -> None:
    """Raises UsageError if packages that the command needs are missing; in a clone, the launcher looks for these."""
    from collwise.simulator.execution.packages import missing_packages, require_extra, require_packages

    if root.invoked_subcommand not in COMMANDS or WORDS not in root.meta:
        return  # a group alone
    groups = required_groups(root.invoked_subcommand, root.meta[WORDS])
    for extra in ("notebooks", "studio"):
        if extra in groups:
            require_extra(extra)
    # The programs may be built already, so packages that only build them may be missing.
    if not is_clone() and missing_packages(group for group in groups if group != "build"):
        require_packages(groups)


def _force() -> click.Option:
    return click.Option(
        ["--force"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=lambda context, _, given: context.meta.__setitem__(FORCE, given),
        help="Overwrite a file that exists.",
    )


def refuse_options(names: Sequence[str], of: str) -> None:
    """Raises UsageError if one of these options of the running command was given, since they are for `of` only."""
    context = click.get_current_context()
    for parameter in context.command.params:
        if parameter.name in names and context.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE:
            raise UsageError(f"{parameter.opts[0]} is for {of}")


def refuse_others(kept: Sequence[str], of: str) -> None:
    """Refuses all options of the running command except `kept`, --json and --csv, as refuse_options does."""
    parameters = click.get_current_context().command.params
    refuse_options(
        [str(parameter.name) for parameter in parameters if parameter.name not in (*kept, "as_json", "as_csv")], of
    )
