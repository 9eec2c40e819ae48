"""Types of options, each with errors of one line that say what is valid."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click

from collwise import arguments
from collwise.common.errors import UsageError, unknown_name
from collwise.common.units import parse_size
from collwise.platforms import load


class _Parsed(click.ParamType):
    """An option read by one of our parsers, whose message already says what is valid."""

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return _read(self._parse, value, param) if isinstance(value, str) else value


def _read(parse: Callable[[str], Any], text: str, param: click.Parameter | None) -> Any:
    """What `parse` makes of the text. Raises UsageError, which names the option, too."""
    try:
        return parse(text)
    except UsageError as problem:
        raise UsageError(f"{param.opts[0]}: {problem}" if param is not None else str(problem)) from None


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
        return str(_read(self._known, value, param))

    def _known(self, name: str) -> str:
        if name not in self.choices:
            raise unknown_name(self._kind, name, self.choices)
        return name


def named_choices(kind: str, valid: Iterable[str]) -> click.ParamType:
    """Some of these names, by commas, each once; for another one the error names the nearest. `kind` is a noun."""
    valid = tuple(valid)

    def parse(text: str) -> tuple[str, ...]:
        given = tuple(name.strip() for name in text.split(",") if name.strip())
        for name in given:
            if name not in valid:
                raise unknown_name(kind, name, valid)
        if not given or len(set(given)) < len(given):
            raise UsageError(f"name each {kind} once, by commas; valid: {', '.join(valid)}")
        return given

    return parsed("names", parse)


class FiniteRange(click.FloatRange):
    """A range of numbers without nan and infinities, which click lets through."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Returns the number. Fails for one that is not finite."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number", param, ctx)
        return number


PATH = click.Path(path_type=Path)
SIZE = parsed("size", parse_size)
SIZES = parsed("sizes", arguments.sizes)
COUNTS = parsed("counts", arguments.counts)
NAMES = parsed("names", arguments.names)
COLLECTIVES = parsed("collectives", arguments.collectives)
PLATFORM = parsed("platform", load)
