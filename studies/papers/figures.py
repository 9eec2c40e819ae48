"""Curves of times over the message size or P, and panels of curves as papers draw them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from collwise.studies.figures.style import MARKERS, PALETTE, head, panel_grid, seconds_axis, size_axis
from collwise.validation.times.times import Times

Curves = Mapping[str, pd.Series]
"""The lines of a panel by name; the index is along x."""
Styles = dict[str, dict[str, Any]]
"""The styles of lines by name, the same in all panels."""


def methods(times: Times) -> dict[str, pd.DataFrame]:
    """Seconds of each choice that competes, by its label: a row for each P, a column for each message size."""
    labels = (times.grid.labels[choice] for choice in times.choices)
    return {
        label: pd.DataFrame(seconds, times.procs, times.message_bytes)
        for label, seconds in zip(labels, times.array, strict=True)
    }


def over_sizes(times: Times, procs: int | None = None) -> pd.DataFrame:
    """Seconds on P processes, by default the largest P: a row for each message size, a column for each label."""
    return pd.DataFrame({label: of.loc[procs or times.procs[-1]] for label, of in methods(times).items()})


def in_order(names: Iterable[str], **others: Any) -> Styles:
    """Styles with a colour and a marker for each name, in the order of the palette."""
    looks = zip(names, PALETTE, MARKERS, strict=False)
    return {name: {"color": colour, "marker": marker, **others} for name, colour, marker in looks}


def panels(
    shown: Mapping[str, Curves],
    styles: Styles,
    title: str,
    size: tuple[float, float],
    columns: int = 0,
    sizes: Sequence[int] = (),
    **others: Any,
) -> tuple[Figure, list[Axes]]:
    """Panels by title, each of this size in inches, in rows of `columns` panels, or by default in one row.

    If `sizes` are given, x is the message size, with ticks at `sizes`, and y is the time in seconds. If panels share
    the y axis, only the first panel of each row labels it. `others` go to `panel_grid`.
    """
    wide = columns or len(shown)
    figure, axes = panel_grid(len(shown), size[1], wide, size[0], **others)
    for number, (axis, (name, curves)) in enumerate(zip(axes, shown.items(), strict=True)):
        axis.set_title(name)
        for label, values in curves.items():
            known = values.dropna()
            axis.plot(known.index, known, label=label, **styles[str(label)])
        if sizes:
            size_axis(axis, sizes)
            if not others.get("sharey") or number % wide == 0:
                seconds_axis(axis)
    head(figure, title)
    return figure, axes
