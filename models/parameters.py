"""The parameters of models in readable TOML files, of which there are three formats, and files of LMO's thresholds.

Format 1 has the implementation-aware models, 2 a point-to-point model, 3 the model by critical paths. Files are read
key by key, so that every error names the file, the key and the valid values.
"""

from __future__ import annotations

import math
import tomllib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import tomli_w

from collwise.common.errors import UsageError, unknown_name
from collwise.common.files import write_text
from collwise.models.hockney import Hockney, HockneyBySize
from collwise.models.implementation_aware.message_counts import Gamma
from collwise.models.interface import PairParameters
from collwise.models.lmo import LMO, Thresholds
from collwise.models.loggp import LogGP
from collwise.models.piecewise import Array, PiecewiseLinear
from collwise.models.plogp import HeterogeneousPLogP, PLogP

_MOST_SHOWN = 40
_OBSERVATION = "text such as 'collective P=4 m=1024 m_s=0 K=0 m_g=0 seconds=1e-05'"
_Read = TypeVar("_Read")


def read_document(path: str | Path) -> dict[str, Any]:
    """A TOML file as a dictionary. Raises UsageError, naming the file."""
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as problem:
        raise UsageError(f"cannot read {path}: {problem.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise UsageError(f"{path}: broken TOML: {problem}") from None


class Keys:
    """A table of a file, its `values`; `name` is its dotted name, empty for the file. All methods raise UsageError."""

    def __init__(self, path: str | Path, values: Any, name: str = "") -> None:
        self.path, self._name = path, name
        if not isinstance(values, Mapping):
            raise UsageError(f"{path}: {name} = {_shown(values)}; valid: a table")
        self.values: Mapping[str, Any] = values

    def wrong(self, key: str, valid: str) -> UsageError:
        """The error for the value of the key."""
        return UsageError(f"{self.path}: {self._full_name(key)} = {_shown(self.get(key))}; valid: {valid}")

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def get(self, key: str) -> Any:
        """The value of the key, whatever it is."""
        if key not in self.values:
            raise UsageError(f"{self.path}: {self._full_name(key)} is missing")
        return self.values[key]

    def table(self, key: str) -> Keys:
        """The table of that name."""
        return Keys(self.path, self.get(key), self._full_name(key))

    def each(self, read: Callable[[Keys], _Read]) -> dict[str, _Read]:
        """What is read from each table in this one, by their names."""
        return {name: read(self.table(name)) for name in self.values}

    def tables(self, key: str, read: Callable[[Keys], _Read]) -> dict[str, _Read]:
        """What is read from each table in the table of that name, by their names; nothing if it is missing."""
        return self.table(key).each(read) if key in self else {}

    def entry(self, key: str, values: Any, index: str) -> Keys:
        """A table within the lists under the key; `index` says where, for instance '[0][1]'."""
        return Keys(self.path, values, self._full_name(key) + index)

    def text(self, key: str) -> str:
        """A string."""
        value = self.get(key)
        if not isinstance(value, str):
            raise self.wrong(key, "a text")
        return value

    def truth(self, key: str) -> bool:
        """True or false."""
        value = self.get(key)
        if not isinstance(value, bool):
            raise self.wrong(key, "true or false")
        return value

    def whole(self, key: str, least: int = 0) -> int:
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

    def numbers(self, key: str, least: float = -math.inf) -> tuple[float, ...]:
        """A list of finite numbers, each `least` or more."""
        return self._numbers(key, self.get(key), least)

    def rows(self, key: str, count: int, least: float = -math.inf) -> tuple[tuple[float, ...], ...]:
        """`count` lists of finite numbers, each `least` or more, all lists of one length from 1 on."""
        value = self.get(key)
        if not _is_list(value, count):
            raise self.wrong(key, f"{count} lists of numbers")
        found = tuple(self._numbers(key, row, least) for row in value)
        if len(set(map(len, found))) != 1 or not found[0]:
            raise self.wrong(key, f"{count} lists of numbers, all of one length")
        return found

    def _numbers(self, key: str, value: Any, least: float) -> tuple[float, ...]:
        if not isinstance(value, list) or not all(_is_number(one) and one >= least for one in value):
            raise self.wrong(key, "a list of numbers" + ("" if least == -math.inf else f" from {least:g} on"))
        return tuple(map(float, value))

    def array(self, key: str, count: int, dimensions: int) -> Array:
        """Finite numbers, `count` of them in each of one or two dimensions."""
        value = self.get(key)
        rows = value if dimensions == 2 else [value]
        if dimensions == 2 and not _is_list(value, count):
            raise self.wrong(key, f"{count} rows of {count} numbers, one per process")
        for row in rows:
            if not _is_list(row, count) or not all(map(_is_number, row)):
                lines = f"{count} rows of " if dimensions == 2 else ""
                raise self.wrong(key, f"{lines}{count} numbers, one per process")
        return np.array(value, dtype=float)

    def function(self, key: str) -> PiecewiseLinear:
        """A function of the message size: a table of ascending `message_bytes` and of as many `seconds`."""
        knots = self.table(key)
        sizes, seconds = knots.sizes("message_bytes"), knots.numbers("seconds")
        if len(seconds) != len(sizes):
            raise knots.wrong("seconds", f"one number per size, {len(sizes)} of them")
        return PiecewiseLinear(sizes, seconds)

    def sizes(self, key: str) -> tuple[float, ...]:
        """A list of ascending sizes from 0 on, at least one."""
        found = self.numbers(key)
        if not found or found[0] < 0 or any(a >= b for a, b in pairwise(found)):
            raise self.wrong(key, "sizes from 0 on, ascending")
        return found

    def _full_name(self, key: str) -> str:
        return f"{self._name}.{key}" if self._name else key


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def _is_list(value: Any, count: int) -> bool:
    return isinstance(value, list) and len(value) == count


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."


def plain(value: Any) -> Any:
    """Parameters as plain dictionaries and lists, as files have them; what is None is left out or an empty table."""
    if isinstance(value, Observation):
        return str(value)
    if isinstance(value, WithResiduals):
        return value.document()
    if is_dataclass(value):
        value = vars(value)
    if isinstance(value, Mapping):
        return {str(name): plain(one) for name, one in value.items() if one is not None}
    if isinstance(value, list | tuple):
        return list(map(plain, value))
    return {} if value is None else value


class ParameterFile(ABC):
    """Parameters that are kept in a TOML file of a `FORMAT`, which the options of `collwise fit` make.

    `KEYS` are those of its fields that are keys of the file: texts, truth values, and numbers from 0 on.
    """

    FORMAT: ClassVar[int]
    KEYS: ClassVar[tuple[str, ...]]
    OPTIONS: ClassVar[str] = ""
    _LEAST: ClassVar[Mapping[str, int]] = MappingProxyType({"procs": 2, "processes_per_node": 1})

    @abstractmethod
    def as_document(self) -> dict[str, Any]:
        """The file's content as plain dictionaries and lists."""

    @classmethod
    @abstractmethod
    def _read(cls, keys: Keys, known: dict[str, Any]) -> Self:
        """The parameters in a file; `known` are the values of KEYS."""

    def _known(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.KEYS}

    @classmethod
    def from_document(cls, document: Mapping[str, Any], path: str | Path) -> Self:
        """The parameters in a document of `read_document`. Raises UsageError, naming the file and the error."""
        if document.get("format") != cls.FORMAT:
            raise UsageError(f"{path}: not a parameter file; make one with: collwise fit{cls.OPTIONS}")
        keys = Keys(path, document)
        readers: dict[object, Callable[[str], Any]] = {
            "str": keys.text,
            "bool": keys.truth,
            "int": lambda name: keys.whole(name, cls._LEAST.get(name, 0)),
            "float": lambda name: keys.number(name, 0),
        }
        types = {one.name: one.type for one in fields(cls)}  # type: ignore[arg-type]
        return cls._read(keys, {name: readers[types[name]](name) for name in cls.KEYS})

    def save(self, path: str | Path) -> None:
        """Writes the file. Raises UsageError when it cannot be written."""
        write_text(Path(path), tomli_w.dumps(self.as_document()))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Reads a file that `save` wrote. Raises UsageError, naming the file and the error."""
        return cls.from_document(read_document(path), path)


# --- Parameters of single messages ------------------------------------------------------------------------------------

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


@dataclass(frozen=True)
class FittedParameters(ParameterFile):
    """The parameters of a family of models on a platform and their origin. Times in seconds, sizes in bytes.

    `procs` processes took part in the experiments, which were `measurements` with repetitions and took `seconds` on the
    platform.
    """

    FORMAT = 2
    KEYS = ("procedure", "platform", "made_by", "procs", "eager_limit_bytes", "reduce_seconds_per_byte")
    OPTIONS = " --model NAME"

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
        known = self.parameters
        if isinstance(known, PairParameters):
            values = {name: np.asarray(getattr(known, name), dtype=float).tolist() for name in known.DIMENSIONS}
        else:
            values = plain(known)
        return {
            "format": self.FORMAT,
            "model": self.family,
            **self._known(),
            "effort": {"measurements": self.measurements, "seconds": self.seconds},
            "parameters": values,
            **({"notes": list(self.notes)} if self.notes else {}),
            **({"thresholds": plain(known.thresholds)} if isinstance(known, LMO) else {}),
        }

    @classmethod
    def _read(cls, keys: Keys, known: dict[str, Any]) -> FittedParameters:
        family, effort = keys.text("model"), keys.table("effort")
        if family not in FAMILIES:
            raise UsageError(f"{keys.path}: {unknown_name('model', family, FAMILIES)}")
        notes = keys.get("notes") if "notes" in keys else []
        if not isinstance(notes, list):
            raise keys.wrong("notes", "a list of texts")
        return cls(
            family=family,
            **known,
            parameters=_parameters_from(keys, family, known["procs"]),
            measurements=effort.whole("measurements"),
            seconds=effort.number("seconds", 0),
            notes=tuple(map(str, notes)),
        )


def _parameters_from(keys: Keys, family: str, procs: int) -> Parameters:
    values, wanted = keys.table("parameters"), FAMILIES[family]
    if wanted is HockneyBySize:
        return HockneyBySize(values.function("time"))
    if wanted is PLogP:
        return _plogp_pairs(values, procs) if "pairs" in values else _plogp(values)
    dimensions = wanted.DIMENSIONS
    # All are single numbers or all are arrays, as the first one is.
    if isinstance(values.get(next(iter(dimensions))), list):
        found: dict[str, Any] = {name: values.array(name, procs, count) for name, count in dimensions.items()}
    else:
        found = {name: values.number(name) for name in dimensions}
    if wanted is LMO and "thresholds" in keys:
        found["thresholds"] = _thresholds(keys.table("thresholds"))
    parameters: Parameters = wanted(**found)
    return parameters


def _plogp_pairs(values: Keys, procs: int) -> HeterogeneousPLogP:
    rows = values.get("pairs")
    square = isinstance(rows, list) and all(isinstance(row, list) and len(row) == procs for row in rows)
    if not square or len(rows) != procs:
        raise values.wrong("pairs", f"{procs} rows of {procs} tables")

    def pair(i: int, j: int) -> PLogP | None:
        return None if i == j else _plogp(values.entry("pairs", rows[i][j], f"[{i}][{j}]"))

    return HeterogeneousPLogP(tuple(tuple(pair(i, j) for j in range(procs)) for i in range(procs)))


def _plogp(values: Keys) -> PLogP:
    functions = (values.function(name) for name in ("send_overhead", "receive_overhead", "gap"))
    return PLogP(values.number("latency_seconds"), *functions)


def read_thresholds(path: Path) -> Thresholds:
    """The thresholds in the table [thresholds] of a file, in bytes; those that it does not name are None."""
    keys = Keys(path, read_document(path))
    if "thresholds" not in keys:
        raise UsageError(
            f"{path}: no table [thresholds]; 'collwise fit --model lmo' or 'collwise platforms thresholds' makes one"
        )
    return _thresholds(keys.table("thresholds"))


def thresholds_text(thresholds: Thresholds, comment: str) -> str:
    """A file that `read_thresholds` reads; `comment` is one line on their origin."""
    return f"# {comment}\n{tomli_w.dumps({'thresholds': plain(thresholds)})}"


def _thresholds(keys: Keys) -> Thresholds:
    valid = [one.name for one in fields(Thresholds)]
    for name in keys.values:
        if name not in valid:
            raise UsageError(f"{keys.path}: {unknown_name('threshold', name, valid)}")
    found = Thresholds(**{name: keys.whole(name, 1) for name in keys.values})
    first, last = found.gather_irregular_from_bytes, found.gather_regular_from_bytes
    if first is not None and last is not None and last < first:
        raise keys.wrong("gather_regular_from_bytes", f"gather_irregular_from_bytes, {first}, or more")
    return found


# --- Parameters of algorithms -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Observation:
    """The time of one experiment. Sizes in bytes.

    `experiment` is 'collective', 'bcast_gather' (formula (16), without the barrier), 'exchange' (split-binary's second
    phase), or 'gather' (the closing gather of bcast_gather alone).
    """

    experiment: str
    procs: int
    message_bytes: int
    segment_bytes: int
    seconds: float
    fanout: int = 0
    gather_bytes: int = 0

    def __str__(self) -> str:
        return (
            f"{self.experiment} P={self.procs} m={self.message_bytes} m_s={self.segment_bytes} "
            f"K={self.fanout} m_g={self.gather_bytes} seconds={self.seconds!r}"
        )

    @classmethod
    def parse(cls, line: str) -> Observation:
        """The observation that `str` wrote. Raises ValueError or KeyError."""
        experiment, *entries = line.split()
        given = dict(entry.split("=") for entry in entries)
        procs, size, segment, fanout, gather = (int(given[name]) for name in ("P", "m", "m_s", "K", "m_g"))
        return cls(experiment, procs, size, segment, float(given["seconds"]), fanout, gather)


Observations = Mapping[str, Mapping[str, Sequence[Observation]]]
"""The observations that each fit was made from, by collective and algorithm, in the order of its residuals."""


class FittedToObservations:
    """Base of models with parameters for each algorithm, which know the experiments that these were fitted to."""

    parameters: ModelParameters | PathParameters

    @property
    def platform(self) -> str:
        """The platform that the parameters were fitted on."""
        return self.parameters.platform

    @property
    def processes_per_node(self) -> int | None:
        """The processes per node for which the parameters hold."""
        return self.parameters.processes_per_node

    def reach(self, collective: str) -> tuple[int, float]:
        """The largest P and m of the experiments; 0 without any."""
        fits = self.parameters.observations.get(collective, {}).values()
        points = [(one.procs, one.message_bytes) for each in fits for one in each]
        return max((p for p, _ in points), default=0), max((m for _, m in points), default=0)

    def document(self) -> dict[str, Any]:
        """Its parameters as a parameter file has them, in plain dictionaries and lists."""
        return self.parameters.as_document()


def _observations(keys: Keys) -> Observations:
    def read(by_algorithm: Keys) -> dict[str, tuple[Observation, ...]]:
        found = {}
        for algorithm, lines in by_algorithm.values.items():
            try:
                found[algorithm] = tuple(map(Observation.parse, lines))
            except (AttributeError, KeyError, TypeError, ValueError):
                raise by_algorithm.wrong(algorithm, f"a list of {_OBSERVATION}") from None
        return found

    return keys.tables("observations", read)


def _hockney(keys: Keys) -> Hockney:
    return Hockney(keys.number("alpha_seconds", 0), keys.number("beta_seconds_per_byte", 0))


class WithResiduals(ABC):
    """A fit with its relative residuals, (predicted - observed) / observed for the observations, in their order."""

    residuals: tuple[float, ...]

    @property
    def mean_residual(self) -> float:
        """Mean absolute relative residual."""
        return float(np.mean(np.abs(self.residuals))) if self.residuals else 0.0

    @property
    def worst_residual(self) -> float:
        """Largest absolute relative residual."""
        return float(np.max(np.abs(self.residuals))) if self.residuals else 0.0

    def document(self) -> dict[str, Any]:
        """The fit as plain dictionaries and lists, with its parameters between the residuals in short and in full."""
        return {
            "mean_relative_residual": round(self.mean_residual, 6),
            "worst_relative_residual": round(self.worst_residual, 6),
            **plain(self._values()),
            "relative_residuals": [round(value, 6) for value in self.residuals],
        }

    @abstractmethod
    def _values(self) -> dict[str, Any]:
        """What is fitted."""


@dataclass(frozen=True)
class AlgorithmFit(WithResiduals):
    """An algorithm's parameters, one Hockney pair per part and protocol ('main/eager'), and its relative residuals.

    `parameters` serve all segment sizes; `by_segment` has those fitted for a segment size alone, which are more
    accurate there.
    """

    parameters: Mapping[str, Hockney]
    residuals: tuple[float, ...]
    by_segment: Mapping[int, Mapping[str, Hockney]] = field(default_factory=dict)

    def parameters_for(self, segment_bytes: int) -> Mapping[str, Hockney]:
        """The parameters for that segment size, or for all together."""
        return self.by_segment.get(segment_bytes, self.parameters)

    def _values(self) -> dict[str, Any]:
        return {"parameters": self.parameters, "by_segment_bytes": self.by_segment or None}

    @classmethod
    def read(cls, keys: Keys) -> AlgorithmFit:
        """The fit in a table. Raises UsageError."""
        segments = keys.tables("by_segment_bytes", lambda parts: parts.each(_hockney))
        if not all(map(str.isdecimal, segments)):
            raise keys.wrong("by_segment_bytes", "tables named by segment sizes in bytes")
        parameters, residuals = keys.table("parameters").each(_hockney), keys.numbers("relative_residuals")
        return cls(parameters, residuals, {int(segment): parts for segment, parts in segments.items()})


@dataclass(frozen=True)
class ModelParameters(ParameterFile):
    """The parameters of all implementation-aware models on a platform. Times in seconds, sizes in bytes.

    `fits[model][collective][algorithm]` are those of MODELS; `hockney` is from roundtrips and serves the traditional
    formulas.
    """

    FORMAT = 1
    MODELS = ("by_parts", "as_printed")
    KEYS = ("platform", "made_by", "processes_per_node", "eager_limit_bytes", "segment_bytes")

    platform: str
    made_by: str
    processes_per_node: int
    eager_limit_bytes: int
    segment_bytes: int
    gamma: Gamma
    hockney: Hockney
    fits: Mapping[str, Mapping[str, Mapping[str, AlgorithmFit]]]
    observations: Observations = field(default_factory=dict)

    def as_document(self) -> dict[str, Any]:
        """The file's content as plain dictionaries and lists."""
        fitted = {"gamma": self.gamma, "hockney": self.hockney, **self.fits, "observations": self.observations or None}
        return {"format": self.FORMAT, **self._known(), **plain(fitted)}

    @classmethod
    def _read(cls, keys: Keys, known: dict[str, Any]) -> ModelParameters:
        gamma = keys.table("gamma")
        sizes = gamma.sizes("message_bytes")
        return cls(
            **known,
            gamma=Gamma(sizes, gamma.rows("values", len(sizes), 0)),
            hockney=_hockney(keys.table("hockney")),
            fits={model: keys.tables(model, lambda one: one.each(AlgorithmFit.read)) for model in cls.MODELS},
            observations=_observations(keys),
        )


# --- Parameters of the model by critical paths ------------------------------------------------------------------------

EAGER, RENDEZVOUS, LOCAL = CLASSES = ("eager", "rendezvous", "local")
"""The classes of messages: between nodes by protocol, and within a node."""


@dataclass(frozen=True)
class Overheads:
    """The processor's time for a message of m bytes in seconds: blocking send, non-blocking send, receive."""

    send: PiecewiseLinear
    start: PiecewiseLinear
    receive: PiecewiseLinear


@dataclass(frozen=True)
class PathFit(WithResiduals):
    """An algorithm's alpha and beta by class of messages; only those that its experiments had.

    After `steps` of counting and fitting the parameters no longer changed if `settled`.
    """

    parameters: Mapping[str, Hockney]
    residuals: tuple[float, ...]
    steps: int
    settled: bool

    def _values(self) -> dict[str, Any]:
        return {"steps": self.steps, "settled": self.settled, "parameters": self.parameters}

    @classmethod
    def read(cls, keys: Keys) -> PathFit:
        """The fit in a table. Raises UsageError."""
        if not set(keys.table("parameters").values) <= set(CLASSES):
            raise keys.wrong("parameters", f"tables named {', '.join(CLASSES)}")
        parameters, residuals = keys.table("parameters").each(_hockney), keys.numbers("relative_residuals")
        return cls(parameters, residuals, keys.whole("steps"), keys.truth("settled"))


@dataclass(frozen=True)
class PathParameters(ParameterFile):
    """The parameters of the model by critical paths on a platform. Times in seconds, sizes in bytes.

    A time is counted along the critical path of an algorithm's schedule (validation/fitting/critical_path.py):

        T(P, m) = sum over classes of messages of  a alpha + b beta,  and overheads and reductions, whose time is known

    `messages` are alpha and beta of single messages by class, which hold where an algorithm's experiments had no
    message of a class. With `receives_first` an eager message leaves when its receive is posted, and the sender of a
    rendezvous message waits until it has arrived; otherwise the first leaves when it is sent, and the sender waits
    until it has left. `fits` are by collective and algorithm.
    """

    FORMAT = 3
    KEYS = (
        *("platform", "made_by", "processes_per_node", "eager_limit_bytes"),
        *("reduce_seconds_per_byte", "receives_first"),
    )
    MODEL = "critical_path"
    OPTIONS = f" --model {MODEL}"

    platform: str
    made_by: str
    processes_per_node: int
    eager_limit_bytes: int
    reduce_seconds_per_byte: float
    receives_first: bool
    overheads: Overheads
    messages: Mapping[str, Hockney]
    fits: Mapping[str, Mapping[str, PathFit]] = field(default_factory=dict)
    observations: Observations = field(default_factory=dict)

    def parameters_of(self, collective: str, algorithm: str) -> dict[str, Hockney]:
        """alpha and beta of every class of messages for an algorithm: its own where it has them."""
        fitted = self.fits.get(collective, {}).get(algorithm)
        return {**self.messages, **(fitted.parameters if fitted else {})}

    def as_document(self) -> dict[str, Any]:
        """The file's content as plain dictionaries and lists."""
        fitted = {name: getattr(self, name) for name in ("overheads", "messages", "fits", "observations")}
        return {"format": self.FORMAT, "model": self.MODEL, **self._known(), **plain(fitted)}

    @classmethod
    def _read(cls, keys: Keys, known: dict[str, Any]) -> PathParameters:
        overheads, messages = keys.table("overheads"), keys.table("messages")
        return cls(
            **known,
            overheads=Overheads(*(overheads.function(name) for name in ("send", "start", "receive"))),
            messages={name: _hockney(messages.table(name)) for name in CLASSES},
            fits=keys.tables("fits", lambda one: one.each(PathFit.read)),
            observations=_observations(keys),
        )
