"""Reads documents such as TOML and JSON key by key; every error names the file, the key and the valid values."""

from __future__ import annotations

import math
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

from collwise.common.errors import UsageError
from collwise.common.files import read_text

_MAX_SHOWN = 40
# The limits of numbers in C and numpy: whole numbers are below the first; other numbers are at most the second.
_END_OF_WHOLE, _LARGEST = 2**63, sys.float_info.max
_Read = TypeVar("_Read")


def read_toml(path: str | Path) -> dict[str, Any]:
    """A TOML file as a dictionary."""
    try:
        return tomllib.loads(read_text(Path(path)))
    except tomllib.TOMLDecodeError as problem:
        raise UsageError(f"{path}: broken TOML: {problem}") from None


class Keys:
    """A table of a file: its `values` and its dotted name, empty for the whole file. Methods raise UsageError."""

    def __init__(self, path: str | Path, values: Any, name: str = "") -> None:
        self.path, self._name = path, name
        if not isinstance(values, Mapping):
            raise UsageError(f"{path}: {name} = {_shown(values)}; valid: a table")
        self.values: Mapping[str, Any] = values

    def wrong(self, key: str, valid: str) -> UsageError:
        """The error for the value of the key."""
        return UsageError(f"{self.path}: {self._full_name(key)} = {_shown(self.get(key))}; valid: {valid}")

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def get(self, key: str) -> Any:
        """The value of the key, whatever it is."""
        if key not in self.values:
            raise UsageError(f"{self.path}: {self._full_name(key)} is missing")
        return self.values[key]

    def table(self, key: str) -> Keys:
        """The table of that name."""
        return Keys(self.path, self.get(key), self._full_name(key))

    def each(self, read: Callable[[Keys], _Read]) -> dict[str, _Read]:
        """Reads each table in this one, and returns the results by the tables' names."""
        return {name: read(self.table(name)) for name in self.values}

    def tables(self, key: str, read: Callable[[Keys], _Read]) -> dict[str, _Read]:
        """Reads each table in the table of that name, if there is one, and returns the results by name."""
        return self.table(key).each(read) if key in self else {}

    def entries(self, key: str) -> Iterator[Keys]:
        """The tables of a list, numbered from 1."""
        value = self.get(key)
        if not isinstance(value, list):
            raise self.wrong(key, "a list of tables")
        return (self.entry(key, item, f"[{number}]") for number, item in enumerate(value, start=1))

    def entry(self, key: str, values: Any, index: str) -> Keys:
        """A table within the lists under the key; `index` says where, for instance '[0][1]'."""
        return Keys(self.path, values, self._full_name(key) + index)

    def text(self, key: str) -> str:
        """A string."""
        value = self.get(key)
        if not isinstance(value, str):
            raise self.wrong(key, "a text")
        return value

    def truth(self, key: str) -> bool:
        """True or false."""
        value = self.get(key)
        if not isinstance(value, bool):
            raise self.wrong(key, "true or false")
        return value

    def whole(self, key: str, minimum: int = 0) -> int:
        """A whole number, `minimum` or more."""
        value = self.get(key)
        if type(value) is not int or not minimum <= value < _END_OF_WHOLE:
            raise self.wrong(key, f"a whole number of at least {minimum}")
        return value

    def number(self, key: str, minimum: float = -math.inf) -> float:
        """A finite number, `minimum` or more."""
        value = self.get(key)
        if not _is_number(value) or value < minimum:
            raise self.wrong(key, "a number" if minimum == -math.inf else f"a number of at least {minimum:g}")
        return float(value)

    def numbers(self, key: str, minimum: float = -math.inf) -> tuple[float, ...]:
        """A list of finite numbers, each `minimum` or more."""
        return self._numbers(key, self.get(key), minimum)

    def rows(self, key: str, count: int, minimum: float = -math.inf) -> tuple[tuple[float, ...], ...]:
        """`count` lists of finite numbers of at least `minimum`, equally long and not empty."""
        value = self.get(key)
        if not _is_list(value, count):
            raise self.wrong(key, f"{count} lists of numbers")
        found = tuple(self._numbers(key, row, minimum) for row in value)
        if len(set(map(len, found))) != 1 or not found[0]:
            raise self.wrong(key, f"{count} lists of numbers, all equally long")
        return found

    def _numbers(self, key: str, value: Any, minimum: float) -> tuple[float, ...]:
        if not isinstance(value, list) or not all(_is_number(item) and item >= minimum for item in value):
            raise self.wrong(key, "a list of numbers" + ("" if minimum == -math.inf else f" of at least {minimum:g}"))
        return tuple(map(float, value))

    def by_process(self, key: str, count: int, dimensions: int) -> list[Any]:
        """A list of `count` finite numbers, or `count` such lists if `dimensions` is 2."""
        value = self.get(key)
        rows = value if dimensions == 2 else [value]
        if dimensions == 2 and not _is_list(value, count):
            raise self.wrong(key, f"{count} rows of {count} numbers, one per process")
        for row in rows:
            if not _is_list(row, count) or not all(map(_is_number, row)):
                lines = f"{count} rows of " if dimensions == 2 else ""
                raise self.wrong(key, f"{lines}{count} numbers, one per process")
        return list(value)

    def sizes(self, key: str) -> tuple[float, ...]:
        """A list of at least one size, ascending, each at least 0."""
        found = self.numbers(key)
        if not found or found[0] < 0 or any(a >= b for a, b in pairwise(found)):
            raise self.wrong(key, "ascending sizes of at least 0")
        return found

    def _full_name(self, key: str) -> str:
        return f"{self._name}.{key}" if self._name else key


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and -_LARGEST <= value <= _LARGEST


def _is_list(value: Any, count: int) -> bool:
    return isinstance(value, list) and len(value) == count


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."
