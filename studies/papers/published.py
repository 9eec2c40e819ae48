"""What papers print, as data: the file published.toml of each study's folder, with typed access to its tables."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

Row = TypeVar("Row")


class Published:
    """The numbers and words of a paper by their names in its file. Raises KeyError for a name that it does not have."""

    def __init__(self, paper: str) -> None:
        file = Path(__file__).parent / paper / "published.toml"
        self._tables = tomllib.loads(file.read_text(encoding="utf-8"))

    def __getitem__(self, name: str) -> Any:
        return self._tables[name]

    def number(self, name: str) -> float:
        """A number that stands alone."""
        return float(self._tables[name])

    def numbers(self, name: str) -> dict[str, float]:
        """A table of numbers."""
        return {key: float(value) for key, value in self._tables[name].items()}

    def words(self, name: str) -> dict[str, str]:
        """A table of texts."""
        return {key: str(value) for key, value in self._tables[name].items()}

    def rows(self, name: str, kind: type[Row]) -> tuple[Row, ...]:
        """The tables of an array."""
        return tuple(row_of(kind, one) for one in self._tables[name])

    def by_name(self, name: str, kind: type[Row]) -> dict[str, Row]:
        """The tables within a table."""
        return {key: row_of(kind, one) for key, one in self._tables[name].items()}


def row_of(kind: type[Row], table: Mapping[str, Any]) -> Row:
    """An object of a class whose parameters are the table's keys; arrays become tuples.

    Raises TypeError where the file has other keys than the class.
    """
    return kind(**{key: _frozen(value) for key, value in table.items()})


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, Iterable) and not isinstance(value, str) else value
