"""Decision maps and maps of slowdowns over (m, P), as in figures 6 and 7 of Pješivac-Grbović et al. 2007.

An algorithm has the same colour in every figure, and regions are named.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib import colormaps, pyplot as plt
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from numpy.typing import NDArray

from collwise.common.errors import UsageError
from collwise.common.units import format_size
from collwise.models.piecewise import Array
from collwise.models.switch_points import NOBODY, Indices
from collwise.studies.figures.map_cells import (
    MAX_EVEN,
    NO_CHOICE,
    NO_FORMULA,
    NOT_TIMED,
    PERCENT,
    SLOWDOWNS,
    Blank,
    borders,
    cell_axis,
    explain_cells,
    fill_blanks,
    fill_choices,
    has_digits,
    heat,
    percent_bar,
    percent_texts,
    percent_values,
)
from collwise.studies.figures.style import choices_shown, head, least_and_most, panel_grid
from collwise.validation.compare.scores import AllScores, Scores
from collwise.validation.times.choice import Choice

# Panels in a row are together no wider than this. On a page, the digits of a wider figure would be too small.
_MAX_INCHES = 12.6
_MAX_LABELS = 6
_FEW_ROWS = 3
_CLOSE = 0.05
# The heights in a legend beside the panels: of its title and the figure's title together, and of each key.
_LEGEND_INCHES, _KEY_INCHES = 1.0, 0.26
_CLOSENESS = colormaps["GnBu"].with_extremes(under="white")


class Slowdowns(NamedTuple):
    """The slowdown of a source's choices, shape (P, m), and whether it chooses anything at each point."""

    slowdown: Array
    chosen: NDArray[np.bool_]


def slowdowns_said(scores: Scores) -> str:
    """'Mean slowdown of picks: loggp 0.4 %, Open MPI 3.1 146.0 %', over the points where every source picks a choice.

    The text is empty if there are no such points.
    """
    both = tuple(np.transpose(scores.places(*scores.others)))
    means = {name: float(np.mean(lost.values[both])) for name, lost in scores.slowdown.items() if both}
    return f"Mean slowdown of picks: {least_and_most(means)}" if means else ""


def errors_said(scores: Scores) -> str:
    """'Median error: loggp 3.1 %, hockney 45.0 %'; the text is empty if no error is known."""
    medians = {name: errors.median for name in scores.times if (errors := scores.errors_of(name)) is not None}
    return f"Median error: {least_and_most(medians)}" if medians else ""


def decision_figure(scores: Scores, title: str) -> Figure:
    """Maps over (m, P): the best choices by the reference times, and in further panels each source's picks."""
    right = scores.right
    timed = "measured" if right.source == "measured" else "simulation"
    panels = {timed: right.best.values}
    panels |= {_title(scores, name): picks.values for name, picks in scores.picks.items()}
    best = [right.grid.timed[index].algorithm for index in right.best.values.flat if index != NOBODY]
    named = Counter(best).most_common(1)
    found = [f"{name} is best at {count} of {len(best)} points" for name, count in named]
    picked = [(one, name) for name in scores.others if (one := scores.summary(name)).points]
    picked.sort(key=lambda pair: -pair[0].best_share)
    said = [f"{name} picks the best at {summary.best_chosen} of {summary.points}" for summary, name in picked]
    figure = method_map(panels, right.grid.timed, right.procs, right.message_bytes, timed=timed)
    head(figure, "; ".join(found + (said if len(said) < 3 else [said[0], said[-1]])), title)
    return figure


def method_map(
    panels: Mapping[str, Indices],
    methods: Sequence[Choice],
    procs: Sequence[int],
    sizes: Sequence[int],
    timed: str = "",
) -> Figure:
    """Maps of the method chosen at every (m, P).

    `panels` maps the title of a panel to indices into `methods`, shape (P, m). The panel `timed` shows the best method
    by times; its points without a method were not timed. In other panels, the source chooses nothing at such points.
    """
    used = choices_shown(methods, panels.values())
    figure, axes = cell_panels(list(panels), procs, sizes)
    across, upwards = borders(sizes), borders(procs)
    blanks: list[Blank] = []
    for axis, (name, winners) in zip(axes, panels.items(), strict=False):
        blank = NOT_TIMED if name == timed else NO_CHOICE
        blanks += fill_choices(axis, across, upwards, winners, methods, blank)
    below = len(procs) <= _FEW_ROWS
    if not below:
        needed = _LEGEND_INCHES + _KEY_INCHES * (len(used) + len(set(blanks)))
        figure.set_figheight(max(figure.get_figheight(), needed))
    explain_cells(
        figure, blanks, [methods[index] for index in used], fontsize=9,
        loc="outside lower left" if below else "outside right upper", ncols=3 if below else 1,
        title="algorithm", alignment="left",
    )  # fmt: skip
    return figure


def _title(scores: Scores, name: str) -> str:
    return f"model {name}" if name in scores.times and scores.times[name].source == "predicted" else name


def slowdown_figure(scores: Scores, title: str) -> Figure:
    """Maps of the picks' slowdown against the best, in percent, with a panel for each model or library."""
    panels = {
        _title(scores, name): Slowdowns(lost.values, scores.picks[name].values != NOBODY)
        for name, lost in scores.slowdown.items()
    }
    figure = slowdown_map(panels, scores.right.procs, scores.right.message_bytes)
    head(figure, slowdowns_said(scores), title)
    return figure


def slowdown_map(panels: Mapping[str, Slowdowns], procs: Sequence[int], sizes: Sequence[int]) -> Figure:
    """Maps of slowdowns against the best, in percent, from `panels` by title. Large cells have digits."""
    colours = (SLOWDOWNS, PERCENT)
    figure, axes = _heat_panels(panels, procs, sizes, colours)
    if axes:
        percent_bar(figure, axes, "slowdown against the best (%)")
    return figure


def closeness_map(panels: Mapping[str, Array], procs: Sequence[int], sizes: Sequence[int]) -> Figure:
    """Maps of how much slower than the best choice the best other algorithm is, in percent. Paler is closer."""
    known = np.concatenate([values[np.isfinite(values)] for values in panels.values()])
    close = f"within {100 * _CLOSE:g} % of the best at {(known <= _CLOSE).sum()} of {known.size} points"
    asked = {name: Slowdowns(values, np.isfinite(values)) for name, values in panels.items()}
    colours = (_CLOSENESS, LogNorm(1, 300))
    figure, axes = _heat_panels(asked, procs, sizes, colours, NOT_TIMED)
    head(figure, f"Another algorithm is {close}")
    if axes and not has_digits((len(procs), len(sizes))):
        percent_bar(figure, axes, "slowdown of the best other algorithm (%)", colours=colours)
    return figure


def _heat_panels(
    panels: Mapping[str, Slowdowns], procs: Sequence[int], sizes: Sequence[int],
    colours: tuple[Colormap, Normalize], without_choice: Blank = NO_CHOICE,
) -> tuple[Figure, list[Axes]]:  # fmt: skip
    """Panels of percentages with a legend for cells without a value."""
    figure, axes = cell_panels(list(panels), procs, sizes)
    across, upwards = borders(sizes), borders(procs)
    blanks: list[Blank] = []
    for axis, (values, chosen) in zip(axes, panels.values(), strict=False):
        heat(axis, across, upwards, percent_values(values), colours, percent_texts(values))
        # The two blanks may be equal, so they could not both be keys of one mapping.
        blanks += fill_blanks(axis, across, upwards, {without_choice: ~chosen})
        blanks += fill_blanks(axis, across, upwards, {NOT_TIMED: chosen & np.isnan(values)})
    explain_cells(figure, blanks)
    return figure, axes


_SCORES = {
    "median_error": "median error (%)", "mean_error": "mean error (%)", "ninetieth_error": "90 % of errors (%)",
    "worst_error": "worst error (%)", "mean_slowdown": "slowdown against the best (%)",
    "worst_slowdown": "worst slowdown (%)",
}  # fmt: skip


def score_maps(scores: AllScores, what: str = "mean_error") -> Figure:
    """Maps of one column of the scores (a share) over collective and message size, with a panel for each source."""
    if what not in _SCORES:
        raise UsageError(f"no figure of '{what}'; valid: {', '.join(_SCORES)}")
    known = scores.table(["collective", "message_bytes", "source"]).dropna(subset=[what])
    panels = {
        source: dict(zip(zip(rows.collective, rows.message_bytes, strict=True), rows[what], strict=True))
        for source, rows in known.groupby("source", sort=False)
    }
    where = ", ".join(dict.fromkeys(score.right.platform for score in scores.values()))
    means = least_and_most({source: float(np.mean([*values.values()])) for source, values in panels.items()})
    return collective_maps(panels, f"{what.replace('_', ' ').capitalize()} on {where}: {means}", _SCORES[what])


def collective_maps(panels: Mapping[str, Mapping[tuple[str, int], float]], title: str, label: str) -> Figure:
    """Maps of shares in percent over collective and message size, with a panel for each source.

    If no source has a value for a cell, the cell was not timed. If only some sources lack a value, they have no
    formula, or no choice, for the cell.
    """
    every = dict.fromkeys(point for values in panels.values() for point in values)
    collectives, sizes = list(dict.fromkeys(name for name, _ in every)), sorted({size for _, size in every})
    labels = [format_size(size) for size in sizes]
    cells = {
        source: np.array([[values.get((name, size), np.nan) for size in sizes] for name in collectives])
        for source, values in panels.items()
    }
    timed: NDArray[np.bool_] = np.any(np.isfinite([*cells.values()]), axis=0)
    figure, axes = panel_grid(len(panels), 0.3 * len(collectives) + 1.7, columns=2, width=0.46 * len(sizes) + 2.4)
    blanks: list[Blank] = []
    for axis, (source, values) in zip(axes, cells.items(), strict=True):
        across, upwards = named_cells(
            axis, labels, collectives, rotation=50, fontsize=8, ha="right", rotation_mode="anchor"
        )
        heat(axis, across, upwards, percent_values(values), (SLOWDOWNS, PERCENT), percent_texts(values))
        blanks += fill_blanks(axis, across, upwards, {NOT_TIMED: ~timed, NO_FORMULA: timed & np.isnan(values)})
        axis.set_title(source.replace("_", " "), fontsize=10)
    if axes:
        percent_bar(figure, axes, label, shrink=0.6)
    explain_cells(figure, blanks, fontsize=9)
    head(figure, title)
    return figure


def named_cells(axis: Axes, columns: Sequence[str], rows: Sequence[str], **style: Any) -> tuple[Array, Array]:
    """Lays out axes of named cells, rows from top to bottom as in tables. Returns the borders of columns and of rows.

    `style` has text properties of the columns' names.
    """
    across, upwards = np.arange(len(columns) + 1.0), np.arange(len(rows), -1.0, -1.0)
    axis.set(xlim=(0, len(columns)), xticks=across[:-1] + 0.5, ylim=(0, len(rows)), yticks=upwards[:-1] - 0.5)
    axis.set_xticklabels(columns, **style)
    axis.set_yticklabels(rows)
    axis.grid(False)
    return across, upwards


def cell_panels(titles: Sequence[str], procs: Sequence[int], sizes: Sequence[int]) -> tuple[Figure, list[Axes]]:
    """A figure of panels of cells with common axes, and the panels that are shown."""
    count = len(titles)
    high = 1.3 + 0.27 * len(procs) if len(procs) <= 6 else 3.1
    if len(procs) <= MAX_EVEN:
        high = max(high, 1.3 + 0.13 * len(procs))  # room for a line of digits in each row
    wide = max(3.5, 0.42 * len(sizes)) if len(sizes) <= MAX_EVEN else 4.2
    # Panels of few rows stand below one another, so that a page shows the figure large.
    columns = 1 if len(procs) <= _FEW_ROWS else 2 if count == 4 else min(count, int(_MAX_INCHES / wide))
    rows = -(-count // columns)
    figure, grid = plt.subplots(
        rows, columns, figsize=(max(wide * columns + 2.2, 7.4), high * rows + 0.6), sharex=True, sharey=True,
        squeeze=False, layout=ConstrainedLayoutEngine(w_pad=0.12),
    )  # fmt: skip
    axes = list(grid.ravel())
    for number, axis in enumerate(axes):
        axis.set_visible(number < count)
        label_cells(axis, procs, sizes, below=number + columns >= count, left=number % columns == 0)
        axis.tick_params(labelbottom=number + columns >= count)
    for axis, title in zip(axes, titles, strict=False):
        axis.set_title(title, fontsize=10, loc="left")
    return figure, axes[:count]


def label_cells(axis: Axes, procs: Sequence[int], sizes: Sequence[int], below: bool = True, left: bool = True) -> None:
    """Lays out axes of cells over m and P, with labels of some sizes and counts.

    `below` and `left` say whether the axes of m and of P get their names.
    """
    cell_axis(axis, "x", sizes, {size: format_size(size) for size in sizes[:: -(-len(sizes) // _MAX_LABELS)]})
    cell_axis(axis, "y", procs, {count: str(count) for count in _count_ticks(procs)})
    axis.set_xlabel("message size m" if below else "")
    axis.set_ylabel("processes P" if left else "")


def _count_ticks(procs: Sequence[int]) -> list[int]:
    """The process counts to label: all if they are few, otherwise the powers of two among them."""
    powers = [count for count in procs if count & (count - 1) == 0]
    return list(procs) if len(procs) <= 8 or len(powers) < 2 else powers
