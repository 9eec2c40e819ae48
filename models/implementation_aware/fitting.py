"""Fitting gamma(p), and alpha and beta of each algorithm: Nuriyev & Lastovetsky 2021, section IV.

Each experiment gives one equation, linear in the parameters and divided by its time, so that residuals are relative.
Huber regression with non-negative parameters solves an algorithm's equations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from collwise.common.errors import CollwiseError
from collwise.models.implementation_aware import bcast, gather
from collwise.models.implementation_aware.message_counts import Formula, Gamma, Messages
from collwise.models.implementation_aware.model import protocol_sums
from collwise.models.interface import Points
from collwise.models.parameters import AlgorithmFit, Observation
from collwise.models.piecewise import Array
from collwise.models.registry import AS_PRINTED, BY_PARTS, MODELS
from collwise.models.single_messages import Hockney

# Relative residuals up to this size count by their square, larger ones linearly (Huber).
HUBER_RELATIVE = 0.02


def fit_gamma(seconds: Mapping[int, Mapping[int, float]]) -> Gamma:
    """gamma = T(p) / T(2) (IV-B), from seconds by message bytes, then by p = 2, 3, ... without gaps."""
    sizes = sorted(seconds)
    rows = []
    for size in sizes:
        procs = sorted(seconds[size])
        if procs != list(range(2, 2 + len(procs))):
            raise ValueError(f"gamma needs every p, starting at 2, not {procs}")
        rows.append(tuple(seconds[size][p] / seconds[size][2] for p in procs))
    return Gamma(tuple(map(float, sizes)), tuple(rows))


def fit_hockney(message_bytes: Sequence[float], seconds: Sequence[float]) -> Hockney:
    """alpha and beta of one message, fitted to one-way times (half a roundtrip) with relative residuals."""
    sizes, times = np.asarray(message_bytes, dtype=float), np.asarray(seconds, dtype=float)
    return Hockney(*huber(np.column_stack([np.ones_like(sizes), sizes]) / times[:, None]))


def fit_algorithm(
    model: str,
    collective: str,
    algorithm: str,
    observations: Sequence[Observation],
    gamma: Gamma,
    eager_limit_bytes: int,
    formula: Formula | None = None,
) -> AlgorithmFit:
    """alpha and beta of every part and protocol in the observations, fitted with `formula`, by default the model's.

    In the model as printed, one alpha and beta also serve the closing gather of 'bcast_gather' (figure 4). In the model
    by parts, the closing gather has its own alpha and beta, and each segment size, if there are several, is also fitted
    alone (section VI). Raises CollwiseError when there are no observations.
    """
    if not observations:
        raise CollwiseError(f"no experiments to fit {collective} {algorithm} from")
    formula = formula or MODELS[model].formulas[collective][algorithm]
    equations = _equations(model, collective, formula, observations, gamma, eager_limit_bytes)
    seconds = np.array([observation.seconds for observation in observations])
    parameters = _solve(equations, seconds)
    with_segments = (one for one in observations if one.experiment in ("collective", "bcast_gather"))
    segments = sorted({one.segment_bytes for one in with_segments})
    by_segment = {}
    if model == BY_PARTS and len(segments) > 1:
        for segment in segments:
            used = [index for index, observation in enumerate(observations) if _tells_about(observation, segment)]
            by_segment[segment] = _solve([equations[index] for index in used], seconds[used])
    fitted = AlgorithmFit(parameters, (), by_segment or None)
    residuals = tuple(
        _predicted(equation, fitted.parameters_for(observation.segment_bytes)) / observation.seconds - 1
        for equation, observation in zip(equations, observations, strict=True)
    )
    return replace(fitted, residuals=residuals)


def _tells_about(observation: Observation, segment_bytes: int) -> bool:
    """True if an observation would be the same with that segment size; with size 0, every message is one segment."""
    if observation.experiment in ("exchange", "gather") or observation.segment_bytes == segment_bytes:
        return True
    longest = min(observation.segment_bytes or np.inf, segment_bytes or np.inf)
    return observation.message_bytes <= longest


def _solve(equations: Sequence[Mapping[str, tuple[float, float]]], seconds: Array) -> dict[str, Hockney]:
    names = sorted({name for equation in equations for name in equation})
    rows = [[value for name in names for value in equation.get(name, (0.0, 0.0))] for equation in equations]
    solution = huber(np.array(rows) / seconds[:, None])
    return {name: Hockney(*solution[2 * i : 2 * i + 2]) for i, name in enumerate(names)}


def _predicted(equation: Mapping[str, tuple[float, float]], parameters: Mapping[str, Hockney]) -> float:
    return sum(
        count * float(parameters[name].alpha_seconds) + total * float(parameters[name].beta_seconds_per_byte)
        for name, (count, total) in equation.items()
    )


def _equations(
    model: str,
    collective: str,
    formula: Formula,
    observations: Sequence[Observation],
    gamma: Gamma,
    eager_limit_bytes: int,
) -> list[dict[str, tuple[float, float]]]:
    """The number and total bytes of each observation's messages, by part and protocol, without zeros."""
    found: list[dict[str, tuple[float, float]]] = [{} for _ in observations]
    alike: dict[tuple[str, int], list[int]] = {}
    for index, one in enumerate(observations):
        alike.setdefault((one.experiment, one.parameter), []).append(index)
    for (experiment, parameter), indices in alike.items():
        some = [observations[index] for index in indices]
        procs, sizes, segments = zip(*((one.procs, one.message_bytes, one.segment_bytes) for one in some), strict=True)
        points = Points.of(procs, sizes, segments, parameter, eager_limit_bytes=eager_limit_bytes)
        parts: list[Messages] = []
        if experiment == "exchange":
            parts += bcast.split_binary_exchange(points, gamma)
        elif experiment != "gather":
            parts += formula(points, gamma)
        if experiment in ("bcast_gather", "gather"):
            name = "main" if model == AS_PRINTED else "closing_gather"
            closing = gather.linear(Points.of(procs, [one.gather_bytes for one in some]), gamma)
            parts += [Messages(name, part.count, part.bytes_each) for part in closing]
        for name, (counts, totals) in protocol_sums(model, collective, parts, points).items():
            for index, count, total in zip(indices, counts, totals, strict=True):
                if count:
                    found[index][name] = (float(count), float(total))
    return found


def huber(columns: Array, wanted: Array | None = None) -> list[float]:
    """Non-negative x with columns @ x near 1, or near `wanted`, by Huber's loss on the relative residuals."""
    # Predictions import this module without solving anything, and SciPy takes most of a second to import.
    from scipy.optimize import least_squares

    scale = np.linalg.norm(columns, axis=0)
    scale[scale == 0] = 1.0
    scaled = columns / scale
    near = np.ones(len(scaled)) if wanted is None else wanted

    start = np.maximum(np.linalg.lstsq(scaled, near, rcond=None)[0], 1e-9)
    solution = least_squares(
        lambda x: scaled @ x - near,
        start,
        jac=lambda x: scaled,
        bounds=(0.0, np.inf),
        loss="huber",
        f_scale=HUBER_RELATIVE,
        **dict.fromkeys(("xtol", "ftol", "gtol"), 1e-12),
    )
    return [float(value) for value in solution.x / scale]
