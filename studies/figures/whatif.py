"""Figures of what-if: maps before and after a change, sweeps with their cross-over points, and a map that is redrawn.

An algorithm has the same colour in every figure.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib import colormaps, pyplot as plt
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.image import imsave
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

from collwise.models.piecewise import Array
from collwise.models.switch_points import Indices
from collwise.studies.figures.map_cells import (
    NOT_TIMED,
    borders,
    explain_cells,
    fill_blanks,
    fill_choices,
    has_digits,
    heat,
    places,
)
from collwise.studies.figures.maps import cell_panels, label_cells
from collwise.studies.figures.style import (
    algorithm_style,
    apart,
    choice_colour,
    choices_shown,
    head,
    in_turn,
    ink,
    label_lines,
)
from collwise.validation.times.choice import Choice
from collwise.validation.times.times import Times
from collwise.validation.whatif.sweep import AFTER, BEFORE, CHANGE, FACTOR, LIMITS, CrossOver, changes_choice

_GREYS = ("#999999", "#555555", "#C8C8C8", "#222222")
_LIMIT_COLOURS = dict(zip(LIMITS, ("#56B4E9", "#E69F00", *_GREYS, "#0072B2", "#CC79A7", "#F0E442"), strict=True))

_WORST_PERCENT = 100
_LARGEST_RATIO = 16
_MARK_WIDTH = 0.09
"""The width of a factor's digits, in shares of the axes."""
_MIN_RATIO = 1.25
"""Colours of ratios span at least 1 / _MIN_RATIO to _MIN_RATIO, so that small changes do not look large."""


def whatif_figure(times: Times, time_ratio: Array, kept_slowdown: Array, title: str) -> Figure:
    """Maps of the best choices before and after changes, of ratios of times, and of the slowdown of unchanged rules."""
    procs, sizes = times.procs, times.message_bytes
    titles = ("best choice before", "best choice after (dots: another one)", "best time after / before",
              "slowdown of the kept rules, % (grey: none)")  # fmt: skip
    figure, axes = cell_panels(titles, procs, sizes)
    across, upwards = borders(sizes), borders(procs)
    choices, picks = times.grid.timed, [times.best.sel({CHANGE: when}).values for when in (BEFORE, AFTER)]
    for axis, best in zip(axes, picks, strict=False):
        fill_choices(axis, across, upwards, best, choices, NOT_TIMED)
    changed = np.argwhere(changes_choice(times))
    # White with a black edge, the dots stand out from every colour.
    dots: dict[str, Any] = {"markersize": 6, "color": "#FFFFFF", "markeredgecolor": "#000000", "markeredgewidth": 1.5}
    axes[1].plot(places(sizes)[changed[:, 1]], places(procs)[changed[:, 0]], "o", **dots)
    kept = Normalize(0, _WORST_PERCENT)
    for axis, values, norm, colours, digits in (
        (axes[2], time_ratio, _ratio_norm(time_ratio), colormaps["RdBu_r"], "{:.2f}"),
        (axes[3], kept_slowdown * 100, kept, colormaps["Oranges"], "{:.0f}"),
    ):
        known = np.isfinite(values)
        texts = {at: digits.format(value) for at, value in np.ndenumerate(values) if known[at]}
        heat(axis, across, upwards, values, (colours, norm), texts if has_digits(values.shape) else {})
        fill_blanks(axis, across, upwards, {NOT_TIMED: ~known})
        if not has_digits(values.shape):
            figure.colorbar(ScalarMappable(norm, colours), ax=axis)
    shown = [choices[index] for index in choices_shown(choices, picks)]
    explain_cells(figure, [], shown, loc="outside right upper", title="choice", alignment="left")
    ratios = time_ratio[np.isfinite(time_ratio)]
    message = f"Another choice is best at {len(changed)} of {ratios.size} points"
    if ratios.size:
        message += f"; the best times change by x {ratios.min():.2f} to x {ratios.max():.2f}"
    head(figure, message, title)
    return figure


def sweep_figure(
    times: Times, crossovers: Sequence[CrossOver], limits: Mapping[float, Mapping[str, float]], over: str, title: str
) -> Figure:
    """The times at one P and m relative to the best, over the factor; below them, the limits of the best choice.

    Cross-over points are dashed lines. `limits` has, for each factor, the share of each of LIMITS in the best choice's
    critical path. `over` names what the factor multiplies.
    """
    factors, choices = times.seconds[FACTOR].values, times.choices
    seconds = times.array[:, 0, 0]
    ratios = seconds / np.nanmin(seconds, axis=0)
    figure, (above, below) = plt.subplots(2, 1, figsize=(8.4, 6.6), sharex=True, height_ratios=(3, 2))
    for index in _best_of_each_algorithm(choices, ratios):
        colour, marker = algorithm_style(choices[index].algorithm)
        above.plot(factors, ratios[index], color=colour, marker=marker, markersize=4.5, label=choices[index].label)
    for crossing in crossovers:
        for axis in (above, below):
            axis.axvline(crossing.value, color="#444444", linestyle="--", linewidth=1)
    at = np.log([crossing.value for crossing in crossovers]) - np.log(factors[0])
    width = min(_MARK_WIDTH, 1 / max(1, len(at)))
    for crossing, place in zip(
        crossovers, apart(at / np.log(factors[-1] / factors[0]), np.full(len(at), width)), strict=True
    ):
        above.text(place, 1.02, f"x{crossing.value:.3g}", ha="center", fontsize=8.5, transform=above.transAxes)
    above.set_yscale("log", base=2)
    above.set_ylim(0.93, min(_LARGEST_RATIO, 1.15 * float(np.nanmax(ratios))))
    above.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    above.set_ylabel("time / time of the best choice")
    known = sorted(limits)
    shown = [name for name in LIMITS if any(limits[factor][name] for factor in known)]
    colours = [_LIMIT_COLOURS[name] for name in shown]
    shares = np.array([[100 * limits[factor][name] for factor in known] for name in shown])
    below.stackplot(known, shares, colors=colours)
    # The name of an area is the label of an invisible point, which is in the middle of the area's right edge.
    for middle, name, colour in zip((np.cumsum(shares, axis=0) - shares / 2)[:, -1], shown, colours, strict=True):
        below.plot(known[-1], middle, "", color=colour, label=name)
    below.set_ylabel("critical path of\nthe best choice, %")
    below.set_ylim(0, 100)
    _factor_axis(below, factors, over)
    last = crossovers[-1].above if crossovers else choices[int(np.nanargmin(ratios[:, 0]))]
    turns = [(crossover.below.label, f"x{crossover.value:.3g}") for crossover in crossovers]
    head(figure, in_turn(turns, last.label, "the choice", "at every factor"), title)
    label_lines(above, below)
    return figure


def sweep_map(times: Times, crossovers: Sequence[CrossOver], over: str, title: str) -> Figure:
    """A map of the best choice over the factor and P, at one message size. `over` names what the factor multiplies."""
    factors, choices, best = times.seconds[FACTOR].values, times.choices, times.best.values[:, 0]
    crossed = np.array([[choices.index(crossover.above) for crossover in crossovers]], dtype=np.int64)
    used = choices_shown(choices, (best, crossed))
    rows = len(times.procs)
    figure, axis = plt.subplots(figsize=(8.4, 1.9 + 0.28 * rows))
    low, high = factors[0], factors[-1]
    for row, procs in enumerate(times.procs):
        mine = [crossover for crossover in crossovers if crossover.point == (procs, times.message_bytes[0])]
        starts = [
            (low, int(best[row, 0])),
            *((cross_over.value, choices.index(cross_over.above)) for cross_over in mine),
        ]
        for (start, index), end in zip(starts, [*(cross_over.value for cross_over in mine), high], strict=True):
            if index in used:
                axis.barh(row + 0.5, end - start, left=start, height=1, color=choice_colour(choices[index]))
        for start, index in starts[1:]:
            colour = ink(choice_colour(choices[index])) if index in used else "black"
            axis.text(start, row + 0.5, f" x{start:.2g}", va="center", fontsize=8.5, color=colour)
    axis.set_ylim(0, rows)
    axis.set_yticks(np.arange(rows) + 0.5, [str(count) for count in times.procs])
    axis.grid(axis="y", visible=False)
    axis.set_axisbelow(False)
    axis.set_ylabel("processes P")
    _factor_axis(axis, factors, over)
    shown = [choices[index] for index in used]
    explain_cells(figure, [], shown, loc="outside right center", title="best choice", alignment="left")
    crossings = [crossover for crossover in crossovers if crossover.point[1] == times.message_bytes[0]]
    message = (
        f"The best choice changes for {len({crossing.point[0] for crossing in crossings})} of {rows} process counts"
    )
    if crossings:
        places = [crossing.value for crossing in crossings]
        message += f", between x{min(places):.3g} and x{max(places):.3g}"
    head(figure, message, title)
    return figure


class LiveFigure:
    """A map of the best choice and a map of the ratio of best times after to before; `draw` redraws both.

    The axes, labels and colours are laid out once; `draw` replaces only the cells, so that it keeps up with a slider.
    """

    def __init__(self, choices: Sequence[Choice], procs: Sequence[int], message_bytes: Sequence[int]) -> None:
        self._choices = choices
        self._borders = borders(message_bytes), borders(procs)
        self._panels = [Figure(figsize=(5.6, 4.4), layout="constrained") for _ in range(2)]
        self._canvases = [FigureCanvasAgg(figure) for figure in self._panels]
        self._axes = [figure.subplots() for figure in self._panels]
        cells = (*self._borders, np.ones((len(procs), len(message_bytes))))
        self._ratio = self._axes[1].pcolormesh(*cells, cmap="RdBu_r", norm=LogNorm(1 / _LARGEST_RATIO, _LARGEST_RATIO))
        self._ratio.set_animated(True)  # not part of the background
        explain_cells(self._panels[0], [], choices, loc="outside lower center", ncols=3)
        self._axes[0].set_title("best choice")
        self._axes[1].set_title("best time after / before the change")
        bar = self._panels[1].colorbar(self._ratio, ax=self._axes[1])
        bar.ax.yaxis.set_major_locator(FixedLocator([1 / 16, 1 / 4, 1 / 2, 1, 2, 4, 16]))
        bar.ax.yaxis.set_minor_locator(NullLocator())
        bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        for axis in self._axes:
            label_cells(axis, procs, message_bytes)
        for canvas in self._canvases:
            canvas.draw()
        self._backgrounds = [canvas.copy_from_bbox(canvas.figure.bbox) for canvas in self._canvases]

    def draw(self, best: Indices, ratio: Array) -> tuple[bytes, bytes]:
        """Both maps as PNG files' bytes."""
        for canvas, background in zip(self._canvases, self._backgrounds, strict=True):
            canvas.restore_region(background)
        before = set(self._axes[0].get_children())
        fill_choices(self._axes[0], *self._borders, best, self._choices, NOT_TIMED)
        for artist in [item for item in self._axes[0].get_children() if item not in before]:
            self._axes[0].draw_artist(artist)
            artist.remove()
        self._ratio.set_array(np.ma.masked_invalid(ratio))
        self._axes[1].draw_artist(self._ratio)
        left, right = (self._picture(canvas) for canvas in self._canvases)
        return left, right

    @staticmethod
    def _picture(canvas: FigureCanvasAgg) -> bytes:
        picture = io.BytesIO()
        # Compression is fast rather than good, because a slider waits for the picture.
        imsave(picture, np.asarray(canvas.buffer_rgba()), format="png", pil_kwargs={"compress_level": 1})
        return picture.getvalue()


def _ratio_norm(ratio: Array) -> LogNorm:
    """Colours that are equally dark for twice and for half the time."""
    known = ratio[np.isfinite(ratio)]
    most = float(np.exp(np.abs(np.log(known)).max())) if known.size else 1.0
    return LogNorm(1 / max(most, _MIN_RATIO), max(most, _MIN_RATIO))


def _factor_axis(axis: Axes, factors: Array, over: str) -> None:
    axis.set_xscale("log", base=2)
    axis.set_xlim(factors[0], factors[-1])
    ticks = [2.0**k for k in range(-20, 21) if factors[0] <= 2.0**k <= factors[-1]]
    axis.xaxis.set_major_locator(FixedLocator(ticks))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"x{value:g}"))
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.set_xlabel(over)


def _best_of_each_algorithm(choices: Sequence[Choice], ratios: Array) -> list[int]:
    """The index of one choice of each algorithm: the choice with the smallest mean ratio over the factors."""
    found: dict[str, int] = {}
    for index in np.flatnonzero(~np.isnan(ratios).all(axis=1)).tolist():
        choice = choices[index]
        other = found.get(choice.algorithm)
        if other is None or np.nanmean(ratios[index]) < np.nanmean(ratios[other]) - 1e-9:
            found[choice.algorithm] = index
    return list(found.values())
