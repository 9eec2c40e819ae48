"""The style that all figures share: colours, markers, titles, labels of lines, axes with units, and saving.

Figures are readable in print and by the colour-blind: the palette is Okabe and Ito's, and markers differ with colours.
"""

from __future__ import annotations

import io
import itertools
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.colors import to_rgb
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Annotation, Text
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator
from matplotlib.transforms import ScaledTranslation
from numpy.typing import ArrayLike, NDArray

from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import UsageError
from collwise.common.units import format_size
from collwise.models.piecewise import Array
from collwise.models.switch_points import NOBODY, Indices
from collwise.validation.times.choice import LIBRARY_DECIDES, Choice

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999", "#882255", "#F0E442")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">")
_SECOND_MARKERS = ("p", "d", "h", "8", "H", "|", "4", "x", "+")
"""Markers of every second algorithm with the same colour, so that no marker occurs twice in a figure."""
_FORM_MARKERS = {"shared memory": "1", "one-sided": "2", "by socket": "3"}
"""Markers for the forms of communication within a node other than point to point."""
_ALGORITHM_COLOURS = (*PALETTE[:6], "#882255", "#999933")
"""Eight colours that differ clearly. Cells without a value are grey, and text is black."""

_LIBRARY_COLOUR = "#DDDDDD"

MAX_RATIO = 16.0
"""Larger ratios to the best are not shown."""

_MIN_RATIO = 1.2
"""Axes of ratios reach at least up to this ratio, so that small differences do not look large."""

_MAX_LABELS = 12
"""The largest number of lines in a panel that are named at their ends; if there are more, a legend names them."""

_COINCIDE = 0.004
"""Lines no further apart than this share of the axes are seen as one."""

plt.rcParams |= {
    "font.size": 10,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "figure.constrained_layout.use": True,
    "savefig.dpi": 150,
    # A fixed salt gives SVGs of the same figure the same internal names, so that they are equal as files.
    "svg.hashsalt": "collwise",
}


def algorithm_style(algorithm: str) -> tuple[str, str]:
    """The colour and the marker of an algorithm, the same in every figure and for every collective with this algorithm.

    If processes of a node do not communicate point to point, as in 'tasks_chain, shared memory', the algorithm has
    another marker.
    """
    name, _, form = algorithm.partition(", ")
    colour, marker = _algorithm_styles()[name]
    return colour, _FORM_MARKERS[form] if form else marker


@cache
def _algorithm_styles() -> dict[str, tuple[str, str]]:
    """The styles by algorithm; each gets the rarest colour among the algorithms with which it may appear."""
    collectives = Catalogue.load().collectives.values()
    chosen = [name for collective in collectives for name in collective.selectable]
    names = dict.fromkeys([*chosen, *(name for collective in collectives for name in collective.algorithms)])
    colours: dict[str, int] = {}
    for name in names:
        beside = [collective.selectable for collective in collectives if name in collective.selectable]
        beside = beside or [tuple(collective.algorithms) for collective in collectives if name in collective.algorithms]
        taken = Counter(colour for other, colour in colours.items() if any(other in some for some in beside))
        everywhere = Counter(colours.values())
        colours[name] = min(range(len(_ALGORITHM_COLOURS)), key=lambda colour: (taken[colour], everywhere[colour]))
    styles: dict[str, tuple[str, str]] = {}
    used: Counter[int] = Counter()
    for name, colour in colours.items():
        markers = _SECOND_MARKERS if used[colour] % 2 else MARKERS
        styles[name] = (_ALGORITHM_COLOURS[colour], markers[(colour + used[colour] // 2) % len(markers)])
        used[colour] += 1
    return styles


def choice_colour(choice: Choice) -> str:
    """The colour of a choice, which is the colour of its algorithm in every map."""
    return _LIBRARY_COLOUR if choice == LIBRARY_DECIDES else algorithm_style(choice.algorithm)[0]


def choices_shown(choices: Sequence[Choice], maps: Iterable[Indices]) -> list[int]:
    """The indices of the choices that occur in maps of indices, by algorithm and then by segment size."""
    found = {int(index) for winners in maps for index in np.unique(winners)} - {NOBODY}
    names = list(dict.fromkeys(choice.algorithm for choice in choices))
    return sorted(found, key=lambda index: (names.index(choices[index].algorithm), choices[index].segment_bytes))


def ink(colour: str) -> str:
    """Black or white, whichever can be read on a colour."""
    return "#000000" if np.dot(to_rgb(colour), (0.299, 0.587, 0.114)) > 0.5 else "#FFFFFF"


def head(figure: Figure, message: str, drawn: str = "") -> None:
    """Sets the title: what was found, and below it what is drawn.

    The title begins at the left, so a narrow view of a wide figure still shows it.
    """
    figure.suptitle("\n".join(filter(None, (message, drawn))), fontsize=11, wrap=True, x=0.02, ha="left")


def least_and_most(values: Mapping[str, float]) -> str:
    """'loggp 3.1 %, hockney 45.0 %': shares by name, ascending; of more than three shares, only the first and last."""
    known = sorted((value, name) for name, value in values.items() if np.isfinite(value))
    said = [f"{name} {100 * value:z.1f} %" for value, name in known]
    return ", ".join(said) if len(said) < 4 else f"from {said[0]} to {said[-1]}"


def in_turn(before: Sequence[tuple[str, str]], last: str, what: str, everywhere: str) -> str:
    """'binomial is fastest up to 8 KiB, then chain'; `before` has pairs of a name and the end of its range."""
    if not before:
        return f"{last} is {what} {everywhere}"
    (first, end), *others = before
    return ", ".join([f"{first} is {what} up to {end}", *map("{0[0]} up to {0[1]}".format, others), f"then {last}"])


def label_lines(*axes: Axes) -> None:
    """Names lines at their right ends, in the lines' colours. The axes must already have their scales and limits.

    If panels in a row have the same lines, only the last of these panels shows the names. Lines that would hide others
    become dashed. If there is no room for the names, they are in a legend below all panels.
    """
    figure = axes[0].get_figure(root=True)
    assert figure is not None
    lines = {
        axis: [
            line for line in axis.lines if not str(line.get_label()).startswith("_") and _inside(_points(line)).any()
        ]
        for axis in axes
    }
    for axis in axes:
        _tell_apart(axis.lines)
    names = {axis: [str(line.get_label()) for line in mine] for axis, mine in lines.items()}
    last = {(axis.get_subplotspec().rowspan.start, *names[axis]): axis for axis in axes}  # type: ignore[union-attr]
    notes = {axis: [_note(line) for line in lines[axis]] for axis in last.values()}
    figure.draw_without_rendering()  # which lays out the axes
    heights = {axis: np.array([_height(note) for note in mine]) for axis, mine in notes.items()}
    if any(len(high) > _MAX_LABELS or high.sum() > 1 for high in heights.values()):
        for note in (note for mine in notes.values() for note in mine):
            note.remove()
        keys = {str(line.get_label()): line for mine in lines.values() for line in mine}
        figure.legend(handles=list(keys.values()), loc="outside lower center", ncols=2, fontsize=8.5)
        return
    for axis, here in notes.items():
        ends = np.array([note.xy[1] for note in here])
        order = np.argsort(ends, kind="stable")
        for index, place in zip(order, apart(ends[order], heights[axis][order]), strict=True):
            here[index].xyann = (1.0, place)


def apart(wanted: Array, heights: Array) -> Array:
    """Centres, between 0 and 1, of labels that do not overlap, in the order of the wanted centres.

    By least squares, these centres are the nearest to the wanted ones. The sum of the heights must be at most 1.
    """
    from scipy.optimize import isotonic_regression

    if not len(wanted):
        return wanted
    below = np.concatenate([[0.0], np.cumsum((heights[1:] + heights[:-1]) / 2)])
    # If the room below each label is subtracted, the centres only have to ascend, as in isotonic regression.
    places = isotonic_regression(wanted - below).x
    found: Array = below + np.clip(places, heights[0] / 2, 1 - heights[-1] / 2 - below[-1])
    return found


def _points(line: Line2D) -> Array:
    """The points of a line, as shares of the axes' width and height."""
    axis = line.axes
    assert axis is not None
    axis.get_xlim()  # the limits are fitted to the lines only when somebody asks for the limits
    points: Array = (axis.transData - axis.transAxes).transform(np.asarray(line.get_xydata(), dtype=float))
    return points


def _inside(points: Array) -> NDArray[np.bool_]:
    return np.asarray(((points > -1e-3) & (points < 1 + 1e-3)).all(axis=1))


def _end(line: Line2D) -> Array:
    """The point where a line leaves its axes, or the line's last point if the line stays within them."""
    points = _points(line)
    seen = np.flatnonzero(_inside(points))
    last = seen[np.argmax(points[seen, 0])]
    here = points[last]
    for way in points[last + 1 : last + 2] - here:
        share = (float(way[1] > 0) - here[1]) / way[1] if way[1] else np.nan
        here = here + way * share if 0 <= share <= 1 else here
    return here


def _tell_apart(lines: Iterable[Line2D]) -> None:
    """Dashes each solid line that would hide another line, and gives it larger, hollow markers."""
    drawn = [(line, _points(line)) for line in lines if line.get_linestyle() == "-"]
    hidden = [sum(_coincide(points, other) for _, other in drawn[:number]) for number, (_, points) in enumerate(drawn)]
    for (line, _), count in zip(drawn, hidden, strict=True):
        if count:
            line.set(
                linestyle=(0, (5 / count, 4)), markerfacecolor="none", markersize=line.get_markersize() + 3 * count
            )


def _coincide(array: Array, other: Array) -> bool:
    """True if two lines look like one line at half of their points or more."""
    if array.shape != other.shape:
        return False
    distances = np.abs(array - other).max(axis=1)
    known = distances[np.isfinite(distances)]
    return bool(known.size) and float(np.median(known)) < _COINCIDE


def _note(line: Line2D) -> Annotation:
    """The name of a line beside its last point, on up to three lines."""
    axis = line.axes
    assert isinstance(axis, Axes)
    rgb = np.array(to_rgb(line.get_color()))
    dark = min(1.0, 0.45 / max(float(np.dot(rgb, (0.299, 0.587, 0.114))), 0.01))
    return axis.annotate(
        re.sub(r"(.{10,20}[_ ])(?=.{6})", r"\1\n", str(line.get_label())), tuple(_end(line)),
        xycoords="axes fraction", xytext=(1.0, 0.5), annotation_clip=False,
        textcoords=axis.transAxes + ScaledTranslation(8 / 72, 0, axis.figure.dpi_scale_trans),
        va="center", fontsize=8.5, linespacing=1.0, color=tuple(rgb * dark),
        arrowprops={"arrowstyle": "-", "color": rgb, "linewidth": 0.6, "relpos": (0, 0.5), "shrinkA": 1, "shrinkB": 3},
    )  # fmt: skip


def _height(note: Annotation) -> float:
    """The height of a name, in shares of its axes."""
    assert note.axes is not None
    return 1.08 * Text.get_window_extent(note).height / note.axes.bbox.height


def save(figure: Figure, path: Path) -> Path:
    """Writes a figure as PNG, or as SVG if the path ends in .svg. Raises UsageError when the file cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes((svg if path.suffix == ".svg" else png)(figure))
    except OSError as problem:
        raise UsageError(f"cannot write {path}: {problem.strerror}") from None
    finally:
        plt.close(figure)
    return path


def png(figure: Figure) -> bytes:
    """The figure as a PNG file's bytes; the figure is closed.

    Like `svg`, this draws once; Figure.savefig would draw everything twice, the first time only for the layout.
    """
    picture = io.BytesIO()
    figure.set_dpi(plt.rcParams["savefig.dpi"])
    FigureCanvasAgg(figure).print_png(picture)
    plt.close(figure)
    return picture.getvalue()


def svg(figure: Figure) -> bytes:
    """The figure as an SVG file's bytes; the figure stays open."""
    picture = io.BytesIO()
    figure.set_dpi(plt.rcParams["savefig.dpi"])
    # Without a date in it, an SVG of the same data is the same file.
    FigureCanvasSVG(figure).print_svg(picture, metadata={"Date": None})
    return picture.getvalue()


# The backend alone does not show figures in notebooks.
if "IPython" in sys.modules and (shell := sys.modules["IPython"].get_ipython()) is not None:
    shell.display_formatter.formatters["image/png"].for_type(Figure, png)


def panel_grid(count: int, height: float, columns: int, width: float, **others: Any) -> tuple[Figure, list[Axes]]:
    """A figure with `count` panels of this size in inches, in rows of `columns`; `others` go to plt.subplots.

    The last row may be shorter.
    """
    wide = min(columns, max(1, count))
    rows = -(-max(1, count) // wide)
    figure, axes = plt.subplots(rows, wide, figsize=(width * wide, height * rows), squeeze=False, **others)
    flat = list(axes.flat)
    for axis in flat[count:]:
        axis.remove()
    return figure, flat[:count]


def grouped_bars(
    axis: Axes, groups: Sequence[str], series: Mapping[str, ArrayLike], colours: Sequence[str] = PALETTE
) -> list[BarContainer]:
    """Draws bars side by side, one of each series in each group. Returns the bars of each series."""
    places, width = np.arange(len(groups)), 0.8 / len(series)
    axis.set_xticks(places, groups)
    shifts = (np.arange(len(series)) - (len(series) - 1) / 2) * width
    return [
        axis.bar(places + shift, np.asarray(values), width, color=colour, label=name)
        for shift, colour, (name, values) in zip(shifts, itertools.cycle(colours), series.items(), strict=False)
    ]


def size_axis(axis: Axes, sizes: Sequence[int]) -> None:
    """Message sizes along x: logarithmic, at most five labels."""
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


def ratio_axis(axis: Axes, largest: float, label: str = "time / best time") -> None:
    """Ratios to the best along y, from 1 to the largest: logarithmic, with every label readable."""
    top = min(max(largest, _MIN_RATIO), MAX_RATIO)
    axis.set_yscale("log")
    axis.set_ylim(0.98 if top < 1.5 else 0.94, top * (1.02 if top < 1.5 else 1.06))
    ticks = (1, 1.1, 1.2, 1.3, 1.4) if top < 1.5 else (1, 1.5, 2, 3) if top < 4 else (1, 2, 4, 8, 16)
    shown = [tick for tick in ticks if tick <= top]
    axis.set_yticks(shown, [f"{tick:g}" for tick in shown])
    axis.yaxis.set_minor_locator(NullLocator())
    axis.set_ylabel(label + (f"\n(above {MAX_RATIO:g}: not shown)" if largest > MAX_RATIO else ""))


def _minor_label(seconds: float, axis: Axes) -> str:
    """A label between powers of ten, or no text. A short axis has a label at each digit, a longer one at 2 and 5."""
    low, high = axis.get_ylim()
    digit = round(seconds / 10.0 ** np.floor(np.log10(seconds)))
    if high / low < 3 or (high / low < 50 and digit in (2, 5)):
        return _seconds_label(float(f"{seconds:.2g}"), 0)
    return ""


def _seconds_label(seconds: float, _: int) -> str:
    for unit, factor in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= factor * 0.999:
            return f"{seconds / factor:g} {unit}"
    return f"{seconds / 1e-9:g} ns"
