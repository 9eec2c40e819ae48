"""The figure of times, whatever made them: every algorithm over the message size."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from collwise.common.errors import UsageError
from collwise.models.piecewise import Array
from collwise.studies.figures.picks import markers_and_lines
from collwise.validation.times.times import Times


def times_figure(times: Times, procs: int, beside: Times | None = None) -> Figure:
    """The time of every algorithm over m on P processes, and its ratio to the best. Each has its best segment size
    there.

    Measured times have their confidence intervals. With times `beside`, `times` are markers and those beside are lines.
    """
    if procs not in times.procs:
        valid = ", ".join(map(str, times.procs))
        raise UsageError(f"no times of {times.collective} with P = {procs}; valid: {valid}")
    if times.array.ndim > 3:
        raise UsageError(f"a figure needs one value of {times.seconds.dims[-1]}: use isel or sel")
    markers, errors = _fastest(times, procs)
    lines, drawn = markers, f"{times.collective} on {times.platform}, P = {procs}, {times.source} by {times.maker}"
    if beside is not None:
        lines, _ = _fastest(beside.of_grid(times.grid), procs)
        fitted_to = f", fitted to {beside.fitted_to}" if beside.fitted_to else ""
        drawn = f"{drawn} (markers); {beside.title}{fitted_to} (lines)"
    drawn += "; each at its best segment size"
    return markers_and_lines(times.message_bytes, markers, lines, drawn, None if times.is_exact else errors)


def _fastest(times: Times, procs: int) -> tuple[dict[str, Array], dict[str, Array]]:
    """The least seconds of each algorithm over m on P processes, and the half-widths below and above them."""
    at = times.procs.index(procs)
    seconds, widths = times.array[:, at], times.competing(times.half_widths)[:, at]
    found, errors = {}, {}
    for name in times.grid.names:
        mine = [index for index, choice in enumerate(times.choices) if choice.algorithm == name]
        known = np.where(np.isnan(seconds[mine]), np.inf, seconds[mine])
        best, columns = known.argmin(axis=0), np.arange(known.shape[1])
        least = known[best, columns]
        if not np.isfinite(least).any():
            continue
        found[name] = np.where(np.isfinite(least), least, np.nan)
        here = np.where(np.isfinite(widths[mine][best, columns]), widths[mine][best, columns], 0.0)
        errors[name] = np.stack([here, here])
    return found, errors
