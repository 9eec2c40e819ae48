"""A picture of a schedule: processes over time, their messages, and the critical path."""

from __future__ import annotations

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from collwise.common.errors import UsageError
from collwise.simulator.schedule.library import LEAVING, MOVING, ON_WAY, RECEIVING, REDUCING, SEEING, SENDING, Trace
from collwise.studies.figures.style import PALETTE

MAX_PROCS = 64
"""The largest number of processes that a figure shows in separate rows."""

_CRITICAL = PALETTE[1]
_BARS = {
    SENDING: (PALETTE[0], "sending"),
    RECEIVING: (PALETTE[2], "receiving"),
    REDUCING: (PALETTE[3], "reduction"),
    MOVING: (PALETTE[4], "copies by shared memory"),
}
_UNITS = ((1e-3, "us", 1e6), (1.0, "ms", 1e3), (float("inf"), "s", 1.0))


def schedule_figure(trace: Trace, procs: int, title: str) -> Figure:
    """Ranks from top to bottom over time: the processors' work as bars, messages as lines, the critical path in orange.

    Raises UsageError for more than MAX_PROCS processes.
    """
    if procs > MAX_PROCS:
        raise UsageError(f"--draw: {procs} processes are too many to draw (valid: up to {MAX_PROCS})")
    spans = trace.spans
    last = float(spans["end_seconds"].max()) if len(spans) else 0.0
    unit, scale = next((name, scale) for most, name, scale in _UNITS if last < most)
    figure, axis = plt.subplots(figsize=(9, 1.6 + 0.22 * procs))
    critical = np.zeros(len(spans), dtype=bool)
    critical[trace.critical] = True
    begin, end = spans["begin_seconds"] * scale, spans["end_seconds"] * scale
    handles = []
    for kind, (colour, label) in _BARS.items():
        chosen = spans["spent"] == kind
        if chosen.any():
            axis.barh(
                spans["process"][chosen], (end - begin)[chosen], left=begin[chosen], height=0.6, color=colour, zorder=3
            )
            handles.append(Line2D([], [], color=colour, linewidth=6, label=label))
    is_between = np.isin(spans["spent"], (ON_WAY, SEEING))
    for is_critical, colour, width, label in ((0, "#999999", 0.8, "message"), (1, _CRITICAL, 1.8, "critical path")):
        chosen = is_between & (critical == is_critical)
        ends = np.stack([begin[chosen], spans["process"][chosen], end[chosen], spans["peer"][chosen]], axis=1)
        lines = LineCollection(list(ends.reshape(-1, 2, 2)), colors=colour, linewidths=width, zorder=2 + is_critical)
        axis.add_collection(lines)
        handles.append(Line2D([], [], color=colour, linewidth=width, label=label))
    own = critical & ~is_between
    rows = spans["process"][own]
    axis.hlines(rows, begin[own], end[own], color=_CRITICAL, linewidth=2.5, zorder=4)
    waits = spans["spent"] == LEAVING
    axis.hlines(spans["process"][waits], begin[waits], end[waits], color="#CCCCCC", linewidth=4, zorder=1)
    if waits.any():
        handles.append(Line2D([], [], color="#CCCCCC", linewidth=4, label="sender waits"))
    axis.set(xlabel=f"time in {unit}", ylabel="rank", ylim=(procs - 0.4, -0.6), xlim=(0, last * scale * 1.02 or 1))
    axis.yaxis.set_major_locator(MaxNLocator(integer=True))
    axis.set_title(title, fontsize=11)
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), fontsize=9)
    return figure
