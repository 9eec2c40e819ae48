"""Texts of options, from options.toml, for the help of commands and the docstrings of public functions."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from inspect import Parameter, cleandoc, signature
from pathlib import Path
from typing import Any

_TEXTS: dict[str, Any] = tomllib.loads(Path(__file__).with_name("options.toml").read_text(encoding="utf-8"))
COMMANDS_OF_FUNCTIONS: dict[str, str] = _TEXTS["functions"]
"""The words of a command by the name of its public function, if the two differ."""
_KEYS = {"pieces": "pieces of segments", "between_segment": "pieces of segments"}
"""The entries in options.toml of parameters that are not called like their entry."""
_REST = re.compile(r"\n\n(?=Parameters:|Returns |Raises |>>> )")


def text_of(command: str, name: str) -> dict[str, str]:
    """The texts of an option of a command: `help`, and `names`, `metavar` and `default` if options.toml has them."""
    found: dict[str, str] = {}
    for section in ("python", "every", command.partition(" ")[0], command):
        text = _TEXTS.get(section, {}).get(name, {})
        given = {"help": text} if isinstance(text, str) else text
        if "help" in given:
            found.pop("default", None)
        found |= given
    return found


def key_of(parameter: Parameter) -> str:
    """The entry of a function's parameter in options.toml."""
    name, annotation = parameter.name, str(parameter.annotation)
    if name == "collective" and "Names" in annotation:
        return "collectives"
    if name == "procs" and "int" in annotation:
        return "number of processes"
    return _KEYS.get(name, name)


def description_of(function: Callable[..., Any]) -> str:
    """The beginning of a docstring, up to parameters, results, errors and examples."""
    return _REST.split(cleandoc(function.__doc__ or ""))[0]


def with_parameters(function: Callable[..., Any]) -> None:
    """Adds the texts of parameters in options.toml to a public function's docstring, if it lists no parameters."""
    text = cleandoc(function.__doc__ or "")
    if "Parameters:" in text:
        return
    command = COMMANDS_OF_FUNCTIONS.get(function.__name__, function.__name__.replace("_", "-"))
    lines = []
    for parameter in signature(function).parameters.values():
        about = text_of(command, key_of(parameter)) | text_of("python", parameter.name)
        said = about.get("help", "")
        if said and about.get("default") and parameter.default is None:
            said += f" Default: {about['default']}."
        if said:
            lines.append(f"    `{parameter.name}`: {' '.join(said.split())}")
    start = description_of(function)
    function.__doc__ = start + "\n\nParameters:\n" + "\n".join(lines) + text[len(start) :]
