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
_REST = re.compile(r"\n\n(?=Parameters:|Returns |Raises |>>> )")


def text_of(command: str, name: str) -> dict[str, str]:
    """The texts of an option of a command: `help`, and `names` and `metavar` if options.toml has them.

    The help ends with the `default`, if there is one.
    """
    found: dict[str, str] = {}
    for section in ("python", "every", command.partition(" ")[0], command):
        text = _TEXTS.get(section, {}).get(name, {})
        given = {"help": text} if isinstance(text, str) else text
        if "help" in given:
            found.pop("default", None)
        found |= given
    if default := found.pop("default", ""):
        found["help"] = f"{found['help']} Default: {default}."
    return found


def key_of(parameter: Parameter) -> str:
    """The entry of a function's parameter in options.toml."""
    several = parameter.name == "collective" and "Names" in str(parameter.annotation)
    return "collectives" if several else parameter.name


def description_of(function: Callable[..., Any]) -> str:
    """The beginning of a docstring, up to parameters, results, errors and examples."""
    return _REST.split(cleandoc(function.__doc__ or ""))[0]


def with_parameters(function: Callable[..., Any]) -> None:
    """Adds the texts of parameters in options.toml to a public function's docstring, if it lists no parameters."""
    text = cleandoc(function.__doc__ or "")
    if "Parameters:" in text:
        return
    command = COMMANDS_OF_FUNCTIONS.get(function.__name__, function.__name__.replace("_", "-"))
    about = {
        parameter.name: text_of(command, key_of(parameter)).get("help", "")
        for parameter in signature(function).parameters.values()
    }
    lines = [f"    `{name}`: {' '.join(said.split())}" for name, said in about.items() if said]
    start = description_of(function)
    function.__doc__ = start + "\n\nParameters:\n" + "\n".join(lines) + text[len(start) :]
