"""The cases of one process count in a map that follows a slider: what is played of them on a network.

Of the cases of one message size, the choices, those that may be the fastest one are played. Bounds (bounds.py) follow
from the first network, on which all were played: the choice with the lowest bound is played first, then the others
whose bound is not clearly longer, each until it is longer than the fastest so far.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import POINTER, c_char_p, c_double, c_size_t, c_void_p
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import numpy.typing as npt

from collwise.common.errors import CollwiseError
from collwise.simulator.schedule.bounds import BYTES, LOCAL_WORK, Anchor, Columns
from collwise.simulator.schedule.contest import contest_of
from collwise.simulator.schedule.library import Doubles, NetworkTables, Schedule, load_library
from collwise.simulator.schedule.shared import Sizes
from collwise.simulator.timing import Case

NEAR = 0.02
"""Cases that take longer than the fastest one by no more than this share are always timed."""

_FAR = 8.0
"""The slowdown from which on only the time of a case is found, not its parts."""

_MOST_ANCHORS = 4
"""The networks from which bounds follow: the first one, and the latest on which the others gave none."""

LITTLE_WORK = 10_000
"""Messages, of processes that differ, that are played in less time than it takes to find out which ones are needed."""

_MOST_TERMS = 3

_PROBLEM_BYTES = 200


@dataclass(frozen=True)
class LiveTimes:
    """The seconds of each case, and by how many seconds at most each may be wrong; 0 where they are exact.

    They are nan for cases that are not timed since they take longer than others.
    """

    seconds: Doubles
    errors: Doubles


@dataclass(frozen=True)
class Terms:
    """Plays by position, with their weights in a case's time and in its error, and the least error relative to it.

    The case takes at least `first_share` of the time of its first play.
    """

    plays: Sequence[int]
    weights: Sequence[float] = (1.0,)
    error_weights: Sequence[float] = (0.0,)
    least_error: float = 0.0
    first_share: float = 1.0


@dataclass
class Group:
    """The cases of one process count, and the schedules with their sizes that are played for them."""

    schedules: list[Schedule] = field(default_factory=list)
    sizes: list[Sizes] = field(default_factory=list)
    every_size: Sizes = field(default_factory=lambda: np.zeros(0, np.uint64))
    columns: list[npt.NDArray[np.uint32]] = field(default_factory=list)
    cases: list[int] = field(default_factory=list)
    _position_of: dict[tuple[int, int, bytes], list[int]] = field(default_factory=dict)
    _contests: list[Case] = field(default_factory=list)
    _terms: list[Terms] = field(default_factory=list)
    _anchors: list[Anchor] = field(default_factory=list)

    def position(self, schedule: Schedule, sizes: Sizes) -> int:
        """The position of a play among those of the group, which equal schedules share."""
        alike = self._position_of.setdefault((schedule.messages, schedule.programs, sizes.tobytes()), [])
        for position in alike:
            if self.schedules[position] is schedule or self.schedules[position].equals(schedule):
                return position
        alike.append(len(self.schedules))
        self.schedules.append(schedule)
        self.sizes.append(sizes)
        return alike[-1]

    def add(self, number: int, case: Case, terms: Terms) -> None:
        """Adds a case."""
        self.cases.append(number)
        self._contests.append(contest_of(case))
        self._terms.append(terms)

    def finish(self) -> None:
        """Makes arrays of what was added."""
        self.every_size = np.unique(np.concatenate([*self.sizes, np.zeros(0, np.uint64)]))
        self.columns = [np.searchsorted(self.every_size, sizes).astype(np.uint32) for sizes in self.sizes]
        # Terms that a case does not have are its first play, with no weight.
        shape = (len(self._terms), _MOST_TERMS)
        self._plays, self._weights, self._error_weights = np.zeros(shape, np.intp), np.zeros(shape), np.zeros(shape)
        for number, terms in enumerate(self._terms):
            count = len(terms.plays)
            self._plays[number] = terms.plays[0]
            self._plays[number, :count] = terms.plays
            self._weights[number, :count], self._error_weights[number, :count] = terms.weights, terms.error_weights
        work = sum(one.messages * one.programs / one.procs for one in self.schedules)
        self._has_little_work = work < LITTLE_WORK
        self._least_errors = np.array([terms.least_error for terms in self._terms])
        with np.errstate(divide="ignore"):
            self._longest = (1 + NEAR) / np.array([terms.first_share for terms in self._terms])
        number_of = {contest: number for number, contest in enumerate(dict.fromkeys(self._contests))}
        self._point = np.array([number_of[contest] for contest in self._contests])
        self._case_columns = Columns.of((self.columns[play] for play in self._plays[:, 0]), len(self.every_size))

    def times(self, tables: NetworkTables, every: bool) -> LiveTimes:
        """The times on a network.

        They are those of every case if wanted, on the first network, with finite buffers, and if that is little work.
        """
        plays = _Plays(self, tables)
        if every or not self._anchors or tables.buffers is not None or self._has_little_work:
            plays.need(np.unique(self._plays))
            times = self._times(plays)
            if not self._anchors:
                self._first_seconds = times.seconds
                self._anchors.append(Anchor.without_parts(tables, times.seconds - times.errors))
            return times
        least = np.max([anchor.least_seconds(tables, self._case_columns) for anchor in self._anchors], axis=0)
        guess = np.where(least > 0, least, self._anchors[-1].seconds)
        longest, is_open = self._contest(plays, least, guess)
        times = self._times(plays)
        if not least.all():
            known = np.where(is_open, least, longest)
            known = np.where(np.isnan(times.seconds), known, times.seconds - times.errors)
            latest = self._anchors[1:][2 - _MOST_ANCHORS :]
            self._anchors = [self._anchors[0], *latest, Anchor.without_parts(tables, known)]
        return times

    def find_parts(self, with_reductions: bool) -> None:
        """Finds what the times on the first network consist of, for the cases that may be the fastest elsewhere."""
        first = self._anchors[0]
        if not np.isnan(first.parts).all() or first.tables.buffers is not None or self._has_little_work:
            return
        found = self._first_seconds
        best = np.full(len(found), np.inf)
        np.minimum.at(best, self._point, found)
        wanted = np.unique(self._plays[found <= _FAR * best[self._point]])
        slower: list[Doubles | None] = []
        for kind in range(BYTES):
            if not first.has(kind) or (kind == LOCAL_WORK and not with_reductions):
                slower.append(None)
                continue
            plays = _Plays(self, first.a_little_slower(kind))
            plays.need(wanted)
            slower.append(self._times(plays).seconds)
        self._anchors[0] = first.with_parts(found, slower)

    def _times(self, plays: _Plays) -> LiveTimes:
        terms = plays.seconds[self._plays]
        found, errors = (terms * self._weights).sum(axis=1), np.abs((terms * self._error_weights).sum(axis=1))
        return LiveTimes(found, np.maximum(errors, self._least_errors * found))

    def _contest(self, plays: _Plays, least: Doubles, guess: Doubles) -> tuple[Doubles, npt.NDArray[np.bool_]]:
        """Plays the cases that may be the fastest of their size.

        Returns what every case takes at least that was not found, and which ones were not begun.
        """
        order = np.lexsort((guess, self._point))
        best, is_open = np.full(len(self.cases), np.inf), np.ones(len(self.cases), dtype=bool)
        while True:
            may_win = is_open & (least <= best[self._point])
            waiting = order[may_win[order]]
            chosen = waiting[np.unique(self._point[waiting], return_index=True)[1]]
            if len(chosen) == 0:
                return (1 + NEAR) * best[self._point], is_open
            most = best[self._point[chosen]] * self._longest[chosen]
            plays.need(self._plays[chosen, 0], most)
            within = chosen[plays.seconds[self._plays[chosen, 0]] <= most]
            plays.need(self._plays[within].ravel())
            is_open[chosen] = False
            np.minimum.at(best, self._point[within], self._times(plays).seconds[within])


class _Plays:
    """The seconds of a group's plays on a network, nan until they are played."""

    def __init__(self, group: Group, tables: NetworkTables) -> None:
        self._group, self._tables = group, tables
        count = len(group.schedules)
        self.seconds = np.full(count, np.nan)
        self._longer_than = np.full(count, -np.inf)

    def need(self, plays: npt.NDArray[np.intp], most_seconds: Doubles | float = np.inf) -> None:
        """Plays what is not known yet; one that takes longer than its most seconds may stay nan.

        Raises CollwiseError if one fails.
        """
        most = np.full(len(self.seconds), -np.inf)
        np.maximum.at(most, plays, most_seconds)
        missing = np.flatnonzero(np.isnan(self.seconds) & (most > self._longer_than))
        if len(missing) == 0:
            return
        found = self._played(missing, most[missing])
        self._longer_than[missing] = most[missing]
        self.seconds[missing] = np.where(np.isfinite(found), found, np.nan)

    def _played(self, plays: npt.NDArray[np.intp], most_seconds: Doubles) -> Doubles:
        structure, alive = self._tables._structure()
        count, group = len(plays), self._group
        found = np.zeros(count)
        problem = ctypes.create_string_buffer(_PROBLEM_BYTES)
        _library().schedule_play_batch(
            count,
            (c_void_p * count)(*(group.schedules[play].address for play in plays)),
            (c_void_p * count)(*(group.columns[play].ctypes.data for play in plays)),
            ctypes.byref(structure),
            len(group.every_size),
            most_seconds.ctypes.data_as(POINTER(c_double)),
            found.ctypes.data_as(POINTER(c_double)),
            problem,
            _PROBLEM_BYTES,
        )
        del alive
        if problem.value:
            raise CollwiseError(problem.value.decode())
        return found


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
        POINTER(c_double),
        c_char_p,
        c_size_t,
    ]
    return library
