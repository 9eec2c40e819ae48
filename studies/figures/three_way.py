"""Figures of the three-way comparison: measured, simulated and predicted times on a test bed."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from collwise.common.units import format_size
from collwise.studies.figures.style import MARKERS, PALETTE, seconds_axis, size_axis
from collwise.validation.three_way.scores import RankAgreement
from collwise.validation.three_way.table import SIMULATED, ours, own, predicted_by
from collwise.validation.three_way.verdict import LIMITS, MEDIAN_ERROR

# Slowdowns above this, in percent, have the darkest colour.
_DARKEST_PERCENT = 50


def scatter(table: pd.DataFrame, title: str) -> Figure:
    """Simulated over measured time, one panel per collective, with the band of the median error's limit."""
    names = list(table.collective.unique())
    figure, axes = _grid(len(names), 3.0, columns=3, width=4.3)
    band = LIMITS[MEDIAN_ERROR]
    for axis, name in zip(axes, names, strict=True):
        rows = predicted_by(SIMULATED, ours(table[table.collective == name]))
        if rows.empty:
            continue
        times = rows[["seconds", SIMULATED]].to_numpy()
        ends = np.array([times.min() * 0.8, times.max() * 1.25])
        axis.fill_between(ends, ends * (1 - band), ends * (1 + band), color="#999999", alpha=0.3, linewidth=0)
        axis.plot(ends, ends, color="#666666", linewidth=0.8)
        for number, (algorithm, mine) in enumerate(rows.groupby("algorithm", sort=False)):
            axis.plot(
                mine.seconds, mine[SIMULATED],
                MARKERS[number % len(MARKERS)], color=PALETTE[number % len(PALETTE)], markersize=4,
                label=algorithm.replace("_", " "),
            )  # fmt: skip
        axis.set_xscale("log")
        seconds_axis(axis)
        axis.xaxis.set_major_formatter(axis.yaxis.get_major_formatter())
        axis.xaxis.set_minor_formatter("")
        axis.set_xlim(*ends)
        axis.set_ylim(*ends)
        axis.set_aspect("equal")
        axis.set_xlabel("measured")
        axis.set_ylabel("simulated")
        axis.set_title(name)
        axis.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.0, 1.0), handletextpad=0.1, borderpad=0.1)
    figure.suptitle(f"{title}; grey: within {band * 100:.0f} %", fontsize=11)
    return figure


def times(table: pd.DataFrame, collective: str, title: str) -> Figure:
    """Measured times with intervals (markers) and simulated ones (lines) over m, one colour per algorithm."""
    figure, axis = plt.subplots(figsize=(7.4, 4.8))
    here = table[table.collective == collective].sort_values("message_bytes", kind="stable")
    # In the order of the table, not of the sizes.
    for number, algorithm in enumerate(ours(table[table.collective == collective]).algorithm.unique()):
        mine = here[here.algorithm == algorithm]
        colour, marker = PALETTE[number % len(PALETTE)], MARKERS[number % len(MARKERS)]
        axis.errorbar(
            mine.message_bytes, mine.seconds, yerr=_bars(mine), fmt=marker, color=colour, markersize=5,
            capsize=2.5, elinewidth=1, label=algorithm.replace("_", " "),
        )  # fmt: skip
        axis.plot(mine.message_bytes, mine[SIMULATED], "-", color=colour, linewidth=1)
    axis.plot(
        own(here).message_bytes, own(here).seconds, "_", color="black", markersize=14,
        markeredgewidth=1.5, label="MPI's own choice",
    )  # fmt: skip
    size_axis(axis, sorted(set(ours(here).message_bytes)))
    seconds_axis(axis)
    axis.set_title(title, fontsize=11)
    axis.legend(
        title="marker: measured\nline: simulated", fontsize=8.5, title_fontsize=8.5, alignment="left",
        loc="upper left", bbox_to_anchor=(1.01, 1),
    )  # fmt: skip
    return figure


def _bars(rows: pd.DataFrame) -> list[pd.Series]:
    """Half-widths downwards and upwards: 0 for a single repetition, and never down to zero seconds."""
    widths = rows.half_width_seconds.where(np.isfinite(rows.half_width_seconds), 0.0)
    return [np.minimum(widths, 0.9 * rows.seconds), widths]


def slowdown_maps(slowdowns: Mapping[str, pd.DataFrame], title: str) -> Figure:
    """The slowdown of each source's picks in percent, one panel per source; white: no pick."""
    every = pd.concat(slowdowns.values())
    collectives, sizes = list(every.collective.unique()), sorted(set(every.message_bytes))
    figure, axes = _grid(len(slowdowns), 0.36 * len(collectives) + 1.1, columns=3, width=0.42 * len(sizes) + 1.6)
    shown = None
    for axis, (source, found) in zip(axes, slowdowns.items(), strict=True):
        cells = np.full((len(collectives), len(sizes)), np.nan)
        for one in found.itertuples():
            cells[collectives.index(one.collective), sizes.index(one.message_bytes)] = one.slowdown * 100
        shown = axis.imshow(cells, cmap="viridis_r", vmin=0, vmax=_DARKEST_PERCENT, aspect="auto")
        for (i, j), value in np.ndenumerate(cells):
            if np.isfinite(value):
                colour = "white" if value > 0.55 * _DARKEST_PERCENT else "black"
                axis.text(j, i, f"{value:z.0f}", ha="center", va="center", fontsize=6.5, color=colour)
        axis.set_xticks(range(len(sizes)), [format_size(size) for size in sizes], rotation=60, fontsize=7, ha="right",
                        rotation_mode="anchor")  # fmt: skip
        axis.set_yticks(range(len(collectives)), collectives, fontsize=8)
        axis.set_title(source.replace("_", " "), fontsize=9)
        axis.grid(False)
    if shown is not None:
        bar = figure.colorbar(shown, ax=list(axes), shrink=0.4, aspect=30, extend="max")
        bar.set_label("slowdown against the best (%)")
    figure.suptitle(title, fontsize=11)
    return figure


def rank_bars(agreements: Mapping[str, Mapping[str, RankAgreement]], title: str) -> Figure:
    """Kendall's tau, distinguishable pairs only: a group of bars for each collective, a bar for each source."""
    collectives, sources = list(agreements), list(dict.fromkeys(s for found in agreements.values() for s in found))
    figure, axis = plt.subplots(figsize=(max(6.4, 0.14 * len(collectives) * len(sources) + 3.2), 4.0))
    width = 0.84 / max(1, len(sources))
    for number, source in enumerate(sources):
        positions = np.arange(len(collectives)) + (number - (len(sources) - 1) / 2) * width
        heights = [
            agreements[name][source].tau_distinguishable if source in agreements[name] else np.nan
            for name in collectives
        ]
        axis.bar(
            positions, heights, width * 0.92, color=PALETTE[number % len(PALETTE)], label=source.replace("_", " "),
            hatch="" if number < len(PALETTE) else "//",
        )  # fmt: skip
    axis.axhline(0, color="black", linewidth=0.8)
    axis.set_xticks(range(len(collectives)), collectives)
    axis.set_ylim(-1, 1.02)
    axis.set_ylabel("Kendall's tau with measured order")
    axis.grid(axis="x", visible=False)
    axis.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.01, 1))
    axis.set_title(title, fontsize=11)
    return figure


def _grid(count: int, height: float, columns: int, width: float) -> tuple[Figure, list[Axes]]:
    """A figure with `count` panels in rows of `columns`; the last row may be shorter."""
    wide = min(columns, max(1, count))
    rows = -(-max(1, count) // wide)
    figure, axes = plt.subplots(rows, wide, figsize=(width * wide, height * rows), squeeze=False)
    flat = list(axes.flat)
    for axis in flat[count:]:
        axis.remove()
    return figure, flat[:count]
