"""The runner for the schedule engine: records each case and plays it, in threads of this process."""

from __future__ import annotations

import collections
import math
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from collwise.common.errors import CollwiseError
from collwise.platforms import HostPlatform
from collwise.simulator.execution.installations import file_digest
from collwise.simulator.schedule.contest import contest_of, hold_contests
from collwise.simulator.schedule.library import Schedule, library_file
from collwise.simulator.schedule.library_calls import LibraryDecisions
from collwise.simulator.schedule.networks import network_tables, ports_of, sockets_of
from collwise.simulator.schedule.pipelines import KnownPlay, least_seconds, play_case_within
from collwise.simulator.schedule.shared import uncut
from collwise.simulator.schedule.tasks import is_of_tasks, time_tasks
from collwise.simulator.sweeps.runner import Keep, Runner, run_concurrently
from collwise.simulator.sweeps.smpi_runner import cost_of, topologies_of
from collwise.simulator.timing import Case, Configuration, Timing, is_mock_up

_FEW_MESSAGES = 10_000
"""So many are played as soon as a bound of their time is found."""

_MOST_MESSAGES = 20_000_000
"""Of the cases of one contest that are played at a time, for their memory."""


class ScheduleRunner(Runner):
    """Schedules recorded from the algorithms' code, played over the platform's ports and links."""

    def __init__(
        self, platform: HostPlatform, jobs: int | None = None, library: LibraryDecisions | None = None
    ) -> None:
        """`jobs` is the number of cases at a time, by default one per core; `library` is needed for mock-ups only.

        Raises UsageError for platform XML.
        """
        self.platform = platform
        self._library = library
        self._ports = ports_of(platform)
        self._jobs = jobs or os.cpu_count() or 1
        self._stop = threading.Event()
        self._tolerances: Mapping[str, float] = {}
        self._known: Mapping[Case, Timing] = {}

    def choose_within(self, tolerances: Mapping[str, float], known: Mapping[Case, Timing]) -> None:
        """From now on of the cases of a collective in `tolerances` those are left out that no choice needs.

        These are cases that take longer than the fastest one with the same P and m by more than the tolerance (0.01:
        1 %). They are not played to their end. `known` has times that were made before.
        """
        self._tolerances, self._known = tolerances, known

    @property
    def configuration(self) -> Configuration:
        """The configuration that the times depend on besides the case."""
        details = {
            "platform_digest": self.platform.digest(),
            "program_digest": file_digest(library_file()),
            "ports": str(self._ports),
            "sockets": str(sockets_of(self.platform)),
            **(self._library.details if self._library is not None else {}),
        }
        return Configuration("simulated", self.platform.name, "schedule engine", tuple(sorted(details.items())))

    def weight(self, case: Case) -> float:
        """The approximate number of messages."""
        return cost_of(case)

    def make(self, cases: Sequence[Case], keep: Keep) -> None:
        """Times the cases. Raises UsageError, before anything starts, when one does not fit on the platform."""
        for procs, processes_per_node in {(case.procs, case.processes_per_node) for case in cases}:
            self.platform.hosts_for(procs, processes_per_node)
        alike, contests = collections.defaultdict(list), collections.defaultdict(list)
        for case in sorted(cases, key=cost_of):
            if case.collective in self._tolerances:
                contests[replace(contest_of(case), message_bytes=0)].append(case)
            else:
                topologies = ", ".join(sorted(topologies_of(case.collective, case.algorithm)))
                alike[replace(case, collective="", algorithm=topologies, segment_bytes=0)].append(case)
        known: dict[Case, dict[Case, float]] = collections.defaultdict(dict)
        for case, timing in self._known.items():
            if case.collective in self._tolerances:
                known[contest_of(case)][case] = timing.seconds
        tasks = [partial(self._time, group, keep) for group in alike.values()]
        # The longest first, so that no core waits for another at the end.
        for group in sorted(self._shares(list(contests.values())), key=lambda group: group[0].procs, reverse=True):
            tasks.append(partial(self._choose, group, known, keep))
        run_concurrently(tasks, self._jobs, self._stop)

    def _shares(self, contests: Sequence[Sequence[Case]]) -> list[Sequence[Case]]:
        """The contests, and of those that are more than half of a core's work every so many sizes apart."""
        weights = [sum(map(cost_of, contest)) for contest in contests]
        found: list[Sequence[Case]] = []
        for contest, weight in zip(contests, weights, strict=True):
            sizes = sorted({case.message_bytes for case in contest})
            is_long = 2 * self._jobs * weight > sum(weights)
            at_once = int(_MOST_MESSAGES / max(map(cost_of, contest)))
            count = max(1, min(self._jobs, len(sizes), at_once)) if is_long else 1
            found += [[case for case in contest if case.message_bytes in sizes[i::count]] for i in range(count)]
        return found

    def _choose(self, cases: Sequence[Case], known: Mapping[Case, Mapping[Case, float]], keep: Keep) -> None:
        """Times those cases of one collective and P that a choice may need.

        A message of one segment is played for one segment size, within the limit that the first one has.
        """
        whole: dict[Case, Timing | None] = {}

        def play(case: Case, most_seconds: float) -> float | None:
            if self._stop.is_set():
                return None
            same = uncut(case) or case
            if same not in whole:
                whole[same] = self._timing(case, None, most_seconds)
            timing = whole[same]
            if timing is None:
                return None
            keep(replace(timing, case=case))
            return timing.seconds if timing.ok else None

        hold_contests(cases, play, self._tolerances[cases[0].collective], known)

    def _time(self, cases: Sequence[Case], keep: Keep) -> None:
        """Times cases of the same topologies, P and message size; equal schedules are played once.

        Messages without a second segment make schedules equal, and so do blocks of one size, as of alltoall and
        alltoallv.
        """
        known: list[KnownPlay] = []
        for case in cases:
            if self._stop.is_set():
                return
            timing = self._timing(case, known)
            assert timing is not None
            keep(timing)

    def _timing(self, case: Case, known: list[KnownPlay] | None, most_seconds: float = math.inf) -> Timing | None:
        """The timing of a case, with an error if it cannot be played; None if it takes longer than that."""
        tables = partial(network_tables, self.platform, case.procs, case.processes_per_node)
        places = self.platform.places(case.procs, case.processes_per_node)
        try:
            if is_of_tasks(case):
                return time_tasks(case, tables, places)
            if is_mock_up(case):
                # What the library runs, and so the schedule, changes with the message's size.
                schedule = Schedule(case, places, self._library)
                alone = schedule.play(tables(schedule.sizes))
                return Timing(case, alone.seconds, alone.root_seconds)
            has_limit = most_seconds < math.inf and cost_of(case) > _FEW_MESSAGES
            if has_limit and least_seconds(case, tables) > most_seconds:
                return None
            played = play_case_within(case, tables, most_seconds, known, places)
        except CollwiseError as problem:
            return Timing(case, float("nan"), error=str(problem))
        return None if played is None else Timing(case, played.seconds, played.root_seconds)
