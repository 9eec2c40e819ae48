"""TOML files with parameters: implementation-aware models (format 1), point-to-point models (2), critical paths (3)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np
import tomli_w

from collwise.common.errors import UsageError, unknown_name
from collwise.common.files import write_text
from collwise.common.keys import Keys, read_toml
from collwise.models.implementation_aware.message_counts import Gamma
from collwise.models.interface import PairParameters
from collwise.models.piecewise import PiecewiseLinear
from collwise.models.single_messages import (
    LMO,
    FurtherGap,
    HeterogeneousPLogP,
    Hockney,
    HockneyBySize,
    LogGP,
    PLogP,
    Thresholds,
)

_OBSERVATION = "text such as 'collective P=4 m=1024 m_s=0 K=0 m_g=0 seconds=1e-05'"


def plain(value: Any) -> Any:
    """Parameters as plain dictionaries and lists, as in files. None is left out of tables; elsewhere it becomes {}."""
    if isinstance(value, Observation):
        return str(value)
    if isinstance(value, WithResiduals):
        return value.document()
    if is_dataclass(value):
        value = vars(value)
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return list(map(plain, value))
    return {} if value is None else value


class ParameterFile(ABC):
    """Parameters that are stored in a TOML file of format `FORMAT`, made by `collwise fit` with `OPTIONS`.

    `KEYS` are the fields that are keys of the file: texts, truth values, and numbers of at least 0.
    """

    FORMAT: ClassVar[int]
    KEYS: ClassVar[tuple[str, ...]]
    OPTIONS: ClassVar[str] = ""
    _MIN: ClassVar[Mapping[str, int]] = MappingProxyType({"procs": 2, "processes_per_node": 1})

    @abstractmethod
    def as_document(self) -> dict[str, Any]:
        """The file's content as plain dictionaries and lists."""

    @classmethod
    @abstractmethod
    def _read(cls, keys: Keys, known: dict[str, Any]) -> Self:
        """The parameters in a file; `known` contains the values of KEYS."""

    def _known(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.KEYS}

    @classmethod
    def from_document(cls, document: Mapping[str, Any], path: str | Path) -> Self:
        """The parameters in a document of `read_toml`. Raises UsageError, naming the file and the error."""
        if document.get("format") != cls.FORMAT:
            raise UsageError(f"{path}: not a parameter file; make one with 'collwise fit{cls.OPTIONS}'")
        keys = Keys(path, document)
        readers: dict[object, Callable[[str], Any]] = {
            "str": keys.text,
            "bool": keys.truth,
            "int": lambda name: keys.whole(name, cls._MIN.get(name, 0)),
            "float": lambda name: keys.number(name, 0),
        }
        types = {item.name: item.type for item in fields(cls)}  # type: ignore[arg-type]
        return cls._read(keys, {name: readers[types[name]](name) for name in cls.KEYS})

    def save(self, path: str | Path) -> None:
        """Writes the file. Raises UsageError when it cannot be written."""
        write_text(Path(path), tomli_w.dumps(self.as_document()))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Reads a file that `save` wrote. Raises UsageError, naming the file and the error."""
        return cls.from_document(read_toml(path), path)


# --- Parameters of single messages ------------------------------------------------------------------------------------

Parameters = Hockney | HockneyBySize | LogGP | PLogP | HeterogeneousPLogP | LMO
FAMILIES: Mapping[str, Any] = MappingProxyType(
    {"hockney": Hockney, "hockney_by_size": HockneyBySize, "logp": LogGP, "loggp": LogGP, "plogp": PLogP, "lmo": LMO}
)
"""The class of each family's parameters; heterogeneous PLogP has a separate class."""


@dataclass(frozen=True)
class FittedParameters(ParameterFile):
    """The parameters of a family of models on a platform, and their origin. Times in seconds, sizes in bytes.

    The experiments with `procs` processes took `seconds` on the platform and `measurements` repetitions.
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
            values |= plain({"further_gap": getattr(known, "further_gap", None)})
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
        return HockneyBySize(_function(values, "time"))
    if wanted is PLogP:
        return _plogp_pairs(values, procs) if "pairs" in values else _plogp(values)
    dimensions = wanted.DIMENSIONS
    # Either all parameters are single numbers or all are arrays; the first one shows which.
    if isinstance(values.get(next(iter(dimensions))), list):
        found: dict[str, Any] = {
            name: np.array(values.by_process(name, procs, count), dtype=float) for name, count in dimensions.items()
        }
    else:
        found = {name: values.number(name) for name in dimensions}
    if wanted is LogGP:
        found["further_gap"] = _further_gap(values)
    if wanted is LMO and "thresholds" in keys:
        found["thresholds"] = _thresholds(keys.table("thresholds"))
    parameters: Parameters = wanted(**found)
    return parameters


def _function(keys: Keys, key: str) -> PiecewiseLinear:
    knots = keys.table(key)
    sizes, seconds = knots.sizes("message_bytes"), knots.numbers("seconds")
    if len(seconds) != len(sizes):
        raise knots.wrong("seconds", f"one number per size, {len(sizes)} of them")
    return PiecewiseLinear(sizes, seconds)


def _plogp_pairs(values: Keys, procs: int) -> HeterogeneousPLogP:
    rows = values.get("pairs")
    square = isinstance(rows, list) and all(isinstance(row, list) and len(row) == procs for row in rows)
    if not square or len(rows) != procs:
        raise values.wrong("pairs", f"{procs} rows of {procs} tables")

    def pair(i: int, j: int) -> PLogP | None:
        return None if i == j else _plogp(values.entry("pairs", rows[i][j], f"[{i}][{j}]"))

    return HeterogeneousPLogP(tuple(tuple(pair(i, j) for j in range(procs)) for i in range(procs)))


def _plogp(values: Keys) -> PLogP:
    functions = (_function(values, name) for name in ("send_overhead", "receive_overhead", "gap"))
    return PLogP(values.number("latency_seconds"), *functions, further_gap=_further_gap(values))


def _further_gap(values: Keys) -> FurtherGap | None:
    """The change of the gap, `seconds`, for each number of `receivers`, ascending from 1; None if there is no table."""
    if "further_gap" not in values:
        return None
    table = values.table("further_gap")
    receivers, seconds = table.numbers("receivers"), table.numbers("seconds")
    if len(receivers) != len(seconds) or [*receivers] != sorted({*receivers}) or receivers[:1] != (1,):
        raise table.wrong("receivers", "ascending numbers from 1, and a number of seconds for each")
    return FurtherGap(receivers, seconds)


def read_thresholds(path: Path) -> Thresholds:
    """The thresholds in the table [thresholds] of a file, in bytes; thresholds that are not in the table are None."""
    keys = Keys(path, read_toml(path))
    if "thresholds" not in keys:
        raise UsageError(
            f"{path}: no table [thresholds]; 'collwise fit --model lmo' or 'collwise platforms thresholds' makes one"
        )
    return _thresholds(keys.table("thresholds"))


def thresholds_text(thresholds: Thresholds, comment: str) -> str:
    """The text of a file for `read_thresholds`; `comment` is one line on the origin of the thresholds."""
    return f"# {comment}\n{tomli_w.dumps({'thresholds': plain(thresholds)})}"


def _thresholds(keys: Keys) -> Thresholds:
    valid = [item.name for item in fields(Thresholds)]
    for name in keys.values:
        if name not in valid:
            raise UsageError(f"{keys.path}: {unknown_name('threshold', name, valid)}")
    found = Thresholds(**{name: keys.whole(name, 1) for name in keys.values})
    first, last = found.gather_irregular_from_bytes, found.gather_regular_from_bytes
    if first is not None and last is not None and last < first:
        raise keys.wrong("gather_regular_from_bytes", f"at least gather_irregular_from_bytes, {first}")
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
    parameter: int = 0
    gather_bytes: int = 0

    def __str__(self) -> str:
        return (
            f"{self.experiment} P={self.procs} m={self.message_bytes} m_s={self.segment_bytes} "
            f"K={self.parameter} m_g={self.gather_bytes} seconds={self.seconds!r}"
        )

    @classmethod
    def parse(cls, line: str) -> Observation:
        """The observation that `str` wrote. Raises ValueError or KeyError."""
        experiment, *entries = line.split()
        given = dict(entry.split("=") for entry in entries)
        procs, size, segment, parameter, gather = (int(given[name]) for name in ("P", "m", "m_s", "K", "m_g"))
        return cls(experiment, procs, size, segment, float(given["seconds"]), parameter, gather)


Observations = Mapping[str, Mapping[str, Sequence[Observation]]]
"""The observations that each fit was made from, by collective and algorithm, in the order of the fit's residuals."""


class FittedToObservations:
    """Base of models with parameters for each algorithm; the parameters were fitted to observations in their file."""

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
        """The largest P and m of the experiments; 0 if there are none."""
        fits = self.parameters.observations.get(collective, {}).values()
        points = [(observation.procs, observation.message_bytes) for each in fits for observation in each]
        return max((p for p, _ in points), default=0), max((m for _, m in points), default=0)

    def document(self) -> dict[str, Any]:
        """The parameters as plain dictionaries and lists, as in a parameter file."""
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


@dataclass(frozen=True)
class WithResiduals:
    """Fitted parameters, and the relative residual of each observation, (predicted - observed) / observed."""

    parameters: Mapping[str, Hockney]
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
        """The fit as plain dictionaries and lists: a summary of the residuals, the parameters, and all residuals."""
        return {
            "mean_relative_residual": round(self.mean_residual, 6),
            "worst_relative_residual": round(self.worst_residual, 6),
            **plain({name: value for name, value in vars(self).items() if name != "residuals"}),
            "relative_residuals": [round(value, 6) for value in self.residuals],
        }


@dataclass(frozen=True)
class AlgorithmFit(WithResiduals):
    """An algorithm's parameters, one Hockney pair per part and protocol ('main/eager'), and its relative residuals.

    `by_segment_bytes` has parameters fitted for a single segment size, which are more accurate for that size.
    """

    by_segment_bytes: Mapping[int, Mapping[str, Hockney]] | None = None

    def parameters_for(self, segment_bytes: int) -> Mapping[str, Hockney]:
        """The parameters fitted for that segment size; if there are none, those fitted for all sizes."""
        return (self.by_segment_bytes or {}).get(segment_bytes, self.parameters)

    @classmethod
    def read(cls, keys: Keys) -> AlgorithmFit:
        """The fit in a table. Raises UsageError."""
        segments = keys.tables("by_segment_bytes", lambda parts: parts.each(_hockney))
        if not all(map(str.isdecimal, segments)):
            raise keys.wrong("by_segment_bytes", "tables named by segment sizes in bytes")
        parameters, residuals = keys.table("parameters").each(_hockney), keys.numbers("relative_residuals")
        return cls(parameters, residuals, {int(segment): parts for segment, parts in segments.items()} or None)


@dataclass(frozen=True)
class ModelParameters(ParameterFile):
    """The parameters of all implementation-aware models on a platform. Times in seconds, sizes in bytes.

    `fits` has the fits by model (in MODELS), collective and algorithm. The traditional formulas use `hockney`, which is
    fitted to roundtrips.
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
"""The classes of messages: eager and rendezvous between nodes, and local within a node."""


@dataclass(frozen=True)
class Overheads:
    """The processor's time, in seconds, for a message of m bytes: blocking send, non-blocking send, receive."""

    send: PiecewiseLinear
    start: PiecewiseLinear
    receive: PiecewiseLinear


@dataclass(frozen=True)
class PathFit(WithResiduals):
    """An algorithm's alpha and beta for each class of messages, after `steps` steps of counting and fitting.

    If `settled`, the parameters did not change in the last step.
    """

    steps: int
    settled: bool

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

    A time is a sum along the critical path of an algorithm's schedule (validation/fitting/critical_path.py): for each
    class of messages, a multiple of alpha and a multiple of beta; and the known times of overheads and reductions.
    `messages` has alpha and beta of single messages, for classes that do not occur in an algorithm's experiments. If
    `receives_first`, an eager message leaves when its receive is posted, and a rendezvous sender waits until the
    message has arrived; otherwise an eager message leaves when it is sent, and a rendezvous sender waits until the
    message has left.
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
        """An algorithm's alpha and beta for every class of messages, from `messages` if not fitted to the algorithm."""
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
            overheads=Overheads(*(_function(overheads, name) for name in ("send", "start", "receive"))),
            messages={name: _hockney(messages.table(name)) for name in CLASSES},
            fits=keys.tables("fits", lambda one: one.each(PathFit.read)),
            observations=_observations(keys),
        )
