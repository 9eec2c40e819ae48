"""Fitted parameters of models and fitted figures of platforms, and what they were estimated from."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from collwise.calibrations import FittedFigures
from collwise.common.units import format_seconds, format_size
from collwise.models.parameters import FittedParameters, ModelParameters, PathParameters
from collwise.models.piecewise import PiecewiseLinear
from collwise.models.registry import CRITICAL_PATH
from collwise.models.single_messages import LMO, FurtherGap, HeterogeneousPLogP
from collwise.predictions import FittedModel
from collwise.studies.present.shown import Shown, Table
from collwise.studies.reports.markdown import percent
from collwise.validation.calibration.figures import FIGURES

Rows = list[tuple[object, ...]]

ALGORITHM_COLUMNS = ("model", "collective", "algorithm", "part", "alpha (s)", "beta (s/byte)", "mean error", "worst")

_MAX_PAIRS = 12


def shown(fitted: FittedModel) -> Shown:
    """The parameters, or the alphas and betas of all algorithms with their residuals."""
    found, table = fitted.parameters, fitted.table()
    columns, rows = list(table.columns), table.to_numpy()
    if isinstance(found, FittedParameters):
        name = f"{found.family} by {found.procedure}"
        title = f"{name}, {found.platform}, {found.procs} processes"
        effort = f"{found.measurements} measurements, {format_seconds(found.seconds)} on the platform"
        parts: list[Table | str] = [
            Table(title, columns, rows, left=2),
            *found.notes,
            effort,
            f"{name}, {found.made_by}",
        ]
        return Shown(parts, [found.as_document()])
    if isinstance(found, PathParameters):
        when = "when their receive is posted" if found.receives_first else "even if their receive is not posted yet"
        first = f"eager messages leave {when}"
    else:
        gamma = found.gamma(np.arange(2, 9), found.segment_bytes)
        first = f"gamma(2..8) at {format_size(found.segment_bytes)}: {', '.join(f'{value:.3f}' for value in gamma)}"
    every = [
        observation for algorithms in found.observations.values() for fit in algorithms.values() for observation in fit
    ]
    title = f"{found.platform}, P = {', '.join(map(str, sorted({observation.procs for observation in every})))}"
    return Shown([first, Table(title, columns, rows, left=4), found.made_by], [found.as_document()])


def algorithm_rows(parameters: ModelParameters | PathParameters) -> Rows:
    """A row under ALGORITHM_COLUMNS for every part, or class of messages, of every algorithm."""
    fits = {CRITICAL_PATH: parameters.fits} if isinstance(parameters, PathParameters) else parameters.fits
    rows: Rows = []
    for model, collectives in fits.items():
        for collective, algorithms in collectives.items():
            for name, fitted in algorithms.items():
                errors = (f"{fitted.mean_residual * 100:.1f} %", f"{fitted.worst_residual * 100:.1f} %")
                for part, pair in fitted.parameters.items():
                    numbers = (f"{pair.alpha_seconds:.3e}", f"{pair.beta_seconds_per_byte:.3e}")
                    rows.append((model, collective, name, part, *numbers, *errors))
    return rows


def parameter_rows(fitted: FittedParameters) -> Rows:
    """Rows with the names and values of the parameters.

    If nodes differ, these are the means, then the values of each processor and of as many pairs as a page holds.
    """
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
        elif isinstance(value, FurtherGap):
            found += [
                (f"{name}({count:g} receivers)", f"{seconds:.4g}")
                for count, seconds in zip(value.receivers, value.seconds, strict=True)
            ]
        elif isinstance(value, (int, float)):
            found.append((name, f"{value:.4g}"))
    return found


def _rows_of_each(values: dict[str, Any]) -> Rows:
    rows: Rows = []
    for name, value in values.items():
        if isinstance(value, np.ndarray) and value.ndim == 1:
            rows += [(f"{name}[{i}]", f"{item:.4g}") for i, item in enumerate(value)]
    for name, value in values.items():
        if isinstance(value, np.ndarray) and value.ndim == 2:
            pairs = [(i, j) for i in range(len(value)) for j in range(i + 1, len(value))]
            rows += [(f"{name}[{i},{j}]", f"{value[i, j]:.4g}") for i, j in pairs[:_MAX_PAIRS]]
            if len(pairs) > _MAX_PAIRS:
                rows.append((f"{name}[...]", f"{len(pairs) - _MAX_PAIRS} more pairs in the file"))
    return rows


_CROSSED = "Each collective, or kind of messages, when predicted from the others"


def figures(found: FittedFigures) -> Shown:
    """The fitted figures of a platform, predictions of each collective from the others, and what to measure next."""
    name = found.platform.name
    figures = [
        (FIGURES[figure].title, f"{item['before']:.3g}", f"{item['fitted']:.3g}", f"x {item['factor']:.2f}",
         f"x {item['low']:.2f} to {item['high']:.2f}", "yes" if item["told"] else "hardly")
        for figure, item in found.figures.items()
    ]  # fmt: skip
    title = f"Figures of {name} by {found.used} of {found.measured} measured times (s, s per byte)"
    parts: list[Table | str] = [
        Table(title, ("figure", "before", "fitted", "factor", "95 % interval", "determined by the times"), figures)
    ]
    if found.crossed:
        crossed = [
            (collective, percent(float(np.median(cells.errors))), percent(float(np.mean(cells.regrets or [math.nan]))))
            for collective, cells in found.crossed.items()
        ]
        parts.append(Table(_CROSSED, ("collective", "median error", "choices lose"), crossed))
    telling = [(case.collective, case.algorithm, case.procs, format_size(case.message_bytes)) for case in found.telling]
    parts += [
        Table("To measure next: cases that would help most to choose", ("collective", "algorithm", "P", "m"), telling),
        "hardly determined figures stay mostly as before; the latency is that of both links of a message",
        *found.notes,
    ]
    facts = {"platform": name, "eager_limit_bytes": found.platform.calibration.eager_limit_bytes}
    return Shown(parts, [{"figure": figure, **item} for figure, item in found.figures.items()], facts)
