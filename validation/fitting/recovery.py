"""Checks that fitting finds the known parameters of a platform's description, by every procedure.

Point-to-point times of an exact platform are smpi/os + latency + smpi/or, linear in m; the parameters of the models
follow from these times (platforms/linear_costs.py). A procedure is tried only if the platform meets the assumptions of
the procedure's paper (see `objection`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from collwise.models.fitting.procedures import PROCEDURES, FitRequest
from collwise.models.interface import entry
from collwise.models.parameters import FittedParameters, Parameters
from collwise.models.piecewise import Array, PiecewiseLinear
from collwise.models.single_messages import LMO, HeterogeneousPLogP, Hockney, HockneyBySize, LogGP, PLogP
from collwise.platforms import HostPlatform
from collwise.platforms.linear_costs import PointToPoint, point_to_point

# Eager sizes at which functions of the message size are compared; the first stands for an empty message.
SIZES = (1, 1024, 65536)

TOLERANCE = 0.02
LMO_TOLERANCE = 0.05
"""Relative errors up to which a parameter counts as found. The one for LMO is larger, since LMO's parameters are
differences of times."""

PLATFORMS = ("exact", "exact-sender", "exact-symmetric", "exact-heterogeneous")
"""The platforms made for these checks; together they suit every procedure."""

_NEGLIGIBLE = 1e-3


@dataclass(frozen=True)
class Recovered:
    """One parameter by one procedure: the means of its true and estimated values, and the worst relative error.

    If the true value is 0, the error is relative to the time of the smallest message.
    """

    platform: str
    family: str
    procedure: str
    heterogeneous: bool
    parameter: str
    true: float
    estimated: float
    worst_error: float

    @property
    def ok(self) -> bool:
        """True if every value is within the tolerance."""
        return self.worst_error <= (LMO_TOLERANCE if self.family == "lmo" else TOLERANCE)


def objection(wanted: FitRequest, truth: PointToPoint) -> str:
    """The procedure's assumption that does not hold on the platform; empty if all hold."""
    equal_ends = np.allclose(truth.send_seconds, truth.receive_seconds, rtol=_NEGLIGIBLE) and np.allclose(
        truth.send_seconds_per_byte, truth.receive_seconds_per_byte, rtol=_NEGLIGIBLE
    )
    if wanted.procedure in ("hoefler", "triplets") and not equal_ends:
        return "assumes that sending and receiving cost the same"
    if wanted.procedure == "hoefler" and _gap_bends(truth):
        return "assumes that the gap is linear in the message size"
    if wanted.procedure in ("kielmann", "fitted") and not _grows_in_one_place(truth):
        return "assumes that only the gap grows with the message size"
    if wanted.procedure == "fitted" and np.any(truth.receive_seconds > 0):
        return "assumes that the messages of a barrier are received concurrently"
    return ""


def _grows_in_one_place(truth: PointToPoint) -> bool:
    parts = (truth.send_seconds_per_byte, truth.receive_seconds_per_byte, truth.network_seconds_per_byte)
    *_, second, largest = sorted(map(np.max, parts))
    return bool(second <= _NEGLIGIBLE * largest)


def _gap_bends(truth: PointToPoint) -> bool:
    """True if, in some pair, the sender is slower than the receiver for some sizes and faster for others."""
    by_base = np.sign(truth.send_seconds[:, None] - truth.receive_seconds[None, :])
    by_byte = np.sign(truth.send_seconds_per_byte[:, None] - truth.receive_seconds_per_byte[None, :])
    return bool(np.any(by_base * by_byte < 0))


def requests(heterogeneous: bool) -> list[FitRequest]:
    """A request for every procedure, or for every procedure that has a heterogeneous form."""
    return [
        FitRequest(family, name, heterogeneous)
        for family, procedures in PROCEDURES.items()
        for name, procedure in procedures.items()
        if not heterogeneous or not procedure.means_only
    ]


def recover(
    platform: HostPlatform, wanted: Sequence[FitRequest], fit: Callable[[FitRequest], FittedParameters]
) -> list[Recovered]:
    """The parameters that `fit` finds for each request that suits the platform, with the true ones."""
    truth = point_to_point(platform)
    return [
        Recovered(platform.name, request.family, request.procedure, request.heterogeneous, *row)
        for request in wanted
        if not objection(request, truth)
        for row in _compared(fit(request), truth)
    ]


def _compared(fitted: FittedParameters, truth: PointToPoint) -> list[tuple[str, float, float, float]]:
    """Each parameter's true and estimated mean over all pairs, and the worst error, of any pair or of the means."""
    pairs = list(permutations(range(fitted.procs), 2))
    sizes = [size for size in SIZES if size < truth.eager_limit_bytes]
    true = [named(true_parameters(fitted.family, truth, i, j, sizes), i, j, sizes) for i, j in pairs]
    one_way = min(float(truth.seconds(SIZES[0], i, j)) for i, j in pairs)
    if fitted.parameters.heterogeneous:
        estimated = [named(fitted.parameters, i, j, sizes) for i, j in pairs]
    else:
        estimated = [named(fitted.parameters, 0, 1, sizes)]
        true = [{name: float(np.mean([record[name] for record in true])) for name in true[0]}]
    rows = []
    left_out = (() if fitted.family == "loggp" else ("G",)) + (("o_s", "o_r") if fitted.procedure == "hoefler" else ())
    for name in (key for key in true[0] if key not in left_out):
        expected = np.array([record[name] for record in true])
        found = np.array([record[name] for record in estimated])
        errors = np.abs(found - expected) / np.where(expected != 0, np.abs(expected), one_way)
        rows.append((name, float(np.mean(expected)), float(np.mean(found)), float(np.max(errors))))
    return rows


def named(parameters: object, i: int = 0, j: int = 1, sizes: Sequence[int] = ()) -> dict[str, float]:
    """The parameters of a message from i to j by name; functions of the message size have a value for each size."""
    if isinstance(parameters, HeterogeneousPLogP):
        parameters = parameters.pairs[i][j]
    if isinstance(parameters, Hockney):
        return {
            "alpha": entry(parameters.alpha_seconds, i, j),
            "beta": entry(parameters.beta_seconds_per_byte, i, j),
        }
    if isinstance(parameters, HockneyBySize):
        return {f"T({size} B)": float(parameters.predict(size)) for size in sizes}
    if isinstance(parameters, LMO):
        return {
            "C": entry(parameters.processor_seconds, i),
            "t": entry(parameters.processor_seconds_per_byte, i),
            "L": entry(parameters.latency_seconds, i, j),
            "1/beta": entry(parameters.network_seconds_per_byte, i, j),
        }
    if isinstance(parameters, PLogP):
        found = {"L": parameters.latency_seconds}
        for size in sizes:
            found[f"o_s({size} B)"] = float(parameters.send_overhead(size))
            found[f"o_r({size} B)"] = float(parameters.receive_overhead(size))
            found[f"g({size} B)"] = float(parameters.gap(size))
        return found
    assert isinstance(parameters, LogGP)
    send, receive = entry(parameters.send_overhead_seconds, i), entry(parameters.receive_overhead_seconds, j)
    return {
        "L": entry(parameters.latency_seconds, i, j),
        "o": (send + receive) / 2,
        "g": entry(parameters.gap_seconds, i, j),
        "o_s": send,
        "o_r": receive,
        "G": entry(parameters.gap_seconds_per_byte, i, j),
    }


def true_parameters(
    family: str, truth: PointToPoint, i: int = 0, j: int = 1, sizes: Sequence[int] = SIZES
) -> Parameters:
    """The true parameters of a family, some of them only for messages from i to j and at these sizes."""
    if family == "hockney":
        return Hockney(truth.alpha_seconds, truth.beta_seconds_per_byte)
    if family == "lmo":
        processors = (truth.processor_seconds, truth.processor_seconds_per_byte)
        return LMO(*processors, truth.latency_seconds, truth.network_seconds_per_byte)
    m = np.array(sizes, dtype=float)
    one_way = truth.seconds(m, i, j)
    send = truth.send_seconds[i] + truth.send_seconds_per_byte[i] * m
    receive = truth.receive_seconds[j] + truth.receive_seconds_per_byte[j] * m
    gap = np.maximum(np.maximum(send, receive), truth.network_seconds_per_byte[i, j] * m)

    def function(seconds: Array) -> PiecewiseLinear:
        return PiecewiseLinear(tuple(m.tolist()), tuple(seconds.tolist()))

    if family == "hockney_by_size":
        return HockneyBySize(function(one_way))
    if family == "plogp":
        return PLogP(float(one_way[0] - gap[0]), function(send), function(receive), function(gap))
    per_byte = (gap[-1] - gap[0]) / (m[-1] - m[0])
    latency = one_way[0] - send[0] - receive[0]
    return LogGP(float(latency), float(send[0]), float(receive[0]), float(gap[0]), float(per_byte))
