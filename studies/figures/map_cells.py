"""Cells of maps: regions with their names, digits that can be read, and cells that have no value, in two greys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import Colormap, LogNorm, Normalize, to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Patch, PathPatch
from matplotlib.path import Path
from matplotlib.ticker import NullLocator
from numpy.typing import NDArray
from scipy.ndimage import label

from collwise.models.piecewise import Array
from collwise.models.switch_points import NOBODY, Indices
from collwise.studies.figures.style import choice_colour, choices_shown, ink
from collwise.validation.times.choice import Choice

MAX_EVEN = 24
"""If there are more rows or columns than this, cells are spaced as on a logarithmic axis."""

_WHITE_BELOW_PERCENT, _WORST_PERCENT = 1, 300
_PERCENT_TICKS = (1, 3, 10, 30, 100, 300)
SLOWDOWNS = colormaps["Oranges"].with_extremes(under="white")
PERCENT = LogNorm(_WHITE_BELOW_PERCENT, _WORST_PERCENT)
DIGITS_SIZE = 8.0
_LETTER_INCHES, _LINE_INCHES, _MARGIN_INCHES = 0.066, 0.125, 0.04
"""The width of a letter, the height of a line, and the room around a name, inches."""
_LOW_INCHES = 4.5
"""A figure that is less high than this has no room for an upright colour bar and its label."""


class Blank(NamedTuple):
    """The look of cells without a value, and their text in the legend."""

    face: str
    label: str


NOT_TIMED = Blank("#CFCFCF", "not timed")
NO_CHOICE = Blank("#EBEBEB", "no choice by this source")
NO_FORMULA = NO_CHOICE._replace(label="no formula, or no choice")


def borders(centres: Sequence[int]) -> Array:
    """The borders of cells around centres. They are evenly spaced if there are few centres, otherwise logarithmic."""
    if len(centres) <= MAX_EVEN:
        return np.arange(len(centres) + 1.0)
    values = np.log(centres)
    middles = (values[1:] + values[:-1]) / 2
    return np.exp(np.concatenate([[2 * values[0] - middles[0]], middles, [2 * values[-1] - middles[-1]]]))


def places(centres: Sequence[int]) -> Array:
    """The centres of cells on an axis with these `borders`."""
    if len(centres) <= MAX_EVEN:
        return np.arange(len(centres), dtype=np.float64) + 0.5
    return np.array(centres, dtype=np.float64)


def cell_axis(axis: Axes, direction: str, centres: Sequence[int], labels: Mapping[int, str]) -> None:
    """Lays out one direction, 'x' or 'y', for cells, with labels for some of the centres."""
    edges, at = borders(centres), dict(zip(centres, places(centres), strict=True))
    if len(centres) > MAX_EVEN:
        axis.set(**{f"{direction}scale": "log"})
    axis.set(**{f"{direction}lim": (edges[0], edges[-1])})
    axis.set(**{f"{direction}ticks": [at[item] for item in labels], f"{direction}ticklabels": list(labels.values())})
    (axis.xaxis if direction == "x" else axis.yaxis).set_minor_locator(NullLocator())
    axis.grid(False)


def fill(axis: Axes, across: Array, upwards: Array, where: NDArray[np.bool_], face: str) -> None:
    """Fills the cells where a condition holds, as one shape of few rectangles. Separate cells would show seams."""
    found = _rectangles(where)
    if not found:
        return
    first, past, lowest, above = np.array(found).T
    left, right, low, high = across[first], across[past], upwards[lowest], upwards[above]
    corners = np.stack([left, low, right, low, right, high, left, high, left, low], axis=1).reshape(-1, 2)
    codes = np.tile([Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY], len(found))
    shape = Path(corners, codes)
    axis.add_patch(PathPatch(shape, facecolor=face, edgecolor=face, linewidth=0))


def _rectangles(where: NDArray[np.bool_]) -> list[tuple[int, int, int, int]]:
    """Rectangles that cover the cells where a condition holds: first and end column, first and end row."""
    done, open_runs = [], dict[tuple[int, int], int]()
    for row, cells in enumerate([*where, np.zeros(where.shape[1], dtype=bool)]):
        changes = np.flatnonzero(np.diff(cells.astype(np.int8), prepend=0, append=0)).tolist()
        runs = set(zip(changes[::2], changes[1::2], strict=True))
        done += [(*run, open_runs.pop(run), row) for run in sorted(open_runs.keys() - runs)]
        open_runs |= {run: row for run in runs - open_runs.keys()}
    return done


def fill_choices(
    axis: Axes, across: Array, upwards: Array, best: Indices, choices: Sequence[Choice], blank: Blank
) -> list[Blank]:
    """Fills cells by indices into `choices`, and marks cells of NOBODY. Returns `blank` if there are such cells."""
    used = choices_shown(choices, [best])
    for colour in dict.fromkeys(choice_colour(choices[index]) for index in used):
        mine = [index for index in used if choice_colour(choices[index]) == colour]
        fill(axis, across, upwards, np.isin(best, mine), colour)
    _divide(axis, across, upwards, best)
    _name_regions(axis, across, upwards, best, choices)
    return fill_blanks(axis, across, upwards, {blank: best == NOBODY})


def _divide(axis: Axes, across: Array, upwards: Array, best: Indices) -> None:
    """Thin white lines between cells of different choices."""
    lines = [
        [(across[j + 1], upwards[i]), (across[j + 1], upwards[i + 1])] for i, j in np.argwhere(np.diff(best, axis=1))
    ]
    lines += [
        [(across[j], upwards[i + 1]), (across[j + 1], upwards[i + 1])] for i, j in np.argwhere(np.diff(best, axis=0))
    ]
    axis.add_collection(LineCollection(lines, colors="#FFFFFF", linewidths=0.8), autolim=False)


def _name_regions(axis: Axes, across: Array, upwards: Array, best: Indices, choices: Sequence[Choice]) -> None:
    """Names regions of equal cells in their largest rectangles, or those of all choices of an algorithm together."""
    inches = _inches(axis, across, "x"), _inches(axis, upwards, "y")
    named: list[int] = []
    for index in choices_shown(choices, [best]):
        choice = choices[index]
        texts = [choice.label, choice.label.replace(", ", "\n"), choice.label.replace(", ", "\n").replace("_", "_\n")]
        if _name(axis, across, upwards, inches, best == index, texts, choice_colour(choice)):
            named.append(index)
    missing = {choices[index].algorithm for index in choices_shown(choices, [best])}
    for algorithm in missing - {choices[index].algorithm for index in named}:
        mine = [index for index, item in enumerate(choices) if item.algorithm == algorithm]
        _name(axis, across, upwards, inches, np.isin(best, mine), (algorithm,), choice_colour(choices[mine[0]]))


def _inches(axis: Axes, edges: Array, direction: str) -> Array:
    """The borders of cells in inches from the first border, before the figure is laid out."""
    at = np.log(edges) if len(edges) > MAX_EVEN + 1 else np.asarray(edges, dtype=np.float64)
    figure, box = axis.get_figure(root=True), axis.get_position()
    assert figure is not None
    size = box.width * figure.get_figwidth() if direction == "x" else box.height * figure.get_figheight()
    return np.abs(at - at[0]) / abs(at[-1] - at[0]) * size


def _name(
    axis: Axes, across: Array, upwards: Array, inches: tuple[Array, Array], where: NDArray[np.bool_],
    texts: Sequence[str], colour: str,
) -> bool:  # fmt: skip
    """Writes into each region of cells the first of the texts that fits. Returns True if one fitted anywhere."""
    regions, count = label(where)
    done = False
    for number in range(1, count + 1):
        rectangles = _free_rectangles(regions == number)
        for text, upright in ((name, turned) for turned in (False, True) for name in texts):
            lines = text.split("\n")
            needed = [
                _LETTER_INCHES * max(map(len, lines)) + _MARGIN_INCHES,
                _LINE_INCHES * len(lines) + _MARGIN_INCHES,
            ]
            wide, high = needed[::-1] if upright else needed
            rooms = [
                (
                    min((inches[0][past] - inches[0][first]) / wide, (inches[1][above] - inches[1][lowest]) / high),
                    rectangle,
                )
                for rectangle in rectangles
                for first, past, lowest, above in [rectangle]
            ]
            room, (first, past, lowest, above) = max(rooms)
            if room >= 1:
                x = _middle(across[first], across[past], len(across))
                y = _middle(upwards[lowest], upwards[above], len(upwards))
                axis.text(
                    x, y, text, ha="center", va="center", fontsize=DIGITS_SIZE, rotation=90 if upright else 0,
                    color=ink(colour), linespacing=1.0,
                )  # fmt: skip
                done = True
                break
    return done


def _middle(low: float, high: float, edges: int) -> float:
    return float(np.sqrt(low * high)) if edges > MAX_EVEN + 1 else (low + high) / 2


def _free_rectangles(where: NDArray[np.bool_]) -> list[tuple[int, int, int, int]]:
    """The widest rectangle of cells for each range of rows, in the form of `_rectangles`."""
    found = []
    for lowest in range(len(where)):
        together = np.ones(where.shape[1], dtype=bool)
        for above in range(lowest + 1, len(where) + 1):
            together &= where[above - 1]
            if not together.any():
                break
            changes = np.flatnonzero(np.diff(together.astype(np.int8), prepend=0, append=0))
            runs = changes.reshape(-1, 2)
            first, past = runs[np.argmax(runs[:, 1] - runs[:, 0])]
            found.append((int(first), int(past), lowest, above))
    return found


def fill_blanks(axis: Axes, across: Array, upwards: Array, places: Mapping[Blank, NDArray[np.bool_]]) -> list[Blank]:
    """Marks cells that have no value. Returns the kinds that occur."""
    for blank, where in places.items():
        fill(axis, across, upwards, where, blank.face)
    return [blank for blank, where in places.items() if np.any(where)]


def explain_cells(
    figure: Figure, blanks: Sequence[Blank], choices: Sequence[Choice] = (), fontsize: float = 8.5, **layout: Any
) -> None:
    """Adds a legend of choices and of cells without a value, if there are any.

    All choices of an algorithm share one entry. `layout` has keyword arguments of the legend.
    """
    keys = {choice.algorithm: choice_colour(choice) for choice in choices}
    keys |= {blank.label: blank.face for blank in dict.fromkeys(blanks)}
    handles = [Patch(facecolor=colour, edgecolor="#777777", linewidth=0.4, label=name) for name, colour in keys.items()]
    if handles:
        figure.legend(handles=handles, fontsize=fontsize, **(layout or {"loc": "outside lower center", "ncols": 2}))


def heat(
    axis: Axes, across: Array, upwards: Array, values: Array, colours: tuple[Colormap, Normalize],
    texts: Mapping[tuple[int, int], str],
) -> None:  # fmt: skip
    """Draws coloured cells, white where a value is nan, with texts in black or white, whichever can be read."""
    chosen, norm = colours
    # Lines around the cells of a map with texts make white cells visible, too.
    lines: dict[str, Any] = {"edgecolors": "#DDDDDD", "linewidth": 0.6} if texts else {"linewidth": 0}
    axis.pcolormesh(across, upwards, np.ma.masked_invalid(values), cmap=chosen, norm=norm, **lines)
    for (i, j), text in texts.items():
        x, y = (across[j] + across[j + 1]) / 2, (upwards[i] + upwards[i + 1]) / 2
        below = to_hex(chosen(norm(values[i, j]))) if np.isfinite(values[i, j]) else "#FFFFFF"
        axis.text(x, y, text, ha="center", va="center", fontsize=DIGITS_SIZE, color=ink(below))


def percent_texts(slowdowns: Array) -> dict[tuple[int, int], str]:
    """Slowdowns in whole percent, for each cell with a value. Empty if cells are too small for digits."""
    if not has_digits(slowdowns.shape):
        return {}
    return {at: f"{value * 100:z.0f}" for at, value in np.ndenumerate(slowdowns) if np.isfinite(value)}


def percent_values(slowdowns: Array) -> Array:
    """Slowdowns in percent for colours on a logarithmic scale. Values of 0 or less become a tiny positive value."""
    return np.where(np.isnan(slowdowns), np.nan, np.maximum(slowdowns * 100, 1e-9))


def has_digits(shape: tuple[int, ...]) -> bool:
    """True if a map of this shape has cells that are large enough for the digits of `percent_texts`."""
    return max(shape) <= MAX_EVEN


def percent_bar(
    figure: Figure, axes: Sequence[Axes], label: str, shrink: float = 1.0,
    colours: tuple[Colormap, Normalize] = (SLOWDOWNS, PERCENT),
) -> None:  # fmt: skip
    """The bar that explains the colours of slowdowns: beside the axes, or below them in a low figure."""
    low = figure.get_figheight() < _LOW_INCHES
    where: dict[str, Any] = (
        {"location": "bottom", "shrink": 0.6, "aspect": 40} if low else {"shrink": shrink, "aspect": 16}
    )
    mappable = ScalarMappable(colours[1], colours[0])
    bar = figure.colorbar(mappable, ax=list(axes), extend="both", ticks=_PERCENT_TICKS, **where)
    bar.set_ticks(_PERCENT_TICKS, labels=[str(value) for value in _PERCENT_TICKS])
    (bar.ax.xaxis if low else bar.ax.yaxis).set_minor_locator(NullLocator())
    bar.set_label(label, fontsize=9)
