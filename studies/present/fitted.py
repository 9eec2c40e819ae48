"""Fitted parameters: their table, and what they were estimated from."""

from __future__ import annotations

import numpy as np

from collwise.common.units import format_seconds, format_size
from collwise.models.parameters import FittedParameters, PathParameters
from collwise.predictions import FittedModel
from collwise.studies.present.shown import Shown, Table


def shown(fitted: FittedModel) -> Shown:
    """The parameters, or the alphas and betas of all algorithms with their residuals."""
    found, table = fitted.parameters, fitted.table()
    columns, rows = list(table.columns), table.to_numpy()
    if isinstance(found, FittedParameters):
        name = f"{found.family} by {found.procedure}"
        title = f"{name}, {found.platform}, {found.procs} processes"
        effort = f"{found.measurements} measurements, {format_seconds(found.seconds)} on the platform"
        parts: list[Table | str] = [
            Table(title, columns, rows, left=2),
            *found.notes,
            effort,
            f"{name}, {found.made_by}",
        ]
        return Shown(parts, [found.as_document()])
    if isinstance(found, PathParameters):
        waits = "is posted" if found.receives_first else "is not posted yet, too"
        first = f"eager messages leave when their receive {waits}"
    else:
        gamma = found.gamma(np.arange(2, 9), found.segment_bytes)
        first = f"gamma(2..8) at {format_size(found.segment_bytes)}: {', '.join(f'{value:.3f}' for value in gamma)}"
    every = [one for algorithms in found.observations.values() for fit in algorithms.values() for one in fit]
    title = f"{found.platform}, P = {', '.join(map(str, sorted({one.procs for one in every})))}"
    return Shown([first, Table(title, columns, rows, left=4), found.made_by], [found.as_document()])
