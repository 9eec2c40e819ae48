"""The cases of one process count in a map that follows a slider, and their plays on a network.

For each message size, only the choices that may be the fastest are played: first the choice with the lowest bound, then
every choice whose bound is not clearly longer than the fastest time so far. A play stops as soon as it takes clearly
longer than that. Bounds follow from the times on the first network, on which all choices were played, and from the work
of each choice (bounds.py).
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import c_void_p
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from collwise.common.errors import CollwiseError
from collwise.simulator.schedule.bounds import BYTES, LOCAL_WORK, MARGIN, Anchor, Columns, Work
from collwise.simulator.schedule.contest import contest_of
from collwise.simulator.schedule.library import PROBLEM_BYTES, Schedule, load_library
from collwise.simulator.schedule.shared import Sizes
from collwise.simulator.schedule.tables import Doubles, NetworkTables, address
from collwise.simulator.timing import Case

NEAR = 0.02  # cases that are slower than the fastest one by at most this share are always timed
_FAR = 8.0  # the parts of a case's time are found only if it is at most this multiple of the fastest time
# The largest number of networks whose times give lower bounds: the first network, and the latest ones for which the
# networks before them gave no bound of some case.
_MAX_ANCHORS = 4
LITTLE_WORK = 10_000
"""A group with fewer messages plays all cases, since finding out which are needed would take longer. Messages of
processes with the same program count once.
"""

_MAX_TERMS = 3
# A case is played whole if the error of its computed time may exceed this share. Cases whose terms have no `whole` play
# are excepted.
_MAX_ERROR = 0.0101
# A case is not played if its work alone takes longer than the fastest time by this factor. Whatever the errors of times
# are, such a case is slower than the fastest by more than NEAR.
_SURELY_LONGER = 1.05
_NONE = -1


@dataclass(frozen=True)
class LiveTimes:
    """The seconds of each case, nan if it is not timed, and their largest possible error, 0 if exact."""

    seconds: Doubles
    errors: Doubles


@dataclass(frozen=True)
class Terms:
    """The positions of the plays whose weighted sum gives a case's time; other weights of these plays give its error.

    The relative error is taken to be at least `min_error`. The time is at least `first_share` of the time of the first
    play. `whole` is the position of the play of the case itself, for pipelines whose final rate the short plays may not
    reach.
    """

    plays: Sequence[int]
    weights: Sequence[float] = (1.0,)
    error_weights: Sequence[float] = (0.0,)
    min_error: float = 0.0
    first_share: float = 1.0
    whole: int | None = None


@dataclass
class Group:
    """The cases of one process count, and the schedules (with message sizes) that are played for these cases."""

    schedules: list[Schedule] = field(default_factory=list)
    sizes: list[Sizes] = field(default_factory=list)
    all_sizes: Sizes = field(default_factory=lambda: np.zeros(0, np.uint64))
    columns: list[npt.NDArray[np.uint32]] = field(default_factory=list)
    cases: list[int] = field(default_factory=list)
    _position_of: dict[tuple[int, int, bytes], list[int]] = field(default_factory=dict)
    _contests: list[Case] = field(default_factory=list)
    _terms: list[Terms] = field(default_factory=list)
    _anchors: list[Anchor] = field(default_factory=list)

    def position(self, schedule: Schedule, sizes: Sizes) -> int:
        """The position of a play in the group; plays of equal schedules with the same sizes share one position."""
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
        """Makes arrays of the cases; called once, after the last case was added."""
        self.all_sizes = np.unique(np.concatenate([*self.sizes, np.zeros(0, np.uint64)]))
        self.columns = [np.searchsorted(self.all_sizes, sizes).astype(np.uint32) for sizes in self.sizes]
        # A case with fewer terms repeats its first play, with no weight.
        shape = (len(self._terms), _MAX_TERMS)
        self._plays, self._weights, self._error_weights = np.zeros(shape, np.intp), np.zeros(shape), np.zeros(shape)
        for number, terms in enumerate(self._terms):
            count = len(terms.plays)
            self._plays[number] = terms.plays[0]
            self._plays[number, :count] = terms.plays
            self._weights[number, :count], self._error_weights[number, :count] = terms.weights, terms.error_weights
        work = sum(schedule.messages * schedule.programs / schedule.procs for schedule in self.schedules)
        self._has_little_work = work < LITTLE_WORK
        self._min_errors = np.array([terms.min_error for terms in self._terms])
        self._first_shares = np.array([terms.first_share for terms in self._terms])
        with np.errstate(divide="ignore"):
            self._longest = (1 + NEAR) / self._first_shares
        self._whole = np.array([_NONE if terms.whole is None else terms.whole for terms in self._terms], np.intp)
        number_of = {contest: number for number, contest in enumerate(dict.fromkeys(self._contests))}
        self._point = np.array([number_of[contest] for contest in self._contests])
        self._case_columns = Columns.of((self.columns[play] for play in self._plays[:, 0]), len(self.all_sizes))

    @cached_property
    def work(self) -> Work:
        """The work of each play, then the work by which each case's first play exceeds its second play."""
        plays = [(schedule, None) for schedule in self.schedules]
        further = [(self.schedules[first], self.schedules[second]) for first, second, *_ in self._plays]
        columns = [*self.columns, *(self.columns[play] for play in self._plays[:, 0])]
        return Work([*plays, *further], columns, len(self.all_sizes))

    def times(self, tables: NetworkTables, every: bool) -> LiveTimes:
        """The times on a network of the cases that may be the fastest.

        All cases are timed if `every` is true, on the first network, with finite buffers, and if there is little work.
        """
        plays = _Plays(self, tables)
        if every or not self._anchors or tables.buffers is not None or self._has_little_work:
            plays.need(np.unique(self._plays))
            self._need_whole(plays, np.arange(len(self.cases)), np.inf)
            times = self._times(plays)
            if not self._anchors:
                self._first_seconds = times.seconds
                self._first_is_whole = self._must_be_whole(*self._by_terms(plays))
                self._anchors.append(Anchor.without_parts(tables, times.seconds - times.errors))
            return times
        sums = np.max([anchor.min_seconds(tables, self._case_columns) for anchor in self._anchors], axis=0)
        work = (plays.work[self._plays] * self._weights).sum(axis=1) * self._first_shares
        least = np.maximum(sums, work / _SURELY_LONGER)
        guess = np.maximum(np.where(sums > 0, sums * (1 + MARGIN), self._anchors[-1].seconds), work)
        longest, is_open = self._contest(plays, least, guess)
        times = self._times(plays)
        if not sums.all():
            known = np.where(is_open, least, longest)
            known = np.where(np.isnan(times.seconds), known, times.seconds - times.errors)
            latest = self._anchors[1:][2 - _MAX_ANCHORS :]
            self._anchors = [self._anchors[0], *latest, Anchor.without_parts(tables, known)]
        return times

    def find_parts(self, with_reductions: bool) -> None:
        """Finds the parts of the times on the first network, for cases that may be the fastest on other networks."""
        first = self._anchors[0]
        if not np.isnan(first.parts).all() or first.tables.buffers is not None or self._has_little_work:
            return
        if first.tables.shares_nodes:
            return  # times jump with several processes on a node, which would make parts wrong
        found = self._first_seconds
        best = np.full(len(found), np.inf)
        np.minimum.at(best, self._point, found)
        is_near, is_whole = found <= _FAR * best[self._point], self._first_is_whole
        wanted = np.union1d(self._plays[is_near & ~is_whole], self._whole[is_near & is_whole])
        slower: list[Doubles | None] = []
        for kind in range(BYTES):
            if not first.has(kind) or (kind == LOCAL_WORK and not with_reductions):
                slower.append(None)
                continue
            plays = _Plays(self, first.a_little_slower(kind))
            plays.need(wanted)
            slower.append(self._times(plays, is_whole).seconds)
        self._anchors[0] = first.with_parts(found, slower)

    def _times(self, plays: _Plays, is_whole: npt.NDArray[np.bool_] | None = None) -> LiveTimes:
        """The times of the cases from the plays so far; those in `is_whole` get the time of their whole play."""
        found, errors = self._by_terms(plays)
        if is_whole is None:
            is_whole = self._must_be_whole(found, errors)
        own = plays.seconds[self._whole]
        return LiveTimes(np.where(is_whole, own, found), np.where(is_whole, 0 * own, errors))

    def _by_terms(self, plays: _Plays) -> tuple[Doubles, Doubles]:
        """The times that follow from terms, and their errors."""
        terms, work = plays.seconds[self._plays], plays.work[len(self.schedules) :]
        found = (terms * self._weights).sum(axis=1)
        # The short pipelines may run at a higher rate than their busiest process or port can sustain.
        slower = (self._weights[:, 0] - 1) * work - (found - terms[:, 0])
        errors = np.maximum(np.abs((terms * self._error_weights).sum(axis=1)), slower)
        return found, np.maximum(errors, self._min_errors * found)

    def _must_be_whole(self, found: Doubles, errors: Doubles) -> npt.NDArray[np.bool_]:
        return (self._whole != _NONE) & (errors > _MAX_ERROR * found)

    def _need_whole(self, plays: _Plays, cases: npt.NDArray[np.intp], max_seconds: Doubles | float) -> None:
        """Plays the cases that have to be played whole; times above `max_seconds` may stay nan."""
        must_be = self._must_be_whole(*self._by_terms(plays))[cases]
        plays.need(self._whole[cases[must_be]], np.broadcast_to(max_seconds, len(cases))[must_be])

    def _contest(self, plays: _Plays, least: Doubles, guess: Doubles) -> tuple[Doubles, npt.NDArray[np.bool_]]:
        """Plays the cases that may win; returns lower bounds for begun cases, and which cases were not begun."""
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
            self._need_whole(plays, within, (1 + NEAR) * best[self._point[within]])
            is_open[chosen] = False
            np.fmin.at(best, self._point[within], self._times(plays).seconds[within])


class _Plays:
    """The seconds of a group's plays on a network, nan until they are played."""

    def __init__(self, group: Group, tables: NetworkTables) -> None:
        self._group, self._tables = group, tables
        count = len(group.schedules)
        self.seconds = np.full(count, np.nan)
        self._longer_than = np.full(count, -np.inf)

    @cached_property
    def work(self) -> Doubles:
        """A lower bound on the seconds of each play, from the work that it does."""
        return self._group.work.min_seconds(self._tables)

    def need(self, plays: npt.NDArray[np.intp], max_seconds: Doubles | float = np.inf) -> None:
        """Plays those of `plays` whose times are not known yet; times above their `max_seconds` may stay nan."""
        most = np.full(len(self.seconds), -np.inf)
        np.maximum.at(most, plays, max_seconds)
        missing = np.flatnonzero(np.isnan(self.seconds) & (most > self._longer_than))
        if len(missing) == 0:
            return
        found = self._played(missing, most[missing])
        self._longer_than[missing] = most[missing]
        self.seconds[missing] = np.where(np.isfinite(found), found, np.nan)

    def _played(self, plays: npt.NDArray[np.intp], max_seconds: Doubles) -> Doubles:
        count, group = len(plays), self._group
        found = np.zeros(count)
        problem = ctypes.create_string_buffer(PROBLEM_BYTES)
        schedules = (c_void_p * count)(*(group.schedules[play].address for play in plays))
        columns = (c_void_p * count)(*(address(group.columns[play]) for play in plays))
        network, limits, seconds = self._tables.structure, address(max_seconds), address(found)
        play_batch = load_library().schedule_play_batch
        play_batch(count, schedules, columns, network, len(group.all_sizes), limits, seconds, problem, PROBLEM_BYTES)
        if problem.value:
            raise CollwiseError(problem.value.decode())
        return found
