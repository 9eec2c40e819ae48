"""Decision maps and maps of slowdowns over (m, P), drawn as in figures 6 and 7 of Pješivac-Grbović et al. 2007.

Colours tell algorithms apart (Okabe and Ito's palette), hatches segment sizes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, to_rgb
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.patches import Patch, PathPatch
from matplotlib.path import Path
from matplotlib.ticker import NullFormatter, NullLocator

from collwise.models.piecewise import Array
from collwise.models.switch_points import NOBODY, Indices
from collwise.studies.figures.style import PALETTE, size_axis
from collwise.validation.selection.choice import Choice
from collwise.validation.selection.maps import DecisionMaps

_HATCHES = ("", "////", "....", "xxxx", "\\\\\\\\", "++++", "oo")
_MOST_COLUMNS = 3
_WHITE_BELOW_PERCENT, _WORST_PERCENT = 5, 300
_PERCENT_TICKS = (5, 10, 20, 50, 100, 200, 300)


def decision_figure(maps: DecisionMaps, title: str) -> Figure:
    """The best method at every (m, P): a panel for simulation and one for each model."""
    panels = {"simulation": maps.best} | {_title(maps, name): found.winners for name, found in maps.maps.items()}
    return method_map(panels, maps.methods, maps.grid.procs, maps.grid.message_bytes, title)


def method_map(
    panels: Mapping[str, Indices],
    methods: Sequence[Choice],
    procs: Sequence[int],
    sizes: Sequence[int],
    title: str = "",
) -> Figure:
    """Maps of the method chosen at every (m, P): indices into `methods` of shape (P, m), by title of the panel."""
    found = {int(index) for winners in panels.values() for index in np.unique(winners)} - {NOBODY}
    names = list(dict.fromkeys(method.algorithm for method in methods))
    used = sorted(found, key=lambda index: (names.index(methods[index].algorithm), methods[index].segment_bytes))
    styles = _styles([methods[index] for index in used])
    figure, axes = _panels(len(panels), procs, sizes)
    for axis, (name, winners) in zip(axes, panels.items(), strict=False):
        axis.set_title(name)
        for index, style in zip(used, styles, strict=True):
            _fill(axis, _edges(procs, sizes), winners == index, *style)
    handles = [
        Patch(facecolor=colour, hatch=hatch, edgecolor=ink, linewidth=0, label=methods[index].label)
        for index, (colour, hatch, ink) in zip(used, styles, strict=True)
    ]
    figure.legend(
        handles=handles, loc="outside right upper", title="algorithm, segments", alignment="left",
        handlelength=2.6, handleheight=1.5, fontsize=9,
    )  # fmt: skip
    if title:
        figure.suptitle(title, fontsize=11, wrap=True)
    return figure


def _title(maps: DecisionMaps, name: str) -> str:
    return f"model {name}" if name in maps.models else name


def slowdown_figure(maps: DecisionMaps, title: str) -> Figure:
    """The slowdown of the picks of each model and the library against the best method, in percent: a panel for each."""
    sizes, procs = _edges(maps.grid.procs, maps.grid.message_bytes)
    figure, axes = _panels(len(maps.maps), maps.grid.procs, maps.grid.message_bytes)
    colours = plt.get_cmap("viridis_r").with_extremes(under="white", bad="#BBBBBB")
    mesh = None
    for axis, (name, found) in zip(axes, maps.maps.items(), strict=False):
        axis.set_title(_title(maps, name))
        percent = np.where(np.isnan(found.slowdown), np.nan, np.maximum(found.slowdown * 100, 1e-9))
        norm = LogNorm(_WHITE_BELOW_PERCENT, _WORST_PERCENT)
        mesh = axis.pcolormesh(sizes, procs, percent, cmap=colours, norm=norm, linewidth=0)
    if mesh is not None:
        bar = figure.colorbar(mesh, ax=axes, extend="both", ticks=_PERCENT_TICKS)
        bar.ax.set_yticklabels([str(value) for value in _PERCENT_TICKS])
        bar.ax.yaxis.set_minor_locator(NullLocator())
        bar.set_label(f"slowdown in percent\n(white: below {_WHITE_BELOW_PERCENT}; grey: no pick)", fontsize=9)
    figure.suptitle(title, fontsize=11, wrap=True)
    return figure


def _styles(choices: Sequence[Choice]) -> list[tuple[str, str, str]]:
    """The colour, the hatch and the hatch's colour of each method."""
    algorithms = list(dict.fromkeys(choice.algorithm for choice in choices))
    segments = sorted({choice.segment_bytes for choice in choices} | {0})
    styles = []
    for choice in choices:
        colour = PALETTE[algorithms.index(choice.algorithm) % len(PALETTE)]
        light = np.dot(to_rgb(colour), (0.299, 0.587, 0.114)) > 0.55
        hatch = _HATCHES[segments.index(choice.segment_bytes) % len(_HATCHES)]
        styles.append((colour, hatch, "#000000" if light else "#FFFFFF"))
    return styles


def _panels(count: int, procs: Sequence[int], sizes: Sequence[int]) -> tuple[Figure, list[Axes]]:
    """Panels with common axes; those of the last row that are not needed are hidden."""
    columns = 2 if count == 4 else min(count, _MOST_COLUMNS)
    rows = -(-count // columns)
    figure, grid = plt.subplots(
        rows, columns, figsize=(max(3.5 * columns + 2.2, 7.4), 3.1 * rows + 0.6), sharex=True, sharey=True,
        squeeze=False, layout=ConstrainedLayoutEngine(w_pad=0.12),
    )  # fmt: skip
    axes = list(grid.ravel())
    for number, axis in enumerate(axes):
        axis.set_visible(number < count)
        axis.grid(False)
        axis.set_xscale("log", base=2)
        axis.set_yscale("log", base=2)
        across, upwards = _edges(procs, sizes)
        axis.set_xlim(across[0], across[-1])
        axis.set_ylim(upwards[0], upwards[-1])
        size_axis(axis, sizes, keep_scale=True)
        axis.tick_params(labelbottom=number + columns >= count)
        axis.set_xlabel("message size m" if number + columns >= count else "")
        axis.set_ylabel("processes P" if number % columns == 0 else "")
    counts = _count_ticks(procs)
    axes[0].set_yticks(counts, [str(count) for count in counts])
    axes[0].yaxis.set_minor_formatter(NullFormatter())
    axes[0].yaxis.set_minor_locator(NullLocator())
    return figure, axes


def _count_ticks(procs: Sequence[int]) -> list[int]:
    """The process counts to label: all if they are few, else the powers of two among them."""
    powers = [count for count in procs if count & (count - 1) == 0]
    return list(procs) if len(procs) <= 6 or len(powers) < 2 else powers


def _edges(procs: Sequence[int], sizes: Sequence[int]) -> tuple[Array, Array]:
    """The borders of the cells: of sizes, and of process counts."""
    return _borders(sizes), _borders(procs)


def _borders(centres: Sequence[int]) -> Array:
    """The borders of cells around centres, one more than these, midway in logarithms."""
    values = np.log(centres)
    if len(values) == 1:
        return np.exp(np.array([values[0] - 0.5, values[0] + 0.5]))
    middles = (values[1:] + values[:-1]) / 2
    return np.exp(np.concatenate([[2 * values[0] - middles[0]], middles, [2 * values[-1] - middles[-1]]]))


def _fill(axis: Axes, borders: tuple[Array, Array], where: Indices, colour: str, hatch: str, ink: str) -> None:
    """The cells where a method is picked, as one shape: cells of their own would show their seams."""
    sizes, procs = borders
    rows, columns = np.nonzero(where)
    if not len(rows):
        return
    left, right, low, high = sizes[columns], sizes[columns + 1], procs[rows], procs[rows + 1]
    corners = np.stack([left, low, right, low, right, high, left, high, left, low], axis=1).reshape(-1, 2)
    codes = np.tile([Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY], len(rows))
    axis.add_patch(PathPatch(Path(corners, codes), facecolor=colour, hatch=hatch, edgecolor=ink, linewidth=0))
