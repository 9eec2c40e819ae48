"""Maps of the speed-ups that other algorithms give at run time, collectives by message sizes."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import geometric_mean

import numpy as np
from matplotlib import colormaps, pyplot as plt
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from collwise.common.units import format_size
from collwise.studies.figures.map_cells import NO_CHOICE, NOT_TIMED, Blank, explain_cells, fill_blanks, heat
from collwise.studies.figures.maps import named_cells
from collwise.studies.figures.style import head
from collwise.validation.measurement.gain import LIBCOLLWISE, RULES, GainRow

_MAX = 2.0
"""The colours end at twice as fast and at half as fast."""

_TICKS = (0.5, 0.7, 1, 1.4, 2)
_NOT_BY_RULES = NO_CHOICE._replace(label="rules cannot express the choice")


def gain_figure(rows: Sequence[GainRow], title: str) -> Figure:
    """Speed-ups over Open MPI's default at one P; those in brackets lie within the confidence intervals."""
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
    head(figure, message, f"{title}; in brackets: within the confidence intervals")
    return figure
