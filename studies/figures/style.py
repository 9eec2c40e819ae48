"""The style that all figures share: colours, markers, axes with units, and saving.

Figures are readable in print and by the colour-blind: the palette is Okabe and Ito's, and markers differ with colours.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import UsageError
from collwise.common.units import format_size

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


def algorithm_style(collective: str, algorithm: str) -> tuple[str, str]:
    """The colour and the marker of an algorithm, by its place in the catalogue: the same in every figure.

    A tenth algorithm further on has the same colour and another marker.
    """
    number = list(Catalogue.load().collective(collective).algorithms).index(algorithm)
    return PALETTE[number % len(PALETTE)], MARKERS[(number + number // len(PALETTE)) % len(MARKERS)]


def save(figure: Figure, path: Path) -> Path:
    """Writes a figure (PNG or SVG by its ending). Raises UsageError when the file cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".svg":
            # Without a date in it, an SVG of the same data is the same file.
            figure.savefig(path, metadata={"Date": None})
        else:
            path.write_bytes(png(figure))
    except OSError as problem:
        raise UsageError(f"cannot write {path}: {problem.strerror}") from None
    finally:
        plt.close(figure)
    return path


def png(figure: Figure) -> bytes:
    """The figure as a PNG file's bytes; the figure is closed."""
    picture = io.BytesIO()
    # Figure.savefig would draw everything twice, the first time only for the layout.
    figure.set_dpi(plt.rcParams["savefig.dpi"])
    FigureCanvasAgg(figure).print_png(picture)
    plt.close(figure)
    return picture.getvalue()


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
