"""Parameter files of point-to-point models: readable TOML, one model a file, and what it was estimated from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w

from collwise.common.errors import UsageError, unknown_name
from collwise.common.files import write_text
from collwise.models.hockney import Hockney, HockneyBySize
from collwise.models.lmo import LMO, Thresholds
from collwise.models.loggp import LogGP
from collwise.models.parameter_reading import Keys, read_document
from collwise.models.piecewise import PiecewiseLinear
from collwise.models.plogp import HeterogeneousPLogP, PLogP
from collwise.models.point_to_point import Parameters
from collwise.models.thresholds_file import thresholds_from

FORMAT = 2
FAMILIES = ("hockney", "hockney_by_size", "logp", "loggp", "plogp", "lmo")

# By parameter: over how many dimensions of processes it goes where nodes differ.
_HOCKNEY_KEYS = {"alpha_seconds": 2, "beta_seconds_per_byte": 2}
_LOGGP_KEYS = {
    "latency_seconds": 2,
    "send_overhead_seconds": 1,
    "receive_overhead_seconds": 1,
    "gap_seconds": 2,
    "gap_seconds_per_byte": 2,
}
_LMO_KEYS = {
    "processor_seconds": 1,
    "processor_seconds_per_byte": 1,
    "latency_seconds": 2,
    "network_seconds_per_byte": 2,
}
_PLOGP_FUNCTIONS = ("send_overhead", "receive_overhead", "gap")


@dataclass(frozen=True)
class FittedParameters:
    """A model's parameters on a platform and where they come from. Times in seconds, sizes in bytes.

    `family` is one of FAMILIES; `procs` took part in the experiments, of which there were `measurements`, repetitions
    included, in `seconds` on the platform.
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
    notes: tuple[str, ...] = field(default=())

    def save(self, path: str | Path) -> None:
        """Writes the TOML file. Raises UsageError when it cannot be written."""
        write_text(Path(path), tomli_w.dumps(self.as_document()))

    def as_document(self) -> dict[str, Any]:
        """What `save` writes, as plain dictionaries and lists."""
        document: dict[str, Any] = {
            "format": FORMAT,
            "model": self.family,
            "procedure": self.procedure,
            "platform": self.platform,
            "made_by": self.made_by,
            "procs": self.procs,
            "eager_limit_bytes": self.eager_limit_bytes,
            "reduce_seconds_per_byte": self.reduce_seconds_per_byte,
            "effort": {"measurements": self.measurements, "seconds": self.seconds},
            "parameters": _parameters_document(self.parameters),
        }
        if self.notes:
            document["notes"] = list(self.notes)
        if isinstance(self.parameters, LMO):
            thresholds = vars(self.parameters.thresholds)
            document["thresholds"] = {name: size for name, size in thresholds.items() if size is not None}
        return document

    @classmethod
    def load(cls, path: str | Path) -> FittedParameters:
        """Reads a file that `save` wrote. Raises UsageError, naming the file and what is wrong."""
        return cls.from_document(read_document(path), path)

    @classmethod
    def from_document(cls, document: Mapping[str, Any], path: str | Path) -> FittedParameters:
        """The same from what `read_document` gave. Raises UsageError."""
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
        return {"time": _knots(parameters.time)}
    if isinstance(parameters, PLogP):
        return _plogp_document(parameters)
    if isinstance(parameters, HeterogeneousPLogP):
        rows = [[{} if pair is None else _plogp_document(pair) for pair in row] for row in parameters.pairs]
        return {"pairs": rows}
    names = {Hockney: _HOCKNEY_KEYS, LogGP: _LOGGP_KEYS, LMO: _LMO_KEYS}[type(parameters)]
    return {name: np.asarray(getattr(parameters, name), dtype=float).tolist() for name in names}


def _plogp_document(pair: PLogP) -> dict[str, Any]:
    return {
        "latency_seconds": pair.latency_seconds,
        **{name: _knots(getattr(pair, name)) for name in _PLOGP_FUNCTIONS},
    }


def _knots(function: PiecewiseLinear) -> dict[str, list[float]]:
    return {"message_bytes": list(function.message_bytes), "seconds": list(function.seconds)}


def _parameters_from(keys: Keys, family: str, procs: int) -> Parameters:
    values = keys.table("parameters")
    if family == "hockney":
        return Hockney(**_arrays(values, _HOCKNEY_KEYS, procs))
    if family == "hockney_by_size":
        return HockneyBySize(values.function("time"))
    if family in ("logp", "loggp"):
        return LogGP(**_arrays(values, _LOGGP_KEYS, procs))
    if family == "lmo":
        return LMO(**_arrays(values, _LMO_KEYS, procs), thresholds=_thresholds(keys))
    return _plogp_pairs(values, procs) if "pairs" in values else _plogp_from(values)


def _arrays(values: Keys, names: Mapping[str, int], procs: int) -> dict[str, Any]:
    """All single numbers, or all for every process: as the first of them is."""
    if not isinstance(values.get(next(iter(names))), list):
        return {name: values.number(name) for name in names}
    return {name: values.array(name, procs, dimensions) for name, dimensions in names.items()}


def _thresholds(keys: Keys) -> Thresholds:
    return thresholds_from(keys.table("thresholds").values, keys.path) if "thresholds" in keys else Thresholds()


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
