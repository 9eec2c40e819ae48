"""The parameters of the model by critical paths: alpha and beta of each algorithm, in a readable TOML file.

A time is counted along the critical path of an algorithm's schedule:

    T(P, m) = sum over classes of messages of  a alpha + b beta,  and overheads and reductions, whose time is known

The classes are eager and rendezvous messages between nodes, and messages within a node. The schedules are played in
validation/fitting, where the model is; this module knows only what is estimated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from collwise.common.errors import UsageError
from collwise.models.hockney import Hockney
from collwise.models.implementation_aware.fitting import huber
from collwise.models.implementation_aware.parameters import (
    Observation,
    WithResiduals,
    observations_document,
    pairs_document,
    read_hockney,
    read_hockneys,
    read_observations,
)
from collwise.models.parameter_reading import Keys, ParameterFile, knots
from collwise.models.piecewise import Array, PiecewiseLinear
from collwise.models.registry import CRITICAL_PATH

FORMAT = 3
_NUMBERS_AND_TEXTS = (
    *("platform", "made_by", "processes_per_node", "eager_limit_bytes"),
    *("reduce_seconds_per_byte", "receives_first"),
)

EAGER, RENDEZVOUS, LOCAL = CLASSES = ("eager", "rendezvous", "local")
"""The classes of messages: between nodes by protocol, and within a node."""

# The weight by which an algorithm's parameters are held to those of single messages, beside 1 for an observation. It
# decides only what the observations leave open.
_HOLD = 0.01


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


@dataclass(frozen=True)
class PathParameters(ParameterFile):
    """The parameters of the model on a platform. Times in seconds, sizes in bytes.

    `messages` are alpha and beta of single messages by class, which hold where an algorithm's experiments had no
    message of a class. With `receives_first` an eager message leaves when its receive is posted, and the sender of a
    rendezvous message waits until it has arrived; otherwise the first leaves when it is sent, and the sender waits
    until it has left. `fits[collective][algorithm]` is made from `observations`, in the order of its residuals.
    """

    platform: str
    made_by: str
    processes_per_node: int
    eager_limit_bytes: int
    reduce_seconds_per_byte: float
    receives_first: bool
    overheads: Overheads
    messages: Mapping[str, Hockney]
    fits: Mapping[str, Mapping[str, PathFit]] = field(default_factory=dict)
    observations: Mapping[str, Mapping[str, Sequence[Observation]]] = field(default_factory=dict)

    def parameters_of(self, collective: str, algorithm: str) -> dict[str, Hockney]:
        """alpha and beta of every class of messages for an algorithm: its own where it has them."""
        fitted = self.fits.get(collective, {}).get(algorithm)
        return {**self.messages, **(fitted.parameters if fitted else {})}

    def as_document(self) -> dict[str, Any]:
        """The file's content as plain dictionaries and lists."""
        return {
            "format": FORMAT,
            "model": CRITICAL_PATH,
            **{name: getattr(self, name) for name in _NUMBERS_AND_TEXTS},
            "overheads": {name: knots(one) for name, one in vars(self.overheads).items()},
            "messages": pairs_document(self.messages),
            "fits": {
                collective: {
                    name: fit.document(steps=fit.steps, settled=fit.settled, parameters=pairs_document(fit.parameters))
                    for name, fit in fits.items()
                }
                for collective, fits in self.fits.items()
            },
            "observations": observations_document(self.observations),
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any], path: str | Path) -> PathParameters:
        """The parameters in what `read_document` gave. Raises UsageError."""
        if document.get("format") != FORMAT:
            raise UsageError(f"{path}: not a parameter file; make one with: collwise fit --model {CRITICAL_PATH}")
        keys = Keys(path, document)
        overheads, messages = keys.table("overheads"), keys.table("messages")
        receives_first = keys.get("receives_first")
        if not isinstance(receives_first, bool):
            raise keys.wrong("receives_first", "true or false")
        return cls(
            platform=keys.text("platform"),
            made_by=keys.text("made_by"),
            processes_per_node=keys.whole("processes_per_node", 1),
            eager_limit_bytes=keys.whole("eager_limit_bytes", 0),
            reduce_seconds_per_byte=keys.number("reduce_seconds_per_byte", 0),
            receives_first=receives_first,
            overheads=Overheads(*(overheads.function(name) for name in ("send", "start", "receive"))),
            messages={name: read_hockney(messages.table(name)) for name in CLASSES},
            fits={
                collective: {name: _fit(algorithms.table(name)) for name in algorithms.values}
                for collective, algorithms in keys.tables("fits").items()
            },
            observations=read_observations(keys),
        )


def solve(counts: Array, known_seconds: Array, seconds: Array, usual: Array) -> Array:
    """alpha and beta of an algorithm: `counts` @ x + `known_seconds` = `seconds`, an equation for each experiment.

    Each equation is divided by its time and all are solved by Huber regression, as in Nuriyev & Lastovetsky 2021,
    section IV-C. What they leave open, such as the cost of messages that no path has, stays as `usual`.
    """
    rows = np.vstack([counts / seconds[:, None], np.diag(_HOLD / usual)])
    wanted = np.append(1 - known_seconds / seconds, np.full(len(usual), _HOLD))
    return np.array(huber(rows, wanted))


def _fit(keys: Keys) -> PathFit:
    parameters = keys.table("parameters")
    for name in parameters.values:
        if name not in CLASSES:
            raise keys.wrong("parameters", f"tables named {', '.join(CLASSES)}")
    return PathFit(
        read_hockneys(parameters),
        keys.numbers("relative_residuals"),
        keys.whole("steps", 0),
        bool(keys.get("settled")),
    )
