"""Figures 1 to 5 of Pješivac-Grbović et al. 2007. Simulated times are markers, predicted ones lines, over P or m."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from collwise.common.units import format_size
from collwise.studies.figures.maps import errors_said
from collwise.studies.figures.style import MARKERS, PALETTE, head, label_lines, seconds_axis, size_axis
from collwise.studies.papers.figures import Styles, in_order, methods, panels
from collwise.studies.papers.pjesivac2007.analysis import Figure1
from collwise.validation.compare.scores import Scores

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
        # A logarithmic axis cannot show overheads of 0.
        shown[f"{name}: PLogP"] = pd.DataFrame(plogp, sizes).where(lambda seconds: seconds > 0)
    styles = in_order(shown[f"{next(iter(found))}: PLogP"], markersize=4)
    for label, style in styles.items():
        style["linestyle"] = "--" if label.endswith("fitted") else "-"
    styles |= {label: {"color": PALETTE[0], "marker": "o"} for label in ("alpha (us)", "beta (ns per byte)")}
    figure, axes = panels(shown, styles, title, (4.2, 3.3), columns=3)
    for number, axis in enumerate(axes):
        one = list(found.values())[number // 3]
        limit = axis.axvline(one.eager_limit_bytes, color="#999999", linewidth=1)
        largest = one.hockney.time.message_bytes[-1]
        # The sizes are too close together for ticks near the bends of the functions.
        size_axis(axis, [32**k for k in range(1 + int(np.log(largest) / np.log(32) + 0.5))])
        if number % 3 == 2:
            seconds_axis(axis)
        else:
            axis.set_ylabel(str(axis.lines[0].get_label()))
            axis.set_ylim(bottom=0, top=1.25 * axis.get_ylim()[1])
    axes[0].legend(handles=[limit], labels=["eager limit"], loc="lower left", fontsize=8.5)
    label_lines(*axes[2::3])
    return figure


def _styles(models: Iterable[str], markersize: float, **others: Any) -> Styles:
    """The styles: a line for each model, and markers for simulated times."""
    looks = zip(models, PALETTE, _LINES, strict=False)
    styles: Styles = {name: {"color": colour, "linestyle": line} for name, colour, line in looks}
    simulated = {"color": _SIMULATED, "linestyle": "", "marker": "o", "markersize": markersize}
    return styles | {"simulated": simulated | others}


def _by_source(scores: Scores) -> dict[str, dict[str, pd.DataFrame]]:
    """Seconds of every method, by model; the last entry is 'simulated'."""
    return {name: methods(times) for name, times in scores.times.items()} | {"simulated": methods(scores.right)}


def over_procs(scores: Scores, title: str) -> Figure:
    """Figure 2: one panel per method, over P, at the first message size."""
    sources = _by_source(scores)
    shown = {
        label.replace("_", " "): {source: of[label].iloc[:, 0] * 1e6 for source, of in sources.items()}
        for label in sources["simulated"]
    }
    figure, axes = panels(shown, _styles(scores.times, 4), title, (4.2, 3.8))
    for axis in axes:
        axis.set_xlabel("processes P")
        axis.set_ylim(bottom=0)
    axes[0].set_ylabel("time (us)")
    head(figure, errors_said(scores), title)
    label_lines(*axes)
    return figure


def over_sizes(scores: Scores, title: str) -> Figure:
    """Figure 3: one panel per method and P, over m, unsegmented and segmented."""
    grid = scores.right.grid
    shown, styles = dict[str, dict[str, pd.Series]](), Styles()
    for choice, label in grid.labels.items():
        number, cut = (1, format_size(choice.segment_bytes)) if choice.segment_bytes else (0, "unsegmented")
        looks = _styles(scores.times, 4.5, marker=MARKERS[number], markerfacecolor=_SIMULATED if number else "none")
        for source, of in _by_source(scores).items():
            line = {} if source == "simulated" else {"linestyle": _LINES[number], "linewidth": 1.3}
            styles[f"{source}, {cut}"] = looks[source] | line
            for procs in grid.procs:
                panel = shown.setdefault(f"{choice.algorithm}, P = {procs}", {})
                panel[f"{source}, {cut}"] = of[label].loc[procs]
    shape = {"columns": len(grid.procs), "sharex": True, "sharey": True}
    figure, axes = panels(shown, styles, title, (5.2, 3.4), sizes=grid.message_bytes, **shape)
    for axis in axes[: -len(grid.procs)]:
        axis.set_xlabel("")
    head(figure, errors_said(scores), title)
    label_lines(*axes)
    return figure


def conditions(found: Mapping[str, pd.DataFrame], title: str) -> Figure:
    """Figure 4: both sides of each condition over m, one panel per condition."""
    names = {"whole": "the whole message", "segmented": "in segments of 1 KiB"}
    styles = in_order(names.values(), markersize=4.5)
    styles[names["segmented"]]["linestyle"] = "--"
    shown = {name: item.rename(columns=names) for name, item in found.items()}
    figure, axes = panels(shown, styles, title, (4.2, 3.6), sizes=next(iter(found.values())).index.tolist())
    for axis, name in zip(axes, found, strict=True):
        axis.set_ylabel("time per byte" if name == "Hockney" else "time of a step")
    label_lines(*axes)
    return figure


def exchange(scores: Scores, label: str, shown: Sequence[int], title: str) -> Figure:
    """Figure 5: the largest P with predictions, and several P simulated, over the P m bytes that a process sends."""
    sources, most = _by_source(scores), scores.right.procs[-1]

    def sent(seconds: pd.DataFrame, procs: int) -> pd.Series:
        return seconds.loc[procs].set_axis(seconds.columns * procs)

    of_most = {source: sent(of[label], most) for source, of in sources.items()}
    by_procs = {f"P = {count}": sent(sources["simulated"][label], count) for count in shown}
    styles = _styles(scores.times, 5) | in_order(by_procs, markersize=5)
    drawn, ticks = {f"P = {most}": of_most, "simulated": by_procs}, [32**k for k in range(5)]
    figure, axes = panels(drawn, styles, title, (5.2, 3.8), sizes=ticks, sharey=True)
    for axis in axes:
        axis.set_xlabel("bytes that a process sends, P m")
    head(figure, errors_said(scores), title)
    label_lines(*axes)
    return figure
