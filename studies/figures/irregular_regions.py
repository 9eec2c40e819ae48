"""Irregular regions: every repetition of gather and scatter over the block size, and the thresholds found."""

from __future__ import annotations

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from collwise.common.units import format_size
from collwise.studies.figures.style import PALETTE, algorithm_style, head, label_lines, seconds_axis, size_axis
from collwise.validation.measurement.irregular_regions import HALF_BOUND, Regions, Series, min_times


def regions_figure(found: Regions, title: str) -> Figure:
    """Three panels: linear gather with M1 and M2, linear scatter with S, and gather's algorithms."""
    figure, axes = plt.subplots(3, 1, figsize=(7.8, 11.0), sharex=True, sharey=True)
    thresholds = found.thresholds
    marks = {"M1": thresholds.gather_irregular_from_bytes, "M2": thresholds.gather_regular_from_bytes}
    _singles(axes[0], found.gather, "linear gather, every repetition", marks)
    _singles(axes[1], found.scatter, "linear scatter, every repetition", {"S": thresholds.scatter_leap_bytes})
    _algorithms(axes[2], found, marks)
    for axis in axes:
        seconds_axis(axis)
        axis.label_outer()
    head(figure, title)
    label_lines(*axes)
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
    known = {name: size for name, size in marks.items() if size is not None}
    for size in known.values():
        axis.axvline(size, color="#000000", linestyle="--", linewidth=1)
    if known:
        title += f"; dashed: {', '.join(f'{name} = {format_size(size)}' for name, size in known.items())}"
    size_axis(axis, [2**k * 1024 for k in range(int(np.log2(sizes[-1] / 1024)) + 1)])
    axis.set_title(title, fontsize=10)
