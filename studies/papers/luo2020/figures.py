"""Figures of the study of Luo et al. 2020: times of whole collectives over the size, and speed-ups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from collwise.studies.figures.style import MARKERS, PALETTE, seconds_axis, size_axis
from collwise.studies.papers.luo2020.whole import SMALL_BYTES


def times_and_speed_ups(seconds: pd.DataFrame, speed_ups: pd.DataFrame, title: str) -> Figure:
    """Time of each source over the message size, and beside it the speed-up of the first source over the others."""
    figure, (times, ratios) = plt.subplots(1, 2, figsize=(10.5, 3.9))
    colours = dict(zip(seconds, zip(PALETTE, MARKERS, strict=True), strict=False))
    _lines(times, seconds, colours)
    seconds_axis(times)
    _lines(ratios, speed_ups, colours)
    ratios.axhline(1, color="black", linewidth=0.8)
    ratios.set_yscale("log", base=2)
    ratios.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    ratios.set_ylabel(f"speed-up of the {seconds.columns[0]} choice")
    for axis in (times, ratios):
        axis.axvline(SMALL_BYTES, color="#999999", linewidth=0.8, linestyle=":")
    times.legend(fontsize=8)
    figure.suptitle(title, fontsize=11)
    return figure


def _lines(axis: Axes, table: pd.DataFrame, colours: Mapping[str, Sequence[str]]) -> None:
    for source, values in table.items():
        known = values.dropna()
        colour, marker = colours[str(source)]
        axis.plot(known.index, known, color=colour, marker=marker, markersize=4, label=source)
    size_axis(axis, list(table.index))


def rates(seconds: pd.DataFrame, title: str) -> Figure:
    """The bytes per second of single messages over their size, one line per column."""
    figure, axis = plt.subplots(figsize=(5.4, 3.6))
    for (name, values), colour, marker in zip(seconds.items(), PALETTE, MARKERS, strict=False):
        axis.plot(values.index, values.index / values / 1e9, color=colour, marker=marker, markersize=4, label=name)
    size_axis(axis, list(seconds.index))
    axis.set_ylabel("GB/s")
    axis.legend()
    figure.suptitle(title, fontsize=11)
    return figure
