"""Times of a library's collectives, their mock-ups and the repaired library, relative to the default."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from collwise.common.units import format_size
from collwise.studies.figures.style import MARKERS, PALETTE, head, panel_grid
from collwise.validation.guidelines.checks import Call, Launches, guidelines_of
from collwise.validation.guidelines.workflow import GuidelinesResult

_COLUMNS = 3
# Points and bars above _HIGHEST are left out; the room up to _TOP is for the legend.
_HIGHEST = 2.0
_TOP = 3.8


def guidelines_figure(found: GuidelinesResult, procs: int) -> Figure:
    """Figure 4 of Hunold & Carpen-Amarie 2018: times of default, mock-ups and tuned, by collective and message size.

    Error bars reach from the least to the greatest launch. Times above twice the default are not shown.
    """
    figure, axes = panel_grid(len(found.plan.sizes), 2.9, columns=_COLUMNS, width=4.3)
    for axis, name in zip(axes, found.plan.sizes, strict=True):
        _draw(axis, found, name, procs)
    gains = {call: found.gain(call) for call in found.repairs if call.procs == procs}
    known = [(gain, call) for call, gain in gains.items() if not math.isnan(gain)]
    gain, call = max(known, key=lambda pair: pair[0], default=(math.nan, None))
    best = f"Repair gains most for {call.collective} of {format_size(call.message_bytes)}: x {gain:.2f}" if call else ""
    head(figure, best, f"{found.library.title}, {found.library.place}, P = {procs}: times relative to the default")
    return figure


def _draw(axis: Axes, found: GuidelinesResult, collective: str, procs: int) -> None:
    sizes = list(found.plan.sizes[collective])
    calls = [Call(collective, procs, size) for size in sizes]
    axis.axhline(1.0, color="#999999", linewidth=2, label="default")
    for number, guideline in enumerate(guidelines_of(collective)):
        times = {call: found.mockups[guideline.name, call] for call in calls if (guideline.name, call) in found.mockups}
        label = f"{guideline.label} ({guideline.name})"
        _points(axis, calls, times, found.own, (PALETTE[number], MARKERS[number], label))
    if found.tuned is not None:
        tuned = found.tuned
        _points(axis, calls, tuned.own, tuned.default, ("black", "x", "tuned"), joined=True)
    axis.set_xticks(range(len(sizes)), [format_size(size) for size in sizes], rotation=30, fontsize=8)
    axis.set_ylim(0, _TOP)
    axis.set_yticks([0, 0.5, 1, 1.5, 2])
    axis.set_title(collective, fontsize=10)
    axis.legend(fontsize=7, loc="upper left")


def _points(
    axis: Axes,
    calls: Sequence[Call],
    times: Mapping[Call, Launches],
    default: Mapping[Call, Launches],
    style: tuple[str, str, str],
    joined: bool = False,
) -> None:
    """Draws medians of launches relative to the default's median, with bars from the least to the greatest launch."""
    colour, marker, label = style
    known = [
        (place, times[call], default[call].seconds)
        for place, call in enumerate(calls)
        if call in times and times[call].medians and not math.isnan(default[call].seconds)
    ]
    known = [entry for entry in known if entry[1].seconds <= _HIGHEST * entry[2]]
    if not known:
        return
    middle = [launches.seconds / base for _, launches, base in known]
    below = [(launches.seconds - min(launches.medians)) / base for _, launches, base in known]
    above = [min(max(launches.medians) / base, _HIGHEST) - launches.seconds / base for _, launches, base in known]
    axis.errorbar(
        [place for place, _, _ in known], middle, [below, above], color=colour, marker=marker, label=label,
        markersize=5, linestyle="-" if joined else "none", linewidth=1, elinewidth=0.8,
    )  # fmt: skip
