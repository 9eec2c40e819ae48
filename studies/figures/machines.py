"""The time that choices lose on measured machines, by what decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from collwise.studies.figures.style import PALETTE

_LINEAR = 0.1
"""Up to this regret the axis is linear, beyond it logarithmic."""


def regrets_figure(means: Mapping[str, Mapping[str, float]], deciders: Sequence[str]) -> Figure:
    """Bars of mean regrets by machine, one for each of these deciders; none where a decider chooses nothing."""
    figure, axis = plt.subplots(figsize=(2.5 + 1.4 * len(means), 3.6), layout="constrained")
    width = 0.8 / len(deciders)
    for place, decider in enumerate(deciders):
        across = np.arange(len(means)) + (place - (len(deciders) - 1) / 2) * width
        values = [known.get(decider, np.nan) for known in means.values()]
        bars = axis.bar(across, values, width, label=decider, color=PALETTE[place])
        axis.bar_label(bars, [f"{100 * one:.0f}" if np.isfinite(one) else "" for one in values], fontsize=8, padding=1)
    axis.set_yscale("symlog", linthresh=_LINEAR)
    axis.set_ylim(0, 1.6 * max((one for known in means.values() for one in known.values()), default=1.0) + _LINEAR)
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g} %"))
    axis.set_xticks(range(len(means)), list(means))
    axis.set_ylabel("mean regret")
    axis.legend(ncols=len(deciders), fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False)
    return figure
