"""Irregular regions: every repetition of gather and scatter over the block size, and the thresholds found."""

from __future__ import annotations

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from collwise.common.units import format_size
from collwise.studies.figures.style import PALETTE, algorithm_style, seconds_axis, size_axis
from collwise.validation.measurement.irregular_regions import HALF_BOUND, Regions, Series, min_times


def regions_figure(found: Regions, title: str) -> Figure:
    """Three panels: linear gather with M1 and M2, linear scatter with S, and gather's algorithms."""
    figure, axes = plt.subplots(1, 3, figsize=(14.0, 4.2), sharey=True)
    thresholds = found.thresholds
    marks = {"M1": thresholds.gather_irregular_from_bytes, "M2": thresholds.gather_regular_from_bytes}
    _singles(axes[0], found.gather, "linear gather, every repetition", marks)
    _singles(axes[1], found.scatter, "linear scatter, every repetition", {"S": thresholds.scatter_leap_bytes})
    _algorithms(axes[2], found, marks)
    seconds_axis(axes[0])
    figure.suptitle(title, fontsize=11)
    return figure


def _singles(axis: Axes, series: Series, title: str, marks: dict[str, int | None]) -> None:
    sizes = np.array(series.message_bytes)
    late = series.escalated
    for mask, colour, marker, label in (
        (~late, PALETTE[0], ".", "a repetition"),
        (late, PALETTE[1], "x", "with a time-out"),
    ):
        rounds, columns = np.nonzero(mask)
        if len(rounds):
            axis.plot(sizes[columns], series.seconds[rounds, columns], marker, color=colour, markersize=5, label=label)
    axis.plot(sizes, min_times(series.seconds), "-", color="#999999", linewidth=1, label="minimum over m and above")
    _finish(axis, title, sizes, marks)


def _algorithms(axis: Axes, found: Regions, marks: dict[str, int | None]) -> None:
    sizes = np.array(found.gather.message_bytes)
    for series in found.compared:
        here = np.array(series.message_bytes)
        halved = series.algorithm == HALF_BOUND
        colour, marker = algorithm_style("lmo" if halved else series.algorithm)
        line = "--" if halved else "-"
        axis.plot(here, series.seconds.mean(axis=0), line, color=colour, marker=marker, label=series.algorithm)
        repeated = np.broadcast_to(here, series.seconds.shape)
        axis.plot(repeated.ravel(), series.seconds.ravel(), ".", color=colour, alpha=0.35, markersize=4)
    _finish(axis, "gather algorithms: mean and every repetition", sizes, marks)


def _finish(axis: Axes, title: str, sizes: np.ndarray, marks: dict[str, int | None]) -> None:
    for name, size in marks.items():
        if size is not None:
            axis.axvline(size, color="#000000", linestyle="--", linewidth=1)
            where = axis.get_xaxis_transform()
            label = f"{name} = {format_size(size)}"
            axis.text(size, 0.03, label, transform=where, fontsize=8.5, va="bottom", rotation=90, ha="right")
    size_axis(axis, [2**k * 1024 for k in range(int(np.log2(sizes[-1] / 1024)) + 1)])
    axis.set_title(title, fontsize=10)
    axis.legend(fontsize=8.5, loc="upper left", frameon=True, framealpha=1, edgecolor="none")
