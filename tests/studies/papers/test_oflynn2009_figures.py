"""Curves over the message size."""

from __future__ import annotations

import numpy as np
import pandas as pd

from collwise.studies.papers.oflynn2009.figures import size_curves

SIZES = (1024, 65536, 204800)


def test_a_model_looks_the_same_in_every_panel_and_figure() -> None:
    line = pd.Series([1e-3, 2e-3, 3e-3], SIZES)
    first = size_curves({"a": {"simulated": line, "LMO": line}, "b": {"PLogP": line, "LMO": line}}, "t", 65536)
    second = size_curves({"a": {"Hockney, heterogeneous": line, "LMO": line}}, "t")
    looks = [
        (one.get_label(), one.get_color(), one.get_linestyle())
        for figure in (first, second)
        for axis in figure.axes
        for one in axis.lines
        if not str(one.get_label()).startswith("_")
    ]
    assert len({look for look in looks if look[0] == "LMO"}) == 1
    assert len({look[1:] for look in looks}) == len({look[0] for look in looks}) == 4
    assert [[text.get_text() for text in axis.texts] for axis in first.axes] == [
        ["eager limit", "simulated", "LMO"], ["eager limit", "PLogP", "LMO"],
    ]  # fmt: skip


def test_axes_have_units() -> None:
    figure = size_curves({"a": {"simulated": pd.Series([1e-3, 2e-3, 3e-3], SIZES)}}, "t", what="message size m")
    (axis,) = figure.axes
    assert axis.get_xlabel() == "message size m (KiB)"
    assert axis.get_ylabel() == "time (ms)"
    assert list(axis.lines[0].get_xdata()) == [1, 64, 200]
    assert list(np.asarray(axis.lines[0].get_ydata())) == [1, 2, 3]
