"""Fitted parameters as rows of tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from collwise.common.units import format_seconds, format_size
from collwise.models.hockney import Hockney
from collwise.models.lmo import LMO
from collwise.models.parameters import FittedParameters, ModelParameters, PathParameters, WithResiduals
from collwise.models.piecewise import PiecewiseLinear
from collwise.models.plogp import HeterogeneousPLogP
from collwise.models.registry import CRITICAL_PATH

Rows = list[tuple[object, ...]]

ALGORITHM_COLUMNS = ("model", "collective", "algorithm", "part", "alpha (s)", "beta (s/byte)", "mean error", "worst")

_MOST_PAIRS = 12


def fitted_pairs(
    parameters: ModelParameters | PathParameters,
) -> Iterator[tuple[str, tuple[str, str, str], Hockney, WithResiduals]]:
    """Every pair of alpha and beta: its model, its collective, algorithm and part or class of messages, and its fit."""
    fits = {CRITICAL_PATH: parameters.fits} if isinstance(parameters, PathParameters) else parameters.fits
    for model, collectives in fits.items():
        for collective, algorithms in collectives.items():
            for name, fitted in algorithms.items():
                for part, pair in fitted.parameters.items():
                    yield model, (collective, name, part), pair, fitted


def algorithm_rows(parameters: ModelParameters | PathParameters) -> Rows:
    """A row under ALGORITHM_COLUMNS for every part, or class of messages, of every algorithm."""
    return [
        (
            *(model, *place, f"{pair.alpha_seconds:.3e}", f"{pair.beta_seconds_per_byte:.3e}"),
            *(f"{fitted.mean_residual * 100:.1f} %", f"{fitted.worst_residual * 100:.1f} %"),
        )
        for model, place, pair, fitted in fitted_pairs(parameters)
    ]


def parameter_rows(fitted: FittedParameters) -> Rows:
    """Names and values: the parameters, or their means and as many of each pair and processor as a page holds."""
    parameters = fitted.parameters
    rows: Rows = []
    if parameters.heterogeneous:
        rows += [(f"mean {name}", text) for name, text in _texts(parameters.homogeneous())]
        if not isinstance(parameters, HeterogeneousPLogP):
            rows += _rows_of_each(vars(parameters))
    else:
        rows += _texts(parameters)
    if isinstance(parameters, LMO):
        rows += [
            (name, format_size(size) if size is not None else "none found")
            for name, size in vars(parameters.thresholds).items()
        ]
    return rows


def _texts(parameters: Any) -> list[tuple[str, str]]:
    """Every scalar parameter with its value in readable form."""
    found = []
    for name, value in vars(parameters).items():
        if isinstance(value, PiecewiseLinear):
            found += [
                (f"{name}({format_size(int(size))})", format_seconds(seconds))
                for size, seconds in zip(value.message_bytes, value.seconds, strict=True)
            ]
        elif isinstance(value, (int, float)):
            found.append((name, f"{value:.4g}"))
    return found


def _rows_of_each(values: dict[str, Any]) -> Rows:
    rows: Rows = []
    for name, value in values.items():
        if isinstance(value, np.ndarray) and value.ndim == 1:
            rows += [(f"{name}[{i}]", f"{one:.4g}") for i, one in enumerate(value)]
    for name, value in values.items():
        if isinstance(value, np.ndarray) and value.ndim == 2:
            pairs = [(i, j) for i in range(len(value)) for j in range(i + 1, len(value))]
            rows += [(f"{name}[{i},{j}]", f"{value[i, j]:.4g}") for i, j in pairs[:_MOST_PAIRS]]
            if len(pairs) > _MOST_PAIRS:
                rows.append((f"{name}[...]", f"{len(pairs) - _MOST_PAIRS} pairs more in the file"))
    return rows
