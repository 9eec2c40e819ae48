"""Figures of the three-way comparison: measured, simulated and predicted times on a test bed."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib import pyplot as plt
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from collwise.studies.figures.cells import NO_FORMULA, explain_cells, fill_blanks, heat
from collwise.studies.figures.maps import collective_maps, named_cells
from collwise.studies.figures.picks import markers_and_lines
from collwise.studies.figures.style import algorithm_style, panel_grid, seconds_axis
from collwise.validation.three_way.scores import LIMITS, MEDIAN_ERROR, RankAgreement
from collwise.validation.three_way.table import SIMULATED, ours, own, predicted_by


def scatter(table: pd.DataFrame, title: str) -> Figure:
    """Simulated over measured time, one panel per collective, with the band of the median error's limit."""
    names = list(table.collective.unique())
    figure, axes = panel_grid(len(names), 3.0, columns=3, width=4.6)
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
    """The slowdown of each source's picks in percent, one panel per source."""
    panels = {
        source: {(one.collective, one.message_bytes): one.slowdown for one in found.itertuples()}
        for source, found in slowdowns.items()
    }
    return collective_maps(panels, title, "slowdown against the best (%)")


def rank_map(agreements: Mapping[str, Mapping[str, RankAgreement]], title: str) -> Figure:
    """Kendall's tau, distinguishable pairs only: a row for each source, a column for each collective."""
    collectives, sources = list(agreements), list(dict.fromkeys(s for found in agreements.values() for s in found))
    values = np.full((len(sources), len(collectives)), np.nan)
    for column, found in enumerate(agreements.values()):
        for source, one in found.items():
            values[sources.index(source), column] = one.tau_distinguishable
    figure, axis = plt.subplots(figsize=(2.6 + 0.86 * len(collectives), 1.7 + 0.3 * len(sources)))
    across, upwards = named_cells(axis, collectives, [one.replace("_", " ") for one in sources])
    colours = (colormaps["PuOr"], Normalize(-1, 1))
    texts = {at: f"{value:z.2f}" for at, value in np.ndenumerate(values) if np.isfinite(value)}
    heat(axis, across, upwards, values, colours, texts)
    explain_cells(figure, fill_blanks(axis, across, upwards, {NO_FORMULA: np.isnan(values)}))
    bar = figure.colorbar(ScalarMappable(colours[1], colours[0]), ax=axis, ticks=(-1, -0.5, 0, 0.5, 1), aspect=16)
    bar.set_label("Kendall's tau with\nthe measured order", fontsize=9)
    figure.suptitle(title, fontsize=11)
    return figure
