"""Printed results of papers, as data: the file published.toml of each study's folder."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

Row = TypeVar("Row")


def tables_of(paper: str, name: str = "published") -> dict[str, Any]:
    """The numbers, words and tables of a paper, or of measurements for it, by their names in the file."""
    file = Path(__file__).parent / paper / f"{name}.toml"
    return tomllib.loads(file.read_text(encoding="utf-8"))


def row_of(kind: type[Row], table: Mapping[str, Any]) -> Row:
    """An object of a class whose parameters are the table's keys; arrays become tuples.

    Raises TypeError if the file's keys differ from those of the class.
    """
    return kind(**{key: tuple(value) if isinstance(value, list) else value for key, value in table.items()})
