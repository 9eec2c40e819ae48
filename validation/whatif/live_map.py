"""A map of one collective that follows changes of its platform within a fraction of a second."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from collwise.algorithms.catalogue import Catalogue
from collwise.models.piecewise import Array
from collwise.models.switch_points import Indices, fastest, picked_seconds
from collwise.platforms import HostPlatform
from collwise.platforms.changes import Change, changed
from collwise.simulator.schedule.live import LiveCases
from collwise.simulator.schedule.networks import network_tables
from collwise.simulator.schedule.shared import NodeOf, Sizes
from collwise.simulator.schedule.tables import NetworkTables
from collwise.validation.times.choice import Choice
from collwise.validation.times.grid import CaseGrid, choice_of


@dataclass(frozen=True)
class LiveView:
    """The times of a map's candidates on a changed platform, shape (candidates, P, m), and the fastest ones.

    A time is nan where a candidate does not exist, or takes longer than the fastest one and was not timed. Those within
    2 % of the fastest are always timed. `errors` are the seconds by which times may be wrong that were not played
    exactly (simulator/schedule/live.py).
    """

    platform: HostPlatform
    seconds: Array
    errors: Array
    best: Indices

    @property
    def best_seconds(self) -> Array:
        """The time of the fastest candidate at each point, nan where there is none."""
        return picked_seconds(self.seconds, self.best)

    @property
    def largest_error(self) -> float:
        """The largest error of a time, relative to it."""
        return float(np.nanmax(self.errors / self.seconds, initial=0.0))


class LiveMap:
    """The candidates of a grid, recorded once, and their times on any change of a platform, by the schedule engine."""

    def __init__(self, platform: HostPlatform, grid: CaseGrid, jobs: int | None = None) -> None:
        """Records the cases. Raises UsageError for platform XML and points that do not fit on the platform."""
        self.platform, self.grid = platform, grid
        self._jobs = jobs
        self._recorded: dict[tuple[object, ...], LiveCases] = {}
        self._cases = grid.cases()
        labels = {choice: index for index, choice in enumerate(grid.candidates.values())}
        place = [
            (labels[choice_of(case)], grid.procs.index(case.procs), grid.message_bytes.index(case.message_bytes))
            for case in self._cases
        ]
        self._place = tuple(np.array(place, dtype=int).reshape(-1, 3).T)
        self._by_node = any(Catalogue.load().algorithm(grid.collective, name).by_node for name in grid.names)
        self.base = self.on((), every=True)
        for recorded in self._recorded.values():
            recorded.find_parts()

    @property
    def choices(self) -> list[Choice]:
        """The candidates, in the order of the indices."""
        return list(self.grid.candidates.values())

    def on(self, changes: Sequence[Change], every: bool = False) -> LiveView:
        """The times on the changed platform, on request of every candidate, also of those that are clearly slower.

        Raises UsageError for changes that cannot be made.
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
            # Only the latest two are kept, for memory: with and without shortcuts.
            others = {old: cases for old, cases in self._recorded.items() if old[0] != exact}
            live = LiveCases(self._cases, node_of.__getitem__, self._jobs, exact, tables_for)
            self._recorded = {**others, key: live}
        times = self._recorded[key].times(tables_for, every)
        shape = (len(self.grid.candidates), len(self.grid.procs), len(self.grid.message_bytes))
        seconds, errors = np.full(shape, np.nan), np.zeros(shape)
        seconds[self._place], errors[self._place] = times.seconds, times.errors
        return LiveView(new.platform, seconds, errors, fastest(seconds))
