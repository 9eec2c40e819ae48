"""Derives commands from public functions, whose parameters become the options of the commands.

simulate = derived(collwise.simulate, "simulate --platform gros --collective bcast --procs 4,8")

The help of the command is the function's docstring up to the parameters, with names as users type them. options.toml
has the help of options, and a presenter (collwise.studies.present) prints what the function returns.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType
from typing import Any

import click

from collwise.common.errors import CollwiseError, UsageError, note
from collwise.common.files import write_text
from collwise.studies.cli import declare, options, types
from collwise.studies.cli.declare import argument, option
from collwise.studies.cli.option_texts import COMMANDS_OF_FUNCTIONS, description_of, key_of
from collwise.studies.cli.output import print_json, print_table
from collwise.studies.present.shown import markdown_of, shown
from collwise.validation.select.consumers import ALL_CONSUMERS

_UNNAMED = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL)
_SAVED = ("AllTimes", "Decisions", "FittedModel", "Guidelines", "ProfileResult", "TaskSearches", "pd.DataFrame")
"""The returned types that -o saves. Without -o, a result that has a `usual_file` is saved there."""
_PRINTED = ("int", "None")
"""The return annotations of functions that print their output on their own."""
_BY_NAME: Mapping[str, Any] = {
    "algorithm": types.ALGORITHM,
    "algorithms": types.ALGORITHMS,
    "allocations": click.IntRange(1),
    "exclude": types.ALGORITHMS,
    "chains": click.IntRange(1),
    "collective": types.COLLECTIVE,
    "collectives": types.COLLECTIVES,
    "consumer": types.NamedChoice("library", ALL_CONSUMERS),
    "launches": click.IntRange(1),
    "nodes": click.IntRange(1),
    "platform": types.PLATFORM,
    "ppn": click.IntRange(1),
    "number of processes": click.IntRange(1),
    "pieces of segments": types.SIZE,
    "procs": types.COUNTS,
    "repetitions": click.IntRange(1),
    "root": click.IntRange(0),
    "segments": types.SIZES,
    "sizes": types.SIZES,
}
"""The type of an option, by its entry in options.toml."""
_BY_ANNOTATION: Mapping[str, Any] = {
    "Changes": None,
    "DecisionsLike": types.PATH,
    "FittedModel | str | Path": types.PATH,
    "ModelLike": types.PATH,
    "Names": types.NAMES,
    "NewFile": types.NEW_FILE,
    "Paths": types.PATH,
    "PlatformLike": types.PLATFORM,
    "Compared": types.PATH,
    "Decisions | str | Path": types.PATH,
    "Cluster": None,
    "TimesLike": types.PATH,
    "Path": types.PATH,
    "float": click.FLOAT,
    "int": click.INT,
    "str": None,
    "str | Path": types.PATH,
}
_GROUPS: Mapping[str, Any] = {
    "baseline": options.DEFAULT_LIBRARY,
    "context": options.SIMULATION,
    "counts": options.COUNTS,
    "method": options.METHOD,
    "store": options.STORE,
    "target": options.target(),
    "thresholds": options.THRESHOLDS,
}
"""The options of parameters that several options fill, or that mean the same in all commands."""
_REPEATED = ("Changes", "Paths")
"""The annotations of options that may be given several times."""
_IN_PROJECT = ("platform", "procs")


def derived(
    function: Callable[..., Any],
    words: str,
    *,
    name: str | None = None,
    parent: click.Group | None = None,
    figures: bool = False,
    report: bool = False,
    draw: bool = False,
    more: str = "",
    context_settings: Mapping[str, Any] = MappingProxyType({}),
    **places: Any,
) -> click.Command:
    """The command that calls a function and prints what it returns.

    `words` is the example in the command's help; `more` follows the docstring in the help. Each parameter gets an
    option, and each positional-only parameter an argument. `places` replaces the type of a parameter's usual option, or
    the whole option (as `declare.option` makes it), or leaves the option out (None); for a parameter `**others`, a
    group of options makes the dictionary. If the result can be saved, the command has -o. With `figures` the command
    has --figures, with `report` --report, and with `draw` --draw for the only figure. A parameter `context` gets the
    open simulation context, and `args` the words of a program's command line. If the function returns an int (the exit
    code) or None, nothing more is printed.
    """
    parameters = list(inspect.signature(function).parameters.values())
    others = next((parameter.name for parameter in parameters if parameter.kind is inspect.Parameter.VAR_KEYWORD), "")
    filled = {
        parameter.name: _place(parameter, places.get(parameter.name))
        for parameter in parameters
        if places.get(parameter.name, parameter) is not None
    }
    running = {"context": filled.pop("context")} if "context" in filled else {}
    returned = str(inspect.signature(function).return_annotation)
    saved = returned.partition(" | ")[0] in _SAVED
    printing = {"output": places.get("output", option(types.NEW_FILE))} if saved else {}
    printing |= {"figures": option(types.FOLDER)} if figures else {}
    printing |= {"report": option(types.NEW_FILE)} if report else {}
    printing |= {"draw": option(types.NEW_FILE)} if draw else {}
    printing |= {"as_json": options.JSON} if returned not in _PRINTED else {}

    def call(**given: Any) -> Any:
        asked = {name: given.pop(name) for name in printing}
        if "pd.DataFrame" in returned and asked.get("output") is not None:
            from collwise.studies.present.frame import checked_ending

            checked_ending(asked["output"])
        if asked.get("output") is not None and given.get("script") is not None:
            raise UsageError(f"-o {asked['output']} is for commands that measure, not for --script")
        if (picture := asked.get("draw")) is not None and picture.suffix not in (".png", ".svg"):
            raise UsageError(f"--draw: '{picture}' ends neither in .png nor in .svg")
        if others:
            given |= given.pop(others)
        unnamed: list[Any] = []
        for parameter in parameters:
            if parameter.name in filled and parameter.kind in _UNNAMED:
                value = given.pop(parameter.name)
                unnamed += value if parameter.kind is inspect.Parameter.VAR_POSITIONAL else [value]
        with ExitStack() as stack:
            if running:
                given["context"] = stack.enter_context(given["context"].context())
            result = function(*unnamed, **given)
        return result if returned in _PRINTED else show(result, **asked)

    called = name or function.__name__.replace("_", "-")
    description = f"{_as_typed(description_of(function), filled)}\n\n{more}"
    settings = dict(context_settings) | ({"allow_interspersed_args": False} if "args" in filled else {})
    places = filled | running | printing
    return declare.made(call, places, words, called, parent, description, context_settings=settings)


def _as_typed(text: str, filled: Mapping[str, declare.Filling]) -> str:
    """The text, with options, arguments and commands in place of parameters and functions in backquotes."""

    def typed(found: re.Match[str]) -> str:
        if found[1] in COMMANDS_OF_FUNCTIONS:
            return f"'collwise {COMMANDS_OF_FUNCTIONS[found[1]]}'"
        declared = filled[found[1]].parameters(found[1], "") if found[1] in filled else []
        return (
            " and ".join(
                parameter.name.upper() if isinstance(parameter, click.Argument) else parameter.opts[0]
                for parameter in declared
            )
            or found[0]
        )

    return re.sub(r"`(\w+)`", typed, text)


def command(words: str, name: str | None = None, parent: click.Group | None = None, **attributes: Any) -> Any:
    """Derives a command from the decorated function, as `derived` does.

    The function returns a Shown, which is printed, or None. The default values of its parameters may be the options or
    arguments that fill them.
    """
    return lambda function: derived(function, words, name=name, parent=parent, **attributes)


def _place(parameter: inspect.Parameter, given: declare.Filling | click.ParamType | None) -> Any:
    """The option or argument that fills a parameter; `given` is the whole option, or only its type."""
    if isinstance(found := given or parameter.default, declare.Filling):
        return found
    if given is None and parameter.name in _GROUPS:
        return _GROUPS[parameter.name]
    key, annotation = key_of(parameter), str(parameter.annotation).removesuffix(" | None")
    kind = given or (_BY_NAME[key] if key in _BY_NAME else _BY_ANNOTATION.get(annotation))
    required = parameter.default is inspect.Parameter.empty
    if parameter.kind in _UNNAMED:
        several = {"nargs": -1} if parameter.kind is inspect.Parameter.VAR_POSITIONAL else {}
        if parameter.name == "args":
            return argument(click.UNPROCESSED, **several)
        return argument(kind, required=required, **several)
    if key == "platform" and given is None:
        return options.placed_platform() if required else options.placed_platform(option(types.PLATFORM))
    if annotation == "bool":
        return option(default=parameter.default, is_flag=True if parameter.default is False else None)
    default = None if required else parameter.default
    if annotation in _REPEATED:
        return option(kind, key=key, required=required, multiple=True)
    return option(kind, default, key=key, required=required, in_project=required and key in _IN_PROJECT)


def show(
    result: Any,
    *,
    as_json: bool = False,
    output: Path | None = None,
    figures: Path | None = None,
    report: Path | None = None,
    draw: Path | None = None,
) -> None:
    """Prints a function's result, and writes it into files. Raises CollwiseError if the result has a problem."""
    presented = shown(result)
    pictures: list[Path] = []
    output = output or getattr(result, "usual_file", None)
    if output is not None:
        output = _save(result, output)
    if report is not None:
        write_text(report, markdown_of(presented, titled=True))
    drawn = {} if figures is None else {figures / f"{stem}.png": figure for stem, figure in presented.figures.items()}
    if draw is not None:
        if len(presented.figures) != 1:
            raise UsageError("--draw: this result has no single figure; ask for less")
        (drawn[draw],) = presented.figures.values()
    if figures is not None and not drawn:
        note("nothing to draw")
    if drawn:
        from collwise.studies.figures.style import save

        pictures = [save(make(), path) for path, make in drawn.items()]
    if as_json:
        print_json(presented.rows, presented.facts)
    else:
        for part in presented.parts:
            if isinstance(part, str):
                click.echo(part)
            else:
                print_table(part)
        for path in filter(None, (output, report, *pictures)):
            click.echo(f"written: {path}")
    if presented.problem:
        raise CollwiseError(presented.problem)


def _save(result: Any, path: Path) -> Path | None:
    """Saves the result in its own form, or as rows if the file's name says so. Returns None if there is nothing."""
    from collwise.studies.present import frame

    if hasattr(result, "frame") and path.suffix.lower() in (".csv", ".parquet"):
        frame.save(result.frame(), path)
    elif hasattr(result, "save"):
        return None if result.save(path) == [] else path
    else:
        frame.save(result, path)
    return path
