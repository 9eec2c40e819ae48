"""Whether estimation finds the parameters that a description has: each procedure on a platform of known ones.

Point-to-point times of an exact platform are os + latency + or, straight in m; what the models call their parameters
follows from it (platforms/truth.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from collwise.models.hockney import Hockney, HockneyBySize
from collwise.models.lmo import LMO
from collwise.models.loggp import LogGP
from collwise.models.parameter_file import FittedParameters
from collwise.models.piecewise import Array
from collwise.models.plogp import HeterogeneousPLogP, PLogP
from collwise.platforms import HostPlatform
from collwise.platforms.truth import PointToPoint, point_to_point
from collwise.validation.estimating import PROCEDURES, Request

# Sizes at which functions of the message size are compared; the first is what stands for an empty message.
SIZES = (1, 1024, 65536)

TOLERANCE = 0.02
LMO_TOLERANCE = 0.05
"""Relative errors that count as found: of all models, and of LMO, whose parameters are differences of times."""


@dataclass(frozen=True)
class Recovered:
    """One parameter by one procedure: its mean true and estimated values, and the worst relative error of any."""

    family: str
    procedure: str
    heterogeneous: bool
    parameter: str
    true: float
    estimated: float
    worst_error: float

    @property
    def ok(self) -> bool:
        """Whether every value is within the tolerance."""
        return self.worst_error <= (LMO_TOLERANCE if self.family == "lmo" else TOLERANCE)


def requests(heterogeneous: bool) -> list[Request]:
    """Every procedure, or every one that has a heterogeneous form."""
    return [
        Request(family, name, heterogeneous)
        for family, procedures in PROCEDURES.items()
        for name, procedure in procedures.items()
        if not heterogeneous or procedure.heterogeneous is not None
    ]


def recover(
    platform: HostPlatform, wanted: Sequence[Request], fit: Callable[[Request], FittedParameters]
) -> list[Recovered]:
    """The parameters that `fit` finds for each request, beside the true ones.

    Raises UsageError for a platform whose true parameters are not known.
    """
    truth = point_to_point(platform)
    found = []
    for one in wanted:
        fitted = fit(one)
        for name, (true, estimated) in _pairs(fitted, _first(truth, fitted.procs)).items():
            errors = np.abs(np.asarray(estimated) / np.asarray(true) - 1)
            found.append(
                Recovered(
                    *(one.family, one.procedure, one.heterogeneous, name),
                    *(float(np.mean(true)), float(np.mean(estimated)), float(np.max(errors))),
                )
            )
    return found


def _first(truth: PointToPoint, procs: int) -> PointToPoint:
    """The truth of the first hosts."""
    cut = {name: value[(slice(procs),) * np.ndim(value)] for name, value in vars(truth).items() if np.ndim(value)}
    return PointToPoint(**cut, eager_limit_bytes=truth.eager_limit_bytes)


def _pairs(fitted: FittedParameters, truth: PointToPoint) -> Mapping[str, tuple[Array, Array]]:
    """By parameter: the true and the estimated values, arrays of one shape."""
    parameters = fitted.parameters
    if isinstance(parameters, HeterogeneousPLogP):
        return _plogp_of_pairs(parameters, truth)
    means = not parameters.heterogeneous
    true = _true_values(fitted, truth)
    if isinstance(parameters, PLogP | HockneyBySize):
        estimated = _functions(parameters)
    else:
        estimated = {name: np.asarray(value) for name, value in _named(parameters).items()}
    return {
        name: (_shaped(true[name], means), _shaped(value, means)) for name, value in estimated.items() if name in true
    }


def _shaped(values: Array, means: bool) -> Array:
    """Means, values of processors, or those of pairs without the diagonal."""
    array = np.asarray(values, dtype=float)
    if array.ndim == 2:
        array = array[~np.eye(len(array), dtype=bool)]
    return np.atleast_1d(np.mean(array) if means else array)


def _named(parameters: Hockney | LogGP | LMO) -> dict[str, Array]:
    if isinstance(parameters, Hockney):
        return {"alpha": np.asarray(parameters.alpha_seconds), "beta": np.asarray(parameters.beta_seconds_per_byte)}
    if isinstance(parameters, LMO):
        return {
            "C": np.asarray(parameters.processor_seconds),
            "t": np.asarray(parameters.processor_seconds_per_byte),
            "L": np.asarray(parameters.latency_seconds),
            "1/beta": np.asarray(parameters.network_seconds_per_byte),
        }
    send, receive = np.asarray(parameters.send_overhead_seconds), np.asarray(parameters.receive_overhead_seconds)
    return {
        "L": np.asarray(parameters.latency_seconds),
        "o_s": send,
        "o_r": receive,
        "o": (send + receive) / 2,
        "g": np.asarray(parameters.gap_seconds),
        "G": np.asarray(parameters.gap_seconds_per_byte),
    }


def _functions(parameters: PLogP | HockneyBySize) -> dict[str, Array]:
    if isinstance(parameters, HockneyBySize):
        return {f"T({size} B)": np.asarray(parameters.predict(size)) for size in SIZES}
    found = {"L": np.asarray(parameters.latency_seconds)}
    for size in SIZES:
        found[f"o_s({size} B)"] = parameters.send_overhead(size)
        found[f"o_r({size} B)"] = parameters.receive_overhead(size)
        found[f"g({size} B)"] = parameters.gap(size)
    return found


def _plogp_of_pairs(parameters: HeterogeneousPLogP, truth: PointToPoint) -> dict[str, tuple[Array, Array]]:
    """PLogP of pairs: its functions at SIZES, over all pairs; overheads belong to the sender and the receiver."""
    n = len(parameters.pairs)
    found: dict[str, tuple[list[float], list[float]]] = {}
    for i in range(n):
        for j in range(n):
            pair = parameters.pairs[i][j]
            if pair is None:
                continue
            true = _plogp_values(_pair_truth(truth, i, j))
            for name, value in _functions(pair).items():
                found.setdefault(name, ([], []))[0].append(float(true[name]))
                found[name][1].append(float(value))
    return {name: (np.array(true), np.array(value)) for name, (true, value) in found.items()}


def _pair_truth(truth: PointToPoint, sender: int, receiver: int) -> PointToPoint:
    """The truth of two processors, either of them with its own parameters."""
    pair = [sender, receiver]
    return PointToPoint(
        truth.send_seconds[pair],
        truth.send_seconds_per_byte[pair],
        truth.receive_seconds[pair],
        truth.receive_seconds_per_byte[pair],
        truth.latency_seconds[np.ix_(pair, pair)],
        truth.network_seconds_per_byte[np.ix_(pair, pair)],
        truth.eager_limit_bytes,
    )


def _true_values(fitted: FittedParameters, truth: PointToPoint) -> dict[str, Array]:
    """What the estimated parameters are called in the model, from the times of the description."""
    if fitted.family == "hockney":
        return {"alpha": truth.alpha_seconds, "beta": truth.beta_seconds_per_byte}
    if fitted.family == "lmo":
        return {
            "C": truth.processor_seconds,
            "t": truth.processor_seconds_per_byte,
            "L": truth.latency_seconds,
            "1/beta": truth.network_seconds_per_byte,
        }
    if fitted.family == "hockney_by_size":
        return {f"T({size} B)": _one_way(truth, size) for size in SIZES}
    if fitted.family == "plogp":
        return _plogp_values(truth)
    return _loggp_values(fitted, truth)


def _one_way(truth: PointToPoint, message_bytes: float) -> Array:
    return truth.alpha_seconds + truth.beta_seconds_per_byte * message_bytes


def _overheads(truth: PointToPoint, message_bytes: float) -> tuple[Array, Array]:
    send = truth.send_seconds + truth.send_seconds_per_byte * message_bytes
    return send, truth.receive_seconds + truth.receive_seconds_per_byte * message_bytes


def _gap(truth: PointToPoint, message_bytes: float) -> Array:
    """Between two messages of a row: the slower of sender and receiver, (n, n)."""
    send, receive = _overheads(truth, message_bytes)
    return np.maximum(send[:, None], receive[None, :])


def _loggp_values(fitted: FittedParameters, truth: PointToPoint) -> dict[str, Array]:
    """o_s, o_r and g of a message of one byte, G the slope of the gap, L what is left of the time of one byte."""
    send, receive = _overheads(truth, SIZES[0])
    latency = _one_way(truth, SIZES[0]) - send[:, None] - receive[None, :]
    values = {"L": latency, "o": (send + receive) / 2, "g": _gap(truth, SIZES[0])}
    if fitted.procedure != "hoefler":
        values |= {"o_s": send, "o_r": receive}
    if fitted.family == "loggp":
        values["G"] = np.maximum(truth.send_seconds_per_byte[:, None], truth.receive_seconds_per_byte[None, :])
    return values


def _plogp_values(truth: PointToPoint) -> dict[str, Array]:
    """o_s(m), o_r(m), g(m), and L what the time of a byte has beyond its gap; means where there are several pairs."""
    found = {"L": _mean(_one_way(truth, SIZES[0]) - _gap(truth, SIZES[0]))}
    for size in SIZES:
        send, receive = _overheads(truth, size)
        found |= {f"o_s({size} B)": send[:1] if len(send) == 2 else send, f"g({size} B)": _mean(_gap(truth, size))}
        found[f"o_r({size} B)"] = receive[1:] if len(receive) == 2 else receive
    return found


def _mean(pairs: Array) -> Array:
    return np.asarray(pairs[0, 1] if len(pairs) == 2 else np.mean(pairs[~np.eye(len(pairs), dtype=bool)]))
