"""Parameter files of point-to-point models: readable TOML, one model a file, and what it was estimated from."""

from __future__ import annotations

import math
import tomllib
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
from collwise.models.piecewise import PiecewiseLinear
from collwise.models.plogp import HeterogeneousPLogP, PLogP
from collwise.models.point_to_point import Parameters

FORMAT = 2
FAMILIES = ("hockney", "hockney_by_size", "logp", "loggp", "plogp", "lmo")

_LOGGP_KEYS = (
    "latency_seconds",
    "send_overhead_seconds",
    "receive_overhead_seconds",
    "gap_seconds",
    "gap_seconds_per_byte",
)
_LMO_KEYS = (
    "processor_seconds",
    "processor_seconds_per_byte",
    "latency_seconds",
    "network_seconds_per_byte",
)


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
        try:
            if document.get("format") != FORMAT:
                raise UsageError(
                    f"{path}: not a parameter file of format {FORMAT}; make one with: collwise fit --model"
                )
            family = document["model"]
            if family not in FAMILIES:
                raise unknown_name(f"{path}: model", str(family), FAMILIES)
            thresholds = Thresholds(**document.get("thresholds", {}))
            _check_sizes(vars(thresholds))
            return cls(
                family=family,
                procedure=str(document["procedure"]),
                platform=str(document["platform"]),
                made_by=str(document["made_by"]),
                procs=int(document["procs"]),
                eager_limit_bytes=int(document["eager_limit_bytes"]),
                reduce_seconds_per_byte=_number("reduce_seconds_per_byte", document["reduce_seconds_per_byte"]),
                parameters=_parameters_from(family, document["parameters"], thresholds),
                measurements=int(document["effort"]["measurements"]),
                seconds=_number("effort seconds", document["effort"]["seconds"]),
                notes=tuple(map(str, document.get("notes", ()))),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as problem:
            raise UsageError(f"{path}: not a parameter file: missing or wrong {problem}") from None


def read_document(path: str | Path) -> dict[str, Any]:
    """A TOML file as a dictionary. Raises UsageError, naming the file."""
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as problem:
        raise UsageError(f"cannot read {path}: {problem.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise UsageError(f"{path}: broken TOML: {problem}") from None


def _parameters_document(parameters: Parameters) -> dict[str, Any]:
    if isinstance(parameters, Hockney):
        return _plain(vars(parameters))
    if isinstance(parameters, HockneyBySize):
        return {"time": _knots(parameters.time)}
    if isinstance(parameters, LogGP):
        return _plain(vars(parameters))
    if isinstance(parameters, PLogP):
        return _plogp_document(parameters)
    if isinstance(parameters, HeterogeneousPLogP):
        rows = [[{} if pair is None else _plogp_document(pair) for pair in row] for row in parameters.pairs]
        return {"pairs": rows}
    return _plain({name: getattr(parameters, name) for name in _LMO_KEYS})


def _plogp_document(pair: PLogP) -> dict[str, Any]:
    functions = {name: _knots(getattr(pair, name)) for name in ("send_overhead", "receive_overhead", "gap")}
    return {"latency_seconds": pair.latency_seconds, **functions}


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: np.asarray(value, dtype=float).tolist() for name, value in values.items()}


def _knots(function: PiecewiseLinear) -> dict[str, list[float]]:
    return {"message_bytes": list(function.message_bytes), "seconds": list(function.seconds)}


def _parameters_from(family: str, values: Mapping[str, Any], thresholds: Thresholds) -> Parameters:
    if family == "hockney":
        return Hockney(*_arrays(values, ("alpha_seconds", "beta_seconds_per_byte"), 2))
    if family == "hockney_by_size":
        return HockneyBySize(_function(values["time"]))
    if family in ("logp", "loggp"):
        return LogGP(*_arrays(values, _LOGGP_KEYS, 2))
    if family == "lmo":
        constant, per_byte, latency, network = _arrays(values, _LMO_KEYS, 2)
        return LMO(constant, per_byte, latency, network, thresholds)
    if "pairs" not in values:
        return _plogp_from(values)
    rows = tuple(tuple(_plogp_from(pair) if pair else None for pair in row) for row in values["pairs"])
    if len({len(row) for row in rows} | {len(rows)}) != 1:
        raise ValueError("pairs: as many columns as rows")
    return HeterogeneousPLogP(rows)


def _plogp_from(values: Mapping[str, Any]) -> PLogP:
    functions = [_function(values[name]) for name in ("send_overhead", "receive_overhead", "gap")]
    return PLogP(_number("latency_seconds", values["latency_seconds"]), *functions)


def _function(values: Mapping[str, Any]) -> PiecewiseLinear:
    sizes, seconds = values["message_bytes"], values["seconds"]
    return PiecewiseLinear(
        tuple(_number("message_bytes", size) for size in sizes), tuple(_number("seconds", value) for value in seconds)
    )


def _arrays(values: Mapping[str, Any], names: tuple[str, ...], most_dimensions: int) -> list[Any]:
    """Floats, or arrays of the same number of processors in all dimensions. Raises ValueError naming the parameter."""
    arrays = []
    counts = set()
    for name in names:
        array = np.asarray(values[name], dtype=float)
        if array.ndim > most_dimensions or not np.all(np.isfinite(array)):
            raise ValueError(f"{name}: numbers, or a matrix of numbers")
        counts |= set(array.shape)
        arrays.append(float(array) if array.ndim == 0 else array)
    if len(counts) > 1 or len({np.ndim(array) > 0 for array in arrays}) > 1:
        raise ValueError(f"shapes of {', '.join(names)}: all single numbers, or all for one number of processors")
    return arrays


def _number(name: str, value: Any) -> float:
    if type(value) not in (int, float) or not math.isfinite(value):
        raise TypeError(f"{name} = {value!r}")
    return float(value)


def _check_sizes(sizes: Mapping[str, Any]) -> None:
    for name, value in sizes.items():
        if value is not None and (type(value) is not int or value < 0):
            raise TypeError(f"{name} = {value!r}")
