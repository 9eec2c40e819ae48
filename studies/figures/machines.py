"""Figures of the time that choices lose on measured machines, by decider, and of how well this loss was predicted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from collwise.studies.figures.style import PALETTE
from collwise.validation.measurement.confidence import Kept

_LINEAR = 0.1
"""Up to this regret the axis is linear, beyond it logarithmic."""


def regrets_figure(means: Mapping[str, Mapping[str, float]], deciders: Sequence[str]) -> Figure:
    """Bars of mean regrets by machine, one for each decider that chooses anything there."""
    figure, axis = plt.subplots(figsize=(2.5 + 1.4 * len(means), 3.6), layout="constrained")
    width = 0.8 / len(deciders)
    for place, decider in enumerate(deciders):
        across = np.arange(len(means)) + (place - (len(deciders) - 1) / 2) * width
        values = [known.get(decider, np.nan) for known in means.values()]
        bars = axis.bar(across, values, width, label=decider, color=PALETTE[place])
        axis.bar_label(
            bars, [f"{100 * item:.0f}" if np.isfinite(item) else "" for item in values], fontsize=8, padding=1
        )
    axis.set_yscale("symlog", linthresh=_LINEAR)
    axis.set_ylim(0, 1.6 * max((item for known in means.values() for item in known.values()), default=1.0) + _LINEAR)
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g} %"))
    axis.set_xticks(range(len(means)), list(means))
    axis.set_ylabel("mean regret")
    axis.legend(ncols=len(deciders), fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False)
    return figure


def sure_figure(
    reliability: Sequence[tuple[float, float, float, Kept]], coverage: tuple[Sequence[float], Sequence[float]]
) -> Figure:
    """Observed shares over predicted probabilities, and the risk of the surest choices over their share of cells."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.5, 3.6), layout="constrained")
    said = [100 * mean for *_, mean, _ in reliability]
    shares, low, high = (
        100 * np.array([getattr(found, name) for *_, found in reliability]) for name in ("share", "low", "high")
    )
    left.plot([0, 100], [0, 100], color="0.7", linewidth=1)
    left.errorbar(said, shares, yerr=[shares - low, high - shares], fmt="o", color=PALETTE[0], capsize=3)
    left.set(xlabel="said probability of losing less than 5 % (%)", ylabel="came out, mean of jobs (%)")
    left.set(xlim=(0, 102), ylim=(0, 102))
    right.plot(100 * np.array(coverage[0]), 100 * np.array(coverage[1]), color=PALETTE[1], drawstyle="steps-post")
    right.set(xlabel="the surest choices (% of the cells that matter)", ylabel="of them lose 5 % or more (%)")
    right.set(xlim=(0, 100), ylim=(0, None))
    return figure
