"""Times of all algorithms, and of the picks of models and libraries. The ratios to the best are below the times.

Markers and colours stand for algorithms, line styles for sources.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any, NamedTuple

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike, NDArray

from collwise.common.errors import UsageError
from collwise.common.units import format_size
from collwise.models.piecewise import Array
from collwise.models.switch_points import TIE, Indices, picked_seconds
from collwise.studies.figures.maps import slowdowns_said
from collwise.studies.figures.style import (
    algorithm_style,
    head,
    in_turn,
    label_lines,
    ratio_axis,
    seconds_axis,
    size_axis,
)
from collwise.validation.compare.scores import Scores
from collwise.validation.times.choice import Choice
from collwise.validation.times.times import Times

_MAX_COLUMNS = 2
_BEST = "best"
_MAX_TURNS = 3
"""The most algorithms that a title names as the fastest, in the order of sizes."""


class _Line(NamedTuple):
    """The style of a source, and its picks by P and m as indices of choices in the grid."""

    label: str
    style: Any
    colour: str
    width: float
    picks: Indices


def picks_by_size(scores: Scores, title: str) -> Figure:
    """The time of each source's pick over m, and below it the ratio to the best, for each P."""
    return _picks_figure(scores, title, by_size=True)


def picks_by_procs(scores: Scores, title: str) -> Figure:
    """The time of each source's pick over P, and below it the ratio to the best, for each size."""
    return _picks_figure(scores, title, by_size=False)


def _picks_figure(scores: Scores, title: str, by_size: bool) -> Figure:
    right, lines = scores.right, _lines(scores)
    values, shared = (right.procs, right.message_bytes), 0 if by_size else 1
    panels: dict[int, list[tuple[int, int]]] = {}
    for place in sorted(scores.places(*scores.times), key=lambda place: values[shared][place[shared]]):
        panels.setdefault(values[shared][place[shared]], []).append(place)
    columns = min(_MAX_COLUMNS, len(panels))
    pairs = -(-len(panels) // columns)
    figure, axes = plt.subplots(
        2 * pairs, columns, figsize=(3.4 * columns + 1.8, 4.4 * pairs + 1.2), squeeze=False,
        sharex=by_size, sharey="row" if by_size else False, height_ratios=[3, 2] * pairs,
    )  # fmt: skip
    above_and_below = axes.reshape(pairs, 2, columns).swapaxes(1, 2).reshape(-1, 2)
    for axis in above_and_below[len(panels) :].flat:
        axis.remove()
    times = [(right.at(line.picks).values, right.slowdown(line.picks).values + 1) for line in lines]
    everywhere = tuple(np.transpose(scores.places(*scores.times)))
    worst = float(np.nanmax([ratios[everywhere] for _, ratios in times], initial=1.0))
    algorithms: set[str] = set()
    for number, ((above, below), (common, here)) in enumerate(zip(above_and_below, panels.items(), strict=False)):
        at = tuple(np.transpose(here))
        x = np.array(values[1 - shared])[at[1 - shared]]
        for line, (seconds, ratios) in zip(lines, times, strict=True):
            choices = [right.choice(int(index)) for index in line.picks[at]]
            for axis, y in ((above, seconds[at]), (below, ratios[at])):
                algorithms |= _draw(axis, x, choices, y, line)
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
    handles = []
    # The algorithms that compete come first, in their order, and then the others that a library picks.
    for name in [name for name in right.grid.names if name in algorithms] + sorted(algorithms - {*right.grid.names}):
        colour, marker = algorithm_style(name)
        handles.append(Line2D([], [], linestyle="", color=colour, marker=marker, markersize=5.5, label=name))
    figure.legend(handles=handles, loc="outside lower center", ncols=columns + 1, fontsize=8.5)
    head(figure, slowdowns_said(scores), title)
    label_lines(*above_and_below[: len(panels)].flat)
    return figure


def _lines(scores: Scores) -> list[_Line]:
    """A line for each decider, for each source of other times, and for the best choices."""
    dotted, dashed = cycle((":", "--", (0, (1, 4)))), cycle(("-.", (0, (5, 1, 1, 1, 1, 1))))
    lines = [_Line(name, next(dotted), "#777777", 1.5, scores.picks[name].values) for name in scores.deciders]
    lines += [_Line(name, next(dashed), "#444444", 1.5, scores.picks[name].values) for name in scores.times]
    return [*lines, _Line(_BEST, "-", "#444444", 0.9, scores.right.best.values)]


def _draw(axis: Axes, x: Array, choices: Sequence[Choice | None], y: Array, line: _Line) -> set[str]:
    """Draws a source's line, with the marker of its picked algorithm at each point; returns the drawn algorithms."""
    axis.plot(x, y, linestyle=line.style, color=line.colour, linewidth=line.width, label=line.label)
    drawn = set()
    # If sources pick the same choice, the marker of the best is the smallest, so that all markers can be seen.
    size, filled = (4.0, True) if line.label == _BEST else (7.0, False)
    for at, value, choice in zip(x, y, choices, strict=True):
        if choice is not None and np.isfinite(value):
            colour, marker = algorithm_style(choice.algorithm)
            drawn.add(choice.algorithm)
            axis.plot(at, value, marker, color=colour, markersize=size, markerfacecolor=colour if filled else "none")
    return drawn


def markers_and_lines(
    sizes: Sequence[int],
    markers: Mapping[str, ArrayLike],
    lines: Mapping[str, ArrayLike],
    drawn: str,
    errors: Mapping[str, ArrayLike] | None = None,
    builtin: ArrayLike | None = None,
) -> Figure:
    """Times of algorithms over m by two sources, and below them ratios to the source's best time.

    The title says which algorithm is the fastest by the times of the markers, followed by the text `drawn`. `errors`
    are half-widths of the markers' times, shape (2, m). `builtin` holds the times of the MPI library's own choice, from
    the source of the markers.
    """
    figure, (times, ratios) = plt.subplots(2, 1, figsize=(7.8, 7.4), sharex=True, height_ratios=(3, 2))
    names = list(dict.fromkeys([*markers, *lines]))
    colours = [algorithm_style(name)[0] for name in names]
    # If two lines have the same colour, the second one is dashed.
    line_styles = {name: "--" if colours[number] in colours[:number] else "-" for number, name in enumerate(names)}
    largest = 1.0
    for of_source, is_line in ((lines, True), (markers, False)):
        best = np.fmin.reduce(np.array([*of_source.values()], dtype=float)) if of_source else None
        for name, given in of_source.items():
            colour, marker = algorithm_style(name)
            known = np.asarray(given, dtype=float) / best
            largest = max(largest, float(np.nanmax(known, initial=1.0)))
            style: dict[str, Any] = {"linestyle": "", "marker": marker, "markersize": 5.5, "label": name}
            if is_line:
                style |= {"linestyle": line_styles[name], "linewidth": 1.0, "markersize": 3, "markerfacecolor": "none"}
            if is_line and name in markers:
                style["label"] = "_" + name
            times.plot(sizes, given, color=colour, **style)
            ratios.plot(sizes, known, color=colour, **style)
            if errors is not None and not is_line:
                times.errorbar(sizes, given, yerr=errors[name], fmt="none", color=colour, capsize=2.5, elinewidth=1)
    if builtin is not None:
        own: dict[str, Any] = {
            "linestyle": "", "marker": "_", "markersize": 14, "markeredgewidth": 1.5, "color": "#444444",
            "label": "MPI's own choice",
        }  # fmt: skip
        times.plot(sizes, builtin, **own)
        ratios.plot(sizes, np.asarray(builtin) / np.fmin.reduce(np.array([*markers.values()], dtype=float)), **own)
    for axis in (times, ratios):
        size_axis(axis, sizes)
    times.set_xlabel("")
    seconds_axis(times)
    ratio_axis(ratios, largest)
    drawn += "" if errors is None else "; differences within the intervals do not count"
    head(figure, fastest_said(sizes, markers, errors), drawn)
    label_lines(times, ratios)
    return figure


def fastest_said(
    sizes: Sequence[int], times: Mapping[str, ArrayLike], errors: Mapping[str, ArrayLike] | None = None
) -> str:
    """'binomial is fastest up to 8 KiB, then chain', with as few algorithms as possible.

    The text is empty for a single algorithm. An algorithm whose interval (half-widths `errors`, shape (2, m)) overlaps
    the interval of the fastest one counts as fastest, too.
    """
    names = list(times)
    if len(names) < 2:
        return ""
    seconds = np.nan_to_num(np.array([times[name] for name in names], dtype=float), nan=np.inf)
    below, above = np.stack([np.zeros((2, len(sizes))) if errors is None else errors[name] for name in names], axis=1)
    least = seconds.argmin(axis=0)
    fast = seconds - below <= ((1 + TIE) * seconds + above)[least, range(len(sizes))]
    columns = np.flatnonzero(np.isfinite(seconds).any(axis=0)).tolist()
    turns: list[tuple[NDArray[np.bool_], int]] = []
    for column in columns:
        still = fast[:, column] & turns[-1][0] if turns else fast[:, column]
        if turns and still.any():
            turns.pop()
        turns.append((still if still.any() else fast[:, column], column))
    if not turns:
        return ""
    if len(turns) > _MAX_TURNS:
        (first, count), (second, fewer) = Counter(names[index] for index in least[columns]).most_common(2)
        return f"{first} is fastest at {count} of {len(columns)} sizes, {second} at {fewer}"
    *before, (last, _) = [
        (names[int(np.where(still, seconds[:, column], np.inf).argmin())], format_size(sizes[column]))
        for still, column in turns
    ]
    return in_turn(before, last, "fastest", "at every size")


def times_figure(times: Times, procs: int, beside: Times | None = None) -> Figure:
    """The time of every algorithm over m on P processes, and its ratio to the best.

    Each algorithm uses its best segment size at each m. Measured times have their confidence intervals. If `beside` is
    given, `times` are drawn as markers and `beside` as lines.
    """
    if procs not in times.procs:
        valid = ", ".join(map(str, times.procs))
        raise UsageError(f"no times of {times.collective} with P = {procs}; valid: {valid}")
    if times.array.ndim > 3:
        raise UsageError(f"a figure needs one value of {times.seconds.dims[-1]}: use isel or sel")
    markers, errors = _fastest(times, procs)
    lines, drawn = markers, f"{times.collective} on {times.platform}, P = {procs}, {times.source} by {times.maker}"
    if beside is not None:
        lines, _ = _fastest(beside.of_grid(times.grid), procs)
        fitted_to = f", fitted to {beside.fitted_to}" if beside.fitted_to else ""
        drawn = f"{drawn} (markers); {beside.title}{fitted_to} (lines)"
    drawn += "; each at its best segment size"
    return markers_and_lines(times.message_bytes, markers, lines, drawn, None if times.is_exact else errors)


def _fastest(times: Times, procs: int) -> tuple[dict[str, Array], dict[str, Array]]:
    """The least seconds of each algorithm over m on P processes, and the half-widths below and above them."""
    found, errors = {}, {}
    for name in times.grid.names:
        mine = times.only({choice for choice in times.choices if choice.algorithm == name}.__contains__, [procs])
        (seconds,) = mine.best_seconds.values
        if np.isfinite(seconds).any():
            (widths,) = picked_seconds(mine.half_widths.values, mine.best.values)
            found[name], errors[name] = seconds, np.stack([np.where(np.isfinite(widths), widths, 0.0)] * 2)
    return found, errors
