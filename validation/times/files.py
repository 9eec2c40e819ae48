"""Times of several collectives, and the files that hold them: JSON with all digits."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from collwise.common.files import read_json, write_text
from collwise.simulator.timing import Case, Timing
from collwise.validation.times.choice import Choice
from collwise.validation.times.grid import Grid
from collwise.validation.times.times import BYTES, PROCS, State, Times, dataset

_FORMAT = "collwise times 1"


class AllTimes(dict[str, Times]):
    """Times by collective, as returned by the functions that make times."""

    @classmethod
    def of(cls, times: Iterable[Times]) -> AllTimes:
        """These times, each by its collective."""
        return cls({item.collective: item for item in times})

    @classmethod
    def load(cls, path: str | Path) -> AllTimes:
        """The times of a file that `save` wrote. Raises UsageError naming the file."""
        return read_json(
            Path(path),
            "a file of times",
            "make one with 'collwise simulate -o FILE', or import a benchmark's output by 'collwise times import FILE'",
            lambda document: isinstance(document, dict) and document.get("format") == _FORMAT,
            lambda document: cls.of(_times_from(entry, path) for entry in document["times"]),
        )

    def save(self, path: str | Path) -> None:
        """Writes all times into one file, with all digits. Raises UsageError when it cannot be written."""
        document = {"format": _FORMAT, "times": [_document(times) for times in self.values()]}
        write_text(Path(path), json.dumps(document) + "\n")

    def frame(self) -> pd.DataFrame:
        """A row for each time of each collective; see `Times.frame`."""
        frames = [times.frame() for times in self.values()]
        return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()

    def __repr__(self) -> str:
        return "\n".join(map(repr, self.values()))

    def _repr_html_(self) -> str:
        return str(self.frame().to_html(index=False, max_rows=30))


def _document(times: Times) -> dict[str, Any]:
    grid, timed = times.grid, times.grid.timed
    return {
        **{name: getattr(times, name) for name in _TEXTS_AND_NUMBERS},
        **{name: getattr(grid, name) for name in _OF_GRID},
        "choices": [vars(choice) for choice in timed],
        "competing": len(grid.choices),
        "besides": [[procs, size, timed.index(choice)] for procs, size, choice in grid.besides],
        "more_dimensions": {dim: times.data[dim].values.tolist() for dim in times.more_dims},
        "variables": {str(name): _plain(values.values) for name, values in times.data.data_vars.items()},
        "model": None if times.between is None else {"name": times.between.name, **times.between.document()},
        "notes": list(times.notes),
        "failed": [{"case": vars(timing.case), "error": timing.error} for timing in times.failed],
        "facts": dict(times.facts),
    }


_TEXTS_AND_NUMBERS = ("platform", "source", "maker", "margin", "max_procs", "filled_by")
_OF_GRID = (
    *("collective", "procs", "message_bytes", "processes_per_node", "root", "for_openmpi"),
    "memory_bytes_per_node",
)


def _plain(values: Any) -> Any:
    """An array as nested lists in which nan is null and infinity a text, since JSON has neither."""
    if isinstance(values, np.ndarray):
        return [_plain(value) for value in values] if values.ndim > 1 else [_plain(value) for value in values.tolist()]
    if isinstance(values, float) and not math.isfinite(values):
        return None if math.isnan(values) else "unknown"
    return values


def _array(values: Any, shape: tuple[int, ...]) -> Any:
    """The array from which `_plain` made these nested lists. Raises ValueError if it does not have this shape."""
    flat = np.array(values, dtype=object).reshape(-1)
    numbers = [math.nan if item is None else math.inf if item == "unknown" else item for item in flat]
    return np.array(numbers, dtype=float).reshape(shape)


def _times_from(entry: Mapping[str, Any], path: str | Path) -> Times:
    from collwise.validation.fitting.models_by_name import model_from_document

    timed = [Choice(**item) for item in entry["choices"]]
    besides = tuple((int(procs), int(size), timed[index]) for procs, size, index in entry["besides"])
    places = {name: entry[name] for name in _OF_GRID}
    places |= {name: tuple(map(int, entry[name])) for name in (PROCS, BYTES)}
    grid = Grid(choices=tuple(timed[: entry["competing"]]), besides=besides, **places)
    if [*grid.timed] != timed:
        raise ValueError(
            "its choices are not those of its grid: first the competing choices, then those that are only timed"
        )
    more = entry["more_dimensions"]
    shape = (len(timed), len(grid.procs), len(grid.message_bytes), *map(len, more.values()))
    variables = {name: _array(values, shape) for name, values in entry["variables"].items()}
    variables["state"] = np.array([State(int(item)) for item in variables["state"].flat], np.int8).reshape(shape)
    needed = {name: variables[name] for name in ("seconds", "half_width_seconds", "state")}
    return Times(
        grid,
        data=dataset(grid, {**needed, **variables}, more),
        between=None if entry["model"] is None else model_from_document(entry["model"], path),
        notes=tuple(entry["notes"]),
        failed=tuple(Timing(Case(**item["case"]), math.nan, error=item["error"]) for item in entry["failed"]),
        facts=entry["facts"],
        **{name: entry[name] for name in _TEXTS_AND_NUMBERS},
    )
