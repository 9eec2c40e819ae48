"""Maps of the speed-ups that other algorithms give at run time, collectives by message sizes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure

from collwise.common.units import format_size
from collwise.validation.measurement.gain import LIBCOLLWISE, RULES, GainRow

# The colours end at twice as fast and at half as fast.
_MOST = 1.0


def gain_figure(rows: Sequence[GainRow], title: str) -> Figure:
    """Speed-ups over Open MPI's default at one P; those in brackets lie within the confidence intervals."""
    names = list(dict.fromkeys(row.collective for row in rows))
    sizes = sorted({row.message_bytes for row in rows})
    by_key = {(row.collective, row.message_bytes): row for row in rows}
    width, height = 2.4 + 1.5 * len(sizes), 1.3 + 0.42 * len(names)
    figure, axes = plt.subplots(1, 2, figsize=(max(width, 8.0), height), sharey=True)
    norm = TwoSlopeNorm(0, -_MOST, _MOST)
    for axis, way, heading in zip(axes, (RULES, LIBCOLLWISE), ("Open MPI by rules file", "libcollwise"), strict=True):
        gains = np.full((len(names), len(sizes)), np.nan)
        for (name, size), row in by_key.items():
            gains[names.index(name), sizes.index(size)] = row.speedup(way)
        picture = axis.imshow(np.log2(gains), norm=norm, cmap="RdBu", aspect="auto")
        for (name, size), row in by_key.items():
            gain = row.speedup(way)
            text = "–" if np.isnan(gain) else f"{gain:.2f}" if row.significant(way) else f"({gain:.2f})"
            dark = not np.isnan(gain) and abs(np.log2(gain)) > 0.65 * _MOST
            where = sizes.index(size), names.index(name)
            axis.text(*where, text, ha="center", va="center", fontsize=8.5, color="white" if dark else "black")
        axis.set_xticks(range(len(sizes)), [format_size(size) for size in sizes], rotation=45, ha="right")
        axis.set_yticks(range(len(names)), names)
        axis.grid(False)
        axis.set_title(heading, fontsize=10)
        axis.set_xlabel("message size m")
    bar = figure.colorbar(picture, ax=axes, ticks=[-1, -0.5, 0, 0.5, 1])
    bar.ax.set_yticklabels(["0.5", "0.71", "1", "1.41", "2"])
    bar.set_label("default time / time")
    figure.suptitle(title, fontsize=11)
    return figure
