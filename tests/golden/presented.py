"""Keeps the tables and sentences of a command's results, and the artists of its figures, without their layout."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.collections import Collection, LineCollection, QuadMesh
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.text import Annotation
from matplotlib.ticker import FixedFormatter
from numpy.typing import ArrayLike

from collwise.studies.present.shown import Shown, Table

_MASKED = {r"\b[0-9a-f]{12,64}\b": "DIGEST", r"the check took .*": "the check took SECONDS"}
"""Digests have what was compiled in them, and wall times differ from run to run."""
_WALL_TIME = "time of the check"
"""A column of such times."""


def parts_of(shown: Shown, folder: Path) -> list[Any]:
    """Tables, whose rows are lines, and sentences, in their order; paths are within the folder."""
    return [_table(one, folder) if isinstance(one, Table) else plain(one, folder) for one in shown.parts]


def _table(one: Table, folder: Path) -> dict[str, Any]:
    form = [one.left, one.wrap, one.keys, one.folded, sorted(map(list, one.bad))]
    rows = [
        plain(" | ".join("SECONDS" if head == _WALL_TIME else str(cell) for head, cell in cells), folder)
        for cells in (zip(one.columns, row, strict=True) for row in one.rows)
    ]
    return {"table": plain(one.title, folder), "form": form, "columns": " | ".join(one.columns), "rows": rows}


def plain(text: str, folder: Path) -> str:
    for pattern, word in _MASKED.items():
        text = re.sub(pattern, word, text)
    return text.replace(f"{folder}/", "")


def figures_of(shown: Shown) -> dict[str, Any]:
    """The artists of each figure of a command."""
    return {name: drawn(draw()) for name, draw in shown.figures.items()}


def drawn(figure: Figure) -> dict[str, Any]:
    """Titles, legends and panels of a figure, which is closed: what is drawn where, in units of the data."""
    found = {
        "title": figure.get_suptitle(),
        "inches": _numbers(figure.get_size_inches()),
        "legends": [_legend(one) for one in figure.legends],
        "panels": [_panel(axes) for axes in figure.axes],
    }
    plt.close(figure)
    return found


def _legend(legend: Any) -> list[str]:
    return [text.get_text() for text in legend.get_texts()]


def _panel(axes: Axes) -> list[Any]:
    """Titles, axes, legend, and a line for all artists that look the same, with the numbers that place them."""
    alike: dict[str, list[ArrayLike]] = {}
    for look, numbers in _artists(axes):
        alike.setdefault(look, []).extend(numbers)
    titles = filter(None, (axes.get_title(loc=side) for side in ("left", "center", "right")))
    own = axes.get_legend()
    return [
        " | ".join(titles),
        _axis(axes.xaxis, axes.get_xlim()),
        _axis(axes.yaxis, axes.get_ylim()),
        *([_legend(own)] if own else []),
        *(f"{look}: {_numbers(np.concatenate([np.ravel(one) for one in found]))}" for look, found in alike.items()),
    ]


def _axis(axis: Axis, limits: tuple[float, float]) -> str:
    formatter = axis.get_major_formatter()
    ticks = ", ".join(formatter.seq) if isinstance(formatter, FixedFormatter) else ""
    return f"{axis.get_label_text()!r} {axis.get_scale()} {_numbers(limits)} {ticks}"


def _artists(axes: Axes) -> Iterator[tuple[str, list[ArrayLike]]]:
    """The look of each artist of a panel, and numbers in units of the data."""
    for line in axes.lines:
        marker = f"{line.get_marker()} {line.get_markersize():g} {_hex([line.get_markerfacecolor()])}"
        looks = f"line {_hex([line.get_color()])} {line.get_linestyle()} {line.get_linewidth():g} {marker}"
        label = str(line.get_label())
        name = "" if label.startswith("_") else f" {label!r}"
        yield looks + name, [np.asarray(line.get_xdata(), float), np.asarray(line.get_ydata(), float)]
    for patch in axes.patches:
        colours = _hex([patch.get_facecolor(), patch.get_edgecolor()])
        looks = f"{type(patch).__name__} {colours} {patch.get_linewidth():g} {patch.get_hatch() or ''}"
        yield looks, [np.asarray(patch.get_patch_transform().transform_path(patch.get_path()).vertices)]
    for one in axes.collections:
        widths = ", ".join(f"{width:g}" for width in dict.fromkeys(np.ravel(one.get_linewidth())))
        yield f"{type(one).__name__} {_colours(one)} {widths}", _places(one)
    for text in axes.texts:
        place = text.xy if isinstance(text, Annotation) else text.get_position()
        looks = f"{text.get_text()!r} {_hex([text.get_color()])} {text.get_fontsize():g} {text.get_rotation():g}"
        yield looks, [np.asarray(place, float)]


def _colours(one: Collection) -> str:
    if one.get_array() is None:
        return _hex([*one.get_facecolor(), *one.get_edgecolor()])
    return f"{one.get_cmap().name} from {one.norm.vmin} to {one.norm.vmax}"


def _places(one: Collection) -> list[ArrayLike]:
    if isinstance(one, QuadMesh):
        return [np.ma.filled(np.ma.asarray(one.get_array(), float), np.nan), one.get_coordinates()]
    found: list[ArrayLike] = [np.ma.filled(np.ma.asarray(one.get_offsets(), float), np.nan)]
    found += one.get_segments() if isinstance(one, LineCollection) else [path.vertices for path in one.get_paths()]
    return found


def _hex(colours: Iterable[Any]) -> str:
    return " ".join(dict.fromkeys(to_hex(one, keep_alpha=True).removesuffix("ff") for one in colours))


def _numbers(values: ArrayLike) -> str:
    """The numbers, or of many their count, their sum and the sum of their products with their places."""
    found = np.ravel(np.asarray(values, float))
    if len(found) > 8:
        known = np.nan_to_num(found)
        found = np.array([len(found), known.sum(), known @ np.arange(1, len(found) + 1), np.isnan(found).sum()])
    return " ".join(f"{one:.6g}" for one in found)
