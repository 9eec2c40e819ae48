"""Figures of running programs: an application's times and speed-ups, and maps of measured gains."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import geometric_mean

import numpy as np
import pandas as pd
from matplotlib import colormaps, pyplot as plt
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from collwise.common.units import format_size
from collwise.studies.figures.map_cells import NO_CHOICE, NOT_TIMED, Blank, explain_cells, fill_blanks, heat
from collwise.studies.figures.maps import named_cells
from collwise.studies.figures.style import MARKERS, PALETTE, head, label_lines
from collwise.validation.measurement.gain import LIBCOLLWISE, RULES, GainRow


def application_figure(times: pd.DataFrame, title: str) -> Figure:
    """The times under each choice of collectives at the largest P, and speed-ups if P varies. Failures are left out."""
    times = times[times.error == ""]
    counts = sorted(times.procs.unique())
    names = list(dict.fromkeys(times.collectives))
    height = 1.6 + 0.4 * len(names)
    if len(counts) == 1:
        figure, bars = plt.subplots(figsize=(7, height))
    else:
        figure, (bars, lines) = plt.subplots(1, 2, figsize=(10, max(height, 3.2)))
        _draw_speedups(lines, times, names)
    largest = times[times.procs == counts[-1]]
    _draw_bars(bars, largest)
    best = largest.loc[largest.speedup.idxmax()]
    faster = f"{best.collectives} is x {best.speedup:.2f} as fast as {names[0]}"
    head(figure, faster if best.speedup > 1 else f"Nothing is faster than {names[0]}", title)
    if len(counts) > 1:
        label_lines(lines)
    return figure


def _draw_bars(axis: Axes, times: pd.DataFrame) -> None:
    computing = times.seconds - times.mean_seconds
    axis.barh(times.collectives, times.mean_seconds, color=PALETTE[1], label="in collectives, mean over processes")
    axis.barh(times.collectives, computing, left=times.mean_seconds, color=PALETTE[5], label="otherwise")
    for place, item in enumerate(times.itertuples()):
        text = f" {item.mean_share * 100:.1f} %, {item.speedup:.2f}x"
        axis.text(item.seconds, place, text, va="center", fontsize=8.5)
    axis.set_xlim(0, 1.3 * times.seconds.max())
    axis.invert_yaxis()
    axis.grid(False)
    axis.set_xlabel(f"seconds, P = {times.procs.iloc[0]}")
    axis.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.22), ncols=2)


def _draw_speedups(axis: Axes, times: pd.DataFrame, names: list[str]) -> None:
    for number, name in enumerate(names):
        mine = times[times.collectives == name].sort_values("procs")
        style = number % len(PALETTE)
        axis.plot(mine.procs, mine.speedup, marker=MARKERS[style], color=PALETTE[style], label=name)
    counts = sorted(times.procs.unique())
    axis.set_xscale("log", base=2)
    axis.set_xticks(counts, [str(count) for count in counts])
    axis.minorticks_off()
    axis.set_xlabel("processes P")
    axis.set_ylabel(f"speed-up over {names[0]}")


_MAX = 2.0
"""The colour scale reaches from half as fast to twice as fast."""

_TICKS = (0.5, 0.7, 1, 1.4, 2)
_NOT_BY_RULES = NO_CHOICE._replace(label="rules cannot express the choice")


def gain_figure(rows: Sequence[GainRow], title: str) -> Figure:
    """Speed-ups over Open MPI's default at one P; speed-ups in brackets are within the confidence intervals."""
    names = list(dict.fromkeys(row.collective for row in rows))
    sizes = sorted({row.message_bytes for row in rows})
    labels = [format_size(size) for size in sizes]
    width, height = 2.6 + 1.5 * len(sizes), 2.0 + 0.36 * len(names)
    figure, axes = plt.subplots(1, 2, figsize=(max(width, 8.0), height), sharey=True)
    colours = (colormaps["RdBu"], LogNorm(1 / _MAX, _MAX))
    blanks: list[Blank] = []
    means = []
    for axis, way, heading in zip(axes, (RULES, LIBCOLLWISE), ("Open MPI's rules", "libcollwise"), strict=True):
        gains = np.full((len(names), len(sizes)), np.nan)
        measured = np.zeros_like(gains, dtype=bool)
        texts = {}
        for row in rows:
            at = names.index(row.collective), sizes.index(row.message_bytes)
            gains[at], measured[at] = row.speedup(way), True
            if np.isfinite(gains[at]):
                texts[at] = f"{gains[at]:.2f}" if row.significant(way) else f"({gains[at]:.2f})"
        across, upwards = named_cells(axis, labels, names)
        heat(axis, across, upwards, gains, colours, texts)
        blanks += fill_blanks(axis, across, upwards, {NOT_TIMED: ~measured, _NOT_BY_RULES: measured & np.isnan(gains)})
        if known := gains[np.isfinite(gains)].tolist():
            means.append(f"x {geometric_mean(known):.2f} as fast by {heading}")
        axis.set_title(heading, fontsize=10)
        axis.set_xlabel("message size m")
    bar = figure.colorbar(ScalarMappable(colours[1], colours[0]), ax=axes, extend="both", aspect=16)
    bar.set_ticks(_TICKS, labels=[f"{tick:g}" for tick in _TICKS])
    bar.ax.minorticks_off()
    bar.set_label("default time / time\n(above 1: faster)")
    explain_cells(figure, blanks, fontsize=9)
    message = f"On average {', '.join(means)}" if means else ""
    head(figure, message, f"{title}; in brackets: differences within the confidence intervals")
    return figure
