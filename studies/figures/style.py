"""The style that all figures share: colours, markers, axes with units, and saving.

Figures are readable in print and by the colour-blind: the palette is Okabe and Ito's, and markers differ with colours.
"""

from __future__ import annotations

import io
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import UsageError
from collwise.common.units import format_size
from collwise.models.switch_points import NOBODY, Indices
from collwise.validation.times.choice import LIBRARY_DECIDES, Choice

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999", "#882255", "#F0E442")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">")
_SECOND_MARKERS = ("p", "d", "h", "8", "H", "|", "4", "x", "+")
"""Markers of every second algorithm of a colour, so that no marker of a figure comes twice."""
_FORM_MARKERS = {"shared memory": "1", "one-sided": "2", "by socket": "3"}
"""Markers of algorithms whose processes communicate within nodes in another way than by messages."""
_ALGORITHM_COLOURS = (*PALETTE[:6], "#882255", "#999933")
"""Eight colours that can be told apart. Grey marks cells without a value, and black is the ink."""

_LIBRARY_COLOUR = "#DDDDDD"

MAX_RATIO = 16.0
"""Ratios to the best above this are not shown."""

_MIN_RATIO = 1.2
"""Axes of ratios reach at least up to this, so that small differences do not look large."""

plt.rcParams |= {
    "font.size": 10,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "figure.constrained_layout.use": True,
    "savefig.dpi": 150,
    # The same names within the SVG of the same figure, so that it is the same file.
    "svg.hashsalt": "collwise",
}


def algorithm_style(algorithm: str) -> tuple[str, str]:
    """The colour and the marker of an algorithm: the same in every figure, and for every collective that has it.

    Colours differ among the algorithms of a collective as far as there are colours; where one comes again, it has
    another marker. So has a form of an algorithm within nodes, as in 'tasks_chain, shared memory'.
    """
    name, _, form = algorithm.partition(", ")
    colour, marker = _algorithm_styles()[name]
    return colour, _FORM_MARKERS[form] if form else marker


@cache
def _algorithm_styles() -> dict[str, tuple[str, str]]:
    """The styles by algorithm. Each name in turn gets the colour that is rarest among those that it may stand beside.

    Algorithms that can be chosen come first.
    """
    collectives = Catalogue.load().collectives.values()
    chosen = [name for one in collectives for name in one.selectable]
    names = dict.fromkeys([*chosen, *(name for one in collectives for name in one.algorithms)])
    colours: dict[str, int] = {}
    for name in names:
        beside = [one.selectable for one in collectives if name in one.selectable]
        beside = beside or [tuple(one.algorithms) for one in collectives if name in one.algorithms]
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
    """The colour of a choice in maps, that of its algorithm, the same in every map."""
    return _LIBRARY_COLOUR if choice == LIBRARY_DECIDES else algorithm_style(choice.algorithm)[0]


def choices_shown(choices: Sequence[Choice], maps: Iterable[Indices]) -> list[int]:
    """The indices of the choices that occur in maps of indices, in the order of a legend. They are by name and segment
    size.
    """
    found = {int(index) for winners in maps for index in np.unique(winners)} - {NOBODY}
    names = list(dict.fromkeys(choice.algorithm for choice in choices))
    return sorted(found, key=lambda index: (names.index(choices[index].algorithm), choices[index].segment_bytes))


def ink(colour: str) -> str:
    """Black or white, whichever can be read on a colour."""
    return "#000000" if np.dot(to_rgb(colour), (0.299, 0.587, 0.114)) > 0.5 else "#FFFFFF"


def save(figure: Figure, path: Path) -> Path:
    """Writes a figure (PNG or SVG by its ending). Raises UsageError when the file cannot be written."""
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

    Like `svg` it draws once; Figure.savefig would draw everything twice, the first time only for the layout.
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


def _show_in_notebooks() -> None:
    """Makes notebooks show figures, which the backend alone does not."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is not None:
        shell.display_formatter.formatters["image/png"].for_type(Figure, png)


_show_in_notebooks()


def panel_grid(
    count: int, height: float, columns: int, width: float, share_y: bool = False
) -> tuple[Figure, list[Axes]]:
    """A figure with `count` panels of this size in inches, in rows of `columns`; the last row may be shorter."""
    wide = min(columns, max(1, count))
    rows = -(-max(1, count) // wide)
    figure, axes = plt.subplots(rows, wide, figsize=(width * wide, height * rows), squeeze=False, sharey=share_y)
    flat = list(axes.flat)
    for axis in flat[count:]:
        axis.remove()
    return figure, flat[:count]


def size_axis(axis: Axes, sizes: Sequence[int]) -> None:
    """Message sizes along x: logarithmic, five labels at most."""
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


def ratio_axis(axis: Axes, largest: float, label: str = "time / that of the best") -> None:
    """Ratios to the best along y, from 1 to the largest: logarithmic, with every label readable.

    Curves that coincide in a plot of times are apart here.
    """
    top = min(max(largest, _MIN_RATIO), MAX_RATIO)
    axis.set_yscale("log")
    axis.set_ylim(0.98 if top < 1.5 else 0.94, top * (1.02 if top < 1.5 else 1.06))
    ticks = (1, 1.1, 1.2, 1.3, 1.4) if top < 1.5 else (1, 1.5, 2, 3) if top < 4 else (1, 2, 4, 8, 16)
    shown = [tick for tick in ticks if tick <= top]
    axis.set_yticks(shown, [f"{tick:g}" for tick in shown])
    axis.yaxis.set_minor_locator(NullLocator())
    axis.set_ylabel(label + (f" (above {MAX_RATIO:g}: not shown)" if largest > MAX_RATIO else ""))


def _minor_label(seconds: float, axis: Axes) -> str:
    """Labels between powers of ten, where the axis holds few of these. A short axis has all, a longer one 2 and 5."""
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
