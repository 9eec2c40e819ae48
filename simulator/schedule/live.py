"""Times of many cases at once, computed again whenever the network changes, for maps that follow a slider.

The cases are recorded once. On each further network only the cases that may be the fastest of their P and size are
played (live_groups.py). The most expensive cases are not played at all:

- Uneven blocks: If a message is not a multiple of P doubles, its blocks differ by an element, so that the processes of
  a ring differ as well. The case gets the time of the next multiple, for which all processes do the same. Its error is
  the time that another P doubles add, at least 0.2 %, since unequal sizes share ports slightly differently.
- Long pipelines: The times of three short pipelines show how long each further period takes. They give two values; the
  error, at least 1 %, is the difference of these, or, if that is larger, the time by which the busiest process or port
  takes longer than the values suggest. Unlike in pipelines.py, comparisons of times are not checked. In trees of
  reductions, a child runs ahead of the others for up to hundreds of segments before it waits for them, and then the
  rate changes. The short pipelines of reductions are therefore longer, and if the error is larger than 1 %, the whole
  pipeline is played.

benchmarks/whatif_map.py compares both approximations with exact times. All other times are exact, and equal those of
`play_case`. On nodes that differ or have several processes each, and over links between switches, all times are exact,
since processes rarely do the same there, and pipelines reach their final rates late.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TypeVar

import numpy as np

from collwise.algorithms.catalogue import ELEMENT_BYTES
from collwise.simulator.schedule.library import Schedule
from collwise.simulator.schedule.live_groups import Group, LiveTimes, Terms
from collwise.simulator.schedule.pipelines import bytes_a_step, sizes_after
from collwise.simulator.schedule.shared import NodeOf, Sizes, recorded
from collwise.simulator.schedule.tables import NetworkTables
from collwise.simulator.timing import Case

TablesFor = Callable[[int, Sizes], NetworkTables]  # the tables of a network for a process count and message sizes
_Found = TypeVar("_Found")
_PERIOD = 8  # The segments of a period. The three short pipelines differ by whole periods.
_PERIODS_BEFORE = 3  # the number of periods in the shortest pipeline, other than in trees of reductions
# The periods in the shortest pipeline of a tree of reductions; each further pipeline is twice as long as the one
# before. The first number is for trees that are played whole if their rate is not even, the second for trees that are
# too long to be played whole.
_PERIODS_OF_REDUCTIONS, _PERIODS_OF_LONG_REDUCTIONS = 4, 32
_LONG = 256  # trees of reductions with this many periods are never played whole
_LONGER = 2  # the factor by which a pipeline must be longer than the short ones; otherwise it is played whole
_FEW_MESSAGES = 500  # schedules of at most this many messages are played as they are
# The smallest relative error of a time that is not exact, for uneven blocks and for long pipelines.
_UNEVEN, _PIPELINE = 0.002, 0.01


class LiveCases:
    """Recorded cases; one call of `times` computes the times of all of them on any network."""

    def __init__(
        self,
        cases: Sequence[Case],
        node_of: Callable[[int], NodeOf],
        jobs: int | None = None,
        exact: bool = False,
    ) -> None:
        """Records the cases; `node_of` gives the node of each process for a process count.

        `jobs` is the number of threads, by default one per core; `exact` plays every case whole.
        """
        self._jobs = jobs or os.cpu_count() or 1
        self._groups: defaultdict[int, Group] = defaultdict(Group)
        self._node_of, self._exact = node_of, exact
        self._count = len(cases)
        self._with_reductions = any(case.entry.reduces for case in cases)
        # Cases of one algorithm and process count share recordings, of which few are kept.
        order = sorted(range(len(cases)), key=lambda number: (cases[number].procs, cases[number].algorithm))
        uneven: dict[Case, dict[int, int]] = {}
        rounded: list[tuple[int, Case, int]] = []
        for number in order:
            case = cases[number]
            units = self._rounded_units(case)
            if units:
                without_size = replace(case, message_bytes=0)
                uneven.setdefault(without_size, {})[units] = self._play_units(case, units)
                rounded.append((number, without_size, units))
            else:
                self._groups[case.procs].add(number, case, self._terms(case))
        for number, without_size, units in rounded:
            case = cases[number]
            self._groups[case.procs].add(number, case, self._rounded_terms(case, units, uneven[without_size]))
        for group in self._groups.values():
            group.finish()

    def times(self, tables_for: TablesFor, every: bool = False) -> LiveTimes:
        """The times, on a network, of all cases that may be the fastest for their size and P.

        Other times may be nan, unless this is the first network or `every` is true. Unless the cases were recorded with
        `exact`, the network's nodes must be equal and at one switch, with one process each.
        """
        found = self._in_groups(lambda procs, group: group.times(tables_for(procs, group.all_sizes), every))
        seconds, errors = np.full(self._count, np.nan), np.zeros(self._count)
        for group, times in found:
            seconds[group.cases], errors[group.cases] = times.seconds, times.errors
        return LiveTimes(seconds, errors)

    def find_parts(self) -> None:
        """Makes later calls of `times` faster; takes two to three times as long as the first call of `times`."""
        self._in_groups(lambda procs, group: group.find_parts(self._with_reductions))

    def _in_groups(self, what: Callable[[int, Group], _Found]) -> list[tuple[Group, _Found]]:
        """The results of `what` for each process count and its group, computed on all threads."""
        # The longest work first, so that all threads end at about the same time.
        groups = sorted(self._groups.items(), reverse=True)
        with ThreadPoolExecutor(self._jobs) as pool:
            found = pool.map(lambda item: what(*item), groups)
            return [(group, one) for (_, group), one in zip(groups, found, strict=True)]

    def _terms(self, case: Case) -> Terms:
        """The terms of a case whose message size is not rounded."""
        group, node_of = self._groups[case.procs], self._node_of(case.procs)
        found = None if self._exact else self._short_pipelines(case, group, node_of)
        return found or Terms([group.position(*recorded(case, node_of))])

    def _play_units(self, case: Case, units: int) -> int:
        """The position of the play of the case with a message of `units` times P doubles."""
        even = replace(case, message_bytes=units * ELEMENT_BYTES * case.procs)
        return self._groups[case.procs].position(*recorded(even, self._node_of(case.procs)))

    def _rounded_units(self, case: Case) -> int:
        """The multiple of P doubles that stands for a case with uneven blocks; 0 if the case itself is played."""
        unit_bytes = ELEMENT_BYTES * case.procs
        if self._exact or case.message_bytes % unit_bytes == 0 or _short_lengths(case):
            return 0
        node_of = self._node_of(case.procs)
        schedule, _ = recorded(case, node_of)
        if schedule.messages <= _FEW_MESSAGES or 2 * schedule.programs <= case.procs:
            return 0
        units = -(-case.message_bytes // unit_bytes)
        above, _ = recorded(replace(case, message_bytes=units * unit_bytes), node_of)
        return units if 2 * above.programs <= case.procs else 0

    def _rounded_terms(self, case: Case, units: int, plays: Mapping[int, int]) -> Terms:
        """The terms of a case with uneven blocks; `plays` maps `units` of each size to the position of its play."""
        others = sorted(plays.keys() - {units}, key=lambda other: (other < units, abs(other - units)))
        # If there is no other size, the next multiple below shows how much one multiple adds; for the first multiple,
        # the second one does.
        other = others[0] if others else (units - 1 if units > 1 else 2)
        there = plays[other] if others else self._play_units(case, other)
        slope = 1 / (other - units)
        return Terms([plays[units], there], [1.0, 0.0], [-slope, slope], _UNEVEN, (units - 1) / units)

    @staticmethod
    def _short_pipelines(case: Case, group: Group, node_of: NodeOf) -> Terms | None:
        """The terms of a pipeline of many segments; None for other cases."""
        lengths = _short_lengths(case)
        if lengths is None:
            return None
        period_bytes, periods = _PERIOD * bytes_a_step(case), _periods(case)
        rest = case.message_bytes - periods * period_bytes
        schedules = [Schedule(replace(case, message_bytes=rest + n * period_bytes), node_of) for n in lengths]
        sizes = sizes_after(schedules, lengths, periods)
        if sizes is None:
            return None
        shortest, middle, longest = lengths
        late, early = (periods - longest) / (longest - middle), (periods - longest) / (middle - shortest)
        first, second, third = (group.position(schedule, sizes) for schedule in schedules)
        weights, error_weights = (1 + late, -late, 0.0), (late, -late - early, early)
        whole = group.position(*recorded(case, node_of)) if shortest == _PERIODS_OF_REDUCTIONS else None
        return Terms([third, second, first], weights, error_weights, _PIPELINE, whole=whole)


def _periods(case: Case) -> int:
    """The number of whole periods of a pipeline; 0 for other cases."""
    period_bytes = _PERIOD * bytes_a_step(case)
    return 0 if period_bytes == 0 or case.entry.by_node else case.message_bytes // period_bytes


def _short_lengths(case: Case) -> tuple[int, int, int] | None:
    """The lengths, in periods, of three short pipelines that stand for a long one; None for other cases."""
    periods, topology = _periods(case), case.entry.topology
    if case.collective != "reduce" or topology == "chain":
        lengths = (_PERIODS_BEFORE, _PERIODS_BEFORE + 1, _PERIODS_BEFORE + 2)
        return lengths if periods >= _LONGER * _PERIODS_BEFORE else None
    # Senders of two trees wait for answers, so the rate may change late, whichever process or port is busy.
    shortest = _PERIODS_OF_REDUCTIONS
    if periods >= _LONG:
        shortest = _PERIODS_OF_LONG_REDUCTIONS
    elif topology == "two_tree" or periods < _LONGER * 4 * shortest:
        return None
    return shortest, 2 * shortest, 4 * shortest
