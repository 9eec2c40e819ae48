"""Figures of the study of Luo et al. 2020: times of whole collectives over the size, and speed-ups."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from collwise.studies.figures.style import seconds_axis, size_axis
from collwise.studies.papers.figures import in_order, panels
from collwise.studies.papers.luo2020.whole import SMALL_BYTES


def times_and_speed_ups(seconds: pd.DataFrame, speed_ups: pd.DataFrame, title: str) -> Figure:
    """Time of each source over the message size, and beside it the speed-up of the first source over the others."""
    shown, styles = {"times": seconds, "speed-ups": speed_ups}, in_order(seconds, markersize=4)
    figure, (times, ratios) = panels(shown, styles, title, (5.25, 3.9))
    for axis in (times, ratios):
        axis.set_title("")  # what is drawn is said beside the axes
        size_axis(axis, list(seconds.index))
        axis.axvline(SMALL_BYTES, color="#999999", linewidth=0.8, linestyle=":")
    seconds_axis(times)
    ratios.axhline(1, color="black", linewidth=0.8)
    ratios.set_yscale("log", base=2)
    ratios.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    ratios.set_ylabel(f"speed-up of {seconds.columns[0]}")
    times.legend(fontsize=8)
    return figure


def rates(seconds: pd.DataFrame, title: str) -> Figure:
    """The bytes per second of single messages over their size, one line per column."""
    gigabytes_per_second = seconds.rdiv(pd.Series(seconds.index, seconds.index), axis=0) / 1e9
    figure, (axis,) = panels({"": gigabytes_per_second}, in_order(seconds, markersize=4), title, (5.4, 3.6))
    size_axis(axis, list(seconds.index))
    axis.set_ylabel("GB/s")
    axis.legend()
    return figure


def over_procs(rates: pd.DataFrame, title: str) -> Figure:
    """Images per second over the number of processes, one line per column."""
    figure, (axis,) = panels({"": rates}, in_order(rates, markersize=4), title, (5.4, 3.6))
    axis.set_xscale("log", base=2)
    axis.set_xticks(list(rates.index), labels=map(str, rates.index))
    axis.set_xlabel("processes")
    axis.set_ylabel("images per second")
    axis.legend()
    return figure
