"""The LMO model's thresholds in a file: the table [thresholds] that fit --model lmo and irregular-regions write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from collwise.common.errors import UsageError, unknown_name
from collwise.models.lmo import Thresholds
from collwise.models.parameter_reading import read_document

_NAMES = tuple(field.name for field in fields(Thresholds))
_MAKE_ONE = "make one with: collwise fit --model lmo, or collwise irregular-regions"


def read_thresholds(path: Path) -> Thresholds:
    """The thresholds of a file, in bytes; what the file does not name is None.

    Raises UsageError, naming the file and what is wrong, where it cannot be read, has no such table, or holds what is
    no threshold.
    """
    table = read_document(path).get("thresholds")
    if not isinstance(table, dict):
        raise UsageError(f"{path}: no table [thresholds]; {_MAKE_ONE}")
    return thresholds_from(table, path)


def thresholds_from(table: Mapping[str, Any], path: str | Path) -> Thresholds:
    """The same from the table of a file that was read."""
    for name, value in table.items():
        if name not in _NAMES:
            raise UsageError(f"{path}: {unknown_name('threshold', name, _NAMES)}")
        if type(value) is not int or value < 1:
            raise UsageError(f"{path}: {name} is {value!r}; it is a whole number of bytes from 1 on")
    found = Thresholds(**table)
    first, last = found.gather_irregular_from_bytes, found.gather_regular_from_bytes
    if first is not None and last is not None and last < first:
        raise UsageError(f"{path}: gather_regular_from_bytes is {last}, below gather_irregular_from_bytes, {first}")
    return found


def thresholds_text(thresholds: Thresholds, comment: str) -> str:
    """A file that `read_thresholds` reads; `comment` is one line on where they come from."""
    found = {name: size for name, size in vars(thresholds).items() if size is not None}
    return "\n".join([f"# {comment}", "[thresholds]", *(f"{name} = {size}" for name, size in found.items()), ""])
