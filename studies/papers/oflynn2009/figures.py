"""Predicted and simulated times over the message size, on linear axes as O'Flynn 2009 draws them.

Simulated times are black; each model has a colour and dashes of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pandas as pd
from matplotlib.figure import Figure

from collwise.studies.figures.style import MARKERS, PALETTE, head, label_lines, panel_grid, seconds_axis, size_axis
from collwise.studies.papers.figures import Curves, Styles, panels

_DASHES = ((), (6, 2), (2, 2), (8, 2, 2, 2), (1, 1), (8, 2, 2, 2, 2, 2))
# The style of a model is the same in all figures; the keys are beginnings of names. Other curves take styles in order.
_STYLE_OF = {"Hockney, homogeneous": 4, "Hockney": 0, "LogGP": 1, "PLogP": 2, "LMO": 3}


def size_curves(
    shown: Mapping[str, Curves], title: str, limit_bytes: int = 0, share_y: bool = True, what: str = "block size m"
) -> Figure:
    """Panels side by side, with a dotted line at the eager limit.

    `shown` has seconds by the panel's title and the curve's name. Names of simulated curves begin with 'simulated'.
    """
    drawn = {
        name: {label: (seconds * 1e3).set_axis(seconds.index / 1024) for label, seconds in curves.items()}
        for name, curves in shown.items()
    }
    styles = _styles(dict.fromkeys(label for curves in shown.values() for label in curves))
    figure, axes = panels(drawn, styles, title, (max(4.4, 6.4 / len(drawn)), 4.4), sharey=share_y)
    limit = limit_bytes / 1024
    for axis, curves in zip(axes, drawn.values(), strict=True):
        least, *_, largest = next(iter(curves.values())).index
        if least < limit < largest:
            axis.axvline(limit, color="#666666", linewidth=1, linestyle=":")
            axis.annotate(
                "eager limit", (limit, 1), xycoords=("data", "axes fraction"), xytext=(3, -3),
                textcoords="offset points", va="top", fontsize=8, color="#666666",
            )  # fmt: skip
        axis.set_xlabel(f"{what} (KiB)")
        if least < 0.2 * largest:
            axis.set_xlim(left=0)
            axis.set_ylim(bottom=0)
    axes[0].set_ylabel("time (ms)")
    label_lines(*axes)
    return figure


def _styles(labels: Iterable[str]) -> Styles:
    simulated = [label for label in labels if label.startswith("simulated")]
    black = {"color": "black", "markersize": 3.5, "linewidth": 0.8, "zorder": 3}
    styles: Styles = {
        name: {**black, "marker": marker, "markerfacecolor": "white" if name != simulated[0] else "black"}
        for name, marker in zip(simulated, MARKERS, strict=False)
    }
    for number, name in enumerate(label for label in labels if label not in simulated):
        known = next((style for begin, style in _STYLE_OF.items() if name.startswith(begin)), number)
        styles[name] = {"color": PALETTE[known], "linewidth": 1.9, "linestyle": (0, _DASHES[known])}
    return styles


def series_curves(shown: Mapping[str, pd.DataFrame], title: str) -> Figure:
    """Seconds over the block size, a panel for each collective, of columns such as 'single, minimum'."""
    styles: Styles = {
        f"{kind}, {what}": {"color": PALETTE[number], "linestyle": line, "marker": "o", "markersize": 3}
        for number, kind in enumerate(("single", "series"))
        for what, line in (("minimum", "--"), ("maximum", "-"))
    }
    sizes = list(next(iter(shown.values())).index)
    figure, axes = panels(shown, styles, title, (5.2, 3.8), columns=2, sizes=sizes, sharey=True)
    label_lines(*axes)
    return figure


def escalations(predicted: pd.DataFrame, measured: pd.DataFrame, title: str) -> Figure:
    """Predicted seconds of gathers over the block size, and the distributions of measured ones between M1 and M2.

    Boxes have the middle half of the repetitions, whiskers end at 5 and 95 %, and dots are the others.
    """
    figure, (times, spread) = panel_grid(2, 4.2, columns=2, width=5.6)
    for (name, seconds), colour in zip(predicted.items(), PALETTE, strict=False):
        times.plot(seconds.index, seconds, "--" if name == "no losses" else "-", color=colour, label=str(name))
    size_axis(times, list(predicted.index))
    seconds_axis(times)
    times.set_title("predicted", fontsize=10)
    by_name = dict(list(measured.groupby("gather", sort=False).ratio))
    spread.boxplot([*by_name.values()], whis=(5, 95), flierprops={"marker": ".", "markersize": 3})
    spread.set_xticks(range(1, 1 + len(by_name)), by_name, rotation=20)
    spread.set_yscale("log")
    spread.axhline(1, color="black", linewidth=0.8)
    spread.set_title("measured between M1 and M2, over linear without escalation", fontsize=10)
    head(figure, title)
    label_lines(times)
    return figure
