"""A map of one collective that follows changes of its platform within a fraction of a second."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from collwise.algorithms.catalogue import Catalogue
from collwise.platforms import HostPlatform
from collwise.platforms.changes import Change, changed
from collwise.simulator.schedule.live import LiveCases
from collwise.simulator.schedule.networks import network_tables
from collwise.simulator.schedule.shared import NodeOf, Sizes
from collwise.simulator.schedule.tables import NetworkTables
from collwise.simulator.sweeps.context import SCHEDULE
from collwise.validation.times.grid import Grid, choice_of, is_all_at_once
from collwise.validation.times.times import State, Times, running


class LiveMap:
    """A grid's choices, which are recorded once, and their times by the schedule engine on any changed platform.

    Doubtful choices (`is_all_at_once`) have no times.
    """

    def __init__(self, platform: HostPlatform, grid: Grid, jobs: int | None = None) -> None:
        """Records the cases. Raises UsageError if the platform is XML, or if a point does not fit on it."""
        self.platform, self.grid = platform, grid
        self._jobs = jobs
        self._recorded: dict[tuple[object, ...], LiveCases] = {}
        self._cases = [case for case in grid.cases() if not is_all_at_once(case.collective, case.algorithm, case.procs)]
        places = {choice: index for index, choice in enumerate(grid.timed)}
        place = [
            (places[choice_of(case)], grid.procs.index(case.procs), grid.message_bytes.index(case.message_bytes))
            for case in self._cases
        ]
        self._place = tuple(np.array(place, dtype=int).reshape(-1, 3).T)
        self._without_times = np.where(running(grid), State.LEFT_OUT, State.DOES_NOT_RUN).astype(np.int8)
        self._by_node = any(Catalogue.load().algorithm(grid.collective, name).by_node for name in grid.names)
        self.base = self.on((), every=True)
        for recorded in self._recorded.values():
            recorded.find_parts()

    def on(self, changes: Sequence[Change], every: bool = False) -> Times:
        """The times, on the changed platform, of choices within 2 % of the fastest, or of all choices if `every`.

        Times of cases that were not replayed exactly may be wrong by up to their half-widths, in seconds
        (simulator/schedule/live.py). Raises UsageError for changes that cannot be made.
        """
        new = changed(self.platform, changes)
        per_node = new.processes_per_node or self.grid.processes_per_node
        node_of: dict[int, NodeOf] = dict.fromkeys(self.grid.procs)
        if self._by_node:
            node_of = {procs: new.platform.places(procs, per_node) for procs in self.grid.procs}
        described = getattr(new.platform, "base", new.platform)
        exact = described.heterogeneous or getattr(described, "topology", None) is not None or per_node > 1
        key = (exact, per_node if self._by_node else 1, *node_of.values())

        def tables_for(procs: int, sizes: Sizes) -> NetworkTables:
            return network_tables(new.platform, procs, per_node, sizes)

        if key not in self._recorded:
            # To save memory, only the latest recording with shortcuts and the latest without shortcuts are kept.
            others = {old: cases for old, cases in self._recorded.items() if old[0] != exact}
            live = LiveCases(self._cases, node_of.__getitem__, self._jobs, exact)
            self._recorded = {**others, key: live}
        times = self._recorded[key].times(tables_for, every)
        state = self._without_times.copy()
        seconds, widths = np.full(state.shape, np.nan), np.full(state.shape, np.nan)
        seconds[self._place], widths[self._place] = times.seconds, times.errors
        state[np.isfinite(seconds)] = State.TIMED
        values = {"seconds": seconds, "half_width_seconds": widths, "state": state}
        return Times.of_values(self.grid, values, new.platform.name, "simulated", SCHEDULE.name)


def largest_error(times: Times) -> float:
    """The largest relative error of a time."""
    return float(np.nanmax((times.half_widths / times.seconds).values, initial=0.0))
