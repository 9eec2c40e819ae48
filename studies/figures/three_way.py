"""Figures of the three-way comparison: measured, simulated and predicted times on a test bed."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib import colormaps, pyplot as plt
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from collwise.studies.figures.map_cells import NO_FORMULA, explain_cells, fill_blanks, heat
from collwise.studies.figures.maps import collective_maps, named_cells
from collwise.studies.figures.picks import markers_and_lines
from collwise.studies.figures.style import algorithm_style, head, least_and_most, panel_grid, seconds_axis
from collwise.validation.compare.scores import AllScores, Scores
from collwise.validation.three_way.verdicts import ALL, LIMITS, MEDIAN_ERROR, SIMULATED, label
from collwise.validation.times.choice import LIBRARY_DECIDES


def scatter(every: AllScores, title: str) -> Figure:
    """Simulated over measured times, a panel for each collective; a grey band shows the limit of the median error."""
    figure, axes = panel_grid(len(every), 3.0, columns=3, width=4.6)
    band = LIMITS[MEDIAN_ERROR]
    for axis, (name, scores) in zip(axes, every.items(), strict=True):
        times = np.stack([scores.right.array, scores.times[SIMULATED].array])
        times[:, np.isnan(times).any(axis=0)] = np.nan
        if np.isnan(times).all():
            continue
        ends = np.array([np.nanmin(times) * 0.8, np.nanmax(times) * 1.25])
        axis.fill_between(ends, ends * (1 - band), ends * (1 + band), color="#999999", alpha=0.3, linewidth=0)
        axis.plot(ends, ends, color="#666666", linewidth=0.8)
        for a, choice in enumerate(scores.right.choices):
            if np.isfinite(times[0, a]).any():
                colour, marker = algorithm_style(label(choice))
                axis.plot(*times[:, a, 0], marker, color=colour, markersize=4, label=label(choice))
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
    errors = [item.errors[SIMULATED].values.ravel() for item in every.values()]
    error = np.nanmedian(np.abs(np.concatenate(errors))) if errors else np.nan
    head(figure, f"Median error of simulated times: {100 * error:.1f} %", f"{title}; grey: within {100 * band:.0f} %")
    return figure


def times(scores: Scores, title: str) -> Figure:
    """Measured times with intervals (markers) and simulated times (lines) over m, and ratios of both to the best."""
    right = scores.right
    names = {a: label(choice) for a, choice in enumerate(right.choices) if np.isfinite(right.array[a]).any()}
    measured, simulated = (
        {name: item.array[a, 0] for a, name in names.items()} for item in (right, scores.times[SIMULATED])
    )
    # Half-widths downwards and upwards, 0 for a single repetition. They are cut so that no interval reaches 0 seconds.
    widths = np.where(np.isfinite(right.half_widths.values), right.half_widths.values, 0.0)[:, 0]
    errors = {name: np.stack([np.minimum(widths[a], 0.9 * right.array[a, 0]), widths[a]]) for a, name in names.items()}
    own = right.seconds.values[right.index_of(LIBRARY_DECIDES), 0]
    builtin = own if np.isfinite(own).any() else None
    drawn = f"{title}: measured (markers), simulated (lines)"
    return markers_and_lines(right.message_bytes, measured, simulated, drawn, errors=errors, builtin=builtin)


def slowdown_maps(picks: pd.DataFrame, title: str) -> Figure:
    """The slowdown of each source's picks (`AllScores.pick_rows`) in percent, one panel per source."""
    panels = {
        str(source): {(item.collective, item.message_bytes): item.slowdown for item in found.itertuples()}
        for source, found in picks.groupby("source", sort=False)
    }
    means = {source: float(np.mean([*values.values()])) for source, values in panels.items()}
    title = f"Mean slowdown of picks: {least_and_most(means)}\n{title}"
    return collective_maps(panels, title, "slowdown against the best (%)")


def rank_map(ranks: pd.DataFrame, title: str) -> Figure:
    """Kendall's tau over distinguishable pairs, with a row for each source and a column for each collective."""
    collectives, sources = list(ranks.collective.unique()), list(ranks.source.unique())
    table = ranks.pivot(index="source", columns="collective", values="tau_distinguishable")
    values = table.reindex(index=sources, columns=collectives).to_numpy()
    figure, axis = plt.subplots(figsize=(2.6 + 0.86 * len(collectives), 1.7 + 0.3 * len(sources)))
    across, upwards = named_cells(axis, collectives, [source.replace("_", " ") for source in sources])
    colours = (colormaps["PuOr"], Normalize(-1, 1))
    texts = {at: f"{value:z.2f}" for at, value in np.ndenumerate(values) if np.isfinite(value)}
    heat(axis, across, upwards, values, colours, texts)
    explain_cells(figure, fill_blanks(axis, across, upwards, {NO_FORMULA: np.isnan(values)}))
    bar = figure.colorbar(ScalarMappable(colours[1], colours[0]), ax=axis, ticks=(-1, -0.5, 0, 0.5, 1), aspect=16)
    bar.set_label("Kendall's tau with\nthe measured order", fontsize=9)
    pooled = ranks[ranks.collective == ALL].dropna(subset="tau_distinguishable").sort_values("tau_distinguishable")
    said = [f"{item.source.replace('_', ' ')} {item.tau_distinguishable:z.2f}" for item in pooled.itertuples()]
    head(figure, f"Kendall's tau: {said[0]} to {said[-1]}" if said[1:] else "", title)
    return figure
