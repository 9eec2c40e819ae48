"""Times over allocations (the nodes that a job may get): typical times, and the losses of choices on allocations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import xarray as xr

from collwise.common.units import format_size
from collwise.models.switch_points import Indices
from collwise.validation.times.times import CHOICE, POINT, Times

ALLOCATION = "allocation"
"""The dimension of times that differ by the nodes of a job."""
RARE = 0.95
"""The share of allocations on which a time or loss is at most its 95th percentile."""


def over_allocations(times: Times, share: float = 0.5) -> Times:
    """The quantile of times over allocations, by default the median. Times without allocations are unchanged."""
    if ALLOCATION not in times.seconds.dims:
        return times
    values = times.data.drop_vars("state").quantile(share, ALLOCATION, skipna=False, keep_attrs=True)
    state = times.state.max(ALLOCATION)
    data = values.drop_vars("quantile").assign(state=state).transpose(CHOICE, *POINT, ...)
    count = times.seconds.sizes[ALLOCATION]
    which = "median" if share == 0.5 else f"{share * 100:g}th percentile"
    return replace(times, data=data, maker=f"{times.maker}, {which} of {count} allocations")


def losses(times: Times) -> tuple[xr.DataArray, xr.DataArray]:
    """The median and the 95th percentile, over allocations, of each choice's loss against the best."""
    lost = times.slowdown()
    median, rare = (lost.quantile(share, ALLOCATION, skipna=False) for share in (0.5, RARE))
    return median, rare


def said_of_losses(times: Times, picks: Indices) -> str:
    """A sentence on the loss of decisions' picks over all points and allocations; empty if no loss is known."""
    lost = times.slowdown(picks).values
    known = lost[~np.isnan(lost)]
    if not known.size:
        return ""
    median, rare = np.quantile(known, [0.5, RARE])
    i, j, at = np.unravel_index(int(np.nanargmax(lost)), lost.shape)
    where = f"P = {times.procs[i]}, m = {format_size(times.message_bytes[j])}, draw {at + 1}"
    count = times.seconds.sizes[ALLOCATION]
    return (
        f"{times.collective}: over {count} allocations the choices lose {median * 100:.1f} % in the median, "
        f"{rare * 100:.1f} % at the 95th percentile, {known.max() * 100:.1f} % at worst ({where})"
    )
