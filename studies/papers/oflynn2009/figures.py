"""Predicted and simulated times over the message size, on linear axes as O'Flynn 2009 draws them.

Simulated times are black; each model has a colour and dashes of its own.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from collwise.models.piecewise import Array
from collwise.studies.figures.style import PALETTE
from collwise.studies.papers.figures import Styles, legend_below, panels

_DASHES = ((), (6, 2), (2, 2), (8, 2, 2, 2), (1, 1), (8, 2, 2, 2, 2, 2))
_SIMULATED_MARKERS = ("o", "s", "^")
# The style of a model, by the beginning of its name, is the same in all figures. Other curves take styles in order.
_STYLE_OF = {"Hockney, homogeneous": 4, "Hockney": 0, "LogGP": 1, "PLogP": 2, "LMO": 3}


def size_curves(
    sizes: ArrayLike,
    shown: Mapping[str, Mapping[str, Array]],
    title: str,
    limit_bytes: int | None = None,
    share_y: bool = True,
    what: str = "block size m",
) -> Figure:
    """Panels side by side, with one legend below and a dotted line at the eager limit.

    `shown` are seconds at every size, by the panel's title and the curve's name; simulated ones begin with 'simulated'.
    """
    kib, limit = np.asarray(sizes) / 1024, (limit_bytes or 0) / 1024
    drawn = {
        name: {label: pd.Series(np.asarray(seconds) * 1e3, kib) for label, seconds in curves.items()}
        for name, curves in shown.items()
    }
    styles = _styles([label for curves in shown.values() for label in curves])
    figure, axes = panels(drawn, styles, title, (max(4.4, 6.4 / len(drawn)), 4.4), sharey=share_y)
    for axis in axes:
        if kib[0] < limit < kib[-1]:
            axis.axvline(limit, color="#666666", linewidth=1, linestyle=":")
            axis.annotate(
                "eager limit", (limit, 1), xycoords=("data", "axes fraction"), xytext=(3, -3),
                textcoords="offset points", va="top", fontsize=8, color="#666666",
            )  # fmt: skip
        axis.set_xlabel(f"{what} (KiB)")
        if kib[0] < 0.2 * kib[-1]:
            axis.set_xlim(left=0)
            axis.set_ylim(bottom=0)
    axes[0].set_ylabel("time (ms)")
    legend_below(figure, axes, 2 if len(axes) == 1 else 3, handlelength=3.2)
    return figure


def _styles(labels: list[str]) -> Styles:
    simulated = dict.fromkeys(label for label in labels if label.startswith("simulated"))
    styles: Styles = {
        name: {
            "color": "black", "marker": marker, "markersize": 3.5, "linewidth": 0.8, "zorder": 3,
            "markerfacecolor": "white" if styled else "black",
        }
        for styled, (name, marker) in enumerate(zip(simulated, _SIMULATED_MARKERS, strict=False))
    }  # fmt: skip
    for number, name in enumerate(dict.fromkeys(label for label in labels if label not in simulated)):
        known = next((style for begin, style in _STYLE_OF.items() if name.startswith(begin)), number)
        dashes = _DASHES[known % len(_DASHES)]
        styles[name] = {"color": PALETTE[known % len(PALETTE)], "linewidth": 1.9,
                        "linestyle": (0, dashes) if dashes else "-"}  # fmt: skip
    return styles
