"""Figures of the study of Luo et al. 2020: times of whole collectives over the size, and speed-ups."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from collwise.studies.figures.style import head, label_lines, seconds_axis, size_axis
from collwise.studies.papers.figures import in_order, panels
from collwise.studies.papers.luo2020.whole import SMALL_BYTES, Whole


def times_and_speed_ups(wholes: Sequence[Whole]) -> Figure:
    """Times of each source over the message size, and speed-ups of the first source. Each machine has a row."""
    shown = {
        f"{whole.title}{what}": of for whole in wholes for what, of in (("", whole.seconds), (" ", whole.speed_ups()))
    }
    styles = in_order(wholes[0].seconds, markersize=4)
    figure, axes = panels(shown, styles, "", (5.7, 3.7), 2)
    found = []
    for whole, times, ratios in zip(wholes, axes[::2], axes[1::2], strict=True):
        for axis in (times, ratios):
            size_axis(axis, list(whole.seconds.index))
            axis.axvline(SMALL_BYTES, color="#999999", linewidth=0.8, linestyle=":")
        seconds_axis(times)
        ratios.axhline(1, color="black", linewidth=0.8)
        ratios.set_yscale("log", base=2)
        ratios.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        ratios.set_ylabel(f"speed-up of {whole.seconds.columns[0]}")
        least, most = whole.speed_ups().min().min(), whole.speed_ups().max().max()
        found.append(f"x {least:.2f} to x {most:.2f} on {whole.machine.title}")
    head(figure, f"{wholes[0].seconds.columns[0]} is {', '.join(found)} as fast as the others", wholes[0].collective)
    label_lines(*axes)
    return figure


def over_procs(rates: pd.DataFrame, title: str) -> Figure:
    """Images per second over the number of processes, one line per column."""
    figure, (axis,) = panels({"": rates}, in_order(rates, markersize=4), title, (5.4, 3.6))
    axis.set_xscale("log", base=2)
    axis.set_xticks(list(rates.index), labels=map(str, rates.index))
    axis.set_xlabel("processes")
    axis.set_ylabel("images per second")
    label_lines(axis)
    return figure
