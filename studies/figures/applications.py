"""Bars of an application's time within and outside of collectives, and its speed-ups by the number of processes."""

from __future__ import annotations

import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from collwise.studies.figures.style import MARKERS, PALETTE, head, label_lines


def application_figure(times: pd.DataFrame, title: str) -> Figure:
    """The times under each choice of collectives at the largest P; with several P, also the speed-ups at each.

    Executions that failed are left out.
    """
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
    for place, one in enumerate(times.itertuples()):
        text = f" {one.mean_share * 100:.1f} %, {one.speedup:.2f}x"
        axis.text(one.seconds, place, text, va="center", fontsize=8.5)
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
