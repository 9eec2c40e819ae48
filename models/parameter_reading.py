"""Reading parameter files key by key: every error names the file, the key and what is valid there."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from collwise.common.errors import UsageError
from collwise.models.piecewise import Array, PiecewiseLinear

_MOST_SHOWN = 40


def read_document(path: str | Path) -> dict[str, Any]:
    """A TOML file as a dictionary. Raises UsageError, naming the file."""
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as problem:
        raise UsageError(f"cannot read {path}: {problem.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise UsageError(f"{path}: broken TOML: {problem}") from None


class Keys:
    """A table of a file, its `values`. `name` is its dotted place, empty for the file. All methods raise UsageError."""

    def __init__(self, path: str | Path, values: Any, name: str = "") -> None:
        self.path, self._name = path, name
        if not isinstance(values, Mapping):
            raise UsageError(f"{path}: not a parameter file: {name} = {_shown(values)}; valid: a table")
        self.values: Mapping[str, Any] = values

    def wrong(self, key: str, valid: str) -> UsageError:
        """The error for what stands under the key."""
        return UsageError(
            f"{self.path}: not a parameter file: {self._place(key)} = {_shown(self.get(key))}; valid: {valid}"
        )

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def get(self, key: str) -> Any:
        """What stands under the key, whatever it is."""
        if key not in self.values:
            raise UsageError(f"{self.path}: not a parameter file: {self._place(key)} is missing")
        return self.values[key]

    def table(self, key: str) -> Keys:
        """The table of that name."""
        return Keys(self.path, self.get(key), self._place(key))

    def entry(self, key: str, values: Any, place: str) -> Keys:
        """A table within the lists under the key, `place` being where: '[0][1]'."""
        return Keys(self.path, values, self._place(key) + place)

    def text(self, key: str) -> str:
        """A string."""
        value = self.get(key)
        if not isinstance(value, str):
            raise self.wrong(key, "a text")
        return value

    def whole(self, key: str, least: int) -> int:
        """A whole number, `least` or more."""
        value = self.get(key)
        if type(value) is not int or value < least:
            raise self.wrong(key, f"a whole number from {least} on")
        return value

    def number(self, key: str, least: float = -math.inf) -> float:
        """A finite number, `least` or more."""
        value = self.get(key)
        if not _is_number(value) or value < least:
            raise self.wrong(key, "a number" if least == -math.inf else f"a number from {least:g} on")
        return float(value)

    def array(self, key: str, count: int, dimensions: int) -> Array:
        """Finite numbers, `count` of them in each of one or two dimensions."""
        value = self.get(key)
        rows = value if dimensions == 2 else [value]
        if dimensions == 2 and not _is_list(value, count):
            raise self.wrong(key, f"{count} rows of {count} numbers, one a process")
        for row in rows:
            if not _is_list(row, count) or not all(map(_is_number, row)):
                lines = f"{count} rows of " if dimensions == 2 else ""
                raise self.wrong(key, f"{lines}{count} numbers, one a process")
        return np.array(value, dtype=float)

    def function(self, key: str) -> PiecewiseLinear:
        """A function of the message size: a table of ascending `message_bytes` and of as many `seconds`."""
        knots = self.table(key)
        sizes, seconds = knots.get("message_bytes"), knots.get("seconds")
        for name, values in (("message_bytes", sizes), ("seconds", seconds)):
            if not isinstance(values, list) or not values or not all(map(_is_number, values)):
                raise knots.wrong(name, "a list of numbers")
        if sizes[0] < 0 or any(a >= b for a, b in pairwise(sizes)):
            raise knots.wrong("message_bytes", "sizes from 0 on, ascending")
        if len(seconds) != len(sizes):
            raise knots.wrong("seconds", f"one number a size, {len(sizes)} of them")
        return PiecewiseLinear(tuple(map(float, sizes)), tuple(map(float, seconds)))

    def _place(self, key: str) -> str:
        return f"{self._name}.{key}" if self._name else key


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def _is_list(value: Any, count: int) -> bool:
    return isinstance(value, list) and len(value) == count


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."
