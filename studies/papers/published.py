"""Printed results of papers, as data: the file published.toml of each study's folder."""

from __future__ import annotations

import gzip
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd

Row = TypeVar("Row")


def tables_of(paper: str, name: str = "published") -> dict[str, Any]:
    """The numbers, words and tables of a paper, or of measurements for it, by their names in the file."""
    file = Path(__file__).parent / paper / f"{name}.toml"
    return tomllib.loads(file.read_text(encoding="utf-8"))


def measured_for(paper: str, name: str) -> tuple[pd.DataFrame, dict[str, str]]:
    """Times that were measured for a paper's page, and facts on the measurement: `measured_on` and `load`."""
    file = Path(__file__).parent / paper / f"{name}.csv.gz"
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        facts = [line[2:] for line in lines if line.startswith("# ")][1:]
    return pd.read_csv(file, comment="#"), tomllib.loads("".join(facts))


def row_of(kind: type[Row], table: Mapping[str, Any]) -> Row:
    """An object of a class whose parameters are the table's keys; arrays become tuples.

    Raises TypeError if the file's keys differ from those of the class.
    """
    return kind(**{key: tuple(value) if isinstance(value, list) else value for key, value in table.items()})
