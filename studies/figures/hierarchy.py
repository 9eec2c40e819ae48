"""Figures of hierarchical collectives and their autotuning, after figures 2 to 9 of Luo et al. 2020."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from collwise.common.units import format_size
from collwise.studies.figures.style import (
    MARKERS,
    PALETTE,
    grouped_bars,
    head,
    label_lines,
    least_and_most,
    panel_grid,
    seconds_axis,
    size_axis,
)
from collwise.validation.hierarchy.cost_model import TaskStudy
from collwise.validation.hierarchy.space import EXHAUSTIVE, WITHIN, Input, label
from collwise.validation.hierarchy.tuning import Tuning
from collwise.validation.times.choice import Choice
from collwise.validation.times.grid import choice_of

_COLUMNS = 3
_MAX_LEADERS = 8
"""The largest number of leaders that a figure shows. If there are more leaders, it shows evenly spread ones."""


def task_trend(studies: Sequence[TaskStudy], leader: int, title: str) -> Figure:
    """The time of each full task on one leader, and the stabilised cost as a line: figure 3."""
    figure, axis = plt.subplots(figsize=(6.8, 4.2))
    for number, study in enumerate(studies):
        full = study.times.full
        seconds = study.times.seconds[leader, full] * 1e6
        colour = PALETTE[number % len(PALETTE)]
        numbers = np.arange(full.start, full.stop)
        axis.plot(
            numbers, seconds, MARKERS[number % len(MARKERS)] + "-", color=colour, label=label(choice_of(study.case))
        )
        axis.axhline(study.stable_seconds[leader] * 1e6, color=colour, linewidth=0.8, linestyle=":")
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    names = studies[0].times.names[studies[0].times.full]
    axis.set_xlabel(f"i of {names[0].partition('(')[0] if names else 'task'}(i)")
    axis.set_ylabel(f"time on leader {leader} (us)")
    axis.set_ylim(bottom=0)
    head(figure, title, "dotted: the stabilised cost")
    label_lines(axis)
    return figure


def task_overlap(studies: Sequence[TaskStudy], title: str) -> Figure:
    """Times of the parts of tasks on each leader (figures 2 and 6): alone, together, and after earlier tasks."""
    figure, axes = panel_grid(len(studies), 3.0, columns=_COLUMNS, width=4.4)
    for axis, study in zip(axes, studies, strict=True):
        count = len(study.times.seconds)
        leaders = np.unique(np.linspace(0, count - 1, min(count, _MAX_LEADERS)).round().astype(int))
        bars = {name: seconds[leaders] * 1e6 for name, seconds in study.probes.items()}
        grouped_bars(axis, [str(leader) for leader in leaders], bars)
        axis.set_xlabel("node leader")
        axis.set_ylabel("time (us)")
        axis.set_title(f"{label(choice_of(study.case))}: overlap {study.overlap:.0%}", fontsize=9)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize=8.5)
    figure.suptitle(title, fontsize=11)
    return figure


def model_by_configuration(tuning: Tuning, one: Input, title: str) -> Figure:
    """Figures 4 and 7: the cost model's times and those of whole collectives, over segment sizes.

    Each combination of the other parameters has a panel.
    """
    modelled, whole = (tuning.found[name].by_input[one] for name in ("tasks", EXHAUSTIVE))
    groups: dict[Choice, list[Choice]] = {}
    for choice in whole:
        groups.setdefault(replace(choice, segment_bytes=0), []).append(choice)
    error = float(np.median([abs(modelled[choice] / whole[choice] - 1) for choice in whole]))
    figure, axes = panel_grid(len(groups), 2.9, columns=_COLUMNS, width=4.2, sharey=True)
    for axis, (choice, alike) in zip(axes, groups.items(), strict=True):
        sizes = [format_size(each.segment_bytes) for each in alike]
        sources = (("cost model", modelled), ("whole collective", whole))
        bars = {name: [seconds[each] * 1e3 for each in alike] for name, seconds in sources}
        grouped_bars(axis, sizes, bars, (PALETTE[1], PALETTE[0]))
        axis.tick_params("x", labelsize=7.5)
        pieces = f", pieces of {format_size(choice.limit_bytes)}" if choice.limit_bytes else ""
        axis.set_title(f"{choice.algorithm.removeprefix('tasks_')}{pieces}, {WITHIN[choice.parameter]}", fontsize=9)
    for axis in axes[::_COLUMNS]:
        axis.set_ylabel("time (ms)")
    for axis in axes[(len(axes) - 1) // _COLUMNS * _COLUMNS :]:
        axis.set_xlabel("segment size fs")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize=8.5)
    head(figure, f"Median error of the cost model: {100 * error:.1f} %", title)
    return figure


def search_costs(tunings: Mapping[str, Tuning], title: str = "") -> Figure:
    """The machine time of each search, for each collective: figure 8."""
    scores = {name: tuning.scores for name, tuning in tunings.items()}
    first = next(iter(tunings.values()))
    figure, axis = plt.subplots(figsize=(6.8, 3.8))
    names = list(dict.fromkeys(score.search for group in scores.values() for score in group))
    found = {(name, score.search): score for name, group in scores.items() for score in group}
    seconds = {
        name: [found[of, name].machine_seconds * 1e3 if (of, name) in found else 0.0 for of in scores] for name in names
    }
    for name, bars in zip(names, grouped_bars(axis, list(scores), seconds), strict=True):
        shares = [f"{found[of, name].cost:.1%}" if (of, name) in found else "" for of in scores]
        axis.bar_label(bars, shares, fontsize=7.5)
    axis.set_ylabel("machine time of the benchmarks (ms)")
    axis.legend(fontsize=8.5)
    axis.set_title(title or f"{first.platform}, {first.maker}", fontsize=11)
    return figure


def search_quality(tuning: Tuning, place: tuple[int, int], title: str) -> Figure:
    """The times of each search's choices over m, with the best, mean and median of all configurations: figure 9."""
    figure, axis = plt.subplots(figsize=(6.8, 4.4))
    times = {one: seconds for one, seconds in tuning.found[EXHAUSTIVE].by_input.items() if one.place == place}
    sizes = [item.message_bytes for item in times]
    for name, colour, of in (("median", "#999999", np.median), ("mean", "#56B4E9", np.mean), ("best", "#000000", min)):
        values = [float(of(list(seconds.values()))) for seconds in times.values()]
        axis.plot(sizes, values, "-", color=colour, label=f"{name} of all")
    lost = {}
    for number, item in enumerate(found for name, found in tuning.found.items() if name != EXHAUSTIVE):
        seconds = [of_input[item.best[each]] for each, of_input in times.items()]
        axis.plot(
            sizes, seconds, MARKERS[number], color=PALETTE[number], label=item.search, markersize=10 - number,
            markerfacecolor="none",
        )  # fmt: skip
        least = [min(of_input.values()) for of_input in times.values()]
        lost[item.search] = float(np.mean(np.divide(seconds, least))) - 1
    size_axis(axis, sizes)
    seconds_axis(axis)
    head(figure, f"Mean slowdown of choices: {least_and_most(lost)}" if lost else "", title)
    label_lines(axis)
    return figure
