"""Figures 1 to 5 of Pješivac-Grbović et al. 2007: simulated times as markers, predicted ones as lines, over P or m."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from collwise.studies.figures.style import MARKERS, PALETTE, seconds_axis, size_axis
from collwise.studies.papers.figures import Styles, in_order, legend_below, panels
from collwise.studies.papers.pjesivac2007.analysis import Curves, Figure1

_LINES = ("-", "--", "-.", ":")
_SIMULATED = "#000000"


def parameters(found: Mapping[str, Figure1], title: str) -> Figure:
    """Figure 1: alpha and beta of Hockney, and PLogP measured and fitted, over m; one row per platform title."""
    shown: dict[str, Mapping[str, pd.Series]] = {}
    for name, one in found.items():
        sizes = np.array(one.hockney.time.message_bytes)
        shown[f"{name}: Hockney, alpha"] = {"alpha (us)": pd.Series(one.hockney.alpha(sizes) * 1e6, sizes)}
        shown[f"{name}: Hockney, beta"] = {"beta (ns per byte)": pd.Series(one.hockney.beta(sizes) * 1e9, sizes)}
        plogp = {
            "g, measured": one.measured.gap(sizes), "g, fitted": one.fitted.gap(sizes),
            "o_s, measured": one.measured.send_overhead(sizes), "o_r, measured": one.measured.receive_overhead(sizes),
            "L, measured": one.measured.latency_seconds, "L, fitted": one.fitted.latency_seconds,
        }  # fmt: skip
        # A logarithmic axis cannot show what is not charged at all.
        shown[f"{name}: PLogP"] = pd.DataFrame(plogp, sizes).where(lambda seconds: seconds > 0)
    styles = in_order(shown[f"{next(iter(found))}: PLogP"], markersize=4)
    for label, style in styles.items():
        style["linestyle"] = "--" if label.endswith("fitted") else "-"
    styles |= {label: {"color": PALETTE[0], "marker": "o"} for label in ("alpha (us)", "beta (ns per byte)")}
    figure, axes = panels(shown, styles, title, (4.2, 3.3), columns=3)
    for number, axis in enumerate(axes):
        one = list(found.values())[number // 3]
        axis.axvline(one.eager_limit_bytes, color="#999999", linewidth=1, label="eager limit")
        largest = one.hockney.time.message_bytes[-1]
        # The sizes themselves lie close together where the functions bend.
        size_axis(axis, [32**k for k in range(1 + int(np.log(largest) / np.log(32) + 0.5))])
        if number % 3 == 2:
            seconds_axis(axis)
        else:
            axis.set_ylabel(str(axis.lines[0].get_label()))
            axis.set_ylim(bottom=0, top=1.25 * axis.get_ylim()[1])
    axes[0].legend(handles=axes[0].lines[1:], loc="lower left", fontsize=8.5)
    axes[2].legend(fontsize=8, ncols=2)
    return figure


def _styles(models: Iterable[str], markersize: float) -> Styles:
    """A line for each model, and markers for what is simulated."""
    looks = zip(models, PALETTE, _LINES, strict=False)
    styles: Styles = {name: {"color": colour, "linestyle": line} for name, colour, line in looks}
    return styles | {"simulated": {"color": _SIMULATED, "linestyle": "", "marker": "o", "markersize": markersize}}


def over_procs(curves: Curves, title: str) -> Figure:
    """Figure 2: one panel per method, over P, at the plan's first message size."""
    shown = {
        label.replace("_", " "): {
            source: pd.Series(of[label][:, 0] * 1e6, curves.plan.procs) for source, of in curves.by_source.items()
        }
        for label in curves.simulated
    }
    figure, axes = panels(shown, _styles(curves.predicted, 4), title, (4.2, 3.8))
    for axis in axes:
        axis.set_xlabel("processes P")
        axis.set_ylim(bottom=0)
    axes[0].set_ylabel("time (us)")
    legend_below(figure, axes, 4)
    return figure


def over_sizes(curves: Curves, methods: Mapping[str, Sequence[str]], title: str) -> Figure:
    """Figure 3: one panel per method and P, over m; `methods` has each method's labels, unsegmented and segmented."""
    procs, sizes = curves.plan.procs, curves.plan.message_bytes
    shown, styles = dict[str, dict[str, pd.Series]](), Styles()
    for method, labels in methods.items():
        for number, label in enumerate(labels):
            cut = label.removeprefix(method).removeprefix(", ") or "unsegmented"
            for colour, model in zip(PALETTE, curves.predicted, strict=False):
                styles[f"{model}, {cut}"] = {"linestyle": _LINES[number], "color": colour, "linewidth": 1.3}
            styles[f"simulated, {cut}"] = {
                "linestyle": "", "marker": MARKERS[number], "color": _SIMULATED, "markersize": 4.5,
                "markerfacecolor": _SIMULATED if number else "none",
            }  # fmt: skip
            for i, count in enumerate(procs):
                panel = shown.setdefault(f"{method}, P = {count}", {})
                panel |= {f"{source}, {cut}": pd.Series(of[label][i], sizes) for source, of in curves.by_source.items()}
    figure, axes = panels(shown, styles, title, (5.2, 3.4), columns=len(procs), sharex=True, sharey=True)
    for number, axis in enumerate(axes):
        size_axis(axis, sizes)
        axis.set_xlabel("message size m" if number >= len(axes) - len(procs) else "")
        if number % len(procs) == 0:
            seconds_axis(axis)
    legend_below(figure, axes, 2)
    return figure


def conditions(found: Mapping[str, pd.DataFrame], title: str) -> Figure:
    """Figure 4: both sides of each model's condition over m, by its name."""
    names = {"whole": "the whole message", "segmented": "in segments of 1 KiB"}
    styles = in_order(names.values(), markersize=4.5)
    styles[names["segmented"]]["linestyle"] = "--"
    shown = {name: one.rename(columns=names) for name, one in found.items()}
    figure, axes = panels(shown, styles, title, (4.2, 3.6))
    for axis, (name, one) in zip(axes, found.items(), strict=True):
        size_axis(axis, one.index)
        seconds_axis(axis)
        axis.set_ylabel("time per byte" if name == "Hockney" else "time of a step")
    axes[0].legend(fontsize=9)
    return figure


def exchange(curves: Curves, label: str, shown: Sequence[int], title: str) -> Figure:
    """Figure 5: the largest P with predictions, and several P simulated, over the P m bytes that a process sends."""
    blocks, counts = np.array(curves.plan.message_bytes), curves.plan.procs
    most, simulated = counts[-1], curves.simulated[label]
    of_most = {source: pd.Series(of[label][-1], blocks * most) for source, of in curves.by_source.items()}
    by_procs = {f"P = {count}": pd.Series(simulated[counts.index(count)], blocks * count) for count in shown}
    styles = _styles(curves.predicted, 5) | in_order(by_procs, markersize=5)
    figure, axes = panels({f"P = {most}": of_most, "simulated": by_procs}, styles, title, (5.2, 3.8), sharey=True)
    for axis in axes:
        size_axis(axis, [32**k for k in range(5)])
        axis.set_xlabel("bytes that a process sends, P m")
        axis.legend(fontsize=9)
    seconds_axis(axes[0])
    return figure
