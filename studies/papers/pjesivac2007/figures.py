"""Figures 1 to 5 of Pješivac-Grbović et al. 2007: simulated times as markers, predicted ones as lines, over P or m."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from collwise.models.piecewise import Array
from collwise.studies.figures.style import MARKERS, PALETTE, seconds_axis, size_axis
from collwise.studies.papers.pjesivac2007.analysis import Curves, Figure1

_LINES = ("-", "--", "-.", ":")
_SIMULATED = "#000000"


def parameters(found: Mapping[str, Figure1], title: str) -> Figure:
    """Figure 1: alpha and beta of Hockney, and PLogP measured and fitted, over m; one row per platform title."""
    figure, grid = plt.subplots(len(found), 3, figsize=(12.6, 3.3 * len(found)), squeeze=False)
    for row, (name, one) in zip(grid, found.items(), strict=True):
        sizes = np.array(one.hockney.time.message_bytes)
        _panel(row[0], sizes, one, f"{name}: Hockney, alpha")
        row[0].plot(sizes, one.hockney.alpha(sizes) * 1e6, "-o", color=PALETTE[0])
        row[0].set_ylabel("alpha (us)")
        _panel(row[1], sizes, one, f"{name}: Hockney, beta")
        row[1].plot(sizes, one.hockney.beta(sizes) * 1e9, "-o", color=PALETTE[0])
        row[1].set_ylabel("beta (ns per byte)")
        _panel(row[2], sizes, one, f"{name}: PLogP")
        for axis in row[:2]:
            axis.set_ylim(bottom=0, top=1.25 * axis.get_ylim()[1])
        _plogp(row[2], sizes, one)
    grid[0][0].legend(loc="lower left", fontsize=8.5)
    grid[0][2].legend(fontsize=8, ncols=2)
    figure.suptitle(title, fontsize=11)
    return figure


def _panel(axis: Axes, sizes: Array, one: Figure1, title: str) -> None:
    """Labels are powers of 32: the sizes themselves lie close together where the functions bend."""
    axis.set_title(title)
    axis.axvline(one.eager_limit_bytes, color="#999999", linewidth=1, label="eager limit")
    size_axis(axis, [32**k for k in range(1 + int(np.log(sizes[-1]) / np.log(32) + 0.5))])


def _plogp(axis: Axes, sizes: Array, one: Figure1) -> None:
    lines = (
        ("g, measured", one.measured.gap(sizes), 0, "-"),
        ("g, fitted", one.fitted.gap(sizes), 1, "--"),
        ("o_s, measured", one.measured.send_overhead(sizes), 2, "-"),
        ("o_r, measured", one.measured.receive_overhead(sizes), 3, "-"),
        ("L, measured", np.full(sizes.shape, one.measured.latency_seconds), 4, "-"),
        ("L, fitted", np.full(sizes.shape, one.fitted.latency_seconds), 5, "--"),
    )
    for label, seconds, number, style in lines:
        # A logarithmic axis cannot show what is not charged at all.
        shown = np.where(seconds > 0, seconds, np.nan)
        axis.plot(sizes, shown, style, color=PALETTE[number], marker=MARKERS[number], markersize=4, label=label)
    seconds_axis(axis)


def over_procs(curves: Curves, title: str) -> Figure:
    """Figure 2: one panel per method, over P, at the plan's first message size."""
    labels = list(curves.simulated)
    figure, axes = plt.subplots(1, len(labels), figsize=(4.2 * len(labels), 3.8), squeeze=False)
    for axis, label in zip(axes[0], labels, strict=True):
        _both(axis, np.array(curves.plan.procs), curves, label, lambda seconds: seconds[:, 0] * 1e6, 4)
        axis.set_title(label.replace("_", " "))
        axis.set_xlabel("processes P")
        axis.set_ylim(bottom=0)
    axes[0][0].set_ylabel("time (us)")
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=9)
    figure.suptitle(title, fontsize=11)
    return figure


def _both(axis: Axes, x: Array, curves: Curves, label: str, part: Callable[[Array], Array], markersize: int) -> None:
    """The part of a method's times that is over x: a line for each model, and markers."""
    for number, (model, of) in enumerate(curves.predicted.items()):
        axis.plot(x, part(of[label]), _LINES[number], color=PALETTE[number], label=model)
    axis.plot(x, part(curves.simulated[label]), "o", color=_SIMULATED, label="simulated", markersize=markersize)


def over_sizes(curves: Curves, methods: Mapping[str, Sequence[str]], title: str) -> Figure:
    """Figure 3: one panel per method and P, over m; `methods` has each method's labels, unsegmented and segmented."""
    procs = curves.plan.procs
    figure, grid = plt.subplots(
        len(methods), len(procs), figsize=(5.2 * len(procs), 3.4 * len(methods)), sharex=True, sharey=True,
        squeeze=False,
    )  # fmt: skip
    sizes = curves.plan.message_bytes
    for row, (method, labels) in zip(grid, methods.items(), strict=True):
        for i, axis in enumerate(row):
            for number, label in enumerate(labels):
                cut = label.removeprefix(method).removeprefix(", ") or "unsegmented"
                for colour, (model, of) in zip(PALETTE, curves.predicted.items(), strict=False):
                    axis.plot(sizes, of[label][i], _LINES[number], color=colour, label=f"{model}, {cut}", linewidth=1.3)
                face = _SIMULATED if number else "none"
                axis.plot(
                    sizes, curves.simulated[label][i], MARKERS[number], color=_SIMULATED, markerfacecolor=face,
                    markersize=4.5, label=f"simulated, {cut}",
                )  # fmt: skip
            size_axis(axis, sizes)
            axis.set_title(f"{method}, P = {procs[i]}")
            axis.set_xlabel("message size m" if row is grid[-1] else "")
        seconds_axis(row[0])
    figure.legend(*grid[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize=9)
    figure.suptitle(title, fontsize=11)
    return figure


def conditions(found: Mapping[str, pd.DataFrame], title: str) -> Figure:
    """Figure 4: both sides of each model's condition over m, by its name."""
    figure, axes = plt.subplots(1, len(found), figsize=(4.2 * len(found), 3.6), squeeze=False)
    for axis, (name, one) in zip(axes[0], found.items(), strict=True):
        axis.plot(one.whole, "-o", color=PALETTE[0], markersize=4.5, label="the whole message")
        axis.plot(one.segmented, "--s", color=PALETTE[1], markersize=4.5, label="in segments of 1 KiB")
        size_axis(axis, one.index)
        seconds_axis(axis)
        axis.set_ylabel("time per byte" if name == "Hockney" else "time of a step")
        axis.set_title(name)
    axes[0][0].legend(fontsize=9)
    figure.suptitle(title, fontsize=11)
    return figure


def exchange(curves: Curves, label: str, shown: Sequence[int], title: str) -> Figure:
    """Figure 5: the largest P with predictions, and several P simulated, over the P m bytes that a process sends."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.4, 3.8), sharey=True)
    blocks, counts = np.array(curves.plan.message_bytes), curves.plan.procs
    _both(left, blocks * counts[-1], curves, label, lambda seconds: seconds[-1], 5)
    left.set_title(f"P = {counts[-1]}")
    for procs, colour, marker in zip(shown, PALETTE, MARKERS, strict=False):
        seconds = curves.simulated[label][counts.index(procs)]
        right.plot(blocks * procs, seconds, "-", color=colour, marker=marker, markersize=5, label=f"P = {procs}")
    right.set_title("simulated")
    for axis in (left, right):
        size_axis(axis, [32**k for k in range(5)])
        axis.set_xlabel("bytes that a process sends, P m")
        axis.legend(fontsize=9)
    seconds_axis(left)
    figure.suptitle(title, fontsize=11)
    return figure
