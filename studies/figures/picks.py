"""Times of the picks of models and libraries, and of all algorithms, with the ratios to the best beside the times.

Markers and colours are those of algorithms, line styles those of sources.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike

from collwise.common.units import format_size
from collwise.models.piecewise import Array
from collwise.studies.figures.style import algorithm_style, ratio_axis, seconds_axis, size_axis
from collwise.studies.reports.comparison_table import compared_places, library_pick
from collwise.validation.compare.scores import Picked, Scores
from collwise.validation.library_defaults.baselines import Baseline
from collwise.validation.times.times import Times

_MOST_COLUMNS = 3


class _Line(NamedTuple):
    """How the picks of a source are drawn; without a source they are the best ones."""

    label: str
    source: str | None
    style: Any
    colour: str
    width: float


def picks_by_size(scores: Scores, baseline: Baseline, title: str) -> Figure:
    """The simulated time of each source's pick over m, and below it the ratio to the best: a pair for each P."""
    return _picks_figure(scores, baseline, title, by_size=True)


def picks_by_procs(scores: Scores, baseline: Baseline, title: str) -> Figure:
    """The simulated time of each source's pick over P, and below it the ratio to the best: a pair for each size."""
    return _picks_figure(scores, baseline, title, by_size=False)


def _picks_figure(scores: Scores, baseline: Baseline, title: str, by_size: bool) -> Figure:
    right, places = scores.right, compared_places(scores)
    panels: dict[int, list[tuple[int, int]]] = {}
    for i, j in sorted(places, key=lambda place: right.procs[place[0]] if by_size else right.message_bytes[place[1]]):
        panels.setdefault(right.procs[i] if by_size else right.message_bytes[j], []).append((i, j))
    columns = min(_MOST_COLUMNS, len(panels))
    pairs = -(-len(panels) // columns)
    figure, axes = plt.subplots(
        2 * pairs, columns, figsize=(3.9 * columns + 2.4, 4.4 * pairs + 0.4), squeeze=False,
        sharex=by_size, sharey="row" if by_size else False, height_ratios=[3, 2] * pairs,
    )  # fmt: skip
    lines, algorithms = _lines(scores, baseline), set[str]()
    drawn = {line: {place: _picked(scores, baseline, line.source, *place) for place in places} for line in lines}
    ratios = [picked.slowdown + 1 for of_line in drawn.values() for picked in of_line.values()]
    worst = float(np.nanmax(ratios, initial=1.0))
    for number in range(columns * pairs):
        above, below = (axes[2 * (number // columns) + k][number % columns] for k in (0, 1))
        if number >= len(panels):
            above.remove()
            below.remove()
            continue
        common, here = list(panels.items())[number]
        x = np.array([right.message_bytes[j] if by_size else right.procs[i] for i, j in here])
        for line in lines:
            picks = [drawn[line][place] for place in here]
            algorithms |= _draw(above, x, picks, np.array([one.seconds for one in picks]), line)
            algorithms |= _draw(below, x, picks, np.array([one.slowdown + 1 for one in picks]), line)
        above.set_title(f"P = {common}" if by_size else f"m = {format_size(common)}", fontsize=10)
        seconds_axis(above)
        ratio_axis(below, worst, "time / best")
        for axis in (above, below):
            if by_size:
                size_axis(axis, list(x))
            else:
                axis.set_xlabel("processes P")
            axis.tick_params(labelbottom=axis is below)
        above.set_xlabel("")
        if number % columns:
            above.set_ylabel("")
            below.set_ylabel("")
    handles = [Line2D([], [], ls=one.style, color=one.colour, lw=one.width, label=one.label) for one in lines]
    figure.legend(
        handles=[*handles, *_algorithm_keys(scores.right.grid.names, algorithms)],
        loc="outside right upper",
        fontsize=8.5,
    )
    figure.suptitle(title, fontsize=11)
    return figure


def _lines(scores: Scores, baseline: Baseline) -> list[_Line]:
    name = baseline.title
    listed = next((one for one in scores.deciders if one != name), None)
    found = [_Line(name if listed is None else f"{name}, its segments", name, ":", "#777777", 1.6)]
    if listed is not None:
        found.append(_Line(listed, listed, "--", "#777777", 1.3))
    found += [_Line("model's choice", model, "-.", "#444444", 1.6) for model in scores.times]
    return [*found, _Line("best", None, "-", "#444444", 0.9)]


def _picked(scores: Scores, baseline: Baseline, source: str | None, i: int, j: int) -> Picked:
    return library_pick(scores, baseline, i, j) if source == baseline.title else scores.pick(source, i, j)


def _draw(axis: Axes, x: Array, picks: Sequence[Picked], y: Array, line: _Line) -> set[str]:
    """A source's line with the marker of the algorithm that it picks at each point; returns these algorithms."""
    axis.plot(x, y, line.style, color=line.colour, linewidth=line.width)
    drawn = set()
    # Of points where sources pick the same, the best one's marker is the smallest, and so all can be seen.
    size, filled = (4.0, True) if line.source is None else (7.0, False)
    for at, value, pick in zip(x, y, picks, strict=True):
        if pick.choice is not None and np.isfinite(value):
            colour, marker = algorithm_style(pick.choice.algorithm)
            drawn.add(pick.choice.algorithm)
            axis.plot(at, value, marker, color=colour, markersize=size, markerfacecolor=colour if filled else "none")
    return drawn


def _algorithm_keys(names: Sequence[str], algorithms: Iterable[str]) -> list[Line2D]:
    order = {name: number for number, name in enumerate(names)}
    keys = []
    for name in sorted(algorithms, key=lambda one: order.get(one, len(order))):
        colour, marker = algorithm_style(name)
        keys.append(Line2D([], [], linestyle="", color=colour, marker=marker, markersize=5.5, label=name))
    return keys


def algorithms_by_size(
    scores: Scores, procs: int, title: str, simulated_by: str = "simulated", fitted_to: str = ""
) -> Figure:
    """The simulated (markers) and predicted (lines) time of every algorithm over m, for one process count.

    Where nothing is predicted the lines join the markers. The legend names what simulated, and what the model was
    fitted to.
    """
    at = scores.right.procs.index(procs)
    sizes = [j for i, j in compared_places(scores) if i == at]
    simulated, *others = (_at_common_segments(one, at, sizes) for one in (scores.right, *scores.times.values()))
    shown = [scores.right.message_bytes[j] for j in sizes]
    if not others:
        return markers_and_lines(shown, simulated, simulated, title, simulated_by)
    lines = f"line: model, fitted to\n{fitted_to}" if fitted_to else "line: model"
    return markers_and_lines(shown, simulated, others[0], title, f"marker: {simulated_by}\n{lines}")


def algorithms_by_engine(played: Times, checked: Times, procs: int, title: str) -> Figure:
    """The time of every algorithm over m by the schedule engine (lines) and, where there is one, by SMPI (markers)."""
    at, sizes = played.procs.index(procs), range(len(played.message_bytes))
    markers, lines = (_at_common_segments(one, at, sizes) for one in (checked, played))
    return markers_and_lines(played.message_bytes, markers, lines, title, "marker: SMPI\nline: schedule engine")


def _at_common_segments(times: Times, i: int, sizes: Sequence[int]) -> dict[str, Array]:
    """Seconds of each algorithm, at the segment size that is common to all, at a place of P and those of m."""
    firsts = {name: times.choices.index(times.grid.at_common_segment(name)) for name in times.grid.names}
    return {name: times.array[place, i, list(sizes)] for name, place in firsts.items()}


def markers_and_lines(
    sizes: Sequence[int],
    markers: Mapping[str, ArrayLike],
    lines: Mapping[str, ArrayLike],
    title: str,
    legend: str,
    errors: Mapping[str, ArrayLike] | None = None,
    builtin: ArrayLike | None = None,
) -> Figure:
    """Times of algorithms over m by two sources, and beside them their ratios to the best of the same source.

    `errors` are half-widths of the markers' times, shape (2, m); `builtin` the times of the MPI library's own choice,
    by the source of the markers.
    """
    figure, (times, ratios) = plt.subplots(1, 2, figsize=(10.6, 4.6))
    names = list(dict.fromkeys([*markers, *lines]))
    colours = [algorithm_style(name)[0] for name in names]
    # Of two lines of one colour the second one is dashed.
    line_styles = {name: "--" if colours[number] in colours[:number] else "-" for number, name in enumerate(names)}
    largest = 1.0
    for of_source, is_line in ((lines, True), (markers, False)):
        best = _least(list(of_source.values())) if of_source else None
        for name, given in of_source.items():
            colour, marker = algorithm_style(name)
            known = np.asarray(given, dtype=float) / best
            largest = max(largest, float(np.nanmax(known, initial=1.0)))
            style: dict[str, Any] = {"linestyle": line_styles[name], "linewidth": 1.0}
            if not is_line:
                style = {"linestyle": "", "marker": marker, "markersize": 5.5}
            times.plot(sizes, given, color=colour, **style)
            ratios.plot(sizes, known, color=colour, **style)
            if errors is not None and not is_line:
                times.errorbar(sizes, given, yerr=errors[name], fmt="none", color=colour, capsize=2.5, elinewidth=1)
    keys = []
    if builtin is not None:
        own: dict[str, Any] = {
            "linestyle": "", "marker": "_", "markersize": 14, "markeredgewidth": 1.5, "color": "#444444",
        }  # fmt: skip
        times.plot(sizes, builtin, **own)
        ratios.plot(sizes, np.asarray(builtin) / _least(list(markers.values())), **own)
        keys.append(Line2D([], [], label="MPI's own choice", **own))
    for axis in (times, ratios):
        size_axis(axis, sizes)
    seconds_axis(times)
    ratio_axis(ratios, largest)
    for name, line_style in line_styles.items():
        colour, marker = algorithm_style(name)
        keys.append(Line2D([], [], color=colour, ls=line_style, marker=marker, markersize=5.5, linewidth=1, label=name))
    figure.legend(handles=keys, title=legend, loc="outside right upper", fontsize=8.5, title_fontsize=8.5,
                  alignment="left")  # fmt: skip
    figure.suptitle(title, fontsize=11)
    return figure


def _least(times: Sequence[ArrayLike]) -> Array:
    """The least time at each size; nan where there is none."""
    every = np.array(times, dtype=float)
    return np.where(np.isnan(every).all(axis=0), np.nan, np.min(np.where(np.isnan(every), np.inf, every), axis=0))
