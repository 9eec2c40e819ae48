"""Predicted and simulated times over the message size, on linear axes as O'Flynn 2009 draws them.

Simulated times are black; each model has a colour and dashes of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from collwise.models.piecewise import Array
from collwise.studies.figures.style import PALETTE

_DASHES = ((), (6, 2), (2, 2), (8, 2, 2, 2), (1, 1), (8, 2, 2, 2, 2, 2))
_SIMULATED_MARKERS = ("o", "s", "^")
# The style of a model, by the beginning of its name, is the same in all figures. Other curves take styles in order.
_STYLE_OF = {"Hockney, homogeneous": 4, "Hockney": 0, "LogGP": 1, "PLogP": 2, "LMO": 3}

Panels = Mapping[str, Mapping[str, Array]]
"""Seconds at every size, by the panel's title and the curve's name; simulated ones begin with 'simulated'."""


def size_curves(
    sizes: ArrayLike,
    panels: Panels,
    title: str,
    limit_bytes: int | None = None,
    share_y: bool = True,
    what: str = "block size m",
) -> Figure:
    """Panels side by side, with one legend below and a dotted line at the eager limit."""
    figure, axes = plt.subplots(
        1, len(panels), figsize=(max(4.4 * len(panels), 6.4), 4.4), sharey=share_y, squeeze=False
    )  # fmt: skip
    styles, kib, limit = _styles(panels), np.asarray(sizes) / 1024, (limit_bytes or 0) / 1024
    for axis, (name, curves) in zip(axes[0], panels.items(), strict=True):
        for label, seconds in curves.items():
            axis.plot(kib, np.asarray(seconds) * 1e3, label=label, **styles[label])
        if kib[0] < limit < kib[-1]:
            axis.axvline(limit, color="#666666", linewidth=1, linestyle=":")
            axis.annotate(
                "eager limit", (limit, 1), xycoords=("data", "axes fraction"), xytext=(3, -3),
                textcoords="offset points", va="top", fontsize=8, color="#666666",
            )  # fmt: skip
        axis.set_title(name)
        axis.set_xlabel(f"{what} (KiB)")
    if kib[0] < 0.2 * kib[-1]:
        for axis in axes[0]:
            axis.set_xlim(left=0)
            axis.set_ylim(bottom=0)
    axes[0][0].set_ylabel("time (ms)")
    _legend(figure, axes[0])
    figure.suptitle(title, fontsize=11)
    return figure


def _legend(figure: Figure, axes: Sequence[Axes]) -> None:
    found: dict[str, Artist] = {}
    for axis in axes:
        handles, labels = axis.get_legend_handles_labels()
        found |= dict(zip(labels, handles, strict=True))
    columns = min(2 if len(axes) == 1 else 3, len(found))
    figure.legend(
        handles=list(found.values()), labels=list(found), loc="outside lower center",
        ncols=columns, handlelength=3.2, fontsize=9,
    )  # fmt: skip


def _styles(panels: Panels) -> dict[str, dict[str, object]]:
    """The style of every curve, the same in all panels."""
    names = list(dict.fromkeys(name for curves in panels.values() for name in curves))
    simulated = [name for name in names if name.startswith("simulated")]
    models = [name for name in names if name not in simulated]
    styles: dict[str, dict[str, object]] = {}
    for number, name in enumerate(simulated):
        marker = _SIMULATED_MARKERS[number % len(_SIMULATED_MARKERS)]
        fill = "black" if number == 0 else "white"
        styles[name] = {"color": "black", "marker": marker, "markersize": 3.5, "linewidth": 0.8,
                        "markerfacecolor": fill, "zorder": 3}  # fmt: skip
    for number, name in enumerate(models):
        known = next((style for begin, style in _STYLE_OF.items() if name.startswith(begin)), number)
        dashes = _DASHES[known % len(_DASHES)]
        styles[name] = {"color": PALETTE[known % len(PALETTE)], "linewidth": 1.9,
                        "linestyle": (0, dashes) if dashes else "-"}  # fmt: skip
    return styles
