"""Figures of the three-way comparison: measured, simulated and predicted times on a test bed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from collwise.common.units import format_size
from collwise.studies.figures.cells import (
    NO_CHOICE,
    NOT_TIMED,
    PERCENT,
    SLOWDOWNS,
    blank_patches,
    cell_axis,
    fill_blank,
    heat,
    percent_bar,
    percent_texts,
    percent_values,
)
from collwise.studies.figures.picks import markers_and_lines
from collwise.studies.figures.style import algorithm_style, seconds_axis
from collwise.validation.three_way.scores import RankAgreement
from collwise.validation.three_way.table import SIMULATED, ours, own, predicted_by
from collwise.validation.three_way.verdict import LIMITS, MEDIAN_ERROR

_NO_FORMULA = NO_CHOICE._replace(label="no formula, or no choice")


def scatter(table: pd.DataFrame, title: str) -> Figure:
    """Simulated over measured time, one panel per collective, with the band of the median error's limit."""
    names = list(table.collective.unique())
    figure, axes = _grid(len(names), 3.0, columns=3, width=4.6)
    band = LIMITS[MEDIAN_ERROR]
    for axis, name in zip(axes, names, strict=True):
        rows = predicted_by(SIMULATED, ours(table[table.collective == name]))
        if rows.empty:
            continue
        times = rows[["seconds", SIMULATED]].to_numpy()
        ends = np.array([times.min() * 0.8, times.max() * 1.25])
        axis.fill_between(ends, ends * (1 - band), ends * (1 + band), color="#999999", alpha=0.3, linewidth=0)
        axis.plot(ends, ends, color="#666666", linewidth=0.8)
        for algorithm, mine in rows.groupby("algorithm", sort=False):
            colour, marker = algorithm_style(algorithm)
            axis.plot(mine.seconds, mine[SIMULATED], marker, color=colour, markersize=4, label=algorithm)
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
        axis.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0), handletextpad=0.1, borderpad=0.1)
    figure.suptitle(f"{title}; grey: within {band * 100:.0f} %", fontsize=11)
    return figure


def times(table: pd.DataFrame, collective: str, title: str) -> Figure:
    """Measured times with intervals (markers) and simulated ones (lines) over m, and their ratios to the best."""
    here = table[table.collective == collective]
    sizes = sorted(set(ours(here).message_bytes))
    by_size = {name: rows.set_index("message_bytes").reindex(sizes) for name, rows in here.groupby("algorithm")}
    # In the order of the table.
    names = list(ours(here).algorithm.unique())
    measured = {name: by_size[name].seconds.to_numpy() for name in names}
    simulated = {name: by_size[name][SIMULATED].to_numpy() for name in names}
    errors = {name: _bars(by_size[name]) for name in names}
    builtin = None if own(here).empty else own(here).set_index("message_bytes").reindex(sizes).seconds.to_numpy()
    legend = "marker: measured\nline: simulated"
    return markers_and_lines(sizes, measured, simulated, title, legend, errors=errors, builtin=builtin)


def _bars(rows: pd.DataFrame) -> np.ndarray:
    """Half-widths downwards and upwards: 0 for a single repetition, and never down to zero seconds."""
    widths = rows.half_width_seconds.where(np.isfinite(rows.half_width_seconds), 0.0)
    return np.array([np.minimum(widths, 0.9 * rows.seconds), widths])


def slowdown_maps(slowdowns: Mapping[str, pd.DataFrame], title: str) -> Figure:
    """The slowdown of each source's picks in percent, one panel per source.

    Where no source has a slowdown, no algorithm was measured; where one has none alone, it has no formula.
    """
    every = pd.concat(slowdowns.values())
    collectives, sizes = list(every.collective.unique()), sorted(set(every.message_bytes))
    # From top to bottom, as in tables.
    upwards, across = np.arange(len(collectives), -1.0, -1.0), np.arange(len(sizes) + 1.0)
    panels = {source: _cells(found, collectives, sizes) for source, found in slowdowns.items()}
    measured = ~np.isnan([*panels.values()]).all(axis=0)
    figure, axes = _grid(len(panels), 0.3 * len(collectives) + 0.9, columns=2, width=0.44 * len(sizes) + 1.6)
    blanks = []
    for axis, (source, values) in zip(axes, panels.items(), strict=True):
        heat(axis, across, upwards, percent_values(values), (SLOWDOWNS, PERCENT), percent_texts(values))
        for blank, where in ((NOT_TIMED, ~measured), (_NO_FORMULA, measured & np.isnan(values))):
            if fill_blank(axis, across, upwards, where, blank):
                blanks.append(blank)
        cell_axis(axis, "x", sizes, {size: format_size(size) for size in sizes})
        plt.setp(axis.get_xticklabels(), rotation=50, fontsize=8, ha="right", rotation_mode="anchor")
        axis.set(ylim=(0, len(collectives)), yticks=upwards[:-1] - 0.5, yticklabels=collectives)
        axis.set_title(source.replace("_", " "), fontsize=10)
    if axes:
        percent_bar(figure, axes, "slowdown against the best (%)", shrink=0.4)
    if blanks:
        figure.legend(handles=blank_patches(blanks), loc="outside lower center", ncols=2, fontsize=9,
                      handlelength=2.6, handleheight=1.5)  # fmt: skip
    figure.suptitle(title, fontsize=11)
    return figure


def _cells(found: pd.DataFrame, collectives: Sequence[str], sizes: Sequence[int]) -> np.ndarray:
    """Slowdowns by collective and size, nan where there is none."""
    cells = np.full((len(collectives), len(sizes)), np.nan)
    for one in found.itertuples():
        cells[collectives.index(one.collective), sizes.index(one.message_bytes)] = one.slowdown
    return cells


def rank_map(agreements: Mapping[str, Mapping[str, RankAgreement]], title: str) -> Figure:
    """Kendall's tau, distinguishable pairs only: a row for each source, a column for each collective."""
    collectives, sources = list(agreements), list(dict.fromkeys(s for found in agreements.values() for s in found))
    across, upwards = np.arange(len(collectives) + 1.0), np.arange(len(sources), -1.0, -1.0)
    values = np.array(
        [
            [
                agreements[one][source].tau_distinguishable if source in agreements[one] else np.nan
                for one in collectives
            ]
            for source in sources
        ]
    ).reshape(len(sources), len(collectives))
    figure, axis = plt.subplots(figsize=(2.6 + 0.86 * len(collectives), 1.7 + 0.3 * len(sources)))
    colours = (colormaps["PuOr"], Normalize(-1, 1))
    texts = {at: f"{value:z.2f}" for at, value in np.ndenumerate(values) if np.isfinite(value)}
    heat(axis, across, upwards, values, colours, texts)
    if fill_blank(axis, across, upwards, np.isnan(values), _NO_FORMULA):
        figure.legend(handles=blank_patches([_NO_FORMULA]), loc="outside lower center", fontsize=8.5,
                      handlelength=2.6, handleheight=1.5)  # fmt: skip
    axis.set(xlim=(0, len(collectives)), xticks=across[:-1] + 0.5, xticklabels=collectives)
    axis.set(ylim=(0, len(sources)), yticks=upwards[:-1] - 0.5, yticklabels=[one.replace("_", " ") for one in sources])
    axis.grid(False)
    bar = figure.colorbar(ScalarMappable(colours[1], colours[0]), ax=axis, ticks=(-1, -0.5, 0, 0.5, 1), aspect=16)
    bar.set_label("Kendall's tau with\nthe measured order", fontsize=9)
    figure.suptitle(title, fontsize=11)
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
