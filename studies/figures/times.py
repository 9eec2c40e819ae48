"""The figure of times, whatever made them: every algorithm over the message size."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from collwise.common.errors import UsageError
from collwise.studies.figures.picks import markers_and_lines
from collwise.validation.times.times import Times


def times_figure(times: Times, procs: int) -> Figure:
    """The time of every algorithm over m on P processes, at its best segment size there, and its ratio to the best.

    Measured times have their confidence intervals. Raises UsageError for a P without times, and for times with more
    dimensions than choices, P and m.
    """
    if procs not in times.procs:
        valid = ", ".join(map(str, times.procs))
        raise UsageError(f"no times of {times.collective} with P = {procs}; valid: {valid}")
    if times.array.ndim > 3:
        raise UsageError(f"a figure of times over {times.seconds.dims[-1]} needs one of its values: use isel or sel")
    at = times.procs.index(procs)
    seconds, widths = times.array[:, at], times.competing(times.half_widths)[:, at]
    lines, errors = {}, {}
    for name in times.grid.names:
        mine = [index for index, choice in enumerate(times.choices) if choice.algorithm == name]
        known = np.where(np.isnan(seconds[mine]), np.inf, seconds[mine])
        best, columns = known.argmin(axis=0), np.arange(known.shape[1])
        least = known[best, columns]
        if not np.isfinite(least).any():
            continue
        lines[name] = np.where(np.isfinite(least), least, np.nan)
        here = np.where(np.isfinite(widths[mine][best, columns]), widths[mine][best, columns], 0.0)
        errors[name] = np.stack([here, here])
    title = f"{times.collective} on {times.platform}, P = {procs}"
    legend = f"{times.source} by {times.maker}\n(each at its best segment size)"
    return markers_and_lines(times.message_bytes, lines, lines, title, legend, None if times.is_exact else errors)
