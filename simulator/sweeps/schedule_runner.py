"""The runner for the schedule engine: records each case and plays it, in threads of this process."""

from __future__ import annotations

import collections
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial

from collwise.algorithms.catalogue_check import TREES
from collwise.common.errors import CollwiseError
from collwise.platforms import HostPlatform
from collwise.simulator.execution.installations import file_digest
from collwise.simulator.limits import check_message_sizes
from collwise.simulator.schedule.contest import contest_of, hold_contests
from collwise.simulator.schedule.library import LibraryDecisions, Schedule, ended_by, library_file
from collwise.simulator.schedule.networks import network_tables, unknown_to_smpi
from collwise.simulator.schedule.pipelines import KnownPlay, begins_longer, min_seconds, play_case_within
from collwise.simulator.schedule.shared import uncut
from collwise.simulator.schedule.tasks import is_of_tasks, time_tasks
from collwise.simulator.sweeps.runner import DividedRunner, Keep, Part, Pool, Stop
from collwise.simulator.sweeps.smpi_runner import cost_of, topologies_of
from collwise.simulator.timing import Case, Configuration, Timing, is_mock_up

# In patterns without a tree all processes do the same, and a message takes about this part of the time of others.
_EVEN_PATTERN = 1 / 16
_FEW_MESSAGES = 10_000  # playing a case with at most this many messages takes about as long as finding its bound
# A message takes this much over ports. Sizes of one contest are played at a time only if they fit into the memory.
_MESSAGE_BYTES = 128
# The least number of parts per slot, if there are enough cases. Many parts shorten the wait for the last one.
_PARTS_PER_SLOT = 32
# A part with this many messages takes a few seconds, so it is worth sending to another machine.
_PART_MESSAGES = 4_000_000


class ScheduleRunner(DividedRunner):
    """Schedules recorded from the algorithms' code, played over the platform's ports and links."""

    def __init__(
        self,
        platform: HostPlatform,
        pool: Pool | None = None,
        library: LibraryDecisions | None = None,
        like_smpi: bool = False,
    ) -> None:
        """`library` is needed for mock-ups only; `like_smpi` applies SMPI's rules where ours differ."""
        super().__init__(pool)
        self.platform = platform
        self._library = library
        self._like_smpi = like_smpi
        self._unknown_to_smpi = unknown_to_smpi(platform)
        self._places = cache(platform.places)
        self._tolerances: Mapping[str, float] = {}
        self._known: Mapping[Case, Timing] = {}

    def __reduce__(self) -> tuple[object, ...]:
        """The arguments and the tolerances of a copy; each part carries the known times it needs."""
        made_from = (self.platform, None, self._library, self._like_smpi)
        return ScheduleRunner, made_from, {"_tolerances": self._tolerances}

    def choose_within(self, tolerances: Mapping[str, float], known: Mapping[Case, Timing]) -> None:
        """Makes the runner leave out cases that no choice needs, for the collectives in `tolerances`.

        Such cases are slower than the fastest case with the same P and m by more than the tolerance (0.01: 1 %).
        `known` has times that were made before.
        """
        self._tolerances, self._known = tolerances, known

    @property
    def configuration(self) -> Configuration:
        """The configuration that the times depend on besides the case."""
        details = {
            "platform_digest": self.platform.digest(),
            "program_digest": file_digest(library_file()),
            **self._unknown_to_smpi,
            **(self._library.details if self._library is not None else {}),
            **({"rules": "smpi"} if self._like_smpi else {}),
        }
        return Configuration("simulated", self.platform.name, "schedule engine", tuple(sorted(details.items())))

    def weight(self, case: Case) -> float:
        """The approximate number of messages, weighted by the time that playing one takes."""
        is_tree = bool(topologies_of(case.collective, case.algorithm) & TREES)
        return cost_of(case) * (1 if is_tree else _EVEN_PATTERN)

    def parts(self, cases: Sequence[Case], slots: int) -> Sequence[Part]:
        """Parts with contests, and parts with groups of cases that may share schedules."""
        check_message_sizes(cases)
        for procs, processes_per_node in {(case.procs, case.processes_per_node) for case in cases}:
            self.platform.hosts_for(procs, processes_per_node)
        contests, others = collections.defaultdict(list), []
        for case in sorted(cases, key=cost_of):
            if case.collective in self._tolerances:
                contests[replace(contest_of(case), message_bytes=0)].append(case)
            else:
                others.append(case)
        found = [Part(group) for group in _bundled(_alike(others), slots)]
        known: dict[Case, dict[Case, float]] = collections.defaultdict(dict)
        for case, timing in self._known.items():
            if case.collective in self._tolerances:
                known[contest_of(case)][case] = timing.seconds
        # The longest first, so that no core waits for another at the end.
        for group in sorted(_shares(list(contests.values()), slots), key=lambda group: group[0].procs, reverse=True):
            found.append(Part(group, {item: known[item] for item in set(map(contest_of, group)) if item in known}))
        return found

    def make_part(self, part: Part, keep: Keep, stop: Stop) -> int:
        """Times the cases in this process."""

        def keep_whole(timing: Timing) -> None:
            # Recordings and plays that were stopped fail.
            if timing.ok or not stop.is_set():
                keep(timing)

        with ended_by(stop.flag):
            if part.cases[0].collective in self._tolerances:
                self._choose(part, keep_whole, stop)
            else:
                for group in _alike(part.cases):
                    self._time(group, keep_whole, stop)
        return 0

    def timing(self, case: Case, known: list[KnownPlay] | None = None) -> Timing:
        """The timing of one case, with an error if it cannot be played; a play in `known` is not repeated."""
        found = self._timing(case, known)
        assert found is not None
        return found

    def _choose(self, part: Part, keep: Keep, stop: Stop) -> None:
        """Times the cases of one collective and P that a choice may need; cases of a single segment share a play."""
        whole: dict[Case, Timing | None] = {}
        paces: dict[Case, float] = {}

        def play(case: Case, max_seconds: float) -> float | None:
            if stop.is_set():
                return None
            same = uncut(case) or case
            if same not in whole:
                whole[same] = self._timing(case, None, max_seconds, paces)
            timing = whole[same]
            if timing is None:
                return None
            keep(replace(timing, case=case))
            return timing.seconds if timing.ok else None

        hold_contests(part.cases, play, self._tolerances[part.cases[0].collective], part.known)

    def _time(self, cases: Sequence[Case], keep: Keep, stop: Stop) -> None:
        """Times cases of the same topologies, P and message size; equal schedules are played once."""
        known: list[KnownPlay] = []
        for case in cases:
            if stop.is_set():
                return
            keep(self.timing(case, known))

    def _timing(
        self,
        case: Case,
        known: list[KnownPlay] | None,
        max_seconds: float = math.inf,
        paces: dict[Case, float] | None = None,
    ) -> Timing | None:
        """The timing of a case, with an error if it cannot be played; None if it exceeds `max_seconds`."""
        tables = partial(network_tables, self.platform, case.procs, case.processes_per_node, like_smpi=self._like_smpi)
        places = self._places(case.procs, case.processes_per_node)
        try:
            if is_of_tasks(case):
                return time_tasks(case, tables, places)
            if is_mock_up(case):
                # What the library runs, and so the schedule, changes with the message's size.
                schedule = Schedule(case, places, self._library)
                alone = schedule.play(tables(schedule.sizes))
                return Timing(case, alone.seconds, alone.root_seconds)
            messages = cost_of(case)
            if max_seconds < math.inf and messages > _FEW_MESSAGES:
                if min_seconds(case, tables, places) > max_seconds:
                    return None
                if begins_longer(case, tables, max_seconds, messages, places, paces):
                    return None
            played = play_case_within(case, tables, max_seconds, known, places)
        except CollwiseError as problem:
            return Timing(case, float("nan"), error=str(problem))
        return None if played is None else Timing(case, played.seconds, played.root_seconds)


def _alike(cases: Iterable[Case]) -> list[list[Case]]:
    """The cases in groups of the same topologies, P and message size, which may have equal schedules."""
    groups = collections.defaultdict(list)
    for case in cases:
        topologies = ", ".join(sorted(topologies_of(case.collective, case.algorithm)))
        groups[replace(case, collective="", algorithm=topologies, segment_bytes=0)].append(case)
    return list(groups.values())


def _bundled(groups: Iterable[Sequence[Case]], slots: int) -> Iterator[list[Case]]:
    """Joins successive groups as long as their messages together do not exceed a limit."""
    weighed = [(sum(map(cost_of, group)), group) for group in groups]
    most = min(_PART_MESSAGES, sum(weight for weight, _ in weighed) // (_PARTS_PER_SLOT * slots))
    bundle: list[Case] = []
    messages = 0.0
    for weight, group in weighed:
        if bundle and messages + weight > most:
            yield bundle
            bundle, messages = [], 0.0
        bundle += group
        messages += weight
    if bundle:
        yield bundle


def _shares(contests: Sequence[Sequence[Case]], slots: int) -> list[Sequence[Case]]:
    """The contests; one with over half of a slot's work is split into shares, to which its sizes are dealt in turn."""
    import psutil  # imported here, since a command's help does not need it

    most = psutil.virtual_memory().available / _MESSAGE_BYTES
    weights = [sum(map(cost_of, contest)) for contest in contests]
    found: list[Sequence[Case]] = []
    for contest, weight in zip(contests, weights, strict=True):
        longest: dict[int, float] = {}
        for case in contest:
            longest[case.message_bytes] = max(longest.get(case.message_bytes, 0), cost_of(case))
        sizes = sorted(longest, reverse=True)
        is_long = 2 * slots * weight > sum(weights)
        at_once = sum(total <= most for total in itertools.accumulate(longest[size] for size in sizes))
        count = max(1, min(slots, at_once)) if is_long else 1
        found += [[case for case in contest if case.message_bytes in sizes[i::count]] for i in range(count)]
    return found
