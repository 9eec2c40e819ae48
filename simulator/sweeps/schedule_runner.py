"""The runner for the schedule engine: records each case and plays it, in threads of this process."""

from __future__ import annotations

import concurrent.futures
import os
from collections.abc import Sequence

from collwise.common.errors import CollwiseError
from collwise.platforms import HostPlatform
from collwise.simulator.execution.installations import file_digest
from collwise.simulator.schedule.library import LIBRARY, Schedule
from collwise.simulator.schedule.networks import network_tables
from collwise.simulator.sweeps.message_counts import cost_of
from collwise.simulator.sweeps.runner import Keep
from collwise.simulator.timing import Case, Configuration, Timing


class ScheduleRunner:
    """A Runner: schedules recorded from the algorithms' code, played over the platform's ports and links."""

    def __init__(self, platform: HostPlatform, jobs: int | None = None) -> None:
        """`jobs` is the number of cases at a time, by default one per core."""
        self.platform = platform
        self.processes_started = 0
        self._jobs = jobs or os.cpu_count() or 1

    @property
    def configuration(self) -> Configuration:
        """What the times depend on besides the case."""
        details = {"platform_digest": self.platform.digest(), "program_digest": file_digest(LIBRARY)}
        return Configuration("simulated", self.platform.name, "schedule engine", tuple(sorted(details.items())))

    def weight(self, case: Case) -> float:
        """The approximate number of messages."""
        return cost_of(case)

    def make(self, cases: Sequence[Case], keep: Keep) -> None:
        """Times the cases. Raises UsageError, before anything starts, when one does not fit on the platform."""
        for procs, processes_per_node in {(case.procs, case.processes_per_node) for case in cases}:
            self.platform.hosts_for(procs, processes_per_node)
        with concurrent.futures.ThreadPoolExecutor(max_workers=self._jobs) as pool:
            try:
                for timing in pool.map(self._time, sorted(cases, key=cost_of)):
                    keep(timing)
            except BaseException:
                pool.shutdown(wait=True, cancel_futures=True)
                raise

    def _time(self, case: Case) -> Timing:
        try:
            schedule = Schedule(case)
            played = schedule.play(network_tables(self.platform, case.procs, case.processes_per_node, schedule.sizes))
        except CollwiseError as problem:
            return Timing(case, float("nan"), error=str(problem))
        return Timing(case, played.seconds, played.root_seconds)
