"""Figures of platforms fitted to the measured runs of machines, several together, each of which can be left out."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from collwise.platforms import HostPlatform, Platform
from collwise.simulator.timing import Case
from collwise.validation.calibration.figures import from_data_sheets
from collwise.validation.calibration.from_times import Fitted, TimedCases, fit
from collwise.validation.measurement.judging import grids, platform_of
from collwise.validation.measurement.runs import MeasuredRun
from collwise.validation.times.times import Times

COPY_SECONDS_PER_BYTE = 1e-10
"""Where a description says nothing of copies: a byte read and one written at 20 GB/s."""


def timed(run: MeasuredRun, platform: HostPlatform | None = None, *, as_described: bool = False) -> TimedCases | None:
    """The measured cases of a run with one process on each node, on the platform that is called like its machine.

    `as_described` leaves the factors in that the description publishes. None without cases or such a platform.
    """
    described = platform or platform_of(run.machine, run.facts)
    if not isinstance(described, Platform):
        return None
    own = described.calibration
    if own.copy_seconds_per_byte is None:
        described = replace(described, calibration=replace(own, copy_seconds_per_byte=COPY_SECONDS_PER_BYTE))
    measured: dict[Case, float] = {}
    for place, grid in grids(run):
        if place.processes_per_node == 1 and place.procs <= described.nodes:
            times = _times(run, grid.collective)
            for size in grid.message_bytes:
                found = times.at_point(place.procs, size)
                known = [one for one in grid.choices if found.get(one, 0.0) > 0]
                measured |= {grid.case(one, place.procs, size): found[one] for one in known}
    return TimedCases(described if as_described else from_data_sheets(described), measured) if measured else None


def _times(run: MeasuredRun, collective: str) -> Times:
    return next(one for one in run.times if one.collective == collective and one.processes_per_node == 1)


def together(runs: Sequence[MeasuredRun], without: Collection[str] = ()) -> Fitted:
    """The figures fitted to the runs of all machines but those `without`, from their data sheets on."""
    machines: dict[str, list[TimedCases]] = {}
    for run in runs:
        if run.machine not in without and (cases := timed(run)) is not None:
            machines.setdefault(run.machine, []).append(cases)
    return fit(machines)
