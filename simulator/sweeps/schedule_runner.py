"""The runner for the schedule engine: records each case and plays it, in threads of this process."""

from __future__ import annotations

import collections
import os
import threading
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from collwise.common.errors import CollwiseError
from collwise.platforms import HostPlatform
from collwise.simulator.execution.installations import file_digest
from collwise.simulator.schedule.library import LIBRARY
from collwise.simulator.schedule.networks import network_tables, ports_of
from collwise.simulator.schedule.pipelines import KnownPlay, play_case
from collwise.simulator.schedule.tasks import is_of_tasks, time_tasks
from collwise.simulator.sweeps.runner import Keep, Runner, run_concurrently
from collwise.simulator.sweeps.smpi_runner import cost_of
from collwise.simulator.timing import Case, Configuration, Timing


class ScheduleRunner(Runner):
    """Schedules recorded from the algorithms' code, played over the platform's ports and links."""

    def __init__(self, platform: HostPlatform, jobs: int | None = None) -> None:
        """`jobs` is the number of cases at a time, by default one per core. Raises UsageError for platform XML."""
        self.platform = platform
        self._ports = ports_of(platform)
        self._jobs = jobs or os.cpu_count() or 1
        self._stop = threading.Event()

    @property
    def configuration(self) -> Configuration:
        """The configuration that the times depend on besides the case."""
        details = {
            "platform_digest": self.platform.digest(),
            "program_digest": file_digest(LIBRARY),
            "ports": str(self._ports),
        }
        return Configuration("simulated", self.platform.name, "schedule engine", tuple(sorted(details.items())))

    def weight(self, case: Case) -> float:
        """The approximate number of messages."""
        return cost_of(case)

    def make(self, cases: Sequence[Case], keep: Keep) -> None:
        """Times the cases. Raises UsageError, before anything starts, when one does not fit on the platform."""
        for procs, processes_per_node in {(case.procs, case.processes_per_node) for case in cases}:
            self.platform.hosts_for(procs, processes_per_node)
        alike = collections.defaultdict(list)
        for case in sorted(cases, key=cost_of):
            alike[replace(case, collective="", segment_bytes=0)].append(case)
        run_concurrently([partial(self._time, group, keep) for group in alike.values()], self._jobs, self._stop)

    def _time(self, cases: Sequence[Case], keep: Keep) -> None:
        """Times cases that differ in the collective and segment size only; equal schedules are played once.

        Messages without a second segment make schedules equal, and so do blocks of one size, as of alltoall and
        alltoallv.
        """
        known: list[KnownPlay] = []
        for case in cases:
            if self._stop.is_set():
                return
            tables = partial(network_tables, self.platform, case.procs, case.processes_per_node)
            try:
                node_of = self.platform.positions(case.procs, case.processes_per_node)
                if is_of_tasks(case):
                    keep(time_tasks(case, tables, node_of))
                    continue
                played = play_case(case, tables, known, node_of)
            except CollwiseError as problem:
                keep(Timing(case, float("nan"), error=str(problem)))
            else:
                keep(Timing(case, played.seconds, played.root_seconds))
