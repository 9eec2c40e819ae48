"""Times of many cases at once, computed again whenever the network changes: maps that follow a slider.

The cases are recorded once. For each network their schedules are played by one call for each process count, and what
costs most is not played:

- Blocks of a message that is no multiple of P doubles differ by an element, so that the processes of a ring differ,
  too. Such a case takes between the times of the next multiples below and above, whose processes are alike. It gets the
  time of the one above; its error is what another multiple of P doubles adds, on average up to the next size.
- A pipeline of many segments takes as much longer with each further period as three short ones show; its error is what
  their differences differ by, for all periods that are left out. Unlike pipelines.py no comparison of times is made.
  In trees of reductions a child runs ahead of the others for hundreds of segments before it waits for them, and the
  rate changes; the short pipelines are therefore longer there.

The first have an error of 0.2 % at least, since messages of unequal size share ports a little otherwise than equal
ones, the second one of 1 %: a pipeline may have found its rate only nearly. benchmarks/whatif_map.py compares both with
exact times. All other times are exact: those of `play_case`. So are all on nodes that differ or have several processes
each, and over links between switches, where processes are rarely alike, and pipelines find their rates late.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from ctypes import POINTER, c_char_p, c_double, c_size_t, c_void_p
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
import numpy.typing as npt

from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import CollwiseError
from collwise.simulator.schedule.library import Doubles, NetworkTables, Schedule, load_library
from collwise.simulator.schedule.pipelines import Sizes, bytes_a_step, sizes_after
from collwise.simulator.schedule.shared import NodeOf, recorded
from collwise.simulator.timing import Case

TablesFor = Callable[[int, Sizes], NetworkTables]
"""The tables of a network for a process count and message sizes."""

_PERIOD = 8
"""Segments by which the three short pipelines differ."""

_PERIODS_BEFORE, _PERIODS_BEFORE_IN_TREES_OF_REDUCTIONS = 3, 128
"""The least number of such periods in the shortest."""

_LONGER = 2
"""Pipelines that are not as many times as long as the shortest are played whole."""

_FEW_MESSAGES = 500
"""Schedules of so few messages are played as they are."""

_UNEVEN, _PIPELINE = 0.002, 0.01
"""The least error of a time that is not exact, relative to the time: of uneven blocks, and of long pipelines."""

_ELEMENT_BYTES = 8
_PROBLEM_BYTES = 200


@dataclass(frozen=True)
class LiveTimes:
    """The seconds of each case, and by how many seconds at most each may be wrong; 0 where they are exact."""

    seconds: Doubles
    errors: Doubles


@dataclass
class _Group:
    """The plays of one process count: schedules with their sizes, and where those of each are among all sizes."""

    schedules: list[Schedule] = field(default_factory=list)
    sizes: list[Sizes] = field(default_factory=list)
    position_of: dict[tuple[int, int, bytes], list[int]] = field(default_factory=dict)
    every_size: Sizes = field(default_factory=lambda: np.zeros(0, np.uint64))
    columns: list[npt.NDArray[np.uint32]] = field(default_factory=list)

    def position(self, schedule: Schedule, sizes: Sizes) -> int:
        """The position of a play among those of the group, which equal schedules share."""
        alike = self.position_of.setdefault((schedule.messages, schedule.programs, sizes.tobytes()), [])
        for position in alike:
            if self.schedules[position] is schedule or self.schedules[position].equals(schedule):
                return position
        alike.append(len(self.schedules))
        self.schedules.append(schedule)
        self.sizes.append(sizes)
        return alike[-1]

    def finish(self) -> None:
        """Finds the columns of each schedule's sizes."""
        self.every_size = np.unique(np.concatenate([*self.sizes, np.zeros(0, np.uint64)]))
        self.columns = [np.searchsorted(self.every_size, sizes).astype(np.uint32) for sizes in self.sizes]

    def play(self, tables_for: TablesFor) -> Doubles:
        """The seconds of all plays. Raises CollwiseError if one fails."""
        structure, alive = tables_for(self.schedules[0].procs, self.every_size)._structure()
        count = len(self.schedules)
        seconds = np.zeros(count)
        problem = ctypes.create_string_buffer(_PROBLEM_BYTES)
        _library().schedule_play_batch(
            count,
            (c_void_p * count)(*(schedule.address for schedule in self.schedules)),
            (c_void_p * count)(*(one.ctypes.data for one in self.columns)),
            ctypes.byref(structure),
            len(self.every_size),
            seconds.ctypes.data_as(POINTER(c_double)),
            problem,
            _PROBLEM_BYTES,
        )
        del alive
        if problem.value:
            raise CollwiseError(problem.value.decode())
        return seconds


_MOST_TERMS = 3

_Terms = Sequence[tuple[int, float, float]]
"""Plays by position, with their weights in a case's time and in its error: one where the time is exact, two for uneven
blocks, three for a long pipeline."""


class LiveCases:
    """Recorded cases, whose times on any network follow in one call of `times`."""

    def __init__(
        self, cases: Sequence[Case], node_of: Callable[[int], NodeOf], jobs: int | None = None, exact: bool = False
    ) -> None:
        """Records the cases; `node_of` gives the node of each process for a process count.

        `jobs` is the number of threads, by default one per core; `exact` plays every case whole. Raises UsageError if
        an algorithm does not run on its case.
        """
        self._jobs = jobs or os.cpu_count() or 1
        self._groups: dict[int, _Group] = {}
        self._node_of, self._exact = node_of, exact
        shape = (len(cases), _MOST_TERMS)
        self._procs = np.array([case.procs for case in cases])
        self._plays, self._weights, self._error_weights = np.zeros(shape, np.intp), np.zeros(shape), np.zeros(shape)
        self._least_errors = np.zeros(len(cases))
        # Cases of one algorithm and process count share recordings, of which few are kept.
        order = sorted(range(len(cases)), key=lambda number: (cases[number].procs, cases[number].algorithm))
        uneven: dict[Case, dict[int, int]] = {}
        rounded: list[tuple[int, Case, int]] = []
        for number in order:
            case = cases[number]
            units = self._rounded_units(case)
            if units:
                every_size = replace(case, message_bytes=0)
                uneven.setdefault(every_size, {})[units] = self._play_units(case, units)
                rounded.append((number, every_size, units))
            else:
                self._set_terms(number, self._terms(case))
        for number, every_size, units in rounded:
            self._set_terms(number, self._rounded_terms(cases[number], units, uneven[every_size]))
        for group in self._groups.values():
            group.finish()

    @property
    def plays(self) -> int:
        """The number of schedules that are played for each network."""
        return sum(len(group.schedules) for group in self._groups.values())

    @property
    def messages(self) -> int:
        """The number of messages of these schedules."""
        return sum(schedule.messages for group in self._groups.values() for schedule in group.schedules)

    @property
    def memory_bytes(self) -> int:
        """The memory that their recordings take."""
        return sum(one.memory_bytes for group in self._groups.values() for one in {*group.schedules})

    def times(self, tables_for: TablesFor) -> LiveTimes:
        """The times of all cases on a network.

        Unless all cases are exact, its nodes are alike and at one switch, with one process each. Raises CollwiseError
        if one fails.
        """
        # The longest work first, so that all threads end at about the same time.
        groups = sorted(self._groups.items(), reverse=True)
        with ThreadPoolExecutor(self._jobs) as pool:
            played = pool.map(lambda item: item[1].play(tables_for), groups)
            seconds_of = {procs: seconds for (procs, _), seconds in zip(groups, played, strict=True)}
        terms = np.zeros(self._plays.shape)
        for procs, seconds in seconds_of.items():
            mine = self._procs == procs
            terms[mine] = seconds[self._plays[mine]]
        found, errors = (terms * self._weights).sum(axis=1), np.abs((terms * self._error_weights).sum(axis=1))
        return LiveTimes(found, np.maximum(errors, self._least_errors * found))

    def _set_terms(self, number: int, terms: _Terms) -> None:
        self._least_errors[number] = (0.0, 0.0, _UNEVEN, _PIPELINE)[len(terms)]
        for at, (play, weight, error_weight) in enumerate(terms):
            self._plays[number, at] = play
            self._weights[number, at], self._error_weights[number, at] = weight, error_weight

    def _terms(self, case: Case) -> _Terms:
        """The terms of a case whose blocks are played as they are."""
        group, node_of = self._groups.setdefault(case.procs, _Group()), self._node_of(case.procs)
        found = None if self._exact else self._short_pipelines(case, group, node_of)
        return found or [(group.position(*recorded(case, node_of)), 1.0, 0.0)]

    def _play_units(self, case: Case, units: int) -> int:
        """The position of the play of the case with so many times P doubles."""
        even = replace(case, message_bytes=units * _ELEMENT_BYTES * case.procs)
        group = self._groups.setdefault(case.procs, _Group())
        return group.position(*recorded(even, self._node_of(case.procs)))

    def _rounded_units(self, case: Case) -> int:
        """The multiple of P doubles that stands for a case with uneven blocks; 0 if it is played as it is."""
        unit_bytes = _ELEMENT_BYTES * case.procs
        if self._exact or case.message_bytes % unit_bytes == 0 or _periods(case):
            return 0
        node_of = self._node_of(case.procs)
        schedule, _ = recorded(case, node_of)
        if schedule.messages <= _FEW_MESSAGES or 2 * schedule.programs <= case.procs:
            return 0
        units = -(-case.message_bytes // unit_bytes)
        above, _ = recorded(replace(case, message_bytes=units * unit_bytes), node_of)
        return units if 2 * above.programs <= case.procs else 0

    def _rounded_terms(self, case: Case, units: int, plays: Mapping[int, int]) -> _Terms:
        """The terms of a case with uneven blocks; `plays` are those of all sizes by units."""
        others = sorted(plays.keys() - {units}, key=lambda other: (other < units, abs(other - units)))
        # Where it is the only size the next multiple below says how much one adds, or the second one.
        other = others[0] if others else (units - 1 if units > 1 else 2)
        there = plays[other] if others else self._play_units(case, other)
        slope = 1 / (other - units)
        return [(plays[units], 1.0, -slope), (there, 0.0, slope)]

    @staticmethod
    def _short_pipelines(case: Case, group: _Group, node_of: NodeOf) -> _Terms | None:
        """The terms of a pipeline of many segments; None for other cases."""
        periods = _periods(case)
        if not periods:
            return None
        period_bytes = _PERIOD * bytes_a_step(case)
        shortest = case.message_bytes - periods * period_bytes
        schedules = [Schedule(replace(case, message_bytes=shortest + i * period_bytes), node_of) for i in range(3)]
        sizes = sizes_after(schedules, periods)
        if sizes is None:
            return None
        further = float(periods - 2)
        first, second, third = (group.position(schedule, sizes) for schedule in schedules)
        return [(third, 1 + further, further), (second, -further, -2 * further), (first, 0.0, further)]


def _periods(case: Case) -> int:
    """The periods by which a long pipeline is longer than the shortest that stands for it; 0 for other cases."""
    period_bytes = _PERIOD * bytes_a_step(case)
    if period_bytes == 0:
        return 0
    algorithm = Catalogue.load().algorithm(case.collective, case.algorithm)
    is_tree = case.collective == "reduce" and algorithm.topology != "chain"
    before = _PERIODS_BEFORE_IN_TREES_OF_REDUCTIONS if is_tree else _PERIODS_BEFORE
    whole = case.message_bytes // period_bytes
    return 0 if algorithm.by_node or whole < _LONGER * before else whole - before


@cache
def _library() -> ctypes.CDLL:
    library = load_library()
    library.schedule_play_batch.restype = None
    library.schedule_play_batch.argtypes = [
        c_size_t,
        POINTER(c_void_p),
        POINTER(c_void_p),
        c_void_p,
        c_size_t,
        POINTER(c_double),
        c_char_p,
        c_size_t,
    ]
    return library
