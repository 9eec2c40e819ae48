"""Figures: readable in print, colour-blind safe (Okabe and Ito's palette, markers besides colours), units on axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from collwise.common.errors import UsageError
from collwise.common.units import format_size
from collwise.models.piecewise import Array
from collwise.validation.selection.comparison import Comparison

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999", "#882255", "#F0E442")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">")
plt.rcParams |= {
    "font.size": 10,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "figure.constrained_layout.use": True,
    "savefig.dpi": 150,
}


def save(figure: Figure, path: Path) -> Path:
    """Writes a figure (PNG or SVG by its ending). Raises UsageError when the file cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Without a date in it, an SVG of the same data is the same file.
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    except OSError as problem:
        raise UsageError(f"cannot write {path}: {problem.strerror}") from None
    finally:
        plt.close(figure)
    return path


def picks_by_size(rows: Sequence[Comparison], title: str) -> Figure:
    """Figure 5 of the paper: simulated time of each source's pick over m, one panel a process count."""
    counts = sorted({row.procs for row in rows})
    figure, axes = plt.subplots(1, len(counts), figsize=(4.2 * len(counts), 3.6), sharey=True, squeeze=False)
    for axis, procs in zip(axes[0], counts, strict=True):
        here = [row for row in rows if row.procs == procs]
        _draw_picks(axis, np.array([row.message_bytes for row in here]), here)
        size_axis(axis, [row.message_bytes for row in here])
        axis.set_title(f"P = {procs}")
    seconds_axis(axes[0][0])
    axes[0][0].legend(loc="upper left", fontsize=8.5)
    figure.suptitle(title, fontsize=11)
    return figure


def picks_by_procs(rows: Sequence[Comparison], title: str) -> Figure:
    """Figure 6 of the paper: simulated time of each source's pick over P, one panel a message size."""
    sizes = sorted({row.message_bytes for row in rows})
    figure, axes = plt.subplots(1, len(sizes), figsize=(4.2 * len(sizes), 3.6), squeeze=False)
    for axis, size in zip(axes[0], sizes, strict=True):
        here = [row for row in rows if row.message_bytes == size]
        _draw_picks(axis, np.array([row.procs for row in here]), here)
        axis.set_xlabel("processes P")
        axis.set_title(f"m = {format_size(size)}")
        axis.set_yscale("log")
        seconds_axis(axis)
    # The upper left is where small messages are slow.
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=8.5)
    figure.suptitle(title, fontsize=11)
    return figure


def _draw_picks(axis: Axes, x: Array, rows: Sequence[Comparison]) -> None:
    lines = (
        ("Open MPI 3.1, its segments", "openmpi_shipped", "#56B4E9", "v", ":"),
        ("Open MPI 3.1, common segments", "openmpi", "#0072B2", "s", "--"),
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
    """Simulated (markers) and predicted (lines) time of every algorithm over m, for one process count."""
    figure, axis = plt.subplots(figsize=(6.4, 4.4))
    sizes = np.array([row.message_bytes for row in rows])
    # A comma separates a segment size that is not the common one.
    for number, name in enumerate(label for label in rows[0].simulated if "," not in label):
        colour, marker = PALETTE[number % len(PALETTE)], MARKERS[number % len(MARKERS)]
        axis.plot(sizes, [row.simulated[name] for row in rows], marker, color=colour, label=name, markersize=5.5)
        if name in rows[0].predicted:
            axis.plot(sizes, [row.predicted[name] for row in rows], "-", color=colour, linewidth=1)
    size_axis(axis, list(sizes))
    seconds_axis(axis)
    axis.set_title(title, fontsize=11)
    axis.legend(title="marker: simulated, line: model", fontsize=8.5, title_fontsize=8.5, alignment="left")
    return figure


def model_kinds(sizes: Sequence[int], panels: Mapping[str, Mapping[str, Array]], title: str) -> Figure:
    """Figure 3 of the paper: binary and binomial by traditional formulas, simulated, and by ours, side by side."""
    figure, axes = plt.subplots(1, len(panels), figsize=(4.2 * len(panels), 3.6), sharey=True, squeeze=False)
    for axis, (panel, curves) in zip(axes[0], panels.items(), strict=True):
        for number, (name, seconds) in enumerate(curves.items()):
            axis.plot(sizes, seconds, "-", color=PALETTE[number], marker=MARKERS[number], label=name)
        size_axis(axis, sizes)
        axis.set_title(panel)
    seconds_axis(axes[0][0])
    axes[0][0].legend()
    figure.suptitle(title, fontsize=11)
    return figure


def decision_map(procs: Array, sizes: Array, winners: Array, names: Sequence[str], title: str) -> Figure:
    """Which algorithm wins at each (m, P): `winners` holds indices into `names`, shape (P, m)."""
    figure, axis = plt.subplots(figsize=(6.8, 4.2))
    used = sorted({int(index) for index in winners.ravel()})
    colours = ListedColormap([PALETTE[index % len(PALETTE)] for index in range(len(names))])
    norm = BoundaryNorm(np.arange(len(names) + 1) - 0.5, len(names))
    axis.pcolormesh(edges(sizes, log=True), edges(procs), winners, cmap=colours, norm=norm, linewidth=0)
    axis.grid(False)
    axis.set_xscale("log", base=2)
    size_axis(axis, [int(size) for size in sizes], keep_scale=True)
    axis.set_ylabel("processes P")
    handles = [Patch(color=PALETTE[index % len(PALETTE)]) for index in used]
    axis.legend(handles, [names[index] for index in used], loc="upper left", bbox_to_anchor=(1.01, 1))
    axis.set_title(title, fontsize=11)
    return figure


def edges(centres: Array, log: bool = False) -> Array:
    """The borders of cells around centres, one more than these; midway in logarithms if `log`."""
    values = np.log(centres) if log else np.asarray(centres, dtype=float)
    if len(values) == 1:
        edges = np.array([values[0] - 0.5, values[0] + 0.5])
    else:
        middles = (values[1:] + values[:-1]) / 2
        edges = np.concatenate([[2 * values[0] - middles[0]], middles, [2 * values[-1] - middles[-1]]])
    return np.exp(edges) if log else edges


def size_axis(axis: Axes, sizes: Sequence[int], keep_scale: bool = False) -> None:
    """Message sizes along x: logarithmic unless the scale is kept, five labels at most."""
    if not keep_scale:
        axis.set_xscale("log", base=2)
    ticks = list(sizes)[:: max(1, -(-len(sizes) // 5))]
    axis.set_xticks(ticks, [format_size(int(size)) for size in ticks])
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.set_xlabel("message size m")


def seconds_axis(axis: Axes) -> None:
    """Times along y: logarithmic, with units in the labels."""
    axis.set_yscale("log")
    axis.yaxis.set_major_locator(LogLocator(base=10))
    axis.yaxis.set_major_formatter(FuncFormatter(_seconds_label))
    axis.yaxis.set_minor_formatter(FuncFormatter(lambda seconds, _: _minor_label(seconds, axis)))
    axis.set_ylabel("time")


def _minor_label(seconds: float, axis: Axes) -> str:
    """Labels between powers of ten, where the axis holds few of these: all on a short axis, 2 and 5 on a longer one."""
    low, high = axis.get_ylim()
    digit = round(seconds / 10.0 ** np.floor(np.log10(seconds)))
    if high / low < 3 or (high / low < 50 and digit in (2, 5)):
        return _seconds_label(float(f"{seconds:.1g}"), 0)
    return ""


def _seconds_label(seconds: float, _: int) -> str:
    for unit, factor in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= factor * 0.999:
            return f"{seconds / factor:g} {unit}"
    return f"{seconds / 1e-9:g} ns"
