"""Figures of a platform that were fitted to measured times."""

from __future__ import annotations

import math

import numpy as np

from collwise.calibrations import FittedFigures
from collwise.common.units import format_size
from collwise.studies.present.shown import Shown, Table
from collwise.studies.reports.markdown import percent
from collwise.validation.calibration.figures import FIGURES

_CROSSED = "Each collective or kind of messages predicted from the others"


def shown(found: FittedFigures) -> Shown:
    """The figures, how well each collective is predicted from the others, and what to measure next."""
    name = found.platform.name
    figures = [
        (FIGURES[figure].title, f"{one['before']:.3g}", f"{one['fitted']:.3g}", f"x {one['factor']:.2f}",
         f"x {one['low']:.2f} to {one['high']:.2f}", "yes" if one["told"] else "hardly")
        for figure, one in found.figures.items()
    ]  # fmt: skip
    title = f"Figures of {name} by {found.used} of {found.measured} measured times (s, s per byte)"
    parts: list[Table | str] = [
        Table(title, ("figure", "before", "fitted", "factor", "95 % interval", "told by the times"), figures)
    ]
    if found.crossed:
        crossed = [
            (collective, percent(float(np.median(one.errors))), percent(float(np.mean(one.regrets or [math.nan]))))
            for collective, one in found.crossed.items()
        ]
        parts.append(Table(_CROSSED, ("collective", "median error", "choices lose"), crossed))
    telling = [(one.collective, one.algorithm, one.procs, format_size(one.message_bytes)) for one in found.telling]
    parts += [
        Table("To measure next: what tells most of what to choose", ("collective", "algorithm", "P", "m"), telling),
        "hardly told: mostly as before; latency is that of both links of a message",
        *found.notes,
    ]
    facts = {"platform": name, "eager_limit_bytes": found.platform.calibration.eager_limit_bytes}
    return Shown(parts, [{"figure": figure, **one} for figure, one in found.figures.items()], facts)
