"""Parameter files of point-to-point models, in readable TOML, and files of LMO's thresholds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import tomli_w

from collwise.common.errors import UsageError, unknown_name
from collwise.models.hockney import Hockney, HockneyBySize
from collwise.models.lmo import LMO, Thresholds
from collwise.models.loggp import LogGP
from collwise.models.parameter_reading import Keys, ParameterFile, knots, read_document
from collwise.models.plogp import HeterogeneousPLogP, PLogP

FORMAT = 2

Parameters = Hockney | HockneyBySize | LogGP | PLogP | HeterogeneousPLogP | LMO
FAMILIES: Mapping[str, Any] = MappingProxyType(
    {
        "hockney": Hockney,
        "hockney_by_size": HockneyBySize,
        "logp": LogGP,
        "loggp": LogGP,
        "plogp": PLogP,
        "lmo": LMO,
    }
)
"""The class of each family's parameters, means over pairs; heterogeneous PLogP has a class of its own."""

_NUMBERS_AND_TEXTS = ("procedure", "platform", "made_by", "procs", "eager_limit_bytes", "reduce_seconds_per_byte")
_THRESHOLDS = tuple(one.name for one in fields(Thresholds))
_PLOGP_FUNCTIONS = ("send_overhead", "receive_overhead", "gap")


@dataclass(frozen=True)
class FittedParameters(ParameterFile):
    """The parameters of a family of models on a platform and their origin. Times in seconds, sizes in bytes.

    `procs` processes took part in the experiments, which were `measurements` with repetitions and took `seconds` on the
    platform.
    """

    family: str
    procedure: str
    platform: str
    made_by: str
    procs: int
    eager_limit_bytes: int
    reduce_seconds_per_byte: float
    parameters: Parameters
    measurements: int = 0
    seconds: float = 0.0
    notes: tuple[str, ...] = ()

    def as_document(self) -> dict[str, Any]:
        """The file's content as plain dictionaries and lists."""
        document: dict[str, Any] = {
            "format": FORMAT,
            "model": self.family,
            **{name: getattr(self, name) for name in _NUMBERS_AND_TEXTS},
            "effort": {"measurements": self.measurements, "seconds": self.seconds},
            "parameters": _parameters_document(self.parameters),
        }
        if self.notes:
            document["notes"] = list(self.notes)
        if isinstance(self.parameters, LMO):
            document["thresholds"] = _thresholds_document(self.parameters.thresholds)
        return document

    @classmethod
    def from_document(cls, document: Mapping[str, Any], path: str | Path) -> FittedParameters:
        """The parameters in what `read_document` gave. Raises UsageError."""
        if document.get("format") != FORMAT:
            raise UsageError(f"{path}: not a parameter file; make one with: collwise fit --model NAME")
        keys = Keys(path, document)
        family = keys.text("model")
        if family not in FAMILIES:
            raise UsageError(f"{path}: {unknown_name('model', family, FAMILIES)}")
        procs, effort = keys.whole("procs", 2), keys.table("effort")
        notes = keys.get("notes") if "notes" in keys else []
        if not isinstance(notes, list):
            raise keys.wrong("notes", "a list of texts")
        return cls(
            family=family,
            procedure=keys.text("procedure"),
            platform=keys.text("platform"),
            made_by=keys.text("made_by"),
            procs=procs,
            eager_limit_bytes=keys.whole("eager_limit_bytes", 0),
            reduce_seconds_per_byte=keys.number("reduce_seconds_per_byte", 0),
            parameters=_parameters_from(keys, family, procs),
            measurements=effort.whole("measurements", 0),
            seconds=effort.number("seconds", 0),
            notes=tuple(map(str, notes)),
        )


def _parameters_document(parameters: Parameters) -> dict[str, Any]:
    if isinstance(parameters, HockneyBySize):
        return {"time": knots(parameters.time)}
    if isinstance(parameters, PLogP):
        return _plogp_document(parameters)
    if isinstance(parameters, HeterogeneousPLogP):
        rows = [[{} if pair is None else _plogp_document(pair) for pair in row] for row in parameters.pairs]
        return {"pairs": rows}
    names = parameters.DIMENSIONS
    return {name: np.asarray(getattr(parameters, name), dtype=float).tolist() for name in names}


def _plogp_document(pair: PLogP) -> dict[str, Any]:
    return {
        "latency_seconds": pair.latency_seconds,
        **{name: knots(getattr(pair, name)) for name in _PLOGP_FUNCTIONS},
    }


def _parameters_from(keys: Keys, family: str, procs: int) -> Parameters:
    values, wanted = keys.table("parameters"), FAMILIES[family]
    if wanted is HockneyBySize:
        return HockneyBySize(values.function("time"))
    if wanted is PLogP:
        return _plogp_pairs(values, procs) if "pairs" in values else _plogp_from(values)
    dimensions = wanted.DIMENSIONS
    # All are single numbers or all are arrays, as the first one is.
    if isinstance(values.get(next(iter(dimensions))), list):
        found: dict[str, Any] = {name: values.array(name, procs, count) for name, count in dimensions.items()}
    else:
        found = {name: values.number(name) for name in dimensions}
    if wanted is LMO and "thresholds" in keys:
        found["thresholds"] = _thresholds_from(keys.table("thresholds"))
    parameters: Parameters = wanted(**found)
    return parameters


def _plogp_pairs(values: Keys, procs: int) -> HeterogeneousPLogP:
    rows = values.get("pairs")
    square = isinstance(rows, list) and all(isinstance(row, list) and len(row) == procs for row in rows)
    if not square or len(rows) != procs:
        raise values.wrong("pairs", f"{procs} rows of {procs} tables")

    def pair(i: int, j: int) -> PLogP | None:
        return None if i == j else _plogp_from(values.entry("pairs", rows[i][j], f"[{i}][{j}]"))

    return HeterogeneousPLogP(tuple(tuple(pair(i, j) for j in range(procs)) for i in range(procs)))


def _plogp_from(values: Keys) -> PLogP:
    return PLogP(values.number("latency_seconds"), *(values.function(name) for name in _PLOGP_FUNCTIONS))


def read_thresholds(path: Path) -> Thresholds:
    """The thresholds in the table [thresholds] of a file, in bytes; those that it does not name are None.

    Raises UsageError, naming the file and what is wrong.
    """
    keys = Keys(path, read_document(path))
    if "thresholds" not in keys:
        raise UsageError(
            f"{path}: no table [thresholds]; make one with 'collwise fit --model lmo' or 'collwise irregular-regions'"
        )
    return _thresholds_from(keys.table("thresholds"))


def thresholds_text(thresholds: Thresholds, comment: str) -> str:
    """A file that `read_thresholds` reads; `comment` is one line on their origin."""
    return f"# {comment}\n{tomli_w.dumps({'thresholds': _thresholds_document(thresholds)})}"


def _thresholds_document(thresholds: Thresholds) -> dict[str, int]:
    return {name: size for name, size in vars(thresholds).items() if size is not None}


def _thresholds_from(keys: Keys) -> Thresholds:
    for name in keys.values:
        if name not in _THRESHOLDS:
            raise UsageError(f"{keys.path}: {unknown_name('threshold', name, _THRESHOLDS)}")
    found = Thresholds(**{name: keys.whole(name, 1) for name in keys.values})
    first, last = found.gather_irregular_from_bytes, found.gather_regular_from_bytes
    if first is not None and last is not None and last < first:
        raise keys.wrong("gather_regular_from_bytes", f"gather_irregular_from_bytes, {first}, or more")
    return found
