"""Rows of any kind, in a DataFrame whose column names determine how cells are written.

The DataFrame's `attrs` may have a `title`, the `columns` that people see, `lines` below the table, `facts` for
programs, and a `problem`, which ends the command with exit code 1.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from collwise.common.errors import UsageError
from collwise.common.files import write_bytes
from collwise.common.units import format_seconds, format_size
from collwise.studies.present.shown import Shown, Table, cut

_HEADS = {"procs": "P", "message_bytes": "m", "segment_bytes": "segment", "half_width_seconds": "+-"}


def shown(found: pd.DataFrame) -> Shown:
    """A table with the first rows for people, and all rows for programs."""
    said = found.attrs
    columns = said.get("columns") or list(found)
    rows = found[columns].itertuples(index=False, name=None)
    cells = [[_cell(name, value) for name, value in zip(columns, row, strict=True)] for row in rows]
    numbers = [name for name in columns if found[name].dtype.kind in "iuf"]
    left = columns.index(numbers[0]) if numbers else len(columns)
    heads = [_HEADS.get(name, name.replace("_", " ")) for name in columns]
    table = Table(said.get("title", ""), heads, cells, left, wrap=not numbers)
    return Shown(
        [*cut(table), *said.get("lines", ())],
        found.to_dict("records"),
        said.get("facts", {}),
        problem=said.get("problem", ""),
    )


def _cell(column: str, value: Any) -> object:
    if isinstance(value, Mapping):
        return ", ".join(name for name, has in value.items() if has) or "-"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "-"
    if isinstance(value, bool):
        return "yes" if value else "NO" if column == "ok" else "no"
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "-"
    if column.endswith("_bytes"):
        return format_size(value) if value or column == "message_bytes" else "-"
    if column.endswith("seconds"):
        return format_seconds(value)
    if isinstance(value, float):
        return f"{value * 100:.4f} %" if column.endswith("error") else f"{value:.6g}"
    return value


def checked_ending(path: Path) -> str:
    """The ending of the file's name. Raises UsageError unless it is .csv, .json or .parquet."""
    ending = path.suffix.lower()
    if ending not in (".csv", ".json", ".parquet"):
        raise UsageError(f"-o {path}: the name must end in .csv, .json or .parquet")
    return ending


def save(found: pd.DataFrame, path: Path) -> None:
    """Writes the rows in the format of the file's ending: .csv, .json (a list of records) or .parquet (with pyarrow).

    A confidence interval of unknown width is inf in CSV and Parquet, null in JSON; objects are JSON text in CSV and
    Parquet. Raises UsageError for another ending, for a file that cannot be written, and if pyarrow is missing.
    """
    ending = checked_ending(path)
    if ending == ".json":
        write_bytes(path, (found.to_json(orient="records", indent=1, double_precision=15) + "\n").encode())
        return
    flat = found.map(lambda cell: json.dumps(cell, sort_keys=True) if isinstance(cell, Mapping) else cell)
    if ending == ".csv":
        write_bytes(path, flat.to_csv(index=False).encode())
        return
    try:
        write_bytes(path, flat.to_parquet(index=False, engine="pyarrow"))
    except ImportError:
        raise UsageError("Parquet needs the package pyarrow; install it (pip install pyarrow), or write CSV") from None
