"""Times of the picks of models and of Open MPI, and of all the algorithms that they pick from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from collwise.common.units import format_size
from collwise.models.piecewise import Array
from collwise.studies.figures.style import MARKERS, PALETTE, seconds_axis, size_axis
from collwise.validation.selection.comparison import Comparison, ComparisonResult
from collwise.validation.selection.engine_choices import EngineChoices


def picks_by_size(result: ComparisonResult, title: str) -> Figure:
    """The simulated time of each source's pick over m, one panel per process count."""
    rows = result.rows
    counts = sorted({row.procs for row in rows})
    figure, axes = plt.subplots(1, len(counts), figsize=(4.2 * len(counts), 3.6), sharey=True, squeeze=False)
    for axis, procs in zip(axes[0], counts, strict=True):
        here = [row for row in rows if row.procs == procs]
        _draw_picks(axis, np.array([row.message_bytes for row in here]), here, result.baseline.title)
        size_axis(axis, [row.message_bytes for row in here])
        axis.set_title(f"P = {procs}")
    seconds_axis(axes[0][0])
    axes[0][0].legend(loc="upper left", fontsize=8.5)
    figure.suptitle(title, fontsize=11)
    return figure


def picks_by_procs(result: ComparisonResult, title: str) -> Figure:
    """The simulated time of each source's pick over P, one panel per message size."""
    rows = result.rows
    sizes = sorted({row.message_bytes for row in rows})
    figure, axes = plt.subplots(1, len(sizes), figsize=(4.2 * len(sizes), 3.6), squeeze=False)
    for axis, size in zip(axes[0], sizes, strict=True):
        here = [row for row in rows if row.message_bytes == size]
        _draw_picks(axis, np.array([row.procs for row in here]), here, result.baseline.title)
        axis.set_xlabel("processes P")
        axis.set_title(f"m = {format_size(size)}")
        axis.set_yscale("log")
        seconds_axis(axis)
    # A legend in the upper left of a panel would hide the times of small messages.
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=8.5)
    figure.suptitle(title, fontsize=11)
    return figure


def _draw_picks(axis: Axes, x: Array, rows: Sequence[Comparison], baseline: str) -> None:
    listed = any(row.listed is not None for row in rows)
    lines = (
        (f"{baseline}, its segments" if listed else baseline, "baseline", "#56B4E9", "v", ":"),
        *([(f"{baseline}, common segments", "listed", "#0072B2", "s", "--")] if listed else []),
        ("model", "model", "#D55E00", "o", "-"),
        ("best", "best", "#009E73", "x", "-"),
    )
    for label, source, colour, marker, style in lines:
        seconds = [getattr(row, source).seconds for row in rows]
        wide = source == "model"
        axis.plot(
            x, seconds, style, color=colour, marker=marker, label=label,
            markersize=8 if wide else 5, markerfacecolor="none" if wide else colour, linewidth=2.4 if wide else 1.3,
        )  # fmt: skip


def algorithms_by_size(rows: Sequence[Comparison], title: str) -> Figure:
    """The simulated (markers) and predicted (lines) time of every algorithm over m, for one process count."""
    # A comma separates a segment size that is not the common one.
    names = [label for label in rows[0].simulated if "," not in label]
    simulated = {name: [row.simulated[name] for row in rows] for name in names}
    predicted = {name: [row.predicted[name] for row in rows] for name in names if name in rows[0].predicted}
    sizes = [row.message_bytes for row in rows]
    return _markers_and_lines(sizes, simulated, predicted, title, "marker: simulated, line: model")


def algorithms_by_engine(choices: EngineChoices, procs: int, title: str) -> Figure:
    """The time of every algorithm over m by the schedule engine (lines) and, where there is one, by SMPI (markers)."""
    grid, at = choices.grid, choices.grid.procs.index(procs)
    labels = {name: list(grid.candidates).index(name) for name in grid.names}
    played = {name: choices.seconds[index, at] for name, index in labels.items()}
    checked = {name: choices.smpi_seconds[index, at] for name, index in labels.items()}
    return _markers_and_lines(grid.message_bytes, checked, played, title, "marker: SMPI, line: schedule engine")


def _markers_and_lines(
    sizes: Sequence[int],
    markers: Mapping[str, ArrayLike],
    lines: Mapping[str, ArrayLike],
    title: str,
    legend: str,
) -> Figure:
    figure, axis = plt.subplots(figsize=(6.4, 4.4))
    for number, (name, seconds) in enumerate(markers.items()):
        colour, marker = PALETTE[number % len(PALETTE)], MARKERS[number % len(MARKERS)]
        axis.plot(sizes, seconds, marker, color=colour, label=name, markersize=5.5)
        if name in lines:
            axis.plot(sizes, lines[name], "-", color=colour, linewidth=1)
    size_axis(axis, sizes)
    seconds_axis(axis)
    axis.set_title(title, fontsize=11)
    axis.legend(title=legend, fontsize=8.5, title_fontsize=8.5, alignment="left")
    return figure
