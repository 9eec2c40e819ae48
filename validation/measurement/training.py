"""Figures of platforms fitted to the measured runs of machines, several together, each of which can be left out."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from collwise.platforms import HostPlatform, Platform
from collwise.simulator.timing import Case
from collwise.validation.calibration.figures import Factors, from_data_sheets
from collwise.validation.calibration.from_times import Cell as TimedCell, Fitted, TimedCases, fit
from collwise.validation.measurement.judging import Cell, grids, platform_of
from collwise.validation.measurement.runs import MeasuredRun

COPY_SECONDS_PER_BYTE = 1e-10
"""The default time to copy a byte. One is read and one written, at 20 GB/s."""


def timed(
    run: MeasuredRun, platform: HostPlatform | None = None, *, as_described: bool = False, messages: bool = False
) -> TimedCases | None:
    """The measured cases of a run with one process on each node. They are on the platform named after its machine.
    `as_described` keeps the factors that the description lists. `messages` adds those between two nodes. None without
    cases or such a platform.
    """
    described = platform or platform_of(run.machine, run.facts, run.description)
    if not isinstance(described, Platform):
        return None
    own = described.calibration
    if own.copy_seconds_per_byte is None:
        described = replace(described, calibration=replace(own, copy_seconds_per_byte=COPY_SECONDS_PER_BYTE))
    measured: dict[Case, float] = dict(run.messages) if messages else {}
    for place, grid, times in grids(run):
        if place.processes_per_node == 1 and place.procs <= described.nodes:
            for size in grid.message_bytes:
                found = times.at_point(place.procs, size)
                known = [one for one in grid.choices if found.get(one, 0.0) > 0]
                measured |= {grid.case(one, place.procs, size): found[one] for one in known}
    return TimedCases(described if as_described else from_data_sheets(described), measured) if measured else None


def together(runs: Sequence[MeasuredRun], without: Collection[str] = ()) -> Fitted:
    """The figures fitted to the runs of all machines except those in `without`, starting from their data sheets."""
    machines: dict[str, list[TimedCases]] = {}
    for run in runs:
        if run.machine not in without and (cases := timed(run)) is not None:
            machines.setdefault(run.machine, []).append(cases)
    return fit(machines)


TRAINED_ON, SIZES, COLLECTIVES, JOBS = "trained on", "other sizes", "other collectives", "other P or jobs"
_TRAINING_COLLECTIVES = 3


@dataclass(frozen=True)
class Trained:
    """The factors of a machine's figures, and the job and the cells to whose times they were fitted."""

    factors: Factors
    job: str
    cells: frozenset[TimedCell]

    def kind(self, cell: Cell) -> str:
        """The kind of difference between a cell and the training cells of its machine."""
        place = cell.place
        collectives, procs = {one[0] for one in self.cells}, {one[1] for one in self.cells}
        if place.job != self.job or place.procs not in procs or place.processes_per_node != 1:
            return JOBS
        if place.collective not in collectives:
            return COLLECTIVES
        return TRAINED_ON if (place.collective, place.procs, cell.message_bytes) in self.cells else SIZES


def trained(runs: Sequence[MeasuredRun]) -> Mapping[str, Trained]:
    """Each machine's figures, fitted to a few of its own times.

    These are every second size of three collectives (the first by name), at the smallest P of the job with the most
    collectives. The fit starts from the description.
    """
    jobs: dict[str, dict[str, TimedCases]] = {}
    for run in runs:
        if (cases := timed(run, as_described=True)) is not None and cases.cases:
            jobs.setdefault(run.machine, {})[run.job] = cases
    found = {}
    for machine, of_job in jobs.items():
        job = max(of_job, key=lambda name: len({case.collective for case in of_job[name].cases}))
        cells = of_job[job].cells
        least = min(procs for _, procs, _ in cells)
        wanted = sorted({cell[0] for cell in cells if cell[1] == least})[:_TRAINING_COLLECTIVES]
        chosen = frozenset(
            cell for name in wanted for cell in sorted(one for one in cells if one[:2] == (name, least))[::2]
        )
        fitted = fit({machine: [of_job[job].only(chosen)]})
        found[machine] = Trained(fitted.common, job, chosen)
    return found
