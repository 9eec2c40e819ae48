"""Figure 3 of Nuriyev & Lastovetsky 2021."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from collwise.studies.figures.style import MARKERS, PALETTE, seconds_axis, size_axis


def model_kinds(panels: Mapping[str, pd.DataFrame], title: str) -> Figure:
    """Figure 3 of the paper: binary and binomial by traditional formulas, simulated, and by ours, side by side."""
    figure, axes = plt.subplots(1, len(panels), figsize=(4.2 * len(panels), 3.6), sharey=True, squeeze=False)
    for axis, (panel, curves) in zip(axes[0], panels.items(), strict=True):
        for number, name in enumerate(curves):
            axis.plot(curves.index, curves[name], "-", color=PALETTE[number], marker=MARKERS[number], label=name)
        size_axis(axis, curves.index)
        axis.set_title(panel)
    seconds_axis(axes[0][0])
    axes[0][0].legend()
    figure.suptitle(title, fontsize=11)
    return figure
